//! The request's body: held as it arrived, read whole where something needs it, or left to stream.

use std::ops::Range;

use switchboard_shared::snapshot::ArchivedObjective;

use super::fault::Fault;
use crate::http1::{BodyError, RequestFraming, ServerConnection};
use crate::limits::{BODY_READ_STEP, REPLAY_BYTES_MAX};
use crate::net::buffer::Buffer;
use crate::worker::Worker;
use crate::worker::connection::Client;
use crate::worker::link::Clock;

/// A request's body, in the state in which it is forwarded.
#[derive(Debug)]
pub enum Body {
    /// Whole, and still in the client's input at this place.
    Held(Range<usize>),
    /// Whole, in its own buffer, without chunked framing.
    Read(Buffer),
    /// The client still sends it: it goes on as it comes.
    Streams,
}

impl Body {
    /// The bytes, if all of them are here.
    pub fn whole<'a>(&'a self, input: &'a Buffer) -> Option<&'a [u8]> {
        match self {
            Self::Held(place) => Some(input.filled().get(place.clone()).unwrap_or_default()),
            Self::Read(buffer) => Some(buffer.filled()),
            Self::Streams => None,
        }
    }

    /// RFC 8259 §8.1 lets us ignore a byte order mark; in front of spliced JSON it would be an error.
    pub fn skip_byte_order_mark(&mut self, input: &Buffer) {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        let has_mark = self.whole(input).is_some_and(|bytes| bytes.starts_with(MARK));
        match self {
            Self::Held(place) if has_mark => place.start += MARK.len(),
            Self::Read(buffer) if has_mark => buffer.consume(MARK.len()),
            Self::Held(_) | Self::Read(_) | Self::Streams => {}
        }
    }
}

/// Takes a body that has arrived whole and without chunked framing; else it is left where it is.
///
/// # Errors
/// What the state machine says of it.
pub fn arrived(
    server: &mut ServerConnection,
    input: &Buffer,
    head_bytes: usize,
) -> Result<Body, BodyError> {
    let length = match server.head().framing() {
        RequestFraming::None => 0,
        RequestFraming::Length(length) => usize::try_from(length).unwrap_or(usize::MAX),
        RequestFraming::Chunked => return Ok(Body::Streams),
    };
    let place = head_bytes..head_bytes.saturating_add(length);
    let Some(bytes) = input.filled().get(place.clone()) else { return Ok(Body::Streams) };
    if !bytes.is_empty() {
        server.read_body(bytes)?;
    }
    Ok(Body::Held(place))
}

/// Whether a body is read whole before it is forwarded, so that the request can be sent again: short ones
/// of Objectives that allow it.
pub fn is_kept_for_replay(objective: Option<&ArchivedObjective>, framing: RequestFraming) -> bool {
    let is_short = matches!(framing, RequestFraming::Length(length) if length <= REPLAY_BYTES_MAX);
    is_short && objective.is_some_and(|objective| objective.idempotent)
}

/// Reads the rest of a body into its own buffer. The head stays at the front of the input, and bytes of a
/// next request end up right behind it.
///
/// # Errors
/// The body is faulty, too large, cut off or too slow; nothing was forwarded.
pub async fn read_whole(
    worker: &Worker,
    client: &mut Client,
    server: &mut ServerConnection,
    bytes_max: u64,
) -> Result<Buffer, Fault> {
    let head_bytes = server.head().bytes();
    let mut body = worker.buffers.take();
    let mut arrived = worker.buffers.take();
    arrived.extend(client.input.filled().get(head_bytes..).unwrap_or_default());
    client.input.truncate(head_bytes);
    let outcome = loop {
        if let Err(error) = take(server, &mut arrived, &mut body) {
            break Err(Fault::Body(error));
        }
        if server.request_is_whole() {
            break Ok(());
        }
        if u64::try_from(body.len()).unwrap_or(u64::MAX) > bytes_max {
            break Err(Fault::Body(BodyError::TooLarge));
        }
        let span = worker.config.clocks.body_idle;
        client.link.watch_client(Clock::BodyIdle, worker.tick(), span);
        // Grown by what arrives, not by what was declared: a header costs an attacker nothing.
        arrived.reserve(BODY_READ_STEP);
        let (result, buffer) = client.reader.read(std::mem::take(&mut arrived)).await;
        arrived = buffer;
        client.link.unwatch_client();
        match (result, client.link.fired()) {
            (_, Some(clock)) => break Err(Fault::ClientSlow(clock)),
            (Ok(1..), None) => {}
            (Ok(0), None) => break Err(Fault::Body(BodyError::Truncated)),
            (Err(_), None) => break Err(Fault::ClientLeft),
        }
    };
    client.input.extend(arrived.filled());
    worker.buffers.put_back(arrived);
    match outcome {
        Ok(()) => Ok(body),
        Err(fault) => {
            worker.buffers.put_back(body);
            Err(fault)
        }
    }
}

/// Moves what has arrived of the body from `arrived` to `body`.
fn take(
    server: &mut ServerConnection,
    arrived: &mut Buffer,
    body: &mut Buffer,
) -> Result<(), BodyError> {
    while !arrived.is_empty() && !server.request_is_whole() {
        let decoded = server.read_body(arrived.filled())?;
        body.extend(arrived.filled().get(decoded.data).unwrap_or_default());
        arrived.consume(decoded.consumed);
    }
    Ok(())
}
