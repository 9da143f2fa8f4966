//! One connection of the model server: requests in, answers out, in order.

use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::answer::{self, Answer, LAST_CHUNK, Shape};
use super::behaviour::Fault;
use super::chat::{self, Chat};
use super::control::control;
use super::counters::Count;
use super::echo::{Place, Received, echo};
use super::model::{Prepared, Worker};
use super::request::{Keep, Request, RequestError, Route};
use crate::http1::body::BodyDecoder;
use crate::http1::framing::FramingError;
use crate::limits::{HEAD_BYTES_MAX, READ_BYTES};
use crate::net::buffer::ReadBuffer;
use crate::net::stream::Stream;

/// How long a client that sent nonsense may take to read what was wrong.
const LINGER: Duration = Duration::from_secs(1);

/// How much more of its nonsense is read meanwhile.
const LINGER_BYTES_MAX: usize = 1024 * 1024;

/// A client's connection.
pub struct Connection {
    worker: Rc<Worker>,
    stream: Stream,
    input: ReadBuffer,
    /// Answers that wait to be written: those of a pipelined batch leave together.
    output: Vec<u8>,
    number: u64,
    requests: u64,
}

/// What follows a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Next {
    Request,
    Close,
    Reset,
}

/// Why a connection ended early.
#[derive(Debug, thiserror::Error)]
enum ConnectionError {
    #[error(transparent)]
    Malformed(#[from] RequestError),
    #[error("the head is too long")]
    HeadTooLong,
    #[error("the client went away")]
    Gone,
    #[error("the connection broke")]
    Broken(#[from] io::Error),
}

impl From<FramingError> for ConnectionError {
    fn from(error: FramingError) -> Self {
        Self::Malformed(error.into())
    }
}

impl Connection {
    /// Takes over an accepted stream. `number` is told in echoes.
    pub fn new(worker: Rc<Worker>, stream: Stream, number: u64) -> Self {
        let input = ReadBuffer::new(READ_BYTES, HEAD_BYTES_MAX);
        Self { worker, stream, input, output: Vec::new(), number, requests: 0 }
    }

    /// Serves requests until either side ends the connection.
    pub async fn serve(mut self) {
        let end = loop {
            match self.exchange().await {
                Ok(Next::Request) => {}
                end => break end,
            }
        };
        match end {
            Ok(Next::Reset) => return self.stream.reset(),
            Ok(Next::Request | Next::Close) => {}
            Err(ConnectionError::Gone | ConnectionError::Broken(_)) => {
                self.count(Count::ClientsGone);
            }
            Err(error @ (ConnectionError::Malformed(_) | ConnectionError::HeadTooLong)) => {
                self.count(Count::Malformed);
                let status = if matches!(error, ConnectionError::HeadTooLong) { 431 } else { 400 };
                let problem = Answer::problem(status, &error.to_string());
                let shape = Shape { close: true, ..Shape::default() };
                self.output.extend(problem.render(&self.worker.model.name, shape));
                drop(self.flush().await); // a client that has gone misses nothing
                return self.linger().await;
            }
        }
        drop(self.flush().await); // the connection ends either way
    }

    /// Lets the client read its answer: closing over bytes that nobody read would reset the
    /// connection and take the answer along (RFC 9112 §9.6).
    async fn linger(&mut self) {
        if self.stream.end_writing().is_err() {
            return;
        }
        let end = self.worker.timer.sleep(LINGER);
        let drain = async {
            let mut left = LINGER_BYTES_MAX;
            loop {
                self.input.consume(self.input.unread().len());
                match self.input.fill(&mut self.stream).await {
                    Ok(count) if count > 0 && count < left => left -= count,
                    _ => return,
                }
            }
        };
        monoio::select! {
            () = end => {}
            () = drain => {}
        }
    }

    async fn exchange(&mut self) -> Result<Next, ConnectionError> {
        let Some(request) = self.read_head().await? else { return Ok(Next::Close) };
        let body = self.read_body(&request).await?;
        self.requests += 1;
        if let Some(answer) = control(&self.worker.model, &request.route, &body) {
            return self.send(&answer, request_shape(&request)).await;
        }
        self.count(Count::Requests);
        if body.bytes > 0 {
            self.worker.counters().add(Count::BodyBytes, body.bytes);
        }
        if let Some(id) = &request.id {
            self.worker.counters().deliver(id, self.worker.model.deliveries_max);
        }
        let next = self.answer(&request, &body).await?;
        self.count(Count::Answers);
        Ok(next)
    }

    /// The next request's head; `None` where the client has closed between two requests.
    async fn read_head(&mut self) -> Result<Option<Request>, ConnectionError> {
        let keep = if self.worker.model.deliveries_max > 0 { Keep::Id } else { Keep::Least };
        loop {
            if !self.input.unread().is_empty()
                && let Some((request, length)) = Request::parse(self.input.unread(), keep)?
            {
                self.input.consume(length);
                return Ok(Some(request));
            }
            if self.input.unread().len() >= HEAD_BYTES_MAX {
                return Err(ConnectionError::HeadTooLong);
            }
            self.flush().await?;
            if self.input.fill(&mut self.stream).await? == 0 {
                let between = self.input.unread().is_empty();
                return if between { Ok(None) } else { Err(ConnectionError::Gone) };
            }
        }
    }

    async fn read_body(&mut self, request: &Request) -> Result<Received, ConnectionError> {
        let mut received =
            if request.route.needs_body() { Received::kept() } else { Received::counted() };
        let mut decoder = BodyDecoder::new(request.message.framing);
        let mut told_to_continue = !request.message.expects_continue;
        while !decoder.is_done() {
            let piece = decoder.next(self.input.unread())?;
            let consumed = piece.consumed;
            received.take(piece.data);
            self.input.consume(consumed);
            if consumed > 0 {
                continue;
            }
            if !told_to_continue {
                self.output.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
                told_to_continue = true;
            }
            self.flush().await?;
            if self.input.fill(&mut self.stream).await? == 0 {
                return Err(ConnectionError::Gone);
            }
        }
        Ok(received)
    }

    async fn answer(
        &mut self,
        request: &Request,
        body: &Received,
    ) -> Result<Next, ConnectionError> {
        let prepared = self.worker.prepared();
        let mut shape = request_shape(request);
        shape.chunked = prepared.behaviour.chunked && request.message.minor > 0;
        if prepared.is_plain && request.route == Route::Plain && !shape.close && !shape.head_only {
            return self.send_plain(&prepared).await;
        }

        let draw = self.worker.draw(&prepared.behaviour);
        if !draw.delay.is_zero() {
            self.flush().await?;
            self.wait(draw.delay).await?;
        }
        if draw.fault.is_some() {
            self.count(Count::Faults);
        }
        shape.close |= draw.close;
        let answer = match (draw.fault, self.content(request, body, &prepared)) {
            (Some(Fault::Reset), _) => {
                self.flush().await?;
                return Ok(Next::Reset);
            }
            (Some(Fault::Stall), _) => {
                self.flush().await?;
                self.stream.closed_by_peer().await;
                return Err(ConnectionError::Gone);
            }
            (Some(Fault::Error), _) => {
                Answer::problem(prepared.behaviour.error_status, "injected by the model server")
            }
            (fault, Content::Stream(chat)) => {
                return self.stream_events(&chat, fault, shape, &prepared).await;
            }
            (_, Content::Whole(answer)) => answer,
        };
        match draw.fault {
            Some(Fault::Cut) => self.send_half(&answer, shape).await,
            Some(Fault::Drip) => self.send_slowly(&answer, shape, &prepared).await,
            _ => self.send(&answer, shape).await,
        }
    }

    fn content(&self, request: &Request, body: &Received, prepared: &Prepared) -> Content {
        let name = &self.worker.model.name;
        match &request.route {
            Route::Echo => {
                let place =
                    Place { name, connection: self.number, connection_request: self.requests };
                Content::Whole(echo(&request.head, body, place))
            }
            Route::Chat => match Chat::parse(&body.kept, &prepared.behaviour) {
                Ok(chat) if chat.stream => Content::Stream(chat),
                Ok(chat) => Content::Whole(chat.whole(name)),
                Err(error) => Content::Whole(Answer::problem(400, &error.to_string())),
            },
            Route::Models => Content::Whole(chat::models(name)),
            Route::Infer { model } => Content::Whole(Answer::infer(name, model)),
            _ if prepared.behaviour.stream => Content::Stream(Chat::of_plain(&prepared.behaviour)),
            _ => Content::Whole(Answer::plain(name, prepared.behaviour.body_bytes)),
        }
    }

    async fn send_plain(&mut self, prepared: &Prepared) -> Result<Next, ConnectionError> {
        if prepared.plain.len() <= HEAD_BYTES_MAX {
            self.output.extend_from_slice(&prepared.plain);
        } else {
            self.flush().await?;
            self.write(prepared.plain.clone()).await?;
        }
        Ok(Next::Request)
    }

    async fn send(&mut self, answer: &Answer, shape: Shape) -> Result<Next, ConnectionError> {
        let message = answer.render(&self.worker.model.name, shape);
        if self.output.is_empty() {
            self.output = message;
        } else {
            self.output.extend_from_slice(&message);
        }
        if self.output.len() > HEAD_BYTES_MAX {
            self.flush().await?;
        }
        Ok(if shape.close { Next::Close } else { Next::Request })
    }

    async fn send_half(&mut self, answer: &Answer, shape: Shape) -> Result<Next, ConnectionError> {
        let mut message = answer.render(&self.worker.model.name, shape);
        message.truncate(message.len() - answer.body.len().div_ceil(2).max(1));
        self.output.extend_from_slice(&message);
        Ok(Next::Close)
    }

    async fn send_slowly(
        &mut self,
        answer: &Answer,
        shape: Shape,
        prepared: &Prepared,
    ) -> Result<Next, ConnectionError> {
        let message = answer.render(&self.worker.model.name, shape);
        self.flush().await?;
        for piece in message.chunks(prepared.behaviour.drip_bytes) {
            self.write(Bytes::copy_from_slice(piece)).await?;
            self.wait(prepared.behaviour.drip_interval.duration()).await?;
        }
        Ok(if shape.close { Next::Close } else { Next::Request })
    }

    /// Server-sent events, each written at its own moment and as a chunk of its own.
    async fn stream_events(
        &mut self,
        chat: &Chat,
        fault: Option<Fault>,
        mut shape: Shape,
        prepared: &Prepared,
    ) -> Result<Next, ConnectionError> {
        let name = self.worker.model.name.clone();
        // HTTP/1.0 knows no chunks: there the end of the connection ends the body.
        shape.chunked = !shape.close || shape.chunked;
        answer::head(&mut self.output, 200, "text/event-stream", &name, None, shape);
        if shape.head_only {
            return Ok(if shape.close { Next::Close } else { Next::Request });
        }
        let interval = prepared.behaviour.token_interval.duration();
        let cut_at = (fault == Some(Fault::Cut)).then_some(chat.tokens / 2 + 1);
        let mut due = Instant::now();
        for position in 0.. {
            let Some(event) = chat.event(position, &name) else { break };
            if cut_at == Some(position) {
                return Ok(Next::Close);
            }
            let is_token = (2..=chat.tokens).contains(&position);
            if is_token && !interval.is_zero() {
                self.flush().await?;
                due += interval; // from the moment it was due: no drift
                self.wait(due.saturating_duration_since(Instant::now())).await?;
            }
            if shape.chunked {
                answer::chunk(&mut self.output, &event);
            } else {
                self.output.extend_from_slice(&event);
            }
            if self.output.len() > HEAD_BYTES_MAX {
                self.flush().await?;
            }
        }
        if shape.chunked {
            self.output.extend_from_slice(LAST_CHUNK);
        }
        Ok(if shape.close { Next::Close } else { Next::Request })
    }

    /// Waits, but not for a client that has gone.
    async fn wait(&self, delay: Duration) -> Result<(), ConnectionError> {
        monoio::select! {
            () = self.worker.timer.sleep(delay) => Ok(()),
            () = self.stream.closed_by_peer() => Err(ConnectionError::Gone),
        }
    }

    async fn flush(&mut self) -> Result<(), ConnectionError> {
        if self.output.is_empty() {
            return Ok(());
        }
        let output = std::mem::take(&mut self.output);
        let (result, mut output) = self.stream.write_all(output).await;
        output.clear();
        self.output = output;
        result?;
        Ok(())
    }

    async fn write(&mut self, bytes: Bytes) -> Result<(), ConnectionError> {
        let (result, _) = self.stream.write_all(bytes).await;
        result?;
        Ok(())
    }

    fn count(&self, count: Count) {
        self.worker.counters().add(count, 1);
    }
}

enum Content {
    Whole(Answer),
    Stream(Chat),
}

fn request_shape(request: &Request) -> Shape {
    Shape { head_only: request.head_only, close: request.message.close, chunked: false }
}
