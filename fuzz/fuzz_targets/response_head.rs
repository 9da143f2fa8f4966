//! A response's head: parsed at once and in pieces it is the same; what the client gets of it can be read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_router::http1::write::{ResponseEdit, response_head};
use switchboard_router::http1::{
    AnswerBody, Fields, HeadError, HeadLimits, HeaderSet, Method, Progress, ResponseFraming,
    ResponseHead, ResponseView, ServerConnection,
};

fuzz_target!(|input: &[u8]| {
    let Some((bytes, step)) = switchboard_fuzz::split(input) else { return };
    for (method, request) in [
        (Method::Post, &b"POST / HTTP/1.1\r\nHost: a\r\n\r\n"[..]),
        (Method::Head, b"HEAD / HTTP/1.0\r\n\r\n"),
    ] {
        let mut whole = ResponseHead::new();
        let at_once = whole.parse(bytes, method);
        let mut pieces = ResponseHead::new();
        let mut outcome = Ok(Progress::Partial);
        for end in switchboard_fuzz::prefixes(bytes.len(), step) {
            outcome = pieces.parse(&bytes[..end], method);
            if outcome != Ok(Progress::Partial) {
                break;
            }
        }
        assert_eq!(outcome, at_once);
        if at_once == Ok(Progress::Complete) {
            assert_eq!(told(&pieces.view(bytes)), told(&whole.view(bytes)));
            if whole.status() >= 200 {
                relay(&whole, bytes, request, method);
            }
        }
    }
});

/// Everything that a view tells.
fn told(view: &ResponseView<'_>) -> String {
    let head = view.head();
    let headers: Vec<_> = view.headers().collect();
    format!(
        "{:?}",
        (head.bytes(), head.status(), head.framing(), head.keep_alive(), view.reason(), headers)
    )
}

fn relay(head: &ResponseHead, bytes: &[u8], request: &[u8], method: Method) {
    let mut connection = ServerConnection::new(HeadLimits::DEFAULT);
    assert_eq!(connection.read_head(request), Ok(Progress::Complete));
    let answer = connection.begin_answer(AnswerBody::of(head));
    let edit = ResponseEdit { answer, dropped: HeaderSet::EMPTY, fields: &Fields::new() };
    let mut out = Vec::new();
    response_head(&mut out, &head.view(bytes), &edit);
    let mut again = ResponseHead::new();
    match again.parse(&out, method) {
        Ok(Progress::Complete) => {}
        Err(HeadError::HeadersTooMany | HeadError::HeadTooLarge) => return,
        other => panic!("{other:?} for {}", out.escape_ascii()),
    }
    assert_eq!((again.bytes(), again.status()), (out.len(), head.status()));
    match (head.framing(), again.framing()) {
        (ResponseFraming::UntilClose, ResponseFraming::Chunked) => {}
        (before, after) => assert_eq!(before, after),
    }
    assert_eq!(again.declared_length(), head.declared_length());
    assert_eq!(again.view(&out).reason(), head.view(bytes).reason());
}
