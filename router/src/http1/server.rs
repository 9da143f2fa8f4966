//! A client's connection without its socket: which bytes are head, body or next request, and whether it lives on.
//!
//! For each request, in this order: [`ServerConnection::read_head`] until complete, [`ServerConnection::limit_body`],
//! [`ServerConnection::continue_due`], [`ServerConnection::read_body`] as wanted, [`ServerConnection::begin_answer`],
//! [`ServerConnection::finish_answer`]. The caller owns the buffer: the head stays at its front until the answer
//! ended, body bytes are dropped as they are consumed, and what follows a whole request is the next one.

use super::body::{BodyDecoder, Decoded};
use super::error::{BodyError, HeadError};
use super::framing::ResponseFraming;
use super::limits::{DRAIN_BYTES_MAX, HeadLimits};
use super::method::Method;
use super::request::{Progress, RequestHead};
use super::response::ResponseHead;
use super::version::Version;

/// What an answer's head has to say about its body and the connection, decided when the answer begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Answer {
    /// How the body is sent; `None`: no body byte may follow.
    pub framing: ResponseFraming,
    /// `Content-Length` to be stated: that of the body, or what HEAD's or a 304's body would have had.
    pub content_length: Option<u64>,
    /// Whether the connection lives on.
    pub persistence: Persistence,
    /// What the client speaks: HTTP/1.0 has to be told that the connection stays.
    pub version: Version,
}

/// Whether a connection lives on after an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Persistence {
    /// Another request may follow.
    KeepAlive,
    /// The answer says `connection: close`.
    Close,
}

/// The body of an answer that is about to begin.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AnswerBody {
    /// The status allows none (204, 304), or it answers HEAD; with the length that may still be stated.
    None {
        /// `Content-Length` of what is not sent.
        content_length: Option<u64>,
    },
    /// This many bytes.
    Length(u64),
    /// The end is known only when it comes.
    Unknown,
}

impl AnswerBody {
    /// The body of a model server's answer.
    #[must_use]
    pub fn of(head: &ResponseHead) -> Self {
        match head.framing() {
            ResponseFraming::None => Self::None { content_length: head.declared_length() },
            ResponseFraming::Length(length) => Self::Length(length),
            ResponseFraming::Chunked | ResponseFraming::UntilClose => Self::Unknown,
        }
    }
}

/// How a body's bytes get from one framing into another.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Recoding {
    /// What [`BodyDecoder::pass`] gives is sent as it is, also its last chunk.
    Pass,
    /// What [`BodyDecoder::decode`] gives is sent as it is.
    Plain,
    /// What [`BodyDecoder::decode`] gives is wrapped into chunks, with [`super::LAST_CHUNK`] after the last.
    Chunk,
}

impl Answer {
    /// How the body of a model server's answer of `framing` is sent to the client.
    #[must_use]
    pub fn recoding(&self, framing: ResponseFraming) -> Recoding {
        match (framing, self.framing) {
            (ResponseFraming::Chunked, ResponseFraming::Chunked) => Recoding::Pass,
            (_, ResponseFraming::Chunked) => Recoding::Chunk,
            (
                _,
                ResponseFraming::None | ResponseFraming::Length(_) | ResponseFraming::UntilClose,
            ) => Recoding::Plain,
        }
    }
}

/// How an answer ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AnswerEnd {
    /// All of it was sent.
    Whole,
    /// Its head was sent, its body not to the end: the client must be able to tell (MS-08).
    Cut,
}

/// What the connection does next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Next {
    /// Read the next head; its first bytes may have arrived already (MS-05).
    Request,
    /// Read and drop the rest of this request's body with [`ServerConnection::drain`].
    Drain,
    /// Close.
    Close,
    /// Shut the sending side, read and drop for a short while, close: a plain close with unread bytes makes the
    /// kernel send RST, which destroys the answer on its way (MS-04).
    LingeringClose,
    /// Close with RST: the answer ends with the connection, so an orderly close would look like its end (MS-08).
    Reset,
}

/// What a client had sent when its side of the connection ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ClientEnd {
    /// Nothing since the last request: an orderly end.
    Idle,
    /// A part of a head.
    InsideHead,
    /// A head and a part of its body.
    InsideBody,
    /// A whole request that was not answered yet.
    AfterRequest,
}

