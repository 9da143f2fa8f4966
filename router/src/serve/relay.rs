//! The answer's way to the client: each piece leaves as it comes, none is held back.

use super::copy;
use super::fault::Fault;
use super::request::Request;
use crate::counters::ResponseClass;
use crate::http1::write::{self, ResponseEdit};
use crate::http1::{
    Answer, AnswerBody, AnswerEnd, CHUNK_END, ChunkHeader, ClientExchange, Decoded, Fields,
    HeadStep, HeaderKind, HeaderSet, LAST_CHUNK, Next, Recoding, UpstreamError,
};
use crate::limits::{BUFFER_BYTES, COPY_BYTES_MAX};
use crate::net::buffer::Buffer;
use crate::net::clock;
use crate::net::stream::{Reader, Writer};
use crate::worker::Worker;
use crate::worker::link::{Clock, Link};

/// Why there is no head to relay.
pub struct BeforeHead {
    /// What happened.
    pub fault: Fault,
    /// Whether the endpoint had begun to answer: then nothing is sent again.
    pub begun: bool,
}

/// Reads the final head of an answer into a buffer that starts with it. Interim answers are dropped (MS-02).
///
/// # Errors
/// The endpoint closed, was too slow, or sent something else than an answer; or the client left.
pub async fn read_head(
    worker: &Worker,
    link: &Link,
    upstream: &mut Reader,
    exchange: &mut ClientExchange,
) -> Result<Buffer, BeforeHead> {
    let mut input = worker.buffers.take();
    let mut begun = false;
    let fault = loop {
        input.reserve(BUFFER_BYTES / 2);
        let (result, buffer) = upstream.read(input).await;
        input = buffer;
        match result {
            Ok(1..) => begun = true,
            Ok(0) | Err(_) => break why_ended(link, exchange, &input),
        }
        match skip_interims(exchange, &mut input) {
            Ok(HeadStep::Final) => return Ok(input),
            Ok(HeadStep::Partial | HeadStep::Interim { .. }) => {}
            Err(error) => break Fault::Upstream(error),
        }
    };
    worker.buffers.put_back(input);
    Err(BeforeHead { fault, begun })
}

fn skip_interims(
    exchange: &mut ClientExchange,
    input: &mut Buffer,
) -> Result<HeadStep, UpstreamError> {
    loop {
        match exchange.read_head(input.filled())? {
            HeadStep::Interim { bytes } => input.consume(bytes),
            step => return Ok(step),
        }
    }
}

/// A read of the endpoint ended without bytes: by a clock, by the client's leaving, or by itself.
fn why_ended(link: &Link, exchange: &mut ClientExchange, input: &Buffer) -> Fault {
    match (link.fired(), exchange.end_of_input(input.filled())) {
        _ if link.has_left() => Fault::ClientLeft,
        (Some(clock), _) => Fault::UpstreamSlow(clock),
        (None, Err(error)) => Fault::Upstream(error),
        (None, Ok(())) => Fault::Upstream(UpstreamError::ClosedUnanswered),
    }
}

/// Where an answer goes.
pub struct Towards<'a> {
    /// To the client.
    pub writer: &'a mut Writer,
    /// The client's link.
    pub link: &'a Link,
    /// How the answer is framed there.
    pub answer: Answer,
    /// Lines that the router adds.
    pub fields: &'a Fields,
}

/// The body of the endpoint's answer, as [`crate::http1::ServerConnection::begin_answer`] wants it.
pub fn answer_body(exchange: &ClientExchange) -> AnswerBody {
    AnswerBody::of(exchange.head())
}

/// How a relay went.
pub struct Relayed {
    /// Whether all of the answer was sent.
    pub end: AnswerEnd,
    /// How many bytes of the endpoint's are left over.
    pub left_over: usize,
}

/// Relays an answer whose head is read and at the front of `input`.
pub async fn relay(
    worker: &Worker,
    request: &Request,
    towards: Towards<'_>,
    upstream: &mut Reader,
    exchange: &mut ClientExchange,
    mut input: Buffer,
) -> Relayed {
    let Towards { writer, link, answer, fields } = towards;
    let recoding = answer.recoding(exchange.head().framing());
    let mut output = worker.buffers.take();
    let edit = ResponseEdit { answer, dropped: OURS, fields };
    let head = exchange.head().view(input.filled());
    write::response_head(output.tail(), &head, &edit);
    copy::answer_begins(request, &head, recoding, exchange.head().framing());
    input.consume(exchange.head().bytes());
    worker.counters.responses.add(ResponseClass::of(exchange.head().status()), 1);

    let began = clock::now();
    let mut has_waited = false;
    let mut relay = Relay { worker, request, link, writer, recoding, sent: 0 };
    let end = loop {
        match relay.pass_on(exchange, &mut input, &mut output).await {
            Ok(()) if exchange.is_complete() => break Ok(()),
            Ok(()) => {}
            Err(broken) => break Err(broken),
        }
        has_waited = true;
        link.watch_upstream(Clock::ResponseIdle, worker.tick(), request.clocks.response_idle);
        input.reserve(BUFFER_BYTES / 2);
        let (result, buffer) = upstream.read(std::mem::take(&mut input)).await;
        input = buffer;
        if matches!(result, Ok(1..)) {
            continue;
        }
        // Shut by a clock or by the client's leaving, the stream ends too, but not by its own will.
        let is_own_end = matches!(result, Ok(0)) && link.fired().is_none() && !link.has_left();
        if !is_own_end || exchange.end_of_input(input.filled()).is_err() {
            break Err(Broken::Upstream);
        }
        break relay.finish(&mut output).await;
    };
    worker.counters.bytes_sent.add(relay.sent);
    let left_over = input.len();
    worker.buffers.put_back(input);
    worker.buffers.put_back(output);
    if !has_waited {
        request.answer_was_there(began, clock::now());
    }
    let end = match end {
        Ok(()) => AnswerEnd::Whole,
        Err(broken) => {
            count_broken(worker, link, broken);
            AnswerEnd::Cut
        }
    };
    copy::answer_ended(request, end);
    Relayed { end, left_over }
}

