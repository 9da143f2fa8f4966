//! Writes chunked framing around data, without copying the data.

/// After a chunk's data.
pub const CHUNK_END: &[u8] = b"\r\n";

/// After the last chunk: exactly once per body (MS-03).
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Hexadecimal digits of a `u64` and CR LF.
const CHUNK_HEADER_BYTES_MAX: usize = 18;

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// What stands before a chunk's data: its size in hexadecimal, CR LF. Lives on the stack.
#[derive(Clone, Copy, Debug)]
pub struct ChunkHeader {
    bytes: [u8; CHUNK_HEADER_BYTES_MAX],
    start: usize,
}

impl ChunkHeader {
    /// For a chunk of `size` bytes. `None` for 0: that would end the body.
    #[must_use]
    pub fn new(size: usize) -> Option<Self> {
        if size == 0 {
            return None;
        }
        let mut bytes = *b"0000000000000000\r\n";
        let mut start = CHUNK_HEADER_BYTES_MAX - CHUNK_END.len();
        let mut left = size;
        for (place, byte) in bytes.iter_mut().enumerate().rev().skip(CHUNK_END.len()) {
            if left == 0 {
                break;
            }
            *byte = *DIGITS.get(left & 0xF).unwrap_or(&b'0');
            left >>= 4;
            start = place;
        }
        Some(Self { bytes, start })
    }

    /// The bytes to be sent.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::ChunkHeader;

    #[test]
    fn a_chunk_header_is_its_size_in_hexadecimal() {
        assert!(ChunkHeader::new(0).is_none(), "an empty chunk would end the body");
        for size in (1..=0x1_0001).chain([usize::MAX - 1, usize::MAX]) {
            assert_eq!(
                ChunkHeader::new(size).unwrap().as_bytes(),
                format!("{size:x}\r\n").as_bytes()
            );
        }
    }
}
