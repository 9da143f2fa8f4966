//! The frames that control and router exchange over the push socket, without I/O.
//!
//! Control connects and pushes; the router never asks. A frame is a `u32` length, a `u8` kind and
//! the body, little-endian; the length counts kind and body. On connecting, the router says
//! [`Hello`]. Then control sends [`Frame::Prepare`] and [`Frame::Activate`], each answered by its
//! counterpart or by [`Refused`], and the router sends [`Stats`] from time to time.
//!
//! Every error is final: the connection is closed, and nothing has changed. A length is checked
//! before anything is buffered for it, a body must be used up exactly, and no text carries control
//! characters into logs or terminals.

mod body;
mod reader;

#[cfg(test)]
mod tests;

use std::time::Duration;

use self::body::{Body, Writer};
pub use self::reader::FrameReader;
use crate::{
    limits::{
        CORES_MAX, COUNTER_NAME_BYTES_MAX, COUNTERS_MAX, FORMATS_MAX, FRAME_BYTES_MAX,
        FRAME_TEXT_BYTES_MAX, NAME_BYTES_MAX, SMALL_FRAME_BYTES_MAX, SNAPSHOT_BYTES_MAX,
    },
    snapshot::SnapshotId,
};

/// The version of these frames, told in [`Hello`]. Unlike frames are not spoken.
pub const PROTOCOL: u16 = 1;

/// One message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Frame<'a> {
    /// Router: who I am and what runs here; its first frame.
    Hello(Hello<'a>),
    /// Control: check this Snapshot and hold it ready. The file as `snapshot::build` made it.
    Prepare(&'a [u8]),
    /// Router: it is good and ready.
    Prepared(SnapshotId),
    /// Router: it is not, or cannot be activated; what ran still runs.
    Refused(Refused<'a>),
    /// Control: let every core evaluate what was prepared under this name.
    Activate(SnapshotId),
    /// Router: every core does.
    Active(Active),
    /// Router: I am alive.
    Stats(Stats<'a>),
}

/// Who a router is and what runs there.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Hello<'a> {
    /// [`PROTOCOL`].
    pub protocol: u16,
    /// Its name, unique among the routers of one control plane.
    pub router: &'a str,
    /// Its group: it refuses Snapshots for others.
    pub group: &'a str,
    /// Version and commit of the program.
    pub build: &'a str,
    /// Snapshot formats that it reads.
    pub formats: Vec<u16>,
    /// What it serves; `None`: nothing yet.
    pub running: Option<SnapshotId>,
}

/// Why a router did not do as it was told.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refused<'a> {
    /// What it was told.
    pub step: Step,
    /// The version, if it could be read.
    pub version: Option<u64>,
    /// A stable label, such as [`crate::snapshot::SnapshotError::reason`].
    pub reason: &'a str,
    /// For a human: the whole chain of causes. Cut at `FRAME_TEXT_BYTES_MAX`.
    pub detail: &'a str,
}

/// What a router was told to do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    /// [`Frame::Prepare`]
    Prepare,
    /// [`Frame::Activate`]
    Activate,
}

/// An Activation that every core has made.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Active {
    /// What runs now.
    pub running: SnapshotId,
    /// From publication to the core's own swap, by core.
    pub swaps: Vec<Micros>,
}

/// A heartbeat.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Stats<'a> {
    /// What it serves; `None`: nothing yet.
    pub running: Option<SnapshotId>,
    /// Since the process began.
    pub uptime_ms: u64,
    /// Whether what it serves is of concern.
    pub health: Health,
    /// Sums since the process began. Names come from closed sets.
    pub counters: Vec<Counter<'a>>,
}

/// How a router is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Health {
    /// Nothing to tell.
    Good,
    /// It serves a Snapshot that has expired, or that it had to take from disk.
    Stale,
    /// It is stopping: new connections go elsewhere.
    Draining,
}

/// A named sum.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Counter<'a> {
    /// Name and labels.
    pub name: &'a str,
    /// The sum.
    pub value: u64,
}

/// A span in whole microseconds, saturating at about 71 minutes.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Micros(pub u32);

impl From<Duration> for Micros {
    fn from(span: Duration) -> Self {
        Self(u32::try_from(span.as_micros()).unwrap_or(u32::MAX))
    }
}

