//! A Fact's bytes as a value of its declared type.

use switchboard_shared::context::Value;
use switchboard_shared::definition::FactKind;

use crate::serve::json::is_number;

/// A value of the declared type, as it stands in the cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Typed<'a> {
    /// UTF-8 text.
    Text(&'a str),
    /// A number as JSON writes it, and what it is.
    Number(&'a str, f64),
    /// `true` or `false`.
    Boolean(bool),
    /// One JSON value.
    Json(&'a str),
}

/// Reads a value. Numbers are written as JSON has them (RFC 8259 §6) and finite, booleans are `true`, `false`, `1` or
/// `0`. `None`: it is of another type, and is never spliced anywhere.
#[must_use]
pub fn typed(kind: FactKind, bytes: &[u8]) -> Option<Typed<'_>> {
    let text = std::str::from_utf8(bytes).ok()?;
    match kind {
        FactKind::Text => Some(Typed::Text(text)),
        FactKind::Number => {
            let number: f64 = text.parse().ok().filter(|_| is_number(bytes))?;
            number.is_finite().then_some(Typed::Number(text, number))
        }
        FactKind::Boolean => match text {
            "true" | "1" => Some(Typed::Boolean(true)),
            "false" | "0" => Some(Typed::Boolean(false)),
            _ => None,
        },
        FactKind::Json => {
            let is_json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
            is_json.then_some(Typed::Json(text))
        }
    }
}

impl<'a> Typed<'a> {
    /// As a Rule sees it; a JSON value is none that a Rule could ask for.
    #[must_use]
    pub fn to_value(self) -> Option<Value<'a>> {
        match self {
            Self::Text(text) => Some(Value::Text(text)),
            Self::Number(_, number) => Some(Value::Number(number)),
            Self::Boolean(value) => Some(Value::Boolean(value)),
            Self::Json(_) => None,
        }
    }

    /// Appends its JSON literal.
    pub fn write_json(self, out: &mut Vec<u8>) {
        match self {
            Self::Text(text) => write_text(out, text.chars()),
            Self::Number(text, _) | Self::Json(text) => out.extend_from_slice(text.as_bytes()),
            Self::Boolean(true) => out.extend_from_slice(b"true"),
            Self::Boolean(false) => out.extend_from_slice(b"false"),
        }
    }

    /// Appends the text of its value, without quotes.
    pub fn write_plain(self, out: &mut Vec<u8>) {
        match self {
            Self::Text(text) => out.extend_from_slice(text.as_bytes()),
            Self::Number(..) | Self::Boolean(_) | Self::Json(_) => self.write_json(out),
        }
    }
}

/// Appends a JSON string (RFC 8259 §7).
pub fn write_text(out: &mut Vec<u8>, text: impl Iterator<Item = char>) {
    const HEXADECIMAL: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    for character in text {
        match character {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\0'..='\u{1f}' => {
                let code = usize::try_from(u32::from(character)).unwrap_or(0);
                out.extend_from_slice(b"\\u00");
                out.extend(HEXADECIMAL.get(code >> 4));
                out.extend(HEXADECIMAL.get(code & 15));
            }
            _ => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_another_type_is_none() {
        use FactKind::{Boolean, Json, Number, Text};
        for (kind, bytes, expected) in [
            (Text, &b"D\xc3\xa9"[..], Some(Typed::Text("Dé"))),
            (Text, b"\xff", None),
            (Number, b"-1.50e2", Some(Typed::Number("-1.50e2", -150.0))),
            (Number, b"01", None),
            (Number, b"+1", None),
            (Number, b" 1", None),
            (Number, b"inf", None),
            (Number, b"1e400", None),
            (Number, b"", None),
            (Boolean, b"1", Some(Typed::Boolean(true))),
            (Boolean, b"TRUE", None),
            (Json, b"{\"a\":[1]}", Some(Typed::Json("{\"a\":[1]}"))),
            (Json, b"1,\"admin\":true", None),
            (Json, b"", None),
        ] {
            assert_eq!(typed(kind, bytes), expected, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn a_text_is_written_so_that_it_reads_back() {
        for text in ["", "a\"b\\c", "\0\u{1f}\n\u{7f}", "é𝄞\u{2028}"] {
            let mut out = Vec::new();
            write_text(&mut out, text.chars());
            assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }
    }
}
