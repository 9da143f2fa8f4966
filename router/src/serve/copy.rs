//! The copy of a request that a shadow target drew: the head's few lines as they are decided on, a body that
//! is in memory when the answer is over, so that it costs its client nothing, and what streams as it passes.

use std::cell::Cell;
use std::ops::Range;

use super::request::Request;
use crate::counters::NotCopied;
use crate::http1::{
    AnswerEnd, Header, HeaderKind, Recoding, RequestFraming, RequestView, ResponseFraming,
    ResponseView,
};
use crate::net::buffer::Buffer;
use crate::net::clock;
use crate::shadow::copied::{Copied, Framing, Subject};
use crate::worker::Worker;

/// The copy of a request, if there is one: almost always there is none, and asking costs a load.
#[derive(Default)]
pub struct RequestCopy(Cell<Option<Box<Copied>>>);

impl RequestCopy {
    /// What the worker's [`crate::shadow::copies::Copies::begin`] gave.
    pub fn new(copied: Option<Box<Copied>>) -> Self {
        Self(Cell::new(copied))
    }

    /// Changes it, if there is one.
    #[inline]
    pub fn change(&self, change: impl FnOnce(&mut Copied)) {
        if let Some(mut copied) = self.0.take() {
            change(&mut copied);
            self.0.set(Some(copied));
        }
    }
}

/// A body that streams begins: what is declared too large is given up before a byte is copied.
pub fn request_begins(worker: &Worker, request: &Request) {
    request.copy.change(|copied| match request.framing {
        RequestFraming::Length(length) if !worker.copies.fits(length) => {
            worker.copies.give_up(copied, NotCopied::TooLarge);
        }
        RequestFraming::None | RequestFraming::Length(_) => {}
        RequestFraming::Chunked => copied.request_body.framing = Framing::Chunked,
    });
}

/// A piece of a streaming body went on, as it was framed.
#[inline]
pub fn request_passes(worker: &Worker, request: &Request, bytes: &[u8]) {
    request.copy.change(|copied| worker.copies.append_request(copied, bytes));
}

/// The streaming body came to its end.
pub fn request_ended(request: &Request) {
    request.copy.change(|copied| copied.is_whole = true);
}

/// The answer's head is here.
pub fn answer_begins(
    request: &Request,
    head: &ResponseView<'_>,
    recoding: Recoding,
    framing: ResponseFraming,
) {
    request.copy.change(|copied| {
        let start = copied.text_end();
        write_headers(copied, head.headers(), is_kept_of_answer);
        copied.parts.response_headers = start..copied.text_end();
        if recoding == Recoding::Pass && framing == ResponseFraming::Chunked {
            copied.response_body.framing = Framing::Chunked;
        }
    });
}

/// A piece of the answer goes to the client, as it is framed.
#[inline]
pub fn answer_passes(worker: &Worker, request: &Request, bytes: &[u8]) {
    request.copy.change(|copied| {
        if copied.captures_response {
            worker.copies.append_response(copied, bytes);
        }
    });
}

/// The answer is over.
pub fn answer_ended(request: &Request, end: AnswerEnd) {
    request.copy.change(|copied| copied.is_complete = end == AnswerEnd::Whole);
}

/// Copies what a record tells of the head. Here, because the head is forgotten when the answer ends.
pub fn head_is_read(request: &Request, head: &RequestView<'_>) {
    request.copy.change(|copied| {
        copied.parts.id = match (&request.made_id, head.value(HeaderKind::RequestId)) {
            (Some(id), _) => copied.write(id.as_bytes()),
            (None, Some(id)) => copied.write(id),
            (None, None) => Range::default(),
        };
        if !copied.targets.is_empty() {
            copy_head(request, head, copied);
        }
    });
}

/// Copies a body that is in memory, of a request that is over, and hands all of it over.
pub fn finish(worker: &Worker, request: &Request, input: &Buffer) {
    let Some(mut copied) = request.copy.0.take() else { return };
    write_facts(request, &mut copied);
    match request.body.whole(input) {
        _ if copied.targets.is_empty() => {}
        Some(body) => worker.copies.append_request(&mut copied, body),
        None if copied.is_whole => {}
        None => worker.copies.give_up(&mut copied, NotCopied::RequestCut),
    }
    copied.subject = Some(Subject {
        active: request.view.for_copies(),
        objective: request.objective,
        decision: request.decision,
        decided_arm: request.decided_arm,
        model_place: request.model_literal.clone(),
        started: request.started,
        ended: clock::now(),
        served: request.served.get(),
    });
    worker.copies.offer(&worker.counters, copied);
}

/// The Facts as their model server got them; after a Fallout there are none.
fn write_facts(request: &Request, copied: &mut Copied) {
    let Some(served) = request.facts.as_ref().filter(|served| !served.is_empty()) else { return };
    let payload = request.view.active.snapshot.payload();
    let start = copied.write(b"{").start;
    for (place, (fact, literal)) in served.iter().enumerate() {
        let opening: &[u8] = if place == 0 { b"\"" } else { b",\"" };
        copied.write(opening);
        // A Fact's name has no character that JSON escapes.
        copied.write(payload.fact(fact).name.as_bytes());
        copied.write(b"\":");
        copied.write(literal);
    }
    copied.write(b"}");
    copied.parts.facts = start..copied.text_end();
}

fn copy_head(request: &Request, head: &RequestView<'_>, copied: &mut Copied) {
    copied.parts.method = copied.write(head.method_bytes());
    // What is left of the path names no Objective any more.
    let path = head.path().get(request.path_prefix_bytes..).filter(|rest| !rest.is_empty());
    let start = copied.write(path.unwrap_or(b"/")).start;
    if let Some(query) = head.query() {
        copied.write(b"?");
        copied.write(query);
    }
    copied.parts.target = start..copied.text_end();
    let start = copied.text_end();
    write_headers(copied, head.headers(), is_kept_of_request);
    copied.parts.request_headers = start..copied.text_end();
}

fn write_headers<'a>(
    copied: &mut Copied,
    headers: impl Iterator<Item = Header<'a>>,
    is_kept: impl Fn(&Header<'_>) -> Option<&'static [u8]>,
) {
    for header in headers {
        if let Some(name) = is_kept(&header) {
            copied.write_header(name, header.value);
        }
    }
}

/// What a replay needs, and nothing that could be a credential.
fn is_kept_of_request(header: &Header<'_>) -> Option<&'static [u8]> {
    match header.kind {
        HeaderKind::ContentType => Some(b"content-type"),
        HeaderKind::ContentEncoding => Some(b"content-encoding"),
        HeaderKind::Traceparent => Some(b"traceparent"),
        _ if header.name.eq_ignore_ascii_case(b"accept") => Some(b"accept"),
        _ => None,
    }
}

fn is_kept_of_answer(header: &Header<'_>) -> Option<&'static [u8]> {
    match header.kind {
        HeaderKind::ContentType => Some(b"content-type"),
        HeaderKind::ContentEncoding => Some(b"content-encoding"),
        _ => None,
    }
}
