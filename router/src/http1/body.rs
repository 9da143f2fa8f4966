//! Where a body's bytes lie in what arrives, and where the body ends.

use std::ops::Range;

use super::bytes::{is_field_byte, is_token_byte};
use super::error::BodyError;
use super::framing::{RequestFraming, ResponseFraming};
use super::limits::{CHUNK_EXTENSION_BYTES_MAX, CHUNK_SIZE_DIGITS_MAX, TRAILER_BYTES_MAX};

/// What one call took from the front of the input.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Decoded {
    /// Bytes that belong to the body or its framing; the caller drops them and calls again with what follows.
    pub consumed: usize,
    /// Which of them are to be used; empty if only framing was there.
    pub data: Range<usize>,
}

/// Reads one body, in whatever pieces it arrives. Nothing is copied or kept.
///
/// Strict (RFC 9112 §7.1 with erratum 7633): lines of a chunked body end in CR LF, sizes have 1 to 16 digits and
/// nothing else, extensions and trailers are checked, bounded and dropped.
#[derive(Clone, Debug)]
pub struct BodyDecoder {
    state: State,
    limit: u64,
    /// Data bytes seen.
    received: u64,
    /// Sum of the chunk sizes seen, so that a size is refused before its data arrives.
    declared: u64,
    chunk_left: u64,
    extension_bytes: u32,
    trailer_bytes: u32,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Complete,
    Failed(BodyError),
    Length { left: u64 },
    UntilClose,
    Size { value: u64, digits: u8 },
    BlankAfterSize,
    Extension,
    SizeLineFeed,
    Data,
    DataCarriageReturn,
    DataLineFeed,
    TrailerLine,
    TrailerName,
    TrailerValue,
    TrailerLineFeed,
    LastLineFeed,
}

/// What a run of input bytes is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Run {
    Data,
    /// Sizes and line ends: without them the data is not chunked any more.
    Framing,
    /// Extensions and trailers: what remains without them is a clean chunked body.
    Dropped,
}

impl BodyDecoder {
    /// For a request's body, without a limit yet: see [`BodyDecoder::limit`].
    #[must_use]
    pub fn for_request(framing: RequestFraming) -> Self {
        Self::new(match framing {
            RequestFraming::None | RequestFraming::Length(0) => State::Complete,
            RequestFraming::Length(left) => State::Length { left },
            RequestFraming::Chunked => State::Size { value: 0, digits: 0 },
        })
    }

    /// For a response's body, however long: it streams through.
    #[must_use]
    pub fn for_response(framing: ResponseFraming) -> Self {
        Self::new(match framing {
            ResponseFraming::None | ResponseFraming::Length(0) => State::Complete,
            ResponseFraming::Length(left) => State::Length { left },
            ResponseFraming::Chunked => State::Size { value: 0, digits: 0 },
            ResponseFraming::UntilClose => State::UntilClose,
        })
    }

    fn new(state: State) -> Self {
        Self {
            state,
            limit: u64::MAX,
            received: 0,
            declared: 0,
            chunk_left: 0,
            extension_bytes: 0,
            trailer_bytes: 0,
        }
    }

    /// Bounds the body's data, without framing.
    ///
    /// # Errors
    /// `TooLarge` if more was declared or received already: for a declared length that is a 413 before a byte of the
    /// body is read. It stays.
    pub fn limit(&mut self, bytes_max: u64) -> Result<(), BodyError> {
        let announced = match self.state {
            State::Length { left } => self.received.saturating_add(left),
            _ => self.received.max(self.declared),
        };
        if announced > bytes_max {
            return Err(self.fail(BodyError::TooLarge));
        }
        self.limit = bytes_max;
        Ok(())
    }

    /// Takes framing and at most one run of data from the front of `input`: `data` is that run, without framing.
    ///
    /// Call again with what was not consumed until that is empty or the body complete. What stands behind a
    /// complete body is never consumed.
    ///
    /// # Errors
    /// See [`BodyError`]; each stays. Data before the fault was given out by earlier calls.
    pub fn decode(&mut self, input: &[u8]) -> Result<Decoded, BodyError> {
        self.take(input, |run| run == Run::Data)
    }

    /// As [`BodyDecoder::decode`], but `data` is a run of the body *with* its chunked framing, ready to be sent on:
    /// all runs together are the same body in clean chunked coding, without extensions and trailers.
    ///
    /// For a body that is not chunked it does what `decode` does. One body is read by one of the two.
    ///
    /// # Errors
    /// As for [`BodyDecoder::decode`]. The runs before the fault then end inside a chunk or before the last one,
    /// so that the receiver sees a truncated body, too.
    pub fn pass(&mut self, input: &[u8]) -> Result<Decoded, BodyError> {
        self.take(input, |run| run != Run::Dropped)
    }

