//! What may be written into a head: only what was checked to hold no line end.

use super::bytes::is_field_byte;

/// A header value that cannot end its line: no control byte but TAB (HT-05, response splitting).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FieldValue<'a>(&'a [u8]);

/// A byte that no header value may have.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a header value cannot hold the byte {byte:#04x}")]
pub struct FieldValueError {
    /// The first such byte.
    pub byte: u8,
}

impl<'a> FieldValue<'a> {
    /// No byte.
    pub const EMPTY: Self = Self(b"");

    /// Takes a value from wherever it came: JSON, a cache, a snapshot, a head.
    ///
    /// # Errors
    /// If it holds CR, LF, NUL or another control byte.
    pub fn new(value: &'a [u8]) -> Result<Self, FieldValueError> {
        match value.iter().find(|byte| !is_field_byte(**byte)) {
            None => Ok(Self(value)),
            Some(byte) => Err(FieldValueError { byte: *byte }),
        }
    }

    /// The checked bytes.
    #[must_use]
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }
}

/// A path for a request line: `/…` or `*`, visible ASCII, without query and fragment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RequestPath<'a>(&'a [u8]);

/// Bytes that are no path of a request line.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("not a path of a request line")]
pub struct RequestPathError;

impl<'a> RequestPath<'a> {
    /// `/`
    pub const ROOT: Self = Self(b"/");

    /// Takes the path that a request came with, a part of it, or one from the settings.
    ///
    /// # Errors
    /// If it does not start with `/` (and is not `*`), or holds a blank, `?`, `#`, a control byte or one beyond ASCII.
    pub fn new(path: &'a [u8]) -> Result<Self, RequestPathError> {
        let is_path = path.starts_with(b"/") || path == b"*";
        let has_only_path_bytes =
            path.iter().all(|byte| byte.is_ascii_graphic() && !b"?#".contains(byte));
        if is_path && has_only_path_bytes { Ok(Self(path)) } else { Err(RequestPathError) }
    }

    /// The checked bytes.
    #[must_use]
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }
}

/// Header lines that the router adds, ready to be sent. Reused: nothing is allocated once it has grown.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    lines: Vec<u8>,
}

impl Fields {
    /// No lines.
    #[must_use]
    pub const fn new() -> Self {
        Self { lines: Vec::new() }
    }

    /// Adds `name: value`. The name is ours, so it is a literal.
    pub fn push(&mut self, name: &'static str, value: FieldValue<'_>) {
        debug_assert!(is_token(name), "a header name is a token");
        for part in [name.as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            self.lines.extend_from_slice(part);
        }
    }

    /// Adds `name: number`.
    pub fn push_number(&mut self, name: &'static str, number: u64) {
        self.push(name, FieldValue(itoa::Buffer::new().format(number).as_bytes()));
    }

    /// Adds lines that were rendered from checked names before, each with its CR LF; or nothing.
    pub fn push_lines(&mut self, lines: &[u8]) {
        debug_assert!(lines.is_empty() || lines.ends_with(b"\r\n"), "whole lines");
        self.lines.extend_from_slice(lines);
    }

    /// Forgets the lines, keeps the room.
    pub fn clear(&mut self) {
        self.lines.clear();
    }

    /// All lines, each with its CR LF.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.lines
    }
}

fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(super::bytes::is_token_byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HT-05
    #[test]
    fn a_value_with_a_line_end_cannot_be_written() {
        for byte in 0..=u8::MAX {
            let value = [b'a', byte, b'b'];
            let is_allowed = byte == b'\t' || (byte >= b' ' && byte != 0x7F);
            assert_eq!(FieldValue::new(&value).is_ok(), is_allowed, "{byte:#04x}");
        }
        assert_eq!(FieldValue::new(b"a\r\nX-Evil: 1"), Err(FieldValueError { byte: b'\r' }));
    }

    #[test]
    fn a_path_cannot_end_the_request_line() {
        for right in [&b"/"[..], b"*", b"/v1/models/org%2Fname", b"/v1//predict", b"/\"<>\\^`{|}"] {
            assert!(RequestPath::new(right).is_ok(), "{}", right.escape_ascii());
        }
        for wrong in
            [&b""[..], b"v1", b"/a b", b"/a\r\nX: 1", b"/a?b", b"/a#b", b"/\xC3\xA9", b"/\0", b"**"]
        {
            assert_eq!(RequestPath::new(wrong), Err(RequestPathError), "{}", wrong.escape_ascii());
        }
    }

    #[test]
    fn fields_are_lines() {
        let mut fields = Fields::new();
        fields.push("x-switchboard-arm", FieldValue::new(b"stable").unwrap());
        fields.push_number("x-switchboard-snapshot", 7);
        assert_eq!(
            fields.as_bytes(),
            b"x-switchboard-arm: stable\r\nx-switchboard-snapshot: 7\r\n"
        );
        fields.clear();
        assert_eq!(fields.as_bytes(), b"");
    }
}
