//! One connection to the target: writes requests, reads answers.

use std::cell::{Cell, RefCell};
use std::io;
use std::mem::MaybeUninit;
use std::rc::Rc;
use std::time::{Duration, Instant};

use httparse::{Header, Status};

use super::Checks;
use super::events::{Event, EventScanner};
use crate::http1::body::BodyDecoder;
use crate::http1::framing::{Asked, Message, of_response};
use crate::limits::{HEAD_BYTES_MAX, HEADERS_MAX, READ_BYTES};
use crate::net::address::Address;
use crate::net::buffer::ReadBuffer;
use crate::net::stream::{Breaker, Stream};
use crate::net::timer::Timer;
use crate::recorder::decisions::{Decisions, Seen};
use crate::recorder::{Failure, Tally, record};

/// What the thread's sweep knows of one connection: it ends what takes too long from outside, so
/// that no pending read is ever dropped half way.
#[derive(Debug, Default)]
pub struct Slot {
    /// When the request under way has taken too long.
    pub deadline: Cell<Option<Instant>>,
    ended_as: Cell<Option<Failure>>,
    breaker: RefCell<Option<Breaker>>,
}

impl Slot {
    /// Ends the connection's pending operations; they fail as `failure`.
    pub fn end(&self, failure: Failure) {
        self.deadline.set(None);
        self.ended_as.set(Some(failure));
        if let Some(breaker) = &*self.breaker.borrow() {
            breaker.shut_down();
        }
    }
}

/// An open connection.
#[derive(Debug)]
pub struct Link {
    stream: Stream,
    input: ReadBuffer,
    slot: Rc<Slot>,
    /// Number of the connection in its run.
    pub number: u64,
    /// Requests sent so far.
    pub requests: u64,
    filled_at: Instant,
    received: u64,
}

/// One whole answer.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Labels of its header fields.
    pub seen: Seen,
    /// Whether the expected header fields are there.
    pub headers_hold: bool,
    /// Whether the connection ends with it.
    pub close: bool,
    /// Bytes of its body.
    pub body_bytes: u64,
    /// What its stream of events held, if it is one.
    pub stream: Option<StreamSeen>,
    /// When its last byte had come.
    pub done: Instant,
}

/// What a stream of server-sent events held.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamSeen {
    /// All events.
    pub events: u64,
    /// Those that carry text of an answer.
    pub tokens: u64,
    /// When the first event had come.
    pub first_event: Option<Instant>,
    /// When the first token had come.
    pub first_token: Option<Instant>,
    /// Whether `[DONE]` came.
    pub is_done: bool,
    /// Whether it ended in the middle of an event.
    pub is_cut: bool,
}

/// What an answer is read for.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// Whether it has a body.
    pub asked: Asked,
    /// What its head must hold.
    pub checks: &'a Checks,
    /// Whether its events count.
    pub is_measured: bool,
}

/// An answer's head, without its text.
struct Head {
    status: u16,
    message: Message,
    seen: Seen,
    headers_hold: bool,
    is_event_stream: bool,
}

/// A connection that rested longer than this is looked at before it is used again.
const REST_MAX: Duration = Duration::from_secs(1);

impl Link {
    /// Connects within `timeout`.
    ///
    /// # Errors
    /// `Connect`.
    pub async fn connect(
        target: &Address,
        timeout: Duration,
        timer: &Timer,
        slot: &Rc<Slot>,
        number: u64,
    ) -> Result<Self, Failure> {
        let stream = monoio::select! {
            stream = Stream::connect(target) => stream.map_err(|_| Failure::Connect)?,
            () = timer.sleep(timeout) => return Err(Failure::Connect),
        };
        slot.ended_as.set(None);
        slot.breaker.replace(Some(stream.breaker()));
        let input = ReadBuffer::new(READ_BYTES, HEAD_BYTES_MAX);
        let (slot, filled_at) = (Rc::clone(slot), Instant::now());
        Ok(Self { stream, input, slot, number, requests: 0, filled_at, received: 0 })
    }