/// Why a frame is refused. Final: the connection is closed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum FrameError {
    /// Length 0: not even a kind.
    #[error("a frame without a kind")]
    Empty,
    /// Above what its kind may have.
    #[error("a frame of {length} bytes, more than {length_max}")]
    TooLong {
        /// What it says.
        length: usize,
        /// What is allowed.
        length_max: usize,
    },
    /// A kind that is not known.
    #[error("unknown kind {0}")]
    UnknownKind(u8),
    /// The body ends within a field.
    #[error("the body is too short for what it says")]
    Short,
    /// Something follows the last field.
    #[error("{bytes} bytes follow the last field")]
    Trailing {
        /// How many.
        bytes: usize,
    },
    /// Not UTF-8, too long, or with control characters.
    #[error("a text is not UTF-8, too long, or has control characters")]
    Text,
    /// More items than the list may have.
    #[error("a list of {count} items, more than {count_max}")]
    TooMany {
        /// How many.
        count: usize,
        /// What is allowed.
        count_max: usize,
    },
    /// A version of 0, or a choice that is none.
    #[error("a field has no such value")]
    Value,
}

impl FrameError {
    /// A stable label.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Empty => "frame_empty",
            Self::TooLong { .. } => "frame_too_long",
            Self::UnknownKind(_) => "frame_kind",
            Self::Short => "frame_short",
            Self::Trailing { .. } => "frame_trailing",
            Self::Text => "frame_text",
            Self::TooMany { .. } => "frame_too_many",
            Self::Value => "frame_value",
        }
    }
}

/// What a frame is, as its kind byte tells.
#[derive(Clone, Copy)]
enum Kind {
    Hello = 1,
    Prepare = 2,
    Prepared = 3,
    Refused = 4,
    Activate = 5,
    Active = 6,
    Stats = 7,
}

impl Kind {
    fn of(byte: u8) -> Result<Self, FrameError> {
        [
            Self::Hello,
            Self::Prepare,
            Self::Prepared,
            Self::Refused,
            Self::Activate,
            Self::Active,
            Self::Stats,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == byte)
        .ok_or(FrameError::UnknownKind(byte))
    }

    /// Of kind and body together.
    const fn length_max(self) -> usize {
        match self {
            Self::Prepare => FRAME_BYTES_MAX,
            Self::Hello
            | Self::Prepared
            | Self::Refused
            | Self::Activate
            | Self::Active
            | Self::Stats => SMALL_FRAME_BYTES_MAX,
        }
    }
}

/// Bytes of the length field.
const LENGTH_BYTES: usize = 4;

/// Reads one push frame from the front of `input`, and how many bytes it took. `None` until it is
/// whole; then `input` need be read again only when more has come.
///
/// # Errors
/// `TooLong` and `UnknownKind` as soon as the length and the kind have come, before a body is
/// buffered; see [`FrameError`].
pub fn read_frame(input: &[u8]) -> Result<Option<(Frame<'_>, usize)>, FrameError> {
    let Some((length, rest)) = input.split_first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
    let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    check_length(length, FRAME_BYTES_MAX)?;
    let Some((kind, _)) = rest.split_first() else { return Ok(None) };
    let kind = Kind::of(*kind)?;
    check_length(length, kind.length_max())?;
    let Some(body) = rest.get(1..length) else { return Ok(None) };
    let mut body = Body(body);
    let frame = body.frame(kind)?;
    body.end()?;
    Ok(Some((frame, LENGTH_BYTES + length)))
}

fn check_length(length: usize, length_max: usize) -> Result<(), FrameError> {
    match length {
        0 => Err(FrameError::Empty),
        _ if length > length_max => Err(FrameError::TooLong { length, length_max }),
        _ => Ok(()),
    }
}

