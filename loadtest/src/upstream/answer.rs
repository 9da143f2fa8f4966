//! Answers as bytes on the wire. Pure.

use std::io::Write;

use serde_json::json;

/// One answer before it is rendered.
#[derive(Clone, Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Media type of the body.
    pub content_type: &'static str,
    /// The whole body.
    pub body: Vec<u8>,
}

/// How an answer goes onto the wire.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Shape {
    /// The request was HEAD: the head tells the body's length, the body stays away.
    pub head_only: bool,
    /// The connection ends after it.
    pub close: bool,
    /// Chunked transfer coding instead of Content-Length.
    pub chunked: bool,
}

/// Data bytes of one chunk: several in a 1 KiB answer, so that a relay has something to join.
const CHUNK_BYTES: usize = 400;

impl Answer {
    /// A JSON answer.
    pub fn json(status: u16, body: &serde_json::Value) -> Self {
        Self { status, content_type: "application/json", body: body.to_string().into_bytes() }
    }

    /// An error as `application/problem+json` (RFC 9457).
    pub fn problem(status: u16, detail: &str) -> Self {
        let body = json!({ "status": status, "title": reason(status), "detail": detail });
        Self { content_type: "application/problem+json", ..Self::json(status, &body) }
    }

    /// A JSON object that tells the server's name, filled up to `bytes`.
    pub fn plain(name: &str, bytes: usize) -> Self {
        let empty = json!({ "model_server": name, "padding": "" }).to_string().len();
        let padding = "x".repeat(bytes.saturating_sub(empty));
        Self::json(200, &json!({ "model_server": name, "padding": padding }))
    }

    /// An answer of the Open Inference Protocol (V2) with the server's name as its one output.
    pub fn infer(name: &str, model: &str) -> Self {
        let output =
            json!({ "name": "model_server", "datatype": "BYTES", "shape": [1], "data": [name] });
        let body = json!({
            "model_name": model,
            "model_version": "1",
            "model_server": name,
            "outputs": [output],
        });
        Self::json(200, &body)
    }

    /// The whole message, head and body.
    pub fn render(&self, name: &str, shape: Shape) -> Vec<u8> {
        let mut wire = Vec::with_capacity(256 + name.len() + self.body.len());
        let length = (!shape.chunked).then_some(self.body.len());
        head(&mut wire, self.status, self.content_type, name, length, shape);
        if shape.head_only {
            return wire;
        }
        if shape.chunked {
            for piece in self.body.chunks(CHUNK_BYTES) {
                chunk(&mut wire, piece);
            }
            wire.extend_from_slice(LAST_CHUNK);
        } else {
            wire.extend_from_slice(&self.body);
        }
        wire
    }
}

/// Ends a chunked body.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Writes a head. Without a `length` the body is chunked, or ends with the connection.
pub fn head(
    wire: &mut Vec<u8>,
    status: u16,
    content_type: &str,
    name: &str,
    length: Option<usize>,
    shape: Shape,
) {
    // Writing to memory cannot fail.
    drop(write!(wire, "HTTP/1.1 {status} {}\r\ncontent-type: {content_type}\r\n", reason(status)));
    drop(write!(wire, "x-model-server: {name}\r\n"));
    if let Some(length) = length {
        drop(write!(wire, "content-length: {length}\r\n"));
    } else if shape.chunked {
        wire.extend_from_slice(b"transfer-encoding: chunked\r\n");
    }
    if shape.close {
        wire.extend_from_slice(b"connection: close\r\n");
    }
    wire.extend_from_slice(b"\r\n");
}

/// Writes one chunk; `data` must not be empty, or it would end the body.
pub fn chunk(wire: &mut Vec<u8>, data: &[u8]) {
    debug_assert!(!data.is_empty());
    drop(write!(wire, "{:x}\r\n", data.len()));
    wire.extend_from_slice(data);
    wire.extend_from_slice(b"\r\n");
}

/// The phrase of the statuses that this server sends by itself.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Status",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_answer_has_exactly_the_asked_size() {
        for bytes in [64, 1024, 65_536] {
            assert_eq!(Answer::plain("m\"1", bytes).body.len(), bytes);
        }
        // Where the name does not fit, the answer is still whole JSON.
        let small = Answer::plain("a-name", 3).body;
        let value: serde_json::Value = serde_json::from_slice(&small).unwrap();
        assert_eq!(value["model_server"], "a-name");
    }

    #[test]
    fn a_message_is_rendered_in_the_asked_shape() {
        let answer = Answer { status: 200, content_type: "text/plain", body: b"hello".to_vec() };
        let text = |shape| String::from_utf8(answer.render("m", shape)).unwrap();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nx-model-server: m\r\n";
        assert_eq!(text(Shape::default()), format!("{head}content-length: 5\r\n\r\nhello"));
        assert_eq!(
            text(Shape { head_only: true, ..Shape::default() }),
            format!("{head}content-length: 5\r\n\r\n")
        );
        assert_eq!(
            text(Shape { chunked: true, close: true, head_only: false }),
            format!(
                "{head}transfer-encoding: chunked\r\nconnection: close\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
            )
        );
    }
}
