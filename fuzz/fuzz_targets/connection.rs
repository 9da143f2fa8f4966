//! A client's connection: however its bytes arrive, the same requests are seen and the same is decided.
#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_router::http1::{
    AnswerBody, AnswerEnd, BodyError, HeadError, HeadLimits, Next, Persistence, Progress,
    ServerConnection,
};

fuzz_target!(|input: &[u8]| {
    let Some((bytes, step)) = switchboard_fuzz::split(input) else { return };
    for handler in [Handler::AfterBody, Handler::Early] {
        let at_once = Driver::new(handler).feed([bytes]);
        assert_eq!(Driver::new(handler).feed(bytes.chunks(step)), at_once);
    }
});

/// When the router answers.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Handler {
    AfterBody,
    Early,
}

#[derive(Debug, Eq, PartialEq)]
enum Event {
    Head(Vec<u8>),
    HeadRefused(HeadError),
    Body(Vec<u8>),
    BodyRefused(BodyError),
    Answered(Persistence),
    Ended(Next),
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Phase {
    Head,
    Body,
    Drain,
    Closed,
}

struct Driver {
    connection: ServerConnection,
    handler: Handler,
    buffer: Vec<u8>,
    body: Vec<u8>,
    events: Vec<Event>,
    phase: Phase,
}

impl Driver {
    fn new(handler: Handler) -> Self {
        let connection = ServerConnection::new(HeadLimits::DEFAULT);
        let (buffer, body, events) = (Vec::new(), Vec::new(), Vec::new());
        Self { connection, handler, buffer, body, events, phase: Phase::Head }
    }

    fn feed<'a>(mut self, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Event> {
        for piece in pieces {
            self.buffer.extend_from_slice(piece);
            while self.step() {}
        }
        self.events
    }

    /// Whether more may happen without more bytes.
    fn step(&mut self) -> bool {
        match self.phase {
            Phase::Head => self.head(),
            Phase::Body => self.body(),
            Phase::Drain => {
                let (consumed, next) = self.connection.drain(&self.buffer);
                self.buffer.drain(..consumed);
                next != Next::Drain && self.end(next)
            }
            Phase::Closed => false,
        }
    }

    fn head(&mut self) -> bool {
        match self.connection.read_head(&self.buffer) {
            Ok(Progress::Partial) => return false,
            Ok(Progress::Complete) => {}
            Err(error) => {
                self.events.push(Event::HeadRefused(error));
                return self.answer();
            }
        }
        let bytes = self.connection.head().bytes();
        self.events.push(Event::Head(self.buffer.drain(..bytes).collect()));
        self.phase = Phase::Body;
        if let Err(error) = self.connection.limit_body(1 << 16) {
            self.events.push(Event::BodyRefused(error));
            return self.answer();
        }
        if self.handler == Handler::Early || self.connection.request_is_whole() {
            return self.answer();
        }
        self.connection.continue_due(self.buffer.len());
        true
    }

    fn body(&mut self) -> bool {
        if self.buffer.is_empty() {
            return false;
        }
        match self.connection.read_body(&self.buffer) {
            Ok(decoded) => {
                self.body.extend_from_slice(&self.buffer[decoded.data]);
                self.buffer.drain(..decoded.consumed);
            }
            Err(error) => {
                self.events.push(Event::BodyRefused(error));
                return self.answer();
            }
        }
        if self.connection.request_is_whole() {
            self.events.push(Event::Body(std::mem::take(&mut self.body)));
            return self.answer();
        }
        true
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