impl<'a> Body<'a> {
    fn frame(&mut self, kind: Kind) -> Result<Frame<'a>, FrameError> {
        Ok(match kind {
            Kind::Hello => Frame::Hello(Hello {
                protocol: self.u16()?,
                router: self.text(NAME_BYTES_MAX)?,
                group: self.text(NAME_BYTES_MAX)?,
                build: self.text(NAME_BYTES_MAX)?,
                formats: self.list(FORMATS_MAX, Self::u16)?,
                running: self.running()?,
            }),
            Kind::Prepare => Frame::Prepare(self.rest()),
            Kind::Prepared => Frame::Prepared(self.id()?),
            Kind::Refused => Frame::Refused(Refused {
                step: match self.u8()? {
                    1 => Step::Prepare,
                    2 => Step::Activate,
                    _ => return Err(FrameError::Value),
                },
                version: Some(self.u64()?).filter(|version| *version != 0),
                reason: self.text(NAME_BYTES_MAX)?,
                detail: self.text(FRAME_TEXT_BYTES_MAX)?,
            }),
            Kind::Activate => Frame::Activate(self.id()?),
            Kind::Active => Frame::Active(Active {
                running: self.id()?,
                swaps: self.list(CORES_MAX, |body| body.u32().map(Micros))?,
            }),
            Kind::Stats => Frame::Stats(Stats {
                running: self.running()?,
                uptime_ms: self.u64()?,
                health: match self.u8()? {
                    0 => Health::Good,
                    1 => Health::Stale,
                    2 => Health::Draining,
                    _ => return Err(FrameError::Value),
                },
                counters: self.list(COUNTERS_MAX, |body| {
                    let name = body.text(COUNTER_NAME_BYTES_MAX)?;
                    Ok(Counter { name, value: body.u64()? })
                })?,
            }),
        })
    }
}

impl Frame<'_> {
    /// Appends the whole frame to `out`. Texts are cut at their limit, and control characters in
    /// them become spaces, so that a report is never lost for its wording.
    ///
    /// # Errors
    /// `TooLong` and `TooMany`, for a frame that the other side would refuse; `out` is as before.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), FrameError> {
        let start = out.len();
        let written = self.write_body(&mut Writer(out));
        let length = out.len() - start - LENGTH_BYTES;
        let written = written.and_then(|kind| check_length(length, kind.length_max()));
        match (written, u32::try_from(length)) {
            (Ok(()), Ok(length)) => {
                out[start..start + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
                Ok(())
            }
            (written, _) => {
                out.truncate(start);
                written.and(Err(FrameError::TooLong { length, length_max: FRAME_BYTES_MAX }))
            }
        }
    }

    /// The frame in a buffer of its own; see [`Frame::write`].
    ///
    /// # Errors
    /// Those of [`Frame::write`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, FrameError> {
        let mut out = Vec::new();
        self.write(&mut out)?;
        Ok(out)
    }

    fn write_body(&self, out: &mut Writer<'_>) -> Result<Kind, FrameError> {
        out.u32(0); // the length, once it is known
        let kind = self.kind();
        out.u8(kind as u8);
        match self {
            Self::Hello(hello) => {
                out.u16(hello.protocol);
                out.text(hello.router, NAME_BYTES_MAX);
                out.text(hello.group, NAME_BYTES_MAX);
                out.text(hello.build, NAME_BYTES_MAX);
                out.list(&hello.formats, FORMATS_MAX, |out, format| out.u16(*format))?;
                out.running(hello.running);
            }
            Self::Prepare(snapshot) => {
                if snapshot.len() > SNAPSHOT_BYTES_MAX {
                    let length = snapshot.len();
                    return Err(FrameError::TooLong { length, length_max: SNAPSHOT_BYTES_MAX });
                }
                out.bytes(snapshot);
            }
            Self::Prepared(id) | Self::Activate(id) => out.id(*id),
            Self::Refused(refused) => {
                out.u8(match refused.step {
                    Step::Prepare => 1,
                    Step::Activate => 2,
                });
                out.u64(refused.version.unwrap_or(0));
                out.text(refused.reason, NAME_BYTES_MAX);
                out.text(refused.detail, FRAME_TEXT_BYTES_MAX);
            }
            Self::Active(active) => {
                out.id(active.running);
                out.list(&active.swaps, CORES_MAX, |out, swap| out.u32(swap.0))?;
            }
            Self::Stats(stats) => {
                out.running(stats.running);
                out.u64(stats.uptime_ms);
                out.u8(match stats.health {
                    Health::Good => 0,
                    Health::Stale => 1,
                    Health::Draining => 2,
                });
                out.list(&stats.counters, COUNTERS_MAX, |out, counter| {
                    out.text(counter.name, COUNTER_NAME_BYTES_MAX);
                    out.u64(counter.value);
                })?;
            }
        }
        Ok(kind)
    }

    const fn kind(&self) -> Kind {
        match self {
            Self::Hello(_) => Kind::Hello,
            Self::Prepare(_) => Kind::Prepare,
            Self::Prepared(_) => Kind::Prepared,
            Self::Refused(_) => Kind::Refused,
            Self::Activate(_) => Kind::Activate,
            Self::Active(_) => Kind::Active,
            Self::Stats(_) => Kind::Stats,
        }
    }
}
