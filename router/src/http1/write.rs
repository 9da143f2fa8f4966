//! Writes heads: a request's towards a model server, an answer's towards a client, and our own short answers.
//!
//! Everything is appended to the caller's buffer; nothing is allocated once that has grown. Headers that pass are
//! copied in runs, as they came; those of one connection only are left out (HT-01), and the framing is written
//! anew, so that exactly one framing and one `Host` leave.

use super::framing::{RequestFraming, ResponseFraming};
use super::header::{HeaderLine, HeaderSet};
use super::request::RequestView;
use super::response::ResponseView;
use super::server::{Answer, Persistence};
use super::value::{FieldValue, Fields, RequestPath};
use super::version::Version;

/// The interim answer to `Expect: 100-continue`.
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// What is different in the request that the model server gets.
#[derive(Clone, Copy, Debug)]
pub struct RequestEdit<'a> {
    /// The path; the query follows it as it came (HT-04).
    pub path: RequestPath<'a>,
    /// The one `Host`.
    pub host: FieldValue<'a>,
    /// How the body is sent now.
    pub framing: RequestFraming,
    /// Kinds that do not pass, beside those that never do.
    pub dropped: HeaderSet,
    /// Lines that are added, after everything of the client's was cleaned.
    pub fields: &'a Fields,
}

/// Appends the head for a model server.
pub fn request_head(out: &mut Vec<u8>, view: &RequestView<'_>, edit: &RequestEdit<'_>) {
    append(out, &[view.method_bytes(), b" ", edit.path.as_bytes()]);
    if let Some(query) = view.query() {
        append(out, &[b"?", query]);
    }
    append(out, &[b" HTTP/1.1\r\nhost: ", edit.host.as_bytes(), b"\r\n"]);
    copy_headers(out, view.table().lines(), view.buffer(), edit.dropped);
    match edit.framing {
        RequestFraming::None => {}
        RequestFraming::Length(length) => content_length(out, length),
        RequestFraming::Chunked => append(out, &[TRANSFER_ENCODING]),
    }
    append(out, &[edit.fields.as_bytes(), b"\r\n"]);
}

/// What is different in the answer that the client gets.
#[derive(Clone, Copy, Debug)]
pub struct ResponseEdit<'a> {
    /// Framing and persistence, as [`super::ServerConnection::begin_answer`] decided.
    pub answer: Answer,
    /// Kinds that do not pass, beside those that never do.
    pub dropped: HeaderSet,
    /// Lines that are added.
    pub fields: &'a Fields,
}

/// Appends the head of a model server's answer, for the client.
pub fn response_head(out: &mut Vec<u8>, view: &ResponseView<'_>, edit: &ResponseEdit<'_>) {
    status_line(out, view.head().status(), view.reason());
    copy_headers(out, view.table().lines(), view.buffer(), edit.dropped);
    end_answer_head(out, &edit.answer, edit.fields);
}

/// An answer of the router's own.
#[derive(Clone, Copy, Debug)]
pub struct LocalResponse<'a> {
    /// The status, 200 and above.
    pub status: u16,
    /// `Content-Type` of the body.
    pub content_type: &'static str,
    /// The whole body; announce it as [`super::AnswerBody::Length`].
    pub body: &'a [u8],
    /// Lines that are added.
    pub fields: &'a Fields,
}

/// Appends a whole answer of the router's own; without its body if the client asked with HEAD.
pub fn local_response(out: &mut Vec<u8>, response: &LocalResponse<'_>, answer: &Answer) {
    status_line(out, response.status, reason_phrase(response.status).as_bytes());
    append(out, &[b"content-type: ", response.content_type.as_bytes(), b"\r\n"]);
    end_answer_head(out, answer, response.fields);
    if answer.framing != ResponseFraming::None {
        debug_assert_eq!(
            answer.framing,
            ResponseFraming::Length(response.body.len() as u64),
            "as announced"
        );
        out.extend_from_slice(response.body);
    }
}

const TRANSFER_ENCODING: &[u8] = b"transfer-encoding: chunked\r\n";

fn status_line(out: &mut Vec<u8>, status: u16, reason: &[u8]) {
    append(
        out,
        &[b"HTTP/1.1 ", itoa::Buffer::new().format(status).as_bytes(), b" ", reason, b"\r\n"],
    );
}

fn end_answer_head(out: &mut Vec<u8>, answer: &Answer, fields: &Fields) {
    if let Some(length) = answer.content_length {
        content_length(out, length);
    }
    if answer.framing == ResponseFraming::Chunked {
        append(out, &[TRANSFER_ENCODING]);
    }
    match (answer.persistence, answer.version) {
        (Persistence::Close, _) => append(out, &[b"connection: close\r\n"]),
        (Persistence::KeepAlive, Version::Http10) => append(out, &[b"connection: keep-alive\r\n"]),
        (Persistence::KeepAlive, Version::Http11) => {}
    }
    append(out, &[fields.as_bytes(), b"\r\n"]);
}

/// Copies the lines that pass. Between the first byte of a name and that of the next lies nothing but that line,
/// so neighbours that pass are one copy.
fn copy_headers(out: &mut Vec<u8>, lines: &[HeaderLine], head: &[u8], dropped: HeaderSet) {
    let lines_end = head.len().saturating_sub(b"\r\n".len());
    let mut run_start = None;
    for line in lines {
        match (line.is_copied(dropped), run_start) {
            (true, None) => run_start = Some(line.name.start()),
            (false, Some(start)) => {
                out.extend_from_slice(head.get(start..line.name.start()).unwrap_or_default());
                run_start = None;
            }
            (true, Some(_)) | (false, None) => {}
        }
    }
    if let Some(start) = run_start {
        out.extend_from_slice(head.get(start..lines_end).unwrap_or_default());
    }
}

fn content_length(out: &mut Vec<u8>, length: u64) {
    append(out, &[b"content-length: ", itoa::Buffer::new().format(length).as_bytes(), b"\r\n"]);
}

fn append(out: &mut Vec<u8>, parts: &[&[u8]]) {
    for part in parts {
        out.extend_from_slice(part);
    }
}

/// The usual reason phrase of a status; empty for one that the router never sends.
#[must_use]
pub fn reason_phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        202 => "Accepted",
        204 => "No Content",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        411 => "Length Required",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}

#[cfg(test)]
mod tests;
