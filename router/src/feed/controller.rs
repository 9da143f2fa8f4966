//! One controller's connection: bytes to frames, frames to the [`Stage`], answers back.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use switchboard_shared::push::{Frame, FrameError, FrameReader, Hello, PROTOCOL, Refused, Step};
use switchboard_shared::snapshot::{FORMAT, SnapshotId};

use super::stage::{Prepared, Stage};
use crate::limits::{FRAME_PATIENCE, UNSENT_BYTES_MAX};
use crate::status::LastRefusal;

/// The connection, and what it holds ready.
#[derive(Debug)]
pub(super) struct Controller {
    pub(super) stream: UnixStream,
    frames: FrameReader,
    /// When the frame that has begun must be whole.
    frame_due: Option<Instant>,
    unsent: Vec<u8>,
    /// When some of `unsent` must have gone.
    unsent_due: Option<Instant>,
    prepared: Option<Prepared>,
}

/// Why a connection ended. None of it changes what runs.
#[derive(Debug, thiserror::Error)]
pub(super) enum End {
    #[error("closed by the controller")]
    Closed,
    #[error("closed by the controller within a frame")]
    Torn,
    #[error("a frame was not whole in time")]
    Slow,
    #[error("answers were not read in time")]
    Unread,
    #[error("a frame was refused")]
    Frame(#[from] FrameError),
    #[error("a frame that only a router sends")]
    Foreign,
    #[error("the connection broke")]
    Broken(#[from] io::Error),
}

impl End {
    /// Whether a frame was at fault.
    pub(super) fn is_bad_frame(&self) -> bool {
        match self {
            Self::Torn | Self::Slow | Self::Frame(_) | Self::Foreign => true,
            Self::Closed | Self::Unread | Self::Broken(_) => false,
        }
    }
}

impl Controller {
    /// Greets a controller that may push.
    pub(super) fn greet(stream: UnixStream, name: &str, stage: &Stage) -> Result<Self, End> {
        stream.set_nonblocking(true)?;
        let mut controller = Self {
            stream,
            frames: FrameReader::new(),
            frame_due: None,
            unsent: Vec::new(),
            unsent_due: None,
            prepared: None,
        };
        let hello = Frame::Hello(Hello {
            protocol: PROTOCOL,
            router: name,
            group: stage.group(),
            build: BUILD,
            formats: vec![FORMAT],
            running: stage.running().map(|running| running.id),
        });
        hello.write(&mut controller.unsent)?;
        Ok(controller)
    }

    /// Whether more should be read: not while answers are left unread.
    pub(super) fn wants_input(&self) -> bool {
        self.unsent.len() < UNSENT_BYTES_MAX
    }

    /// Whether there is something to send.
    pub(super) fn wants_output(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// When to look at it again, even if nothing comes.
    pub(super) fn due(&self) -> Option<Instant> {
        [self.frame_due, self.unsent_due].into_iter().flatten().min()
    }

    /// What it holds ready.
    pub(super) fn prepared(&self) -> Option<SnapshotId> {
        self.prepared.as_ref().map(Prepared::id)
    }

    /// Lets go of what is prepared: it was prepared against a Snapshot that no longer runs.
    pub(super) fn forget_prepared(&mut self) {
        self.prepared = None;
    }

    /// Ends a connection whose frame, or whose reading, takes too long.
    pub(super) fn check_due(&self, now: Instant) -> Result<(), End> {
        if self.frame_due.is_some_and(|due| now >= due) {
            return Err(End::Slow);
        }
        if self.unsent_due.is_some_and(|due| now >= due) { Err(End::Unread) } else { Ok(()) }
    }

    /// Reads one piece and obeys the frames that are whole. One piece per turn, so that a large push
    /// does not keep the others waiting.
    pub(super) fn read(
        &mut self,
        piece: &mut [u8],
        now: Instant,
        stage: &mut Stage,
    ) -> Result<(), End> {
        match self.stream.read(piece) {
            Ok(0) if self.frames.is_within_frame() => Err(End::Torn),
            Ok(0) => Err(End::Closed),
            Ok(length) => {
                self.frames.push(&piece[..length]);
                self.obey(now, stage)
            }
            Err(error) if is_retried(&error) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn obey(&mut self, now: Instant, stage: &mut Stage) -> Result<(), End> {
        while let Some(frame) = self.frames.next_frame()? {
            self.frame_due = None;
            match frame {
                Frame::Prepare(file) => {
                    self.prepared = None; // one at a time: the one before is given up
                    match stage.prepare(file) {
                        Ok(ready) => {
                            Frame::Prepared(ready.id()).write(&mut self.unsent)?;
                            self.prepared = Some(ready);
                        }
                        Err(refusal) => {
                            let noted = stage.note(&refusal, Some(file), None);
                            refuse(Step::Prepare, &noted, &mut self.unsent)?;
                        }
                    }
                }
                Frame::Activate(id) => match stage.activate(&mut self.prepared, id) {
                    Ok(active) => Frame::Active(active).write(&mut self.unsent)?,
                    Err(refusal) => {
                        let noted = stage.note(&refusal, None, Some(id));
                        refuse(Step::Activate, &noted, &mut self.unsent)?;
                    }
                },
                Frame::Hello(_)
                | Frame::Prepared(_)
                | Frame::Refused(_)
                | Frame::Active(_)
                | Frame::Stats(_) => return Err(End::Foreign),
            }
        }
        if !self.frames.is_within_frame() {
            self.frame_due = None;
        } else if self.frame_due.is_none() {
            self.frame_due = Some(now + FRAME_PATIENCE);
        }
        Ok(())
    }

    /// Sends a heartbeat, unless the answers before it were not read yet.
    pub(super) fn heartbeat(&mut self, stats: &Frame<'_>) -> Result<(), End> {
        if self.unsent.is_empty() {
            stats.write(&mut self.unsent)?;
        }
        Ok(())
    }

    /// Sends what the socket takes.
    pub(super) fn write(&mut self, now: Instant) -> Result<(), End> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(0) => return Err(io::Error::from(ErrorKind::WriteZero).into()),
                Ok(length) => {
                    self.unsent.drain(..length);
                    self.unsent_due = None;
                }
                Err(error) if is_retried(&error) => {
                    self.unsent_due.get_or_insert(now + FRAME_PATIENCE);
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// This program, as HELLO tells it.
const BUILD: &str = concat!("switchboard-router ", env!("CARGO_PKG_VERSION"));

fn refuse(step: Step, noted: &LastRefusal, unsent: &mut Vec<u8>) -> Result<(), FrameError> {
    let LastRefusal { version, reason, detail, .. } = noted;
    Frame::Refused(Refused { step, version: *version, reason, detail }).write(unsent)
}

fn is_retried(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests;
