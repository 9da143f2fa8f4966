//! How long a message's body is (RFC 9112 §6.3).

use httparse::Header;

/// How the end of a body is found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Framing {
    /// This many bytes; zero where there is no body.
    Length(u64),
    /// Chunked transfer coding.
    Chunked,
    /// Everything until the peer closes; answers only.
    UntilClose,
}

/// What a request's method asks for.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Asked {
    /// An answer with its body.
    #[default]
    Whole,
    /// HEAD: only the answer's head.
    HeadOnly,
}

/// What a head says about its body and its connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Message {
    /// How the body ends.
    pub framing: Framing,
    /// Whether the connection ends after this message.
    pub close: bool,
    /// Whether the sender waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
    /// 1 for HTTP/1.1, 0 for HTTP/1.0, which knows no chunks.
    pub minor: u8,
}

/// Why a head or body was refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum FramingError {
    /// Not a number, or several that differ.
    #[error("bad content-length")]
    ContentLength,
    /// A transfer coding other than exactly `chunked`.
    #[error("unknown transfer-encoding")]
    TransferEncoding,
    /// Both lengths in one request: a smuggling attempt (RFC 9112 §6.1).
    #[error("content-length together with transfer-encoding")]
    Ambiguous,
    /// A chunk's size, extension or end is not what RFC 9112 §7.1 says.
    #[error("bad chunk")]
    Chunk,
    /// More than `CHUNK_EXTRAS_BYTES_MAX` in extensions and trailers.
    #[error("too long chunk extensions or trailers")]
    ChunkExtras,
}

/// Reads what a request's head says.
///
/// # Errors
/// A length that is missing its meaning; the connection must be closed.
pub fn of_request(minor: u8, headers: &[Header<'_>]) -> Result<Message, FramingError> {
    let fields = Fields::read(minor, headers)?;
    let framing = match (fields.chunked, fields.length) {
        (true, Some(_)) => return Err(FramingError::Ambiguous),
        (true, None) => Framing::Chunked,
        (false, length) => Framing::Length(length.unwrap_or(0)),
    };
    let expects_continue = fields.expects_continue && minor > 0;
    Ok(Message { framing, close: fields.close, expects_continue, minor })
}

/// Reads what an answer's head says.
///
/// # Errors
/// A length that is missing its meaning; the connection must be closed.
pub fn of_response(
    minor: u8,
    status: u16,
    asked: Asked,
    headers: &[Header<'_>],
) -> Result<Message, FramingError> {
    let fields = Fields::read(minor, headers)?;
    let framing = match (fields.chunked, fields.length) {
        _ if asked == Asked::HeadOnly || matches!(status, 100..=199 | 204 | 304) => {
            Framing::Length(0)
        }
        (true, _) => Framing::Chunked,
        (false, Some(length)) => Framing::Length(length),
        (false, None) => Framing::UntilClose,
    };
    let close = fields.close || framing == Framing::UntilClose;
    Ok(Message { framing, close, expects_continue: false, minor })
}

struct Fields {
    chunked: bool,
    length: Option<u64>,
    close: bool,
    expects_continue: bool,
}

impl Fields {
    fn read(minor: u8, headers: &[Header<'_>]) -> Result<Self, FramingError> {
        let mut fields =
            Self { chunked: false, length: None, close: minor == 0, expects_continue: false };
        for header in headers {
            // The length of the name first: most fields are none of these.
            match header.name.len() {
                6 if header.name.eq_ignore_ascii_case("expect") => {
                    fields.expects_continue = header.value.eq_ignore_ascii_case(b"100-continue");
                }
                10 if header.name.eq_ignore_ascii_case("connection") => {
                    fields.read_connection(header.value);
                }
                14 if header.name.eq_ignore_ascii_case("content-length") => {
                    let length = content_length(header.value)?;
                    if fields.length.is_some_and(|before| before != length) {
                        return Err(FramingError::ContentLength);
                    }
                    fields.length = Some(length);
                }
                17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                    if !header.value.eq_ignore_ascii_case(b"chunked") || fields.chunked {
                        return Err(FramingError::TransferEncoding);
                    }
                    fields.chunked = true;
                }
                _ => {}
            }
        }
        Ok(fields)
    }

    fn read_connection(&mut self, value: &[u8]) {
        for option in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            if option.eq_ignore_ascii_case(b"close") {
                self.close = true;
            } else if option.eq_ignore_ascii_case(b"keep-alive") {
                self.close = false;
            }
        }
    }
}

fn content_length(value: &[u8]) -> Result<u64, FramingError> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return Err(FramingError::ContentLength);
    }
    let text = std::str::from_utf8(value).map_err(|_| FramingError::ContentLength)?;
    text.parse().map_err(|_| FramingError::ContentLength)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers<'a>(pairs: &[(&'a str, &'a str)]) -> Vec<Header<'a>> {
        pairs.iter().map(|(name, value)| Header { name, value: value.as_bytes() }).collect()
    }

    fn request(pairs: &[(&str, &str)]) -> Result<Framing, FramingError> {
        of_request(1, &headers(pairs)).map(|message| message.framing)
    }

    #[test]
    fn a_requests_length_is_what_its_head_says() {
        assert_eq!(request(&[]), Ok(Framing::Length(0)));
        assert_eq!(request(&[("Content-Length", "12")]), Ok(Framing::Length(12)));
        assert_eq!(request(&[("transfer-encoding", "Chunked")]), Ok(Framing::Chunked));
    }

    #[test]
    fn an_ambiguous_length_is_refused() {
        let cases = [
            (&[("content-length", "+1")][..], FramingError::ContentLength),
            (&[("content-length", "")], FramingError::ContentLength),
            (&[("content-length", "99999999999999999999")], FramingError::ContentLength),
            (&[("content-length", "1"), ("content-length", "2")], FramingError::ContentLength),
            (&[("transfer-encoding", "gzip, chunked")], FramingError::TransferEncoding),
            (&[("transfer-encoding", "chunked"), ("content-length", "3")], FramingError::Ambiguous),
        ];
        for (pairs, expected) in cases {
            assert_eq!(request(pairs), Err(expected), "{pairs:?}");
        }
    }

    #[test]
    fn an_answer_to_head_or_without_content_has_no_body() {
        let headers = headers(&[("content-length", "10")]);
        let cases =
            [(200, Asked::HeadOnly), (204, Asked::Whole), (304, Asked::Whole), (100, Asked::Whole)];
        for (status, asked) in cases {
            let message = of_response(1, status, asked, &headers).unwrap();
            assert_eq!(message.framing, Framing::Length(0), "{status} {asked:?}");
        }
        let message = of_response(1, 200, Asked::Whole, &headers).unwrap();
        assert_eq!(message.framing, Framing::Length(10));
    }

    #[test]
    fn an_answer_without_length_ends_with_its_connection() {
        let message = of_response(1, 200, Asked::Whole, &[]).unwrap();
        assert_eq!((message.framing, message.close), (Framing::UntilClose, true));
    }

    #[test]
    fn a_connection_closes_when_either_version_says_so() {
        let close = |minor, value: &str| {
            of_request(minor, &headers(&[("connection", value)])).unwrap().close
        };
        assert!(close(1, "te, Close"));
        assert!(!close(1, "upgrade"));
        assert!(close(0, "upgrade"));
        assert!(!close(0, "keep-alive"));
    }
}