    /// Whether the server has closed it while nothing was asked.
    pub fn is_stale(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.filled_at) > REST_MAX && self.stream.is_closed_now()
    }

    /// Writes requests. A server may answer and close before it has read all of them, so the
    /// answer is worth reading even where this fails.
    pub async fn write(&mut self, wire: Vec<u8>) -> (io::Result<usize>, Vec<u8>) {
        self.stream.write_all(wire).await
    }

    /// Bytes received since this was last asked.
    pub fn take_received(&mut self) -> u64 {
        std::mem::take(&mut self.received)
    }

    /// Reads the next answer.
    ///
    /// # Errors
    /// Why there is no whole answer; the connection is of no more use.
    pub async fn read_answer(
        &mut self,
        expected: Expected<'_>,
        tally: &RefCell<Tally>,
    ) -> Result<Answer, Failure> {
        let head = loop {
            let head = self.read_head(expected.asked, expected.checks, tally).await?;
            if head.status >= 200 || head.status == 101 {
                break head; // others are interim (RFC 9110 §15.2)
            }
        };
        let mut answer = Answer {
            status: head.status,
            seen: head.seen,
            headers_hold: head.headers_hold,
            close: head.message.close,
            body_bytes: 0,
            stream: head.is_event_stream.then(StreamSeen::default),
            done: self.filled_at,
        };
        self.read_body(&head, &mut answer, expected.is_measured.then_some(tally)).await?;
        answer.done = self.filled_at;
        Ok(answer)
    }

    async fn read_head(
        &mut self,
        asked: Asked,
        checks: &Checks,
        tally: &RefCell<Tally>,
    ) -> Result<Head, Failure> {
        loop {
            let unread = self.input.unread();
            if !unread.is_empty() {
                let decisions = &mut tally.borrow_mut().decisions;
                if let Some((head, length)) = parse(unread, asked, checks, decisions)? {
                    self.input.consume(length);
                    return Ok(head);
                }
            }
            if self.input.unread().len() >= HEAD_BYTES_MAX {
                return Err(Failure::Parse);
            }
            if self.fill().await? == 0 {
                return Err(self.ended());
            }
        }
    }

    async fn read_body(
        &mut self,
        head: &Head,
        answer: &mut Answer,
        tally: Option<&RefCell<Tally>>,
    ) -> Result<(), Failure> {
        let mut decoder = BodyDecoder::new(head.message.framing);
        let mut scanner = EventScanner::default();
        let mut gaps = Gaps::default();
        while !decoder.is_done() {
            let piece = decoder.next(self.input.unread()).map_err(|_| Failure::Parse)?;
            answer.body_bytes += piece.data.len() as u64;
            if let Some(stream) = &mut answer.stream {
                let now = self.filled_at;
                scanner.scan(piece.data, |event| {
                    stream.note(event, now);
                    gaps.note(event, now, tally);
                });
                stream.is_cut = scanner.is_within_event();
            }
            let consumed = piece.consumed;
            self.input.consume(consumed);
            if consumed > 0 {
                continue;
            }
            let is_end = match self.fill().await {
                Ok(count) => count == 0,
                Err(failure) => return Err(within_body(head, failure)),
            };
            if is_end {
                let may_end = decoder.may_end_here();
                return if may_end { Ok(()) } else { Err(within_body(head, self.ended())) };
            }
        }
        Ok(())
    }

    async fn fill(&mut self) -> Result<usize, Failure> {
        let filled = self.input.fill(&mut self.stream).await;
        self.filled_at = Instant::now();
        let count = filled.map_err(|_| self.ended())?;
        self.received += count as u64;
        Ok(count)
    }

    /// Why the connection ended: the sweep's reason, or the peer did it.
    fn ended(&self) -> Failure {
        self.slot.ended_as.get().unwrap_or(Failure::Reset)
    }
}

impl StreamSeen {
    fn note(&mut self, event: Event, now: Instant) {
        self.events += 1;
        self.first_event.get_or_insert(now);
        match event {
            Event::Token => {
                self.tokens += 1;
                self.first_token.get_or_insert(now);
            }
            Event::Done => self.is_done = true,
            Event::Other => {}
        }
    }
}

/// When the last event and the last token of one stream came.
#[derive(Debug, Default)]
struct Gaps {
    last_event: Option<Instant>,
    last_token: Option<Instant>,
}

impl Gaps {
    /// Records the time since the one before; nothing where `tally` does not want it.
    fn note(&mut self, event: Event, now: Instant, tally: Option<&RefCell<Tally>>) {
        let Some(tally) = tally else { return };
        let tally = &mut *tally.borrow_mut();
        if let Some(last) = self.last_event.replace(now) {
            record(&mut tally.event_gap, now.saturating_duration_since(last));
        }
        if event == Event::Token
            && let Some(last) = self.last_token.replace(now)
        {
            record(&mut tally.token_gap, now.saturating_duration_since(last));
        }
    }
}

/// A connection that broke within a stream of events has cut it off.
fn within_body(head: &Head, failure: Failure) -> Failure {
    match failure {
        Failure::Reset if head.is_event_stream => Failure::Truncated,
        failure => failure,
    }
}

impl Drop for Link {
    /// The breaker must not outlive the stream's descriptor.
    fn drop(&mut self) {
        self.slot.deadline.set(None);
        self.slot.breaker.replace(None);
    }
}

/// Reads one answer's head; `None` until it is whole.
fn parse(
    input: &[u8],
    asked: Asked,
    checks: &Checks,
    decisions: &mut Decisions,
) -> Result<Option<(Head, usize)>, Failure> {
    let mut headers = [const { MaybeUninit::<Header<'_>>::uninit() }; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
        &mut response,
        input,
        &mut headers,
    );
    let length = match parsed.map_err(|_| Failure::Parse)? {
        Status::Complete(length) => length,
        Status::Partial => return Ok(None),
    };
    let (Some(status), Some(minor)) = (response.code, response.version) else {
        return Err(Failure::Parse);
    };
    let headers = &*response.headers;
    let message = of_response(minor, status, asked, headers).map_err(|_| Failure::Parse)?;
    let is_event_stream = headers.iter().any(|header| {
        header.name.eq_ignore_ascii_case("content-type")
            && header.value.starts_with(b"text/event-stream")
    });
    let headers_hold = checks.headers.iter().all(|(name, value)| {
        headers.iter().any(|header| {
            header.name.eq_ignore_ascii_case(name) && header.value == value.as_bytes()
        })
    });
    let seen = decisions.see(headers);
    Ok(Some((Head { status, message, seen, headers_hold, is_event_stream }, length)))
}
