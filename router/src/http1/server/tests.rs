#![expect(clippy::indexing_slicing, reason = "a test may stop at once")]

use proptest::prelude::*;

use super::*;

/// What a connection made of its input: one line per thing that happened.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Event {
    Head { path: Vec<u8>, framing: super::super::RequestFraming },
    HeadRefused(HeadError),
    Continue,
    Body(Vec<u8>),
    BodyRefused(BodyError),
    Answered(Persistence),
    Ended(Next),
}

/// A router that reads each request to its end, or answers at once, always with a two-byte body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Handler {
    AfterBody,
    Early,
}

struct Driver {
    connection: ServerConnection,
    handler: Handler,
    buffer: Vec<u8>,
    body: Vec<u8>,
    events: Vec<Event>,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    Head,
    Body,
    Drain,
    Closed,
}

impl Driver {
    fn new(handler: Handler) -> Self {
        Self {
            connection: ServerConnection::new(HeadLimits::DEFAULT),
            handler,
            buffer: Vec::new(),
            body: Vec::new(),
            events: Vec::new(),
            phase: Phase::Head,
        }
    }

    fn feed<'a>(mut self, pieces: impl IntoIterator<Item = &'a [u8]>) -> Self {
        for piece in pieces {
            self.buffer.extend_from_slice(piece);
            while self.step() {}
        }
        self
    }

    /// Whether something happened that may let more happen.
    fn step(&mut self) -> bool {
        match self.phase {
            Phase::Head => self.read_head(),
            Phase::Body => self.read_body(),
            Phase::Drain => {
                let (consumed, next) = self.connection.drain(&self.buffer);
                self.buffer.drain(..consumed);
                next != Next::Drain && self.end(next)
            }
            Phase::Closed => false,
        }
    }

    fn read_head(&mut self) -> bool {
        match self.connection.read_head(&self.buffer) {
            Ok(Progress::Partial) => false,
            Ok(Progress::Complete) => {
                let head = self.connection.head();
                let path = head.view(&self.buffer).path().to_vec();
                self.events.push(Event::Head { path, framing: head.framing() });
                let bytes = head.bytes();
                self.buffer.drain(..bytes);
                self.phase = Phase::Body;
                if self.connection.limit_body(1 << 20).is_err() {
                    self.events.push(Event::BodyRefused(BodyError::TooLarge));
                    return self.answer();
                }
                if self.handler == Handler::Early {
                    return self.answer();
                }
                if self.connection.continue_due(self.buffer.len()) {
                    self.events.push(Event::Continue);
                }
                self.connection.request_is_whole() && self.answer()
                    || !self.connection.request_is_whole()
            }
            Err(error) => {
                self.events.push(Event::HeadRefused(error));
                self.answer()
            }
        }
    }

    fn read_body(&mut self) -> bool {
        if self.buffer.is_empty() {
            return false;
        }
        match self.connection.read_body(&self.buffer) {
            Ok(decoded) => {
                self.body.extend_from_slice(&self.buffer[decoded.data]);
                self.buffer.drain(..decoded.consumed);
                if self.connection.request_is_whole() {
                    self.events.push(Event::Body(std::mem::take(&mut self.body)));
                    return self.answer();
                }
                true
            }
            Err(error) => {
                self.events.push(Event::BodyRefused(error));
                self.answer()
            }
        }
    }

    fn answer(&mut self) -> bool {
        let answer = self.connection.begin_answer(AnswerBody::Length(2));
        self.events.push(Event::Answered(answer.persistence));
        let next = self.connection.finish_answer(AnswerEnd::Whole);
        self.end(next)
    }

    fn end(&mut self, next: Next) -> bool {
        self.phase = match next {
            Next::Request => Phase::Head,
            Next::Drain => Phase::Drain,
            Next::Close | Next::LingeringClose | Next::Reset => Phase::Closed,
        };
        if next != Next::Drain {
            self.events.push(Event::Ended(next));
        }
        self.phase != Phase::Closed
    }
}

/// Whole and byte by byte; both must tell the same, but for a 100: whoever sends at once needs none.
fn run(handler: Handler, bytes: &[u8]) -> Vec<Event> {
    let whole = Driver::new(handler).feed([bytes]).events;
    let by_byte = Driver::new(handler).feed(bytes.chunks(1)).events;
    assert_eq!(
        without_continue(&by_byte),
        without_continue(&whole),
        "byte by byte: {}",
        bytes.escape_ascii()
    );
    whole
}