    /// Whether all of the body was consumed.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.state == State::Complete
    }

    /// Data bytes so far, without framing.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Data bytes to come, if that is known.
    #[must_use]
    pub fn left(&self) -> Option<u64> {
        match self.state {
            State::Complete => Some(0),
            State::Length { left } => Some(left),
            _ => None, // chunked, until close, or failed
        }
    }

    /// The connection ended.
    ///
    /// # Errors
    /// `Truncated` if the body is not complete and not one that ends this way; an earlier error.
    pub fn end_of_input(&mut self) -> Result<(), BodyError> {
        match self.state {
            State::Complete | State::UntilClose => {
                self.state = State::Complete;
                Ok(())
            }
            State::Failed(error) => Err(error),
            State::Length { .. }
            | State::Size { .. }
            | State::BlankAfterSize
            | State::Extension
            | State::SizeLineFeed
            | State::Data
            | State::DataCarriageReturn
            | State::DataLineFeed
            | State::TrailerLine
            | State::TrailerName
            | State::TrailerValue
            | State::TrailerLineFeed
            | State::LastLineFeed => Err(self.fail(BodyError::Truncated)),
        }
    }

    fn take(
        &mut self,
        input: &[u8],
        is_wanted: impl Fn(Run) -> bool,
    ) -> Result<Decoded, BodyError> {
        let mut decoded = Decoded::default();
        while let Some(rest @ [first, ..]) = input.get(decoded.consumed..)
            && !self.is_complete()
        {
            let is_wanted = is_wanted(self.next_run(*first));
            let follows_data = decoded.data.is_empty() || decoded.data.end == decoded.consumed;
            if is_wanted && !follows_data {
                break;
            }
            let bytes = match self.advance(rest, *first) {
                Ok(bytes) => bytes,
                // What was found is given out first; the next call starts at the faulty byte.
                Err(_) if !decoded.data.is_empty() => break,
                Err(error) => return Err(self.fail(error)),
            };
            if is_wanted {
                let start =
                    if decoded.data.is_empty() { decoded.consumed } else { decoded.data.start };
                decoded.data = start..decoded.consumed + bytes;
            }
            decoded.consumed += bytes;
        }
        self.check_invariants();
        Ok(decoded)
    }

    /// What the next byte is; decided without looking further, so that splits change nothing.
    fn next_run(&self, byte: u8) -> Run {
        match (self.state, byte) {
            (State::Length { .. } | State::UntilClose | State::Data, _) => Run::Data,
            (State::Size { .. }, b' ' | b'\t' | b';') => Run::Dropped,
            (State::Extension | State::TrailerLine, b'\r') => Run::Framing,
            (
                State::BlankAfterSize
                | State::Extension
                | State::TrailerLine
                | State::TrailerName
                | State::TrailerValue
                | State::TrailerLineFeed,
                _,
            ) => Run::Dropped,
            (
                State::Complete
                | State::Failed(_)
                | State::Size { .. }
                | State::SizeLineFeed
                | State::DataCarriageReturn
                | State::DataLineFeed
                | State::LastLineFeed,
                _,
            ) => Run::Framing,
        }
    }

    /// Consumes at least the first byte, and no byte of another kind of run. Changes nothing if it fails.
    fn advance(&mut self, input: &[u8], first: u8) -> Result<usize, BodyError> {
        match self.state {
            State::Complete => Ok(0),
            State::Failed(error) => Err(error),
            State::Length { left } => {
                let (bytes, left) = self.take_data(input, left);
                self.state = if left == 0 { State::Complete } else { State::Length { left } };
                Ok(bytes)
            }
            State::Data => {
                let (bytes, left) = self.take_data(input, self.chunk_left);
                self.chunk_left = left;
                if left == 0 {
                    self.state = State::DataCarriageReturn;
                }
                Ok(bytes)
            }
            State::UntilClose => {
                let room = self.limit - self.received;
                if room == 0 {
                    return Err(BodyError::TooLarge);
                }
                Ok(self.take_data(input, room).0)
            }
            State::Extension if is_field_byte(first) => self.take_extension(input),
            _ => {
                self.state = self.after_byte(first)?;
                Ok(1)
            }
        }
    }

    fn take_data(&mut self, input: &[u8], left: u64) -> (usize, u64) {
        let bytes = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
        self.received += bytes as u64;
        (bytes, left - bytes as u64)
    }

    fn take_extension(&mut self, input: &[u8]) -> Result<usize, BodyError> {
        let bytes = input.iter().position(|byte| !is_field_byte(*byte)).unwrap_or(input.len());
        self.count_extension(bytes)?;
        Ok(bytes)
    }

    /// The state after one byte of framing.
    fn after_byte(&mut self, byte: u8) -> Result<State, BodyError> {
        match (self.state, byte) {
            (State::Size { value, digits }, _) => self.after_size_byte(value, digits, byte),
            (State::BlankAfterSize, b' ' | b'\t') => {
                self.count_extension(1).map(|()| State::BlankAfterSize)
            }
            (State::BlankAfterSize, b';') => self.count_extension(1).map(|()| State::Extension),
            (State::BlankAfterSize, _) => Err(BodyError::ChunkSize),
            (State::Extension, b'\r') => Ok(State::SizeLineFeed),
            (State::Extension, b'\n') => Err(BodyError::ChunkEnd),
            (State::Extension, _) => Err(BodyError::ChunkExtension),
            (State::SizeLineFeed, b'\n') if self.chunk_left == 0 => Ok(State::TrailerLine),
            (State::SizeLineFeed, b'\n') => Ok(State::Data),
            (State::DataCarriageReturn, b'\r') => Ok(State::DataLineFeed),
            (State::DataLineFeed, b'\n') => Ok(State::Size { value: 0, digits: 0 }),
            (State::TrailerLine, b'\r') => Ok(State::LastLineFeed),
            (State::LastLineFeed, b'\n') => Ok(State::Complete),
            (
                State::SizeLineFeed
                | State::DataCarriageReturn
                | State::DataLineFeed
                | State::LastLineFeed,
                _,
            ) => Err(BodyError::ChunkEnd),
            (
                State::TrailerLine
                | State::TrailerName
                | State::TrailerValue
                | State::TrailerLineFeed,
                _,
            ) => self.after_trailer_byte(byte),
            (
                State::Complete
                | State::Failed(_)
                | State::Length { .. }
                | State::UntilClose
                | State::Data,
                _,
            ) => {
                debug_assert!(false, "these take runs, not bytes");
                Err(BodyError::ChunkEnd)
            }
        }
    }

    fn after_size_byte(&mut self, value: u64, digits: u8, byte: u8) -> Result<State, BodyError> {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            _ if digits == 0 => return Err(BodyError::ChunkSize),
            b'\r' => return self.end_size(value, 0).map(|()| State::SizeLineFeed),
            b';' => return self.end_size(value, 1).map(|()| State::Extension),
            b' ' | b'\t' => return self.end_size(value, 1).map(|()| State::BlankAfterSize),
            b'\n' => return Err(BodyError::ChunkEnd),
            _ => return Err(BodyError::ChunkSize),
        };
        if digits == CHUNK_SIZE_DIGITS_MAX {
            return Err(BodyError::ChunkSize);
        }
        Ok(State::Size { value: value << 4 | u64::from(digit), digits: digits + 1 })
    }

    /// Refuses a chunk before its data arrives: nothing is ever reserved for a size that was only claimed.
    fn end_size(&mut self, size: u64, extension_bytes: usize) -> Result<(), BodyError> {
        let declared = self.declared.checked_add(size).ok_or(BodyError::ChunkSizeOverflow)?;
        if declared > self.limit {
            return Err(BodyError::TooLarge);
        }
        self.count_extension(extension_bytes)?;
        self.declared = declared;
        self.chunk_left = size;
        Ok(())
    }

    fn count_extension(&mut self, bytes: usize) -> Result<(), BodyError> {
        let total =
            u32::try_from(bytes).ok().and_then(|bytes| self.extension_bytes.checked_add(bytes));
        let total = total.filter(|total| *total <= CHUNK_EXTENSION_BYTES_MAX);
        self.extension_bytes = total.ok_or(BodyError::ChunkExtensionsTooLong)?;
        Ok(())
    }

    fn after_trailer_byte(&mut self, byte: u8) -> Result<State, BodyError> {
        let next = match (self.state, byte) {
            (State::TrailerLine | State::TrailerName, _) if is_token_byte(byte) => {
                State::TrailerName
            }
            (State::TrailerName, b':') => State::TrailerValue,
            (State::TrailerValue, b'\r') => State::TrailerLineFeed,
            (State::TrailerValue, _) if is_field_byte(byte) => State::TrailerValue,
            (State::TrailerLineFeed, b'\n') => State::TrailerLine,
            _ => return Err(BodyError::Trailer),
        };
        if self.trailer_bytes == TRAILER_BYTES_MAX {
            return Err(BodyError::TrailersTooLong);
        }
        self.trailer_bytes += 1;
        Ok(next)
    }

    fn fail(&mut self, error: BodyError) -> BodyError {
        self.state = State::Failed(error);
        error
    }

    fn check_invariants(&self) {
        debug_assert!(self.received <= self.limit, "no more data than allowed");
        debug_assert!(self.declared <= self.limit, "no larger chunks than allowed");
        debug_assert!(self.extension_bytes <= CHUNK_EXTENSION_BYTES_MAX, "extensions are bounded");
        debug_assert!(self.trailer_bytes <= TRAILER_BYTES_MAX, "trailers are bounded");
        debug_assert!(
            self.state != State::Data || self.chunk_left > 0,
            "data is read only while some is left"
        );
    }
}

#[cfg(test)]
mod tests;
