//! Finds the end of a head, line by line, and remembers how far it looked.
//!
//! A head that arrives byte by byte is looked at once, not once per byte, and what only costs the sender a line
//! (a bare LF, a folded line, a line too many) is refused when that line ends, not when the head's deadline does.

use super::error::HeadError;

/// What may precede the first line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum EmptyLine {
    /// Requests: a client may send CR LF after its last body (RFC 9112 §2.2).
    OneTolerated,
    /// Responses: their first byte is the `H` of the version.
    Refused,
}

/// Bounds for one kind of head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) head_bytes_max: usize,
    pub(super) first_line_bytes_max: usize,
    pub(super) headers_max: usize,
    pub(super) empty_line: EmptyLine,
}

/// Where a complete head lies in the buffer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct HeadExtent {
    /// First byte of the first line: 0, or 2 after an empty line.
    pub(super) start: usize,
    /// Past the LF of the empty line.
    pub(super) end: usize,
}

/// How far a head was looked at. Reset for each head.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scan {
    /// Everything before this was looked at.
    next: usize,
    line_start: usize,
    start: usize,
    /// Past the first line's LF; 0 while there is none.
    first_line_end: usize,
    lines: usize,
}

impl Scan {
    /// Looks at what arrived since the last call. `None`: the head is not whole yet.
    ///
    /// The result for a prefix of a buffer is the result for the buffer, or `None`: how the bytes were split
    /// changes nothing.
    ///
    /// # Errors
    /// The first line, in the order of arrival, that no head may have.
    pub(super) fn advance(
        &mut self,
        buffer: &[u8],
        bounds: &Bounds,
    ) -> Result<Option<HeadExtent>, HeadError> {
        let seen = buffer.get(..bounds.head_bytes_max).unwrap_or(buffer);
        while let Some(distance) = memchr::memchr(b'\n', seen.get(self.next..).unwrap_or_default())
        {
            let line_end = self.next + distance;
            let line = seen.get(self.line_start..line_end).unwrap_or_default();
            self.next = line_end + 1;
            self.check_first_line_length(line.len(), bounds)?;
            if self.line(line, bounds)? == Line::EndOfHead {
                return Ok(Some(HeadExtent { start: self.start, end: self.next }));
            }
            self.line_start = self.next;
        }
        self.next = seen.len();
        self.check_first_line_length(self.next - self.line_start, bounds)?;
        if buffer.len() >= bounds.head_bytes_max {
            return Err(HeadError::HeadTooLarge);
        }
        Ok(None)
    }

    /// Whether nothing was looked at yet.
    pub(super) fn is_fresh(&self) -> bool {
        self.next == 0
    }

    /// Range of the first line with its CR LF, once it has ended.
    pub(super) fn first_line(&self) -> Option<(usize, usize)> {
        (self.first_line_end > 0).then_some((self.start, self.first_line_end))
    }

    /// Where the line starts that has not ended yet.
    pub(super) fn line_start(&self) -> usize {
        self.line_start
    }

    /// Whether nothing but at most one empty line was seen.
    pub(super) fn is_untouched(&self, buffer: &[u8]) -> bool {
        self.lines == 0 && matches!(buffer.get(self.start..), None | Some(b"" | b"\r"))
    }

    fn line(&mut self, line: &[u8], bounds: &Bounds) -> Result<Line, HeadError> {
        let Some((b'\r', content)) = line.split_last() else { return Err(HeadError::BareLineFeed) };
        match (content, self.lines) {
            ([], 0) if bounds.empty_line == EmptyLine::OneTolerated && self.start == 0 => {
                self.start = self.next;
                return Ok(Line::Continues);
            }
            ([], 0) => return Err(HeadError::EmptyLines),
            ([], _) => return Ok(Line::EndOfHead),
            ([b' ' | b'\t', ..], 1..) => return Err(HeadError::FoldedLine),
            _ => {}
        }
        if self.lines == 0 {
            self.first_line_end = self.next;
        }
        self.lines += 1;
        if self.lines > bounds.headers_max + 1 {
            return Err(HeadError::HeadersTooMany);
        }
        Ok(Line::Continues)
    }

