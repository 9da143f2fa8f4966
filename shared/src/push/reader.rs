//! Finds frames in a stream of bytes that comes in any pieces.

use super::{Frame, FrameError, read_frame};

/// Capacity that is kept between frames; the rest of a large one is given back.
const KEPT_BYTES: usize = 64 << 10;

/// Collects what a socket gives and hands out whole frames. Memory grows with what has come, never
/// with what a length claims.
#[derive(Debug, Default)]
pub struct FrameReader {
    bytes: Vec<u8>,
    /// Bytes at the front that were handed out.
    done: usize,
}

impl FrameReader {
    /// Nothing has come.
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), done: 0 }
    }

    /// Adds what was read. Then call [`FrameReader::next_frame`] until it gives `None`: only so is
    /// the memory bounded, by one frame and one piece.
    pub fn push(&mut self, piece: &[u8]) {
        self.forget_done();
        self.bytes.extend_from_slice(piece);
    }

    /// The next whole frame.
    ///
    /// # Errors
    /// See [`read_frame`]; it is final, and the same error comes again.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, FrameError> {
        let Some((frame, length)) = read_frame(&self.bytes[self.done..])? else { return Ok(None) };
        self.done += length;
        Ok(Some(frame))
    }

    /// Whether a frame has begun and is not whole: a close now tears it, and a deadline runs.
    pub fn is_within_frame(&self) -> bool {
        self.done < self.bytes.len()
    }

    fn forget_done(&mut self) {
        if self.done > 0 {
            self.bytes.drain(..self.done);
            self.done = 0;
            self.bytes.shrink_to(KEPT_BYTES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_frame_does_not_keep_its_memory() {
        let large = Frame::Prepare(&vec![0; 8 << 20]).to_bytes().expect("below the limit");
        let small = Frame::Prepare(b"small").to_bytes().expect("below the limit");
        let mut reader = FrameReader::new();
        reader.push(&large);
        assert!(matches!(reader.next_frame(), Ok(Some(Frame::Prepare(_)))));
        reader.push(&small);
        assert!(reader.bytes.capacity() <= 2 * KEPT_BYTES, "{}", reader.bytes.capacity());
        assert_eq!(reader.next_frame(), Ok(Some(Frame::Prepare(b"small"))));
    }

    #[test]
    fn a_claimed_length_takes_no_memory() {
        let mut reader = FrameReader::new();
        reader.push(&[0, 0, 0, 4, 2, 1]);
        assert_eq!(reader.next_frame(), Ok(None));
        assert!(reader.is_within_frame());
        assert!(reader.bytes.capacity() < 100, "{}", reader.bytes.capacity());
    }
}