/// The state of one client's connection. Reused for all its requests; about 1.3 KiB.
#[derive(Clone, Debug)]
pub struct ServerConnection {
    limits: HeadLimits,
    head: RequestHead,
    body: BodyDecoder,
    request: Request,
    answer: AnswerState,
    continuation: Continuation,
    drained: u64,
    is_last: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Request {
    Head,
    Body,
    Whole,
    /// Where it ends is unknown or too far away.
    Faulty,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum AnswerState {
    NotBegun,
    Begun(Answer),
    Ended(Next),
}

/// What became of `Expect: 100-continue` (MS-01).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Continuation {
    NotAsked,
    Awaited,
    Settled,
}

impl ServerConnection {
    /// A fresh connection whose heads are bounded by `limits`.
    #[must_use]
    pub fn new(limits: HeadLimits) -> Self {
        Self {
            limits,
            head: RequestHead::new(),
            body: BodyDecoder::for_response(ResponseFraming::None),
            request: Request::Head,
            answer: AnswerState::NotBegun,
            continuation: Continuation::NotAsked,
            drained: 0,
            is_last: false,
        }
    }

    /// Reads a head from the front of the buffer; call again with more behind it after `Partial`.
    ///
    /// # Errors
    /// See [`HeadError`]: answer with its status, then do what [`ServerConnection::finish_answer`] says.
    pub fn read_head(&mut self, buffer: &[u8]) -> Result<Progress, HeadError> {
        debug_assert!(self.request == Request::Head, "one head per request");
        let progress = match self.head.parse(buffer, &self.limits) {
            Ok(progress) => progress,
            Err(error) => {
                self.request = Request::Faulty;
                return Err(error);
            }
        };
        if progress == Progress::Complete {
            self.continuation = if self.head.expects_continue() {
                Continuation::Awaited
            } else {
                Continuation::NotAsked
            };
            self.body = BodyDecoder::for_request(self.head.framing());
            self.request = if self.body.is_complete() { Request::Whole } else { Request::Body };
        }
        self.check_invariants();
        Ok(progress)
    }

    /// The current request's head.
    #[must_use]
    pub fn head(&self) -> &RequestHead {
        &self.head
    }

    /// Sets how many bytes this request's body may have, best before any of it is read.
    ///
    /// # Errors
    /// `TooLarge`: the declared length is above it. Answer 413; the body is not read.
    pub fn limit_body(&mut self, bytes_max: u64) -> Result<(), BodyError> {
        self.body.limit(bytes_max).inspect_err(|_| self.request = Request::Faulty)
    }

    /// Whether `100 Continue` has to be sent now: true at most once per request (MS-01).
    ///
    /// `body_bytes` is how much of the body has arrived: a client that did not wait needs no 100.
    pub fn continue_due(&mut self, body_bytes: usize) -> bool {
        let is_due = self.continuation == Continuation::Awaited
            && self.request == Request::Body
            && self.answer == AnswerState::NotBegun;
        if is_due {
            self.continuation = Continuation::Settled;
        }
        is_due && body_bytes == 0 && self.body.received() == 0
    }

    /// Takes body bytes from the front of `input`; see [`BodyDecoder::decode`].
    ///
    /// # Errors
    /// See [`BodyError`]: answer with its status if no answer has begun.
    pub fn read_body(&mut self, input: &[u8]) -> Result<Decoded, BodyError> {
        let decoded = self.body.decode(input);
        self.after_body(decoded)
    }

    /// Takes body bytes with their framing from the front of `input`; see [`BodyDecoder::pass`].
    ///
    /// # Errors
    /// As for [`ServerConnection::read_body`].
    pub fn pass_body(&mut self, input: &[u8]) -> Result<Decoded, BodyError> {
        let decoded = self.body.pass(input);
        self.after_body(decoded)
    }

    /// Whether head and body have arrived and been consumed.
    #[must_use]
    pub fn request_is_whole(&self) -> bool {
        self.request == Request::Whole
    }

    /// Body bytes consumed so far, without framing.
    #[must_use]
    pub fn body_received(&self) -> u64 {
        self.body.received()
    }

    /// Lets this request be the connection's last, e.g. because the router stops.
    pub fn close_after_this(&mut self) {
        self.is_last = true;
    }

    /// Decides how the answer is framed and whether the connection lives on; once per request, also after an error.
    ///
    /// An answer before the end of the request (FR-08) keeps the connection only if what is left is known to be
    /// small and surely comes: not behind a 100 that was never sent, not chunked.
    pub fn begin_answer(&mut self, body: AnswerBody) -> Answer {
        debug_assert!(self.answer == AnswerState::NotBegun, "one answer per request");
        let version = self.head_version();
        let (framing, content_length) = match body {
            AnswerBody::None { content_length } => (ResponseFraming::None, content_length),
            AnswerBody::Length(length) if self.answers_head() => {
                (ResponseFraming::None, Some(length))
            }
            AnswerBody::Unknown if self.answers_head() => (ResponseFraming::None, None),
            AnswerBody::Length(length) => (ResponseFraming::Length(length), Some(length)),
            AnswerBody::Unknown => match version {
                Version::Http11 => (ResponseFraming::Chunked, None),
                Version::Http10 => (ResponseFraming::UntilClose, None), // MS-06
            },
        };
        let keeps =
            framing != ResponseFraming::UntilClose && !self.is_last && self.can_be_followed();
        let persistence = if keeps { Persistence::KeepAlive } else { Persistence::Close };
        let answer = Answer { framing, content_length, persistence, version };
        self.answer = AnswerState::Begun(answer);
        self.check_invariants();
        answer
    }