    fn check_first_line_length(&self, bytes: usize, bounds: &Bounds) -> Result<(), HeadError> {
        if self.lines == 0 && bytes > bounds.first_line_bytes_max {
            return Err(HeadError::TargetTooLong);
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Line {
    Continues,
    EndOfHead,
}

#[cfg(test)]
mod tests {
    #![expect(clippy::indexing_slicing, reason = "a test may stop at once")]

    use super::*;

    const BOUNDS: Bounds = Bounds {
        head_bytes_max: 64,
        first_line_bytes_max: 32,
        headers_max: 2,
        empty_line: EmptyLine::OneTolerated,
    };

    fn byte_by_byte(bytes: &[u8]) -> Result<Option<HeadExtent>, HeadError> {
        let mut scan = Scan::default();
        for end in 0..=bytes.len() {
            let seen = scan.advance(&bytes[..end], &BOUNDS)?;
            if seen.is_some() {
                return Ok(seen);
            }
        }
        Ok(None)
    }

    #[test]
    fn the_end_is_found_however_the_bytes_arrive() {
        let long_line = [b'a'; 40];
        let long_head = [&b"GET / HTTP/1.1\r\na: "[..], &[b'b'; 60]].concat();
        let found = |start, end| Ok(Some(HeadExtent { start, end }));
        for (bytes, expected) in [
            (&b"G\r\n\r\nrest"[..], found(0, 5)),
            (b"\r\nG\r\na: b\r\n\r\n", found(2, 13)),
            (b"G\r\na: b\r\n", Ok(None)),
            (b"\r\n\r\nG", Err(HeadError::EmptyLines)),
            (b"\n", Err(HeadError::BareLineFeed)),
            (b"G\n\n", Err(HeadError::BareLineFeed)),
            (b"G\r\na: b\n\r\n", Err(HeadError::BareLineFeed)),
            (b"G\r\na: b\r\n c\r\n\r\n", Err(HeadError::FoldedLine)),
            (b"G\r\na:\r\nb:\r\nc:\r\n", Err(HeadError::HeadersTooMany)),
            (&long_line, Err(HeadError::TargetTooLong)),
            (&long_head, Err(HeadError::HeadTooLarge)),
        ] {
            assert_eq!(
                Scan::default().advance(bytes, &BOUNDS),
                expected,
                "{}",
                bytes.escape_ascii()
            );
            assert_eq!(byte_by_byte(bytes), expected, "byte by byte: {}", bytes.escape_ascii());
        }
    }

    #[test]
    fn a_head_of_exactly_the_limit_is_too_large_only_without_its_end() {
        let mut head = b"GET / HTTP/1.1\r\na: ".to_vec();
        head.resize(60, b'b');
        head.extend_from_slice(b"\r\n\r\n");
        assert_eq!(head.len(), BOUNDS.head_bytes_max);
        assert_eq!(
            Scan::default().advance(&head, &BOUNDS).map(|found| found.map(|extent| extent.end)),
            Ok(Some(64))
        );
        let unended = head[..head.len() - 1].to_vec();
        assert_eq!(Scan::default().advance(&unended, &BOUNDS), Ok(None));
        head[63] = b'b';
        assert_eq!(Scan::default().advance(&head, &BOUNDS), Err(HeadError::HeadTooLarge));
        head[63] = b'\n';
        head.insert(20, b'b');
        assert_eq!(Scan::default().advance(&head, &BOUNDS), Err(HeadError::HeadTooLarge));
    }

    #[test]
    fn what_was_looked_at_is_not_looked_at_again() {
        let head = b"GET / HTTP/1.1\r\na: bbbbbbbb\r\n";
        let mut scan = Scan::default();
        for end in 0..=head.len() {
            assert_eq!(scan.advance(&head[..end], &BOUNDS), Ok(None));
            assert_eq!(scan.next, end);
        }
    }
}