fn without_continue(events: &[Event]) -> Vec<Event> {
    events.iter().filter(|event| **event != Event::Continue).cloned().collect()
}

fn paths(events: &[Event]) -> Vec<String> {
    let path = |event: &Event| match event {
        Event::Head { path, .. } => Some(String::from_utf8(path.clone()).unwrap()),
        _ => None,
    };
    events.iter().filter_map(path).collect()
}

const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: a\r\nX-Probe: s\r\n\r\n";

fn post(path: &str, fields: &str, body: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}")
}

/// MS-05
#[test]
fn pipelined_requests_are_answered_in_order_and_none_after_a_malformed_one() {
    let good = |path| post(path, "Content-Length: 2\r\n", "{}");
    let events = run(Handler::AfterBody, [good("/1"), good("/2")].concat().as_bytes());
    assert_eq!(paths(&events), ["/1", "/2"]);
    assert_eq!(events.iter().filter(|event| **event == Event::Body(b"{}".to_vec())).count(), 2);
    let bad = post("/2", "Content-Length : 2\r\n", "{}");
    let events = run(Handler::AfterBody, [good("/1"), bad, good("/3")].concat().as_bytes());
    assert_eq!(paths(&events), ["/1"]);
    let end = [
        Event::HeadRefused(HeadError::HeaderName),
        Event::Answered(Persistence::Close),
        Event::Ended(Next::LingeringClose),
    ];
    assert_eq!(events[events.len() - 3..], end);
}

/// FR-01
#[test]
fn nothing_behind_faulty_framing_is_a_request() {
    for fields in [
        "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Content-Length: 5\r\nContent-Length: 5\r\n",
    ] {
        let events =
            run(Handler::AfterBody, (post("/x", fields, "0\r\n\r\n") + SMUGGLED).as_bytes());
        assert_eq!(paths(&events), Vec::<String>::new(), "{fields}");
        assert_eq!(events.last(), Some(&Event::Ended(Next::LingeringClose)), "{fields}");
    }
}

/// FR-05
#[test]
fn nothing_behind_a_faulty_chunk_is_a_request() {
    let request = post("/x", "Transfer-Encoding: chunked\r\n", "5\r\nhello\n0\r\n\r\n") + SMUGGLED;
    let events = run(Handler::AfterBody, request.as_bytes());
    assert_eq!(paths(&events), ["/x"]);
    let end = [
        Event::BodyRefused(BodyError::ChunkEnd),
        Event::Answered(Persistence::Close),
        Event::Ended(Next::LingeringClose),
    ];
    assert_eq!(events[1..], end);
}

/// FR-08
#[test]
fn a_body_left_unread_is_drained_never_read_as_a_request() {
    let fields = format!("Content-Length: {}\r\n", SMUGGLED.len());
    let next = post("/next", "", "");
    let events =
        run(Handler::Early, (post("/no-such-route", &fields, SMUGGLED) + &next).as_bytes());
    assert_eq!(paths(&events), ["/no-such-route", "/next"]);
    assert!(events.contains(&Event::Answered(Persistence::KeepAlive)));
}

/// FR-08
#[test]
fn an_early_answer_closes_where_the_end_of_the_body_is_far_or_uncertain() {
    for fields in [
        "Content-Length: 65537\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Expect: 100-continue\r\nContent-Length: 10\r\n",
        "Connection: close\r\nContent-Length: 10\r\n",
    ] {
        let events = run(Handler::Early, (post("/x", fields, "") + SMUGGLED).as_bytes());
        assert_eq!(paths(&events), ["/x"], "{fields}");
        assert_eq!(
            events[1..],
            [Event::Answered(Persistence::Close), Event::Ended(Next::LingeringClose)],
            "{fields}"
        );
    }
}

/// FR-08
#[test]
fn an_early_answer_keeps_the_connection_for_up_to_64_kib_of_body() {
    for (length, expected) in [(65_536, Persistence::KeepAlive), (65_537, Persistence::Close)] {
        let head = post("/x", &format!("Content-Length: {length}\r\n"), "");
        let mut connection = with_head(&head);
        assert_eq!(
            connection.begin_answer(AnswerBody::Length(0)).persistence,
            expected,
            "{length}"
        );
    }
}

