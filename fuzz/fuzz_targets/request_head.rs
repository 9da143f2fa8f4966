//! A request's head: parsed at once and in pieces it is the same; forwarded, it is the same request again, with one
//! host, one framing, and nothing that was for the client's connection.
#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_router::http1::write::{RequestEdit, request_head};
use switchboard_router::http1::{
    FieldValue, Fields, HeadError, HeadLimits, HeaderKind, HeaderSet, Progress, RequestHead,
    RequestPath, RequestView,
};

fuzz_target!(|input: &[u8]| {
    let Some((bytes, step)) = switchboard_fuzz::split(input) else { return };
    let mut whole = RequestHead::new();
    let at_once = whole.parse(bytes, &HeadLimits::DEFAULT);
    let mut pieces = RequestHead::new();
    let mut outcome = Ok(Progress::Partial);
    for end in switchboard_fuzz::prefixes(bytes.len(), step) {
        outcome = pieces.parse(&bytes[..end], &HeadLimits::DEFAULT);
        if outcome != Ok(Progress::Partial) {
            break;
        }
    }
    assert_eq!(outcome, at_once);
    if at_once == Ok(Progress::Complete) {
        assert_eq!(told(&pieces.view(bytes)), told(&whole.view(bytes)));
        forward(&whole, bytes);
    }
});

/// Everything that a view tells.
fn told(view: &RequestView<'_>) -> String {
    let head = view.head();
    let headers: Vec<_> = view.headers().collect();
    format!(
        "{:?}",
        (
            head.bytes(),
            head.method(),
            head.version(),
            head.framing(),
            head.keep_alive(),
            what(view),
            headers
        )
    )
}

/// What a request asks for, however it is written.
fn what<'a>(
    view: &RequestView<'a>,
) -> (&'a [u8], &'a [u8], Option<&'a [u8]>, Option<&'a [u8]>, bool) {
    (view.method_bytes(), view.path(), view.query(), view.host(), view.head().expects_continue())
}

fn forward(head: &RequestHead, bytes: &[u8]) {
    let view = head.view(bytes);
    let edit = RequestEdit {
        path: RequestPath::new(view.path()).expect("a parsed path can be written"),
        host: FieldValue::new(view.host().unwrap_or(b"shard"))
            .expect("a parsed host can be written"),
        framing: head.framing(),
        dropped: HeaderSet::EMPTY,
        fields: &Fields::new(),
    };
    let mut out = Vec::new();
    request_head(&mut out, &view, &edit);
    let limits = HeadLimits::new(65_535, 60_000).expect("they fit");
    let mut again = RequestHead::new();
    match again.parse(&out, &limits) {
        Ok(Progress::Complete) => {}
        // HTTP/1.0 gets the host that it lacked.
        Err(HeadError::HeadersTooMany) if view.headers().count() == 100 => return,
        other => panic!("{other:?} for {}", out.escape_ascii()),
    }
    assert_eq!(again.bytes(), out.len());
    let forwarded = again.view(&out);
    assert_eq!(
        (forwarded.method_bytes(), forwarded.path(), forwarded.query(), forwarded.host()),
        (view.method_bytes(), view.path(), view.query(), Some(view.host().unwrap_or(b"shard")))
    );
    assert_eq!(again.framing(), head.framing());
    let mut framings = 0;
    for header in forwarded.headers().filter(|header| HeaderSet::NEVER_COPIED.contains(header.kind))
    {
        match header.kind {
            HeaderKind::Host => {}
            HeaderKind::ContentLength | HeaderKind::TransferEncoding => framings += 1,
            kind => panic!("{kind:?} was forwarded"),
        }
    }
    assert!(framings <= 1, "one framing leaves");
}
