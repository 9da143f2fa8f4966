//! The HTTP/1 hot path under an allocator that counts: heads, bodies, forwarded heads, one exchange after the other.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    hint::black_box,
};

use switchboard_router::http1::{
    AnswerBody, AnswerEnd, ClientExchange, FieldValue, Fields, HeadLimits, HeadStep, HeaderKind,
    HeaderSet, Next, Progress, RequestPath, RequestSent, Reuse, ServerConnection,
    write::{self, RequestEdit, ResponseEdit},
};

/// Counts what this thread allocates: the test program's other threads do not matter.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count() {
    // A thread that is being torn down has no counter any more; nor is it measured.
    ALLOCATIONS.try_with(|counter| counter.set(counter.get() + 1)).unwrap_or_default();
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps `GlobalAlloc`'s contract, and this passes it on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count();
        // SAFETY: the caller keeps `GlobalAlloc`'s contract, and this passes it on.
        unsafe { System.dealloc(memory, layout) }
    }
}

const REQUEST: &[u8] = b"POST /v2/models/feed/infer?trace=1 HTTP/1.1\r\nHost: router.test\r\n\
    Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nX-Switchboard-Objective: A\r\n\
    Transfer-Encoding: chunked\r\nX-User-Id: u7\r\n\r\n8;e=1\r\n{\"k\":10}\r\n0\r\nX-T: 1\r\n\r\n";

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
    Transfer-Encoding: chunked\r\nX-Model-Version: 2\r\n\r\n9\r\ndata: 1\n\n\r\n0\r\n\r\n";

/// What a worker keeps between requests.
struct Kept {
    server: ServerConnection,
    exchange: ClientExchange,
    fields: Fields,
    out: Vec<u8>,
}

impl Kept {
    fn new() -> Self {
        Self {
            server: ServerConnection::new(HeadLimits::DEFAULT),
            exchange: ClientExchange::new(),
            fields: Fields::new(),
            out: Vec::with_capacity(4096),
        }
    }

    fn send_request(&mut self) {
        assert_eq!(self.server.read_head(REQUEST), Ok(Progress::Complete));
        assert_eq!(self.server.limit_body(1 << 20), Ok(()));
        let view = self.server.head().view(REQUEST);
        self.fields.clear();
        self.fields.push("x-request-id", FieldValue::new(b"4bf92f35").expect("a value"));
        let edit = RequestEdit {
            path: RequestPath::new(view.path()).expect("a parsed path"),
            host: FieldValue::new(view.host().unwrap_or_default()).expect("a parsed host"),
            framing: self.server.head().framing(),
            dropped: HeaderSet::of(&[HeaderKind::Switchboard]),
            fields: &self.fields,
        };
        self.out.clear();
        write::request_head(&mut self.out, &view, &edit);
        let mut rest = REQUEST.get(self.server.head().bytes()..).unwrap_or_default();
        while !rest.is_empty() {
            let step = self.server.pass_body(rest).expect("a good body");
            self.out.extend_from_slice(rest.get(step.data).unwrap_or_default());
            rest = rest.get(step.consumed..).unwrap_or_default();
        }
        assert!(self.server.request_is_whole());
    }

    fn relay_answer(&mut self) {
        self.exchange.begin(self.server.head().method());
        assert_eq!(self.exchange.read_head(RESPONSE), Ok(HeadStep::Final));
        let answer = self.server.begin_answer(AnswerBody::of(self.exchange.head()));
        let edit = ResponseEdit { answer, dropped: HeaderSet::EMPTY, fields: &self.fields };
        self.out.clear();
        write::response_head(&mut self.out, &self.exchange.head().view(RESPONSE), &edit);
        let mut rest = RESPONSE.get(self.exchange.head().bytes()..).unwrap_or_default();
        while !rest.is_empty() {
            let step = self.exchange.pass_body(rest).expect("a good body");
            self.out.extend_from_slice(rest.get(step.data).unwrap_or_default());
            rest = rest.get(step.consumed..).unwrap_or_default();
        }
        assert_eq!(self.exchange.reuse(0, RequestSent::Whole), Reuse::Pool);
        assert_eq!(self.server.finish_answer(AnswerEnd::Whole), Next::Request);
    }
}

#[test]
fn an_exchange_allocates_nothing_in_steady_state() {
    let mut kept = Kept::new();
    kept.send_request();
    kept.relay_answer();
    let before = ALLOCATIONS.get();
    for _ in 0..100 {
        kept.send_request();
        kept.relay_answer();
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
    drop(black_box(Box::new([0u8; 64])));
    assert_eq!(ALLOCATIONS.get() - before, 2, "the counter counts, frees too");
}
