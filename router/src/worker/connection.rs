//! One client connection: busy times and rests, and a close that loses nothing.

use std::io;
use std::rc::Rc;

use super::Worker;
use super::link::{Clock, Link};
use super::scratch::Scratch;
use crate::http1::{ClientEnd, HeadError, Next, Progress, ServerConnection};
use crate::limits::{BUFFER_BYTES, LINGER_BYTES_MAX, LINGER_SPAN, REST_AFTER};
use crate::net::buffer::Buffer;
use crate::net::stream::{self, Reader, Shut, Stream, Waited, Writer};
use crate::serve;

/// The client's end of a connection.
pub struct Client {
    /// From the client.
    pub reader: Reader,
    /// To the client.
    pub writer: Writer,
    /// What may end its operations from outside.
    pub link: Rc<Link>,
    /// What was read and not consumed: the present request's head and what follows it.
    pub input: Buffer,
}

/// What came where a head was expected.
enum Heading {
    Request,
    Refused(HeadError),
    TooSlow,
    Closed,
}

/// How a busy time of a connection ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Busy {
    /// The client has been silent for a while; it may come back.
    Rests,
    Ended,
}

/// What a wait for a request came to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Woken {
    Bytes,
    /// The client has been silent for a while.
    Silence,
    Ended,
}

/// Serves a connection to its end.
///
/// What serving needs lives in a box of its own that lasts as long as requests keep coming, so that a silent
/// connection costs a few hundred bytes, and a busy one no allocation per request.
pub async fn run(worker: &Rc<Worker>, stream: Stream, link: Rc<Link>) {
    let Stream { reader, writer } = stream;
    let mut client = Client { reader, writer, link, input: Buffer::default() };
    while Box::pin(be_busy(worker, &mut client)).await == Busy::Rests {
        client.reader.readable().await;
    }
    worker.buffers.put_back(client.input);
}

async fn be_busy(worker: &Rc<Worker>, client: &mut Client) -> Busy {
    let mut next = Next::Request;
    while next == Next::Request {
        match wait_for_bytes(worker, client).await {
            Woken::Bytes => {}
            Woken::Silence => return Busy::Rests,
            Woken::Ended => return Busy::Ended,
        }
        let mut scratch = worker.scratches.take(worker.head_limits);
        next = serve_next(worker, client, &mut scratch).await;
        if next != Next::Request {
            scratch.server = ServerConnection::new(worker.head_limits);
        }
        worker.scratches.put_back(scratch);
    }
    match next {
        Next::LingeringClose => linger(worker, client).await,
        // What a client sent behind its last request would make a plain close a reset, too.
        Next::Close if has_unread(client) => linger(worker, client).await,
        Next::Reset => stream::reset_on_close(client.writer.fd()),
        Next::Request | Next::Drain | Next::Close => {}
    }
    Busy::Ended
}

fn has_unread(client: &Client) -> bool {
    !client.link.has_left() && (!client.input.is_empty() || client.reader.handle().unread() > 0)
}

async fn wait_for_bytes(worker: &Worker, client: &mut Client) -> Woken {
    if !client.input.is_empty() {
        return Woken::Bytes;
    }
    client.link.begin();
    if worker.is_draining() {
        return Woken::Ended;
    }
    // What waits pins no buffer: the kernel has lent ones for what will come.
    worker.buffers.put_back(std::mem::take(&mut client.input));
    client.link.rest();
    client.link.watch_client(Clock::KeepAlive, worker.tick(), worker.config.clocks.keep_alive_idle);
    client.link.rest_after(worker.tick(), REST_AFTER);
    // It stays at rest then, watched by the same clock.
    if client.reader.readable_unless_nudged().await == Waited::Nudged {
        return Woken::Silence;
    }
    client.link.wake();
    let (result, input) = client.reader.read(std::mem::take(&mut client.input)).await;
    client.input = input;
    if matches!(result, Ok(1..)) { Woken::Bytes } else { Woken::Ended }
}

async fn serve_next(worker: &Rc<Worker>, client: &mut Client, scratch: &mut Scratch) -> Next {
    let next = match read_head(worker, client, &mut scratch.server).await {
        Heading::Request => serve::serve(worker, client, scratch).await,
        Heading::Refused(error) => serve::refuse_head(worker, client, scratch, error).await,
        Heading::TooSlow => serve::head_too_slow(worker, client, scratch).await,
        Heading::Closed => Next::Close,
    };
    if next == Next::Drain { drain(worker, client, &mut scratch.server).await } else { next }
}

async fn read_head(worker: &Worker, client: &mut Client, server: &mut ServerConnection) -> Heading {
    client.link.begin();
    let mut is_watched = false;
    loop {
        match server.read_head(client.input.filled()) {
            Ok(Progress::Complete) => {
                client.link.unwatch_client();
                return Heading::Request;
            }
            Ok(Progress::Partial) => {}
            Err(error) => return Heading::Refused(error),
        }
        if !is_watched {
            // Once for the whole head, so that a byte now and then does not keep it open (RS-02).
            is_watched = true;
            client.link.watch_client(Clock::Head, worker.tick(), worker.config.clocks.head);
        }
        let count = read_more(client).await;
        if client.link.fired().is_some() {
            let is_idle = server.end_of_input(client.input.filled()) == ClientEnd::Idle;
            return if is_idle { Heading::Closed } else { Heading::TooSlow };
        }
        if !matches!(count, Ok(1..)) {
            return Heading::Closed;
        }
    }
}

async fn read_more(client: &mut Client) -> io::Result<usize> {
    let mut buffer = std::mem::take(&mut client.input);
    buffer.reserve(BUFFER_BYTES / 2);
    let (result, buffer) = client.reader.read(buffer).await;
    client.input = buffer;
    result
}

/// Reads and drops the rest of an answered request's body, so that the next head is found behind it (FR-08).
async fn drain(worker: &Worker, client: &mut Client, server: &mut ServerConnection) -> Next {
    client.link.watch_client(Clock::BodyIdle, worker.tick(), LINGER_SPAN);
    loop {
        let (consumed, next) = server.drain(client.input.filled());
        client.input.consume(consumed);
        if next != Next::Drain {
            client.link.unwatch_client();
            return next;
        }
        if !matches!(read_more(client).await, Ok(1..)) {
            return Next::Close;
        }
    }
}

/// Closes so that the last answer arrives: our side first, then what the client still sends is read and
/// dropped, within bounds. Closing with unread bytes would send a reset, which can destroy the answer (MS-04).
async fn linger(worker: &Worker, client: &mut Client) {
    stream::shut(client.writer.fd(), Shut::Write);
    client.link.begin();
    client.link.watch_client(Clock::BodyIdle, worker.tick(), LINGER_SPAN);
    let mut dropped = 0;
    while dropped < LINGER_BYTES_MAX && client.link.fired().is_none() {
        client.input.clear();
        match read_more(client).await {
            Ok(count @ 1..) => dropped += count,
            Ok(0) | Err(_) => return,
        }
    }
}
