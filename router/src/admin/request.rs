//! Reads a request's head: method and path are all that the pages need.

use crate::limits::{ADMIN_HEAD_BYTES_MAX, ADMIN_HEADERS_MAX};

/// What is asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Request<'a> {
    pub(super) method: Method,
    /// Without the query.
    pub(super) path: &'a str,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Method {
    Get,
    Head,
}

/// Why a head is not answered with a page.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(super) enum RequestError {
    #[error("malformed request")]
    Malformed,
    #[error("only GET and HEAD are known here")]
    Method,
    #[error("request head too large")]
    TooLarge,
}

impl RequestError {
    pub(super) const fn status(self) -> u16 {
        match self {
            Self::Malformed => 400,
            Self::Method => 405,
            Self::TooLarge => 431,
        }
    }
}

/// Reads the head at the front of `input`; `None` until it is whole.
pub(super) fn parse(input: &[u8]) -> Result<Option<Request<'_>>, RequestError> {
    let mut headers = [httparse::EMPTY_HEADER; ADMIN_HEADERS_MAX];
    let mut head = httparse::Request::new(&mut headers);
    match head.parse(input) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if input.len() < ADMIN_HEAD_BYTES_MAX => return Ok(None),
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return Err(RequestError::TooLarge);
        }
        Err(_) => return Err(RequestError::Malformed),
    }
    let method = match head.method {
        Some("GET") => Method::Get,
        Some("HEAD") => Method::Head,
        _ => return Err(RequestError::Method),
    };
    let target = head.path.filter(|path| path.starts_with('/')).ok_or(RequestError::Malformed)?;
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    Ok(Some(Request { method, path }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_once_it_is_whole() {
        let head = b"GET /metrics?name=x HTTP/1.1\r\nHost: a\r\n\r\n";
        for length in 0..head.len() {
            assert_eq!(parse(&head[..length]), Ok(None), "{length}");
        }
        let request = Request { method: Method::Get, path: "/metrics" };
        assert_eq!(parse(head), Ok(Some(request)));
        let head = parse(b"HEAD /healthz HTTP/1.0\r\n\r\n");
        assert_eq!(head, Ok(Some(Request { method: Method::Head, path: "/healthz" })));
    }

    #[test]
    fn anything_else_has_its_status() {
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(ADMIN_HEADERS_MAX + 1));
        let long = "x".repeat(ADMIN_HEAD_BYTES_MAX);
        for (head, status) in [
            ("POST / HTTP/1.1\r\n\r\n", 405),
            ("FOO1 / HTTP/1.1\r\n\r\n", 405),
            ("GET http://a/ HTTP/1.1\r\n\r\n", 400),
            ("GET * HTTP/1.1\r\n\r\n", 400),
            ("GET / HTTP/2.0\r\n\r\n", 400),
            ("\0", 400),
            ("GET / HTTP/1.1\r\na b: c\r\n\r\n", 400),
            (&many, 431),
            (&long, 431),
        ] {
            assert_eq!(parse(head.as_bytes()).unwrap_err().status(), status, "{head:.60}");
        }
    }
}