/// Only the router may say what it decided.
const OURS: HeaderSet = HeaderSet::of(&[HeaderKind::Switchboard]);

/// Which side ended an answer before its end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Broken {
    Upstream,
    Client,
}

fn count_broken(worker: &Worker, link: &Link, broken: Broken) {
    match broken {
        Broken::Upstream if !link.has_left() => {
            let fault = link.fired().map_or(Fault::ANSWER_CUT, Fault::UpstreamSlow);
            worker.counters.upstream_failures.add(fault.reason(), 1);
        }
        Broken::Upstream | Broken::Client => worker.counters.client_closed.add(1),
    }
}

/// Which end a connection comes to after a relay, as the client's side sees it.
pub fn next_of(link: &Link, next: Next) -> Next {
    if link.has_left() { Next::Close } else { next }
}

struct Relay<'a> {
    worker: &'a Worker,
    request: &'a Request,
    link: &'a Link,
    writer: &'a mut Writer,
    recoding: Recoding,
    sent: u64,
}

impl Relay<'_> {
    /// Sends what has arrived: `output` first (the head, at the start), then the body's bytes in `input`.
    async fn pass_on(
        &mut self,
        exchange: &mut ClientExchange,
        input: &mut Buffer,
        output: &mut Buffer,
    ) -> Result<(), Broken> {
        let mut outcome = Ok(());
        while !input.is_empty() && !exchange.is_complete() {
            let step = match self.recoding {
                Recoding::Pass => exchange.pass_body(input.filled()),
                Recoding::Plain | Recoding::Chunk => exchange.read_body(input.filled()),
            };
            // What came before the fault was valid: the client gets it at once.
            let Ok(Decoded { consumed, data }) = step else {
                outcome = Err(Broken::Upstream);
                break;
            };
            let passing = input.filled().get(data.clone()).unwrap_or_default();
            copy::answer_passes(self.worker, self.request, passing);
            let is_all = data == (0..input.len()) && consumed == input.len();
            if exchange.is_complete() {
                self.link.detach(); // before the write that a client may answer by leaving
            }
            if is_all && self.recoding != Recoding::Chunk && input.len() > COPY_BYTES_MAX {
                self.write_both(output, input).await?;
            } else {
                self.append(output, input.filled().get(data).unwrap_or_default());
                input.consume(consumed);
            }
        }
        if exchange.is_complete() && outcome.is_ok() {
            return self.finish(output).await;
        }
        self.write(output).await?;
        outcome
    }

    fn append(&self, output: &mut Buffer, data: &[u8]) {
        match (self.recoding, ChunkHeader::new(data.len())) {
            (Recoding::Chunk, None) => {}
            (Recoding::Chunk, Some(header)) => {
                output.extend(header.as_bytes());
                output.extend(data);
                output.extend(CHUNK_END);
            }
            (Recoding::Pass | Recoding::Plain, _) => output.extend(data),
        }
    }

    /// The body is over, and the endpoint is done: a client that leaves on reading the last byte must not
    /// take the endpoint's connection along.
    async fn finish(&mut self, output: &mut Buffer) -> Result<(), Broken> {
        self.link.detach();
        if self.recoding == Recoding::Chunk {
            output.extend(LAST_CHUNK);
        }
        self.write(output).await
    }

    async fn write(&mut self, output: &mut Buffer) -> Result<(), Broken> {
        if output.is_empty() {
            return Ok(());
        }
        self.watch();
        let (result, buffer) = self.writer.write_all(std::mem::take(output)).await;
        *output = buffer;
        self.written(output.len());
        output.clear();
        result.map_err(|_| Broken::Client)
    }

    async fn write_both(&mut self, head: &mut Buffer, body: &mut Buffer) -> Result<(), Broken> {
        self.watch();
        let (first, second) = (std::mem::take(head), std::mem::take(body));
        let (result, first, second) = self.writer.write_both(first, second).await;
        self.written(first.len() + second.len());
        (*head, *body) = (first, second);
        head.clear();
        body.clear();
        result.map_err(|_| Broken::Client)
    }

    fn watch(&self) {
        let span = self.worker.config.clocks.response_idle;
        self.link.watch_write(self.worker.tick(), span);
    }

    fn written(&mut self, bytes: usize) {
        self.link.unwatch_write();
        self.sent += u64::try_from(bytes).unwrap_or(u64::MAX);
    }
}