    /// The answer ended. After `Request` the next head is read from what follows this request's bytes.
    pub fn finish_answer(&mut self, end: AnswerEnd) -> Next {
        let AnswerState::Begun(answer) = self.answer else {
            debug_assert!(false, "an answer begins before it ends");
            return Next::Close;
        };
        let next = match (end, answer.persistence, self.request) {
            (AnswerEnd::Cut, _, _) if answer.framing == ResponseFraming::UntilClose => Next::Reset,
            (AnswerEnd::Cut, _, _) | (AnswerEnd::Whole, Persistence::Close, Request::Whole) => {
                Next::Close
            }
            (AnswerEnd::Whole, Persistence::KeepAlive, Request::Whole) => Next::Request,
            (AnswerEnd::Whole, Persistence::KeepAlive, Request::Body) => Next::Drain,
            (AnswerEnd::Whole, _, Request::Head | Request::Body | Request::Faulty) => {
                Next::LingeringClose
            }
        };
        self.settle(next)
    }

    /// Drops the rest of an answered request's body from the front of `input`: how many bytes, and what then.
    ///
    /// After `Drain` call again with more; it is bounded by [`DRAIN_BYTES_MAX`], and by the caller in time.
    pub fn drain(&mut self, input: &[u8]) -> (usize, Next) {
        debug_assert!(
            self.answer == AnswerState::Ended(Next::Drain),
            "only what was announced is drained"
        );
        let mut consumed = 0;
        while let Some(rest) = input.get(consumed..).filter(|rest| !rest.is_empty())
            && !self.body.is_complete()
        {
            match self.body.decode(rest) {
                Ok(decoded) => consumed += decoded.consumed,
                Err(_) => return (consumed, self.settle(Next::LingeringClose)),
            }
        }
        self.drained = self.drained.saturating_add(consumed as u64);
        if self.body.is_complete() {
            return (consumed, self.settle(Next::Request));
        }
        let next = if self.drained > DRAIN_BYTES_MAX { Next::LingeringClose } else { Next::Drain };
        (consumed, self.settle(next))
    }

    /// What the client had sent when its FIN came; `unread` is what lies in the buffer.
    #[must_use]
    pub fn end_of_input(&self, unread: &[u8]) -> ClientEnd {
        match self.request {
            Request::Head if self.head.is_untouched(unread) => ClientEnd::Idle,
            Request::Head | Request::Faulty => ClientEnd::InsideHead,
            Request::Body => ClientEnd::InsideBody,
            Request::Whole => ClientEnd::AfterRequest,
        }
    }

    fn after_body(&mut self, decoded: Result<Decoded, BodyError>) -> Result<Decoded, BodyError> {
        debug_assert!(self.request != Request::Head, "the head comes before the body");
        if decoded.is_err() {
            self.request = Request::Faulty;
        } else if self.body.is_complete() {
            self.request = Request::Whole;
        }
        self.check_invariants();
        decoded
    }

    /// Whether the rest of this request leads to a next one that can be found.
    fn can_be_followed(&self) -> bool {
        match self.request {
            Request::Head | Request::Faulty => false,
            Request::Whole => self.head.keep_alive(),
            Request::Body => {
                let is_near = self.body.left().is_some_and(|left| left <= DRAIN_BYTES_MAX);
                self.head.keep_alive() && is_near && self.continuation != Continuation::Awaited
            }
        }
    }

    /// A head that could not be read is answered as HTTP/1.1, and with a body.
    fn head_version(&self) -> Version {
        if self.head.bytes() == 0 { Version::Http11 } else { self.head.version() }
    }

    fn answers_head(&self) -> bool {
        self.head.bytes() > 0 && self.head.method() == Method::Head
    }

    fn settle(&mut self, next: Next) -> Next {
        self.answer = AnswerState::Ended(next);
        if next == Next::Request {
            self.head.reset();
            self.request = Request::Head;
            self.answer = AnswerState::NotBegun;
            self.drained = 0;
        }
        self.check_invariants();
        next
    }

    fn check_invariants(&self) {
        debug_assert!(
            self.request != Request::Whole || self.body.is_complete(),
            "a whole request has its whole body"
        );
        debug_assert!(
            !matches!(
                self.answer,
                AnswerState::Begun(Answer { persistence: Persistence::KeepAlive, .. })
            ) || !self.is_faulty_head(),
            "what follows a faulty head is never read as a request"
        );
    }

    fn is_faulty_head(&self) -> bool {
        self.request == Request::Faulty && self.head.bytes() == 0
    }
}

#[cfg(test)]
mod tests;
