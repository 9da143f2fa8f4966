//! Gives a router its rules as a control plane does: signed Snapshots over its Unix socket.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use switchboard_shared::push::{Active, Frame, FrameError, FrameReader};
use switchboard_shared::snapshot::{BuildError, SnapshotId};

/// Why the router did not take the rules.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// A mistake of ours.
    #[error("the rules make no Snapshot")]
    Build(#[from] BuildError),
    /// The socket broke.
    #[error("cannot speak to the router")]
    Socket(#[from] io::Error),
    /// Another protocol.
    #[error("the router does not speak our frames")]
    Frame(#[from] FrameError),
    /// The router's own word.
    #[error("the router refuses the rules: {reason}: {detail}")]
    Refused {
        /// Stable label.
        reason: String,
        /// For people.
        detail: String,
    },
}

/// How long a router may take to answer one frame.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection to a router's push socket.
#[derive(Debug)]
pub struct Feed {
    stream: UnixStream,
    reader: FrameReader,
    piece: Vec<u8>,
}

impl Feed {
    /// Connects.
    ///
    /// # Errors
    /// Nobody listens there.
    pub fn connect(socket: &Path) -> Result<Self, PushError> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream, reader: FrameReader::new(), piece: vec![0; 64 * 1024] })
    }

    /// Sends a Snapshot and waits until every core evaluates it.
    ///
    /// # Errors
    /// The router's own refusal, for instance.
    pub fn push(&mut self, snapshot: &[u8]) -> Result<Active, PushError> {
        let id = self.prepare(snapshot)?;
        self.activate(id)
    }

    /// Lets the router check a Snapshot and hold it ready.
    ///
    /// # Errors
    /// As of [`Self::push`].
    pub fn prepare(&mut self, snapshot: &[u8]) -> Result<SnapshotId, PushError> {
        self.stream.write_all(&Frame::Prepare(snapshot).to_bytes()?)?;
        self.wait_for(|frame| match frame {
            Frame::Prepared(id) => Some(*id),
            _ => None,
        })
    }

    /// Lets every core evaluate what was prepared.
    ///
    /// # Errors
    /// As of [`Self::push`].
    pub fn activate(&mut self, id: SnapshotId) -> Result<Active, PushError> {
        self.stream.write_all(&Frame::Activate(id).to_bytes()?)?;
        self.wait_for(|frame| match frame {
            Frame::Active(active) => Some(active.clone()),
            _ => None,
        })
    }

    /// The first frame that `pick` takes; the router's greeting and heartbeats come in between.
    fn wait_for<T>(&mut self, pick: impl Fn(&Frame<'_>) -> Option<T>) -> Result<T, PushError> {
        loop {
            while let Some(frame) = self.reader.next_frame()? {
                if let Frame::Refused(refused) = &frame {
                    let (reason, detail) = (refused.reason.to_owned(), refused.detail.to_owned());
                    return Err(PushError::Refused { reason, detail });
                }
                if let Some(answer) = pick(&frame) {
                    return Ok(answer);
                }
            }
            let length = self.stream.read(&mut self.piece)?;
            if length == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            self.reader.push(&self.piece[..length]);
        }
    }
}
