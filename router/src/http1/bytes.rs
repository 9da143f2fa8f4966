//! Which bytes may stand where (RFC 9110 §5).

/// A character of a token: method, field name (§5.6.2).
pub(super) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// A character of a field value (§5.5): visible, blank, or obs-text; no control byte.
pub(super) fn is_field_byte(byte: u8) -> bool {
    matches!(byte, b'\t' | b' '..=b'~' | 0x80..)
}