/// FR-03
#[test]
fn a_length_over_the_limit_is_refused_before_the_body() {
    let events = run(
        Handler::AfterBody,
        (post("/x", "Content-Length: 1048577\r\n", "") + SMUGGLED).as_bytes(),
    );
    let end = [
        Event::BodyRefused(BodyError::TooLarge),
        Event::Answered(Persistence::Close),
        Event::Ended(Next::LingeringClose),
    ];
    assert_eq!(events[1..], end);
}

/// FR-09
#[test]
fn an_upgrade_is_a_plain_request() {
    let fields = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    let events = run(Handler::AfterBody, (post("/v1/x", fields, "") + SMUGGLED).as_bytes());
    assert_eq!(
        paths(&events),
        ["/v1/x", "/smuggled"],
        "the second is a pipelined request like any other"
    );
}

/// MS-01
#[test]
fn a_100_is_sent_once_and_only_to_a_client_that_waits() {
    let head = post("/x", "Expect: 100-continue\r\nContent-Length: 5\r\n", "");
    let waited = Driver::new(Handler::AfterBody).feed([head.as_bytes(), b"he", b"llo"]).events;
    assert_eq!(waited[1..3], [Event::Continue, Event::Body(b"hello".to_vec())]);
    assert_eq!(waited.iter().filter(|event| **event == Event::Continue).count(), 1);
    assert_eq!(waited.last(), Some(&Event::Ended(Next::Request)));
    let at_once = Driver::new(Handler::AfterBody).feed([(head + "hello").as_bytes()]).events;
    assert!(!at_once.contains(&Event::Continue), "{at_once:?}");
    let too_large = post("/x", "Expect: 100-continue\r\nContent-Length: 99999999\r\n", "");
    let refused = Driver::new(Handler::AfterBody).feed([too_large.as_bytes()]).events;
    assert_eq!(
        refused[1..3],
        [Event::BodyRefused(BodyError::TooLarge), Event::Answered(Persistence::Close)]
    );
    let old = "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
    assert!(
        !Driver::new(Handler::AfterBody).feed([old.as_bytes()]).events.contains(&Event::Continue)
    );
}

#[test]
fn the_second_request_has_its_own_100() {
    let request = post("/x", "Expect: 100-continue\r\nContent-Length: 1\r\n", "");
    let events = Driver::new(Handler::AfterBody)
        .feed([request.as_bytes(), b"a", request.as_bytes(), b"b"])
        .events;
    assert_eq!(events.iter().filter(|event| **event == Event::Continue).count(), 2);
}

/// A connection that has read this head.
fn with_head(text: &str) -> ServerConnection {
    let mut connection = ServerConnection::new(HeadLimits::DEFAULT);
    assert_eq!(connection.read_head(text.as_bytes()), Ok(Progress::Complete));
    connection
}

