//! Finds a body's data and its end, in whatever pieces it arrives.

use super::framing::{Framing, FramingError};
use crate::limits::CHUNK_EXTRAS_BYTES_MAX;

/// Walks through one body.
#[derive(Debug)]
pub struct BodyDecoder {
    state: State,
    extras_bytes: u64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Length(u64),
    UntilClose,
    ChunkSize {
        size: u64,
        digits: u8,
    },
    ChunkExtension {
        size: u64,
    },
    ChunkSizeEnd {
        size: u64,
    },
    ChunkData(u64),
    ChunkDataCr,
    ChunkDataLf,
    /// At the start of a trailer line.
    Trailer,
    TrailerLine,
    TrailersEnd,
    Done,
}

/// What one step found.
#[derive(Debug, Eq, PartialEq)]
pub struct Piece<'a> {
    /// Bytes of the input that are dealt with; zero where more input is needed.
    pub consumed: usize,
    /// The body's data among them.
    pub data: &'a [u8],
}

impl BodyDecoder {
    /// Starts at the first byte after the head.
    pub fn new(framing: Framing) -> Self {
        let state = match framing {
            Framing::Length(0) => State::Done,
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::ChunkSize { size: 0, digits: 0 },
            Framing::UntilClose => State::UntilClose,
        };
        Self { state, extras_bytes: 0 }
    }

    /// Whether the body's last byte was seen.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Whether a body may end with its connection here.
    pub fn may_end_here(&self) -> bool {
        matches!(self.state, State::Done | State::UntilClose)
    }

    /// Takes input up to the end of one run of data, or all of it.
    ///
    /// # Errors
    /// `Chunk` and `ChunkExtras`; both are final.
    pub fn next<'a>(&mut self, input: &'a [u8]) -> Result<Piece<'a>, FramingError> {
        let mut consumed = 0;
        while consumed < input.len() && !self.is_done() {
            let rest = &input[consumed..];
            if let Some(data) = self.take_data(rest) {
                return Ok(Piece { consumed: consumed + data.len(), data });
            }
            self.take_frame_byte(rest[0])?;
            consumed += 1;
        }
        Ok(Piece { consumed, data: &[] })
    }

    fn take_data<'a>(&mut self, rest: &'a [u8]) -> Option<&'a [u8]> {
        let (remaining, after): (u64, State) = match self.state {
            State::Length(remaining) => (remaining, State::Done),
            State::ChunkData(remaining) => (remaining, State::ChunkDataCr),
            State::UntilClose => return Some(rest),
            _ => return None,
        };
        let length = usize::try_from(remaining).unwrap_or(usize::MAX).min(rest.len());
        let left = remaining - length as u64;
        self.state = match self.state {
            _ if left == 0 => after,
            State::Length(_) => State::Length(left),
            _ => State::ChunkData(left),
        };
        Some(&rest[..length])
    }

    fn take_frame_byte(&mut self, byte: u8) -> Result<(), FramingError> {
        let expect = |wanted: u8, then: State| {
            if byte == wanted { Ok(then) } else { Err(FramingError::Chunk) }
        };
        self.state = match self.state {
            State::ChunkSize { size, digits } => chunk_size(size, digits, byte)?,
            State::ChunkExtension { size } => match byte {
                b'\r' => State::ChunkSizeEnd { size },
                b'\n' => return Err(FramingError::Chunk),
                _ => self.count_extra()?,
            },
            State::ChunkSizeEnd { size: 0 } => expect(b'\n', State::Trailer)?,
            State::ChunkSizeEnd { size } => expect(b'\n', State::ChunkData(size))?,
            State::ChunkDataCr => expect(b'\r', State::ChunkDataLf)?,
            State::ChunkDataLf => expect(b'\n', State::ChunkSize { size: 0, digits: 0 })?,
            State::Trailer => match byte {
                b'\r' => State::TrailersEnd,
                b'\n' => return Err(FramingError::Chunk),
                _ => {
                    self.count_extra()?;
                    State::TrailerLine
                }
            },
            State::TrailerLine if byte == b'\n' => State::Trailer,
            State::TrailerLine => self.count_extra()?,
            State::TrailersEnd => expect(b'\n', State::Done)?,
            State::Length(_) | State::UntilClose | State::ChunkData(_) | State::Done => self.state,
        };
        Ok(())
    }

    /// Stays where it is, for one more byte that carries nothing.
    fn count_extra(&mut self) -> Result<State, FramingError> {
        self.extras_bytes += 1;
        if self.extras_bytes > CHUNK_EXTRAS_BYTES_MAX {
            return Err(FramingError::ChunkExtras);
        }
        Ok(self.state)
    }
}

/// At most 15 digits: no real chunk needs more, and none overflows.
fn chunk_size(size: u64, digits: u8, byte: u8) -> Result<State, FramingError> {
    match (byte, char::from(byte).to_digit(16)) {
        (_, Some(digit)) if digits < 15 => {
            Ok(State::ChunkSize { size: size << 4 | u64::from(digit), digits: digits + 1 })
        }
        (b'\r', _) if digits > 0 => Ok(State::ChunkSizeEnd { size }),
        (b';' | b' ' | b'\t', _) if digits > 0 => Ok(State::ChunkExtension { size }),
        _ => Err(FramingError::Chunk),
    }
}

#[cfg(test)]
mod tests;
