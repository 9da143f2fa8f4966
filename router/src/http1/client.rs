//! One exchange with a model server without its socket: interim answers, the end of the answer, reuse.

use super::body::{BodyDecoder, Decoded};
use super::error::{BodyError, UpstreamError};
use super::framing::ResponseFraming;
use super::limits::INTERIM_RESPONSES_MAX;
use super::method::Method;
use super::request::Progress;
use super::response::ResponseHead;

/// How far the answer's head has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HeadStep {
    /// Call again with the same bytes and more behind them.
    Partial,
    /// An interim answer (1xx): drop it from the front of the buffer and call again (MS-02).
    Interim {
        /// Its length.
        bytes: usize,
    },
    /// The final head: [`ResponseHead::bytes`] long; what follows it is the body.
    Final,
}

/// How much of the request was sent when the answer ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RequestSent {
    /// To its last byte.
    Whole,
    /// Not to its end (MS-04): the model server still waits for it.
    Partly,
}

/// Whether the connection serves another request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reuse {
    /// Yes.
    Pool,
    /// It must be closed.
    Close(CloseReason),
}

/// Why a connection to a model server is not used again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CloseReason {
    /// The answer is not complete, or was faulty.
    Incomplete,
    /// The model server closes it, or the answer ends with it.
    ClosedByServer,
    /// Bytes follow the end of the answer: whose they are is unknown (MS-03).
    UnreadBytes,
    /// The request was not sent to its end.
    RequestUnfinished,
}

impl CloseReason {
    /// Stable label for metrics.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Incomplete => "incomplete",
            Self::ClosedByServer => "closed_by_server",
            Self::UnreadBytes => "unread_bytes",
            Self::RequestUnfinished => "request_unfinished",
        }
    }
}

/// The state of one exchange. Reused; about 2.2 KiB.
#[derive(Clone, Debug)]
pub struct ClientExchange {
    method: Method,
    head: ResponseHead,
    body: BodyDecoder,
    interims: u8,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    Head,
    Body,
    Complete,
    Failed(UpstreamError),
}

impl Default for ClientExchange {
    fn default() -> Self {
        Self::new()
    }
}

impl ClientExchange {
    /// Storage for exchanges; [`ClientExchange::begin`] starts each.
    #[must_use]
    pub fn new() -> Self {
        Self {
            method: Method::default(),
            head: ResponseHead::new(),
            body: BodyDecoder::for_response(ResponseFraming::None),
            interims: 0,
            phase: Phase::Head,
        }
    }

    /// A request of `method` goes out; its answer is read next.
    pub fn begin(&mut self, method: Method) {
        self.method = method;
        self.head.reset();
        self.body = BodyDecoder::for_response(ResponseFraming::None);
        self.interims = 0;
        self.phase = Phase::Head;
    }

    /// Reads the answer's head from the front of the buffer, which starts at the answer's first byte.
    ///
    /// # Errors
    /// `Head`, `UnaskedUpgrade` (101: we never ask for one, FR-09), `InterimTooMany`; each stays.
    pub fn read_head(&mut self, buffer: &[u8]) -> Result<HeadStep, UpstreamError> {
        match self.phase {
            Phase::Head => {}
            Phase::Body | Phase::Complete => return Ok(HeadStep::Final),
            Phase::Failed(error) => return Err(error),
        }
        let progress = self.head.parse(buffer, self.method);
        match progress.map_err(|error| self.fail(UpstreamError::Head(error)))? {
            Progress::Partial => return Ok(HeadStep::Partial),
            Progress::Complete => {}
        }
        if self.head.status() == 101 {
            return Err(self.fail(UpstreamError::UnaskedUpgrade));
        }
        if self.head.is_interim() {
            return self.skip_interim();
        }
        self.body = BodyDecoder::for_response(self.head.framing());
        self.phase = if self.body.is_complete() { Phase::Complete } else { Phase::Body };
        self.check_invariants();
        Ok(HeadStep::Final)
    }