/// MS-06
#[test]
fn an_http_1_0_client_gets_the_end_of_the_connection_for_an_unknown_length() {
    let mut connection = with_head("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    let answer = connection.begin_answer(AnswerBody::Unknown);
    assert_eq!(
        (answer.framing, answer.persistence),
        (ResponseFraming::UntilClose, Persistence::Close)
    );
    assert_eq!(answer.recoding(ResponseFraming::Chunked), Recoding::Plain);
    assert_eq!(connection.finish_answer(AnswerEnd::Whole), Next::Close);
}

/// MS-08
#[test]
fn an_answer_cut_off_looks_cut_off() {
    for (request, expected) in [
        ("GET / HTTP/1.0\r\n\r\n", Next::Reset),
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", Next::Close),
    ] {
        let mut connection = with_head(request);
        connection.begin_answer(AnswerBody::Unknown);
        assert_eq!(connection.finish_answer(AnswerEnd::Cut), expected, "{request}");
    }
}

#[test]
fn bodies_are_recoded_only_where_the_framing_differs() {
    let mut connection = with_head("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let answer = connection.begin_answer(AnswerBody::Unknown);
    assert_eq!(answer.recoding(ResponseFraming::Chunked), Recoding::Pass);
    assert_eq!(answer.recoding(ResponseFraming::UntilClose), Recoding::Chunk);
    let mut connection = with_head("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(
        connection.begin_answer(AnswerBody::Length(3)).recoding(ResponseFraming::Length(3)),
        Recoding::Plain
    );
}

/// MS-03
#[test]
fn an_answer_to_head_has_no_body() {
    for (body, length) in [
        (AnswerBody::Length(7), Some(7)),
        (AnswerBody::Unknown, None),
        (AnswerBody::None { content_length: Some(3) }, Some(3)),
    ] {
        let mut connection = with_head("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
        let answer = connection.begin_answer(body);
        assert_eq!(
            (answer.framing, answer.content_length),
            (ResponseFraming::None, length),
            "{body:?}"
        );
        assert_eq!(connection.finish_answer(AnswerEnd::Whole), Next::Request);
    }
}

#[test]
fn a_stopping_router_closes_after_the_answer() {
    let mut connection = with_head("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    connection.close_after_this();
    assert_eq!(connection.begin_answer(AnswerBody::Length(0)).persistence, Persistence::Close);
    assert_eq!(connection.finish_answer(AnswerEnd::Whole), Next::Close);
}

#[test]
fn a_body_that_arrives_during_the_answer_needs_no_drain() {
    let mut connection = with_head("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n");
    assert_eq!(connection.begin_answer(AnswerBody::Unknown).persistence, Persistence::KeepAlive);
    assert_eq!(connection.read_body(b"hello").unwrap().consumed, 5);
    assert_eq!(connection.finish_answer(AnswerEnd::Whole), Next::Request);
}

/// MS-07
#[test]
fn the_end_of_the_clients_side_is_told_apart() {
    let connection = ServerConnection::new(HeadLimits::DEFAULT);
    assert_eq!(connection.end_of_input(b""), ClientEnd::Idle);
    let mut connection = ServerConnection::new(HeadLimits::DEFAULT);
    assert_eq!(connection.read_head(b"\r\n"), Ok(Progress::Partial));
    assert_eq!(connection.end_of_input(b"\r\n"), ClientEnd::Idle);
    assert_eq!(connection.read_head(b"\r\nGET"), Ok(Progress::Partial));
    assert_eq!(connection.end_of_input(b"\r\nGET"), ClientEnd::InsideHead);
    let mut connection = with_head("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n");
    assert_eq!(connection.end_of_input(b""), ClientEnd::InsideBody);
    assert_eq!(connection.read_body(b"hello").unwrap().consumed, 5);
    assert_eq!(connection.end_of_input(b""), ClientEnd::AfterRequest);
}

/// Requests that are often nearly right.
fn almost_requests() -> impl Strategy<Value = Vec<u8>> {
    let request = prop_oneof![
        4 => Just(post("/length", "Content-Length: 5\r\n", "hello").into_bytes()),
        4 => Just(post("/chunked", "Transfer-Encoding: chunked\r\n", "5;e\r\nhello\r\n0\r\nT: 1\r\n\r\n").into_bytes()),
        2 => Just(post("/expect", "Expect: 100-continue\r\nContent-Length: 1\r\n", "a").into_bytes()),
        2 => Just(SMUGGLED.as_bytes().to_vec()),
        1 => Just(b"\r\n".to_vec()),
        1 => Just(b"HEAD http://b HTTP/1.1\r\nHost: a\r\nConnection: x, keep-alive\r\nX: y\r\n\r\n".to_vec()),
        1 => Just(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n".to_vec()),
    ];
    let mutation = prop::option::weighted(0.7, (any::<prop::sample::Index>(), any::<u8>()));
    (prop::collection::vec(request, 1..5), mutation).prop_map(|(requests, mutation)| {
        let mut bytes = requests.concat();
        if let Some((place, byte)) = mutation {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        bytes
    })
}

proptest! {
    #[test]
    fn splits_change_no_event(bytes in almost_requests(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..5), early: bool) {
        let handler = if early { Handler::Early } else { Handler::AfterBody };
        let whole = run(handler, &bytes);
        let mut places: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        let split = Driver::new(handler).feed(places.windows(2).map(|pair| &bytes[pair[0]..pair[1]])).events;
        prop_assert_eq!(without_continue(&split), without_continue(&whole));
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        run(Handler::AfterBody, &bytes);
    }
}
