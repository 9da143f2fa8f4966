//! How a message's body is delimited: the rules about `Content-Length` and `Transfer-Encoding` in one place.

use super::error::HeadError;
use super::header::{HeaderKind, HeaderTable};
use super::version::Version;

/// How a request's body ends (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum RequestFraming {
    /// No body was announced.
    #[default]
    None,
    /// This many bytes; below 2^63.
    Length(u64),
    /// Chunked coding.
    Chunked,
}

/// How a response's body ends (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ResponseFraming {
    /// No body: answer to HEAD, 1xx, 204, 304.
    #[default]
    None,
    /// This many bytes; below 2^63.
    Length(u64),
    /// Chunked coding.
    Chunked,
    /// Everything until the connection ends.
    UntilClose,
}

/// What the two fields of a head declare, whoever sent it.
///
/// # Errors
/// Whatever lets two readers see two ends: both fields, a repeated one, a length that is no plain number, a
/// coding that is not exactly `chunked`, a coding in HTTP/1.0.
pub(super) fn declared<const N: usize>(
    headers: &HeaderTable<N>,
    version: Version,
    buffer: &[u8],
) -> Result<RequestFraming, HeadError> {
    let encoding = headers.value(HeaderKind::TransferEncoding, buffer);
    let length = headers.value(HeaderKind::ContentLength, buffer);
    match (encoding, length) {
        (None, None) => Ok(RequestFraming::None),
        (Some(_), Some(_)) => Err(HeadError::LengthAndEncoding),
        (None, Some(_)) if headers.is_repeated(HeaderKind::ContentLength) => {
            Err(HeadError::ContentLengthRepeated)
        }
        (None, Some(value)) => {
            content_length(value).map(RequestFraming::Length).ok_or(HeadError::ContentLength)
        }
        (Some(value), None) => {
            let is_plain = value.eq_ignore_ascii_case(b"chunked")
                && !headers.is_repeated(HeaderKind::TransferEncoding);
            match version {
                Version::Http11 if is_plain => Ok(RequestFraming::Chunked),
                Version::Http11 | Version::Http10 => Err(HeadError::TransferEncoding),
            }
        }
    }
}

/// `1*DIGIT` of at most 19 digits and below 2^63, so that no sum of two lengths wraps.
pub(super) fn content_length(value: &[u8]) -> Option<u64> {
    const DIGITS_MAX: usize = 19; // 10^19 - 1 fits a u64
    if value.is_empty() || value.len() > DIGITS_MAX {
        return None;
    }
    let mut length = 0u64;
    for digit in value {
        if !digit.is_ascii_digit() {
            return None;
        }
        length = length * 10 + u64::from(digit - b'0');
    }
    (length <= i64::MAX.unsigned_abs()).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::content_length;

    #[test]
    fn only_a_plain_number_below_2_to_the_63_is_a_length() {
        assert_eq!(content_length(b"0"), Some(0));
        assert_eq!(content_length(b"007"), Some(7));
        assert_eq!(content_length(b"9223372036854775807"), Some(9_223_372_036_854_775_807));
        for wrong in [
            &b""[..],
            b"+5",
            b"-1",
            b"5x",
            b"0x5",
            b"5 5",
            b"5, 5",
            b"9223372036854775808",
            b"9999999999999999999",
            b"18446744073709551616",
            &[b'1'; 400],
        ] {
            assert_eq!(content_length(wrong), None, "{}", wrong.escape_ascii());
        }
    }
}