    /// The final head, once it was read.
    #[must_use]
    pub fn head(&self) -> &ResponseHead {
        &self.head
    }

    /// Takes body bytes from the front of `input`; see [`BodyDecoder::decode`].
    ///
    /// # Errors
    /// `Body`; it stays. The client's answer is cut.
    pub fn read_body(&mut self, input: &[u8]) -> Result<Decoded, UpstreamError> {
        let decoded = self.body.decode(input);
        self.after_body(decoded)
    }

    /// Takes body bytes with their framing from the front of `input`; see [`BodyDecoder::pass`].
    ///
    /// # Errors
    /// As for [`ClientExchange::read_body`].
    pub fn pass_body(&mut self, input: &[u8]) -> Result<Decoded, UpstreamError> {
        let decoded = self.body.pass(input);
        self.after_body(decoded)
    }

    /// Whether the whole answer was read.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.phase == Phase::Complete
    }

    /// Body bytes so far, without framing.
    #[must_use]
    pub fn body_received(&self) -> u64 {
        self.body.received()
    }

    /// The model server closed the connection; `unread` are the bytes in the buffer that were not consumed.
    ///
    /// # Errors
    /// `ClosedUnanswered` if not one byte of an answer came, `HeadTruncated`, `Body(Truncated)` (MS-08): then the
    /// answer is not complete, and must not look so to the client.
    pub fn end_of_input(&mut self, unread: &[u8]) -> Result<(), UpstreamError> {
        match self.phase {
            Phase::Complete => Ok(()),
            Phase::Failed(error) => Err(error),
            Phase::Head if unread.is_empty() && self.interims == 0 => {
                Err(self.fail(UpstreamError::ClosedUnanswered))
            }
            Phase::Head => Err(self.fail(UpstreamError::HeadTruncated)),
            Phase::Body => match self.body.end_of_input() {
                Ok(()) => {
                    self.phase = Phase::Complete;
                    Ok(())
                }
                Err(error) => Err(self.fail(UpstreamError::Body(error))),
            },
        }
    }

    /// Whether the connection may be pooled; `unread` is how many bytes lie behind the answer.
    #[must_use]
    pub fn reuse(&self, unread: usize, sent: RequestSent) -> Reuse {
        if self.phase != Phase::Complete {
            return Reuse::Close(CloseReason::Incomplete);
        }
        if sent == RequestSent::Partly {
            return Reuse::Close(CloseReason::RequestUnfinished);
        }
        if !self.head.keep_alive() {
            return Reuse::Close(CloseReason::ClosedByServer);
        }
        if unread > 0 {
            return Reuse::Close(CloseReason::UnreadBytes);
        }
        Reuse::Pool
    }

    fn skip_interim(&mut self) -> Result<HeadStep, UpstreamError> {
        if self.interims == INTERIM_RESPONSES_MAX {
            return Err(self.fail(UpstreamError::InterimTooMany));
        }
        self.interims += 1;
        let bytes = self.head.bytes();
        self.head.reset();
        Ok(HeadStep::Interim { bytes })
    }

    fn after_body(
        &mut self,
        decoded: Result<Decoded, BodyError>,
    ) -> Result<Decoded, UpstreamError> {
        let decoded = decoded.map_err(|error| self.fail(UpstreamError::Body(error)))?;
        if self.phase == Phase::Body && self.body.is_complete() {
            self.phase = Phase::Complete;
        }
        self.check_invariants();
        Ok(decoded)
    }

    fn fail(&mut self, error: UpstreamError) -> UpstreamError {
        self.phase = Phase::Failed(error);
        error
    }

    fn check_invariants(&self) {
        debug_assert!(
            self.phase != Phase::Complete || self.body.is_complete(),
            "a complete answer has its body"
        );
        debug_assert!(
            self.phase != Phase::Head || self.body.received() == 0,
            "the head comes before the body"
        );
        debug_assert!(self.interims <= INTERIM_RESPONSES_MAX, "interim answers are bounded");
    }
}

#[cfg(test)]
mod tests;
