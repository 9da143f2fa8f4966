//! Tells a client exactly what arrived here, so that a test sees what a router sent.

use std::mem::MaybeUninit;

use httparse::Header;
use serde::Serialize;

use super::answer::Answer;
use crate::limits::{BODY_KEPT_BYTES_MAX, HEADERS_MAX};

/// A request's body as far as it is kept.
#[derive(Debug, Default)]
pub struct Received {
    /// All bytes, kept or not.
    pub bytes: u64,
    /// The first `BODY_KEPT_BYTES_MAX`, where the route needs them.
    pub kept: Vec<u8>,
    hasher: Option<Box<blake3::Hasher>>,
}

impl Received {
    /// Only counts bytes.
    pub fn counted() -> Self {
        Self::default()
    }

    /// Keeps and hashes bytes too.
    pub fn kept() -> Self {
        Self { hasher: Some(Box::new(blake3::Hasher::new())), ..Self::default() }
    }

    /// Takes the next piece of the body.
    pub fn take(&mut self, data: &[u8]) {
        self.bytes += data.len() as u64;
        if let Some(hasher) = &mut self.hasher {
            hasher.update(data);
            let room = BODY_KEPT_BYTES_MAX - self.kept.len();
            self.kept.extend_from_slice(&data[..data.len().min(room)]);
        }
    }

    /// Whether bytes are missing from `kept`.
    pub fn is_truncated(&self) -> bool {
        self.bytes != self.kept.len() as u64
    }
}

/// Where the request came in.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The model server's name.
    pub name: &'a str,
    /// Number of the connection on its thread, and the thread's number above it.
    pub connection: u64,
    /// Which request of its connection it is; the first is 1.
    pub connection_request: u64,
}

#[derive(Serialize)]
struct Echo<'a> {
    model_server: &'a str,
    connection: u64,
    connection_request: u64,
    method: &'a str,
    target: &'a str,
    version: &'static str,
    /// In their order, names as written. Each byte is one character (Latin-1), so none is lost.
    headers: Vec<(&'a str, String)>,
    body_bytes: u64,
    body_blake3: Option<String>,
    /// `None` where it is not UTF-8.
    body: Option<&'a str>,
    body_truncated: bool,
}

/// The echo of a request whose raw head was kept.
pub fn echo(head: &[u8], received: &Received, place: Place<'_>) -> Answer {
    let mut headers = [const { MaybeUninit::<Header<'_>>::uninit() }; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut []);
    let parsed = request.parse_with_uninit_headers(head, &mut headers);
    debug_assert!(parsed.is_ok_and(|status| status.is_complete()), "it was parsed before");
    let echo = Echo {
        model_server: place.name,
        connection: place.connection,
        connection_request: place.connection_request,
        method: request.method.unwrap_or_default(),
        target: request.path.unwrap_or_default(),
        version: if request.version == Some(0) { "HTTP/1.0" } else { "HTTP/1.1" },
        headers: request.headers.iter().map(|header| (header.name, latin1(header.value))).collect(),
        body_bytes: received.bytes,
        body_blake3: received.hasher.as_ref().map(|hasher| hasher.finalize().to_hex().to_string()),
        body: std::str::from_utf8(&received.kept).ok(),
        body_truncated: received.is_truncated(),
    };
    match serde_json::to_vec(&echo) {
        Ok(body) => Answer { status: 200, content_type: "application/json", body },
        Err(error) => Answer::problem(500, &error.to_string()),
    }
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_tells_headers_in_order_and_the_body_by_hash() {
        let head = b"POST /echo?a=1 HTTP/1.1\r\nHost: h\r\nB: 2\r\na: \xe9\r\nB: 3\r\n\r\n";
        let mut received = Received::kept();
        received.take(b"hel");
        received.take(b"lo");
        let place = Place { name: "m", connection: 4, connection_request: 2 };
        let answer = echo(head, &received, place);
        let value: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        let headers = serde_json::json!([["Host", "h"], ["B", "2"], ["a", "é"], ["B", "3"]]);
        assert_eq!(value["headers"], headers);
        assert_eq!(value["target"], "/echo?a=1");
        assert_eq!(value["body"], "hello");
        assert_eq!(value["body_blake3"], blake3::hash(b"hello").to_hex().as_str());
        assert_eq!(value["connection_request"], 2);
    }

    #[test]
    fn a_huge_body_is_hashed_whole_and_kept_in_part() {
        let mut received = Received::kept();
        let piece = vec![7; 300_000];
        for _ in 0..5 {
            received.take(&piece);
        }
        assert_eq!(received.kept.len(), BODY_KEPT_BYTES_MAX);
        assert!(received.is_truncated());
        let hash = received.hasher.unwrap().finalize();
        assert_eq!(hash, blake3::hash(&vec![7; 1_500_000]));
    }
}
