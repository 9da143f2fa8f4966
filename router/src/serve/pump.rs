//! A body that the client still sends goes on as it comes, while the answer comes back: both ways at once.

use std::cell::{Cell, RefCell};
use std::os::fd::RawFd;

use super::answer::{self, Answering};
use super::copy;
use super::edit::Outbound;
use super::fault::Fault;
use super::forward::{self, Exchanged, Refusal};
use super::relay::{self, BeforeHead, Towards};
use super::request::Request;
use crate::http1::{
    BodyError, ClientExchange, CloseReason, Fields, Next, RequestSent, Reuse, ServerConnection,
};
use crate::limits::BUFFER_BYTES;
use crate::net::buffer::Buffer;
use crate::net::stream::{self, Handle, Reader, Shut, Waited, Writer};
use crate::net::{clock, task};
use crate::upstream::pool::{InFlight, Lease};
use crate::worker::Worker;
use crate::worker::connection::Client;
use crate::worker::link::{Clock, Link};
use crate::worker::scratch::Scratch;

/// Sends what has arrived, then pumps the rest while the answer is relayed.
///
/// # Errors
/// The endpoint took nothing of it: another one may be tried. All else is answered here, since the client's
/// bytes are gone.
pub async fn stream(
    worker: &Worker,
    client: &mut Client,
    scratch: &mut Scratch,
    request: &Request,
    lease: &mut Lease,
    in_flight: &mut InFlight,
    outbound: &mut Outbound,
) -> Result<Exchanged, Refusal> {
    let Scratch { server, exchange, fields, .. } = scratch;
    let upstream = lease.stream.fd();
    exchange.begin(request.method);
    // The head alone: it is what shows whether the connection is alive, and it can be sent again.
    let head = std::mem::take(&mut outbound.head);
    let (result, head) = lease.stream.writer.write_all(head).await;
    outbound.head = head;
    if let Err(fault) = result
        && fault.sent == 0
    {
        let fault = Fault::Upstream(crate::http1::UpstreamError::ClosedUnanswered);
        return Err(Refusal { fault, may_have_begun: false });
    }
    copy::request_begins(worker, request);
    let mut arrived = worker.buffers.take();
    arrived.extend(client.input.filled().get(request.head_bytes..).unwrap_or_default());
    client.input.truncate(request.head_bytes);

    let Client { reader, writer, link, input } = client;
    let server = RefCell::new(server);
    let state = Streaming::new(worker, link, request, &server, reader.handle(), upstream);
    let pump = state.pump(reader, &mut lease.stream.writer, arrived);
    let respond = state.respond(writer, &mut lease.stream.reader, exchange, fields, in_flight);
    let (arrived, exchanged) = task::both(pump, respond).await;
    // What the client sent behind its body is its next request.
    input.extend(arrived.filled());
    worker.buffers.put_back(arrived);
    Ok(exchanged)
}

/// What the two directions tell each other.
struct Streaming<'a> {
    worker: &'a Worker,
    link: &'a Link,
    request: &'a Request,
    server: &'a RefCell<&'a mut ServerConnection>,
    upstream: RawFd,
    /// The body was sent to its end.
    sent: Cell<RequestSent>,
    /// Ends the pump's wait for the client when the answer is over.
    client: Handle,
    is_waiting: Cell<bool>,
    is_answered: Cell<bool>,
    /// What the client did wrong within its body.
    client_fault: Cell<Option<Fault>>,
}

impl<'a> Streaming<'a> {
    fn new(
        worker: &'a Worker,
        link: &'a Link,
        request: &'a Request,
        server: &'a RefCell<&'a mut ServerConnection>,
        client: Handle,
        upstream: RawFd,
    ) -> Self {
        Self {
            worker,
            link,
            request,
            server,
            upstream,
            sent: Cell::new(RequestSent::Partly),
            client,
            is_waiting: Cell::new(false),
            is_answered: Cell::new(false),
            client_fault: Cell::new(None),
        }
    }

    /// Passes the body on until its end, or until the answer is over; returns what was not consumed.
    async fn pump(
        &self,
        client: &mut Reader,
        upstream: &mut Writer,
        mut arrived: Buffer,
    ) -> Buffer {
        let mut outgoing = self.worker.buffers.take();
        loop {
            outgoing.clear();
            if let Err(error) = self.pass(&mut arrived, &mut outgoing) {
                self.fail(Fault::Body(error));
                break;
            }
            let is_whole = self.server.borrow().request_is_whole();
            if !outgoing.is_empty() {
                let now = self.worker.tick();
                self.link.watch_upstream(Clock::FirstByte, now, self.request.clocks.first_byte);
                let result;
                (result, outgoing) = upstream.write_all(outgoing).await;
                // An endpoint that takes no more may have answered already: its answer decides.
                if result.is_err() {
                    break;
                }
            }
            if is_whole {
                self.sent.set(RequestSent::Whole);
                copy::request_ended(self.request);
                self.link.request_is_whole(arrived.len());
                break;
            }
            if self.is_answered.get() {
                break;
            }
            let goes_on;
            (goes_on, arrived) = self.read(client, arrived).await;
            if !goes_on {
                break;
            }
        }
        self.worker.buffers.put_back(outgoing);
        arrived
    }

    /// Moves the body's bytes, cleanly framed, from `arrived` to `outgoing`.
    fn pass(&self, arrived: &mut Buffer, outgoing: &mut Buffer) -> Result<(), BodyError> {
        let mut server = self.server.borrow_mut();
        while !arrived.is_empty() && !server.request_is_whole() {
            let step = server.pass_body(arrived.filled())?;
            let data = arrived.filled().get(step.data).unwrap_or_default();
            copy::request_passes(self.worker, self.request, data);
            outgoing.extend(data);
            arrived.consume(step.consumed);
        }
        Ok(())
    }

    async fn read(&self, client: &mut Reader, mut arrived: Buffer) -> (bool, Buffer) {
        self.link.watch_client(Clock::BodyIdle, self.worker.tick(), self.request.clocks.body_idle);
        self.is_waiting.set(true);
        let waited = client.readable_unless_nudged().await;
        self.is_waiting.set(false);
        if waited == Waited::Nudged {
            self.link.unwatch_client();
            return (false, arrived);
        }
        arrived.reserve(BUFFER_BYTES / 2);
        let (result, buffer) = client.read(arrived).await;
        self.link.unwatch_client();
        let goes_on = match (result, self.link.fired()) {
            (Ok(1..), None) => true,
            _ if self.is_answered.get() => false,
            (_, Some(clock)) => self.fail(Fault::ClientSlow(clock)),
            (Ok(_), None) => self.fail(Fault::Body(BodyError::Truncated)),
            (Err(_), None) => self.fail(Fault::ClientLeft),
        };
        (goes_on, buffer)
    }

    /// The body will never be whole: the endpoint must not wait for it, nor take it for whole.
    fn fail(&self, fault: Fault) -> bool {
        self.client_fault.set(Some(fault));
        stream::shut(self.upstream, Shut::Both);
        false
    }

    /// Relays the answer, or says why there is none.
    async fn respond(
        &self,
        writer: &mut Writer,
        upstream: &mut Reader,
        exchange: &mut ClientExchange,
        fields: &mut Fields,
        in_flight: &mut InFlight,
    ) -> Exchanged {
        let sent = clock::now();
        let exchanged = match relay::read_head(self.worker, self.link, upstream, exchange).await {
            Ok(input) => {
                let answered = clock::now();
                let head = exchange.head().view(input.filled());
                // Its body is gone: whatever the endpoint asks for, this is the answer.
                let _rest = forward::judge(self.worker, in_flight, &head, answered);
                self.request.answer_began(exchange.head().status(), sent, answered);
                self.relay(writer, upstream, exchange, fields, input).await
            }
            Err(before) => self.explain(writer, fields, before, in_flight).await,
        };
        self.is_answered.set(true);
        if self.is_waiting.get() {
            self.client.nudge();
        }
        exchanged
    }

    async fn relay(
        &self,
        writer: &mut Writer,
        upstream: &mut Reader,
        exchange: &mut ClientExchange,
        fields: &mut Fields,
        input: Buffer,
    ) -> Exchanged {
        let Self { worker, link, request, server, .. } = self;
        if worker.is_draining() {
            server.borrow_mut().close_after_this();
        }
        let answer = server.borrow_mut().begin_answer(relay::answer_body(exchange));
        request.write_answer_fields(worker, fields);
        let towards = Towards { writer, link, answer, fields };
        let relay::Relayed { end, left_over } =
            relay::relay(worker, request, towards, upstream, exchange, input).await;
        let next = server.borrow_mut().finish_answer(end);
        Exchanged { reuse: exchange.reuse(left_over, self.sent.get()), next }
    }

    async fn explain(
        &self,
        writer: &mut Writer,
        fields: &mut Fields,
        before: BeforeHead,
        in_flight: &mut InFlight,
    ) -> Exchanged {
        let Self { worker, link, request, server, .. } = self;
        let fault = self.client_fault.take().unwrap_or(before.fault);
        if matches!(fault, Fault::Upstream(_) | Fault::UpstreamSlow(_)) {
            worker.counters.upstream_failures.add(fault.reason(), 1);
            if let Some(cause) = in_flight.failed(clock::now()) {
                worker.counters.ejections.add(cause, 1);
            }
        }
        let subject = request.objective().map(|objective| objective.token.as_str());
        let answering = Answering { writer, link, server, fields };
        let next = answer::problem(worker, answering, &fault, subject).await;
        let next = if matches!(fault, Fault::ClientLeft) { Next::Close } else { next };
        Exchanged { reuse: Reuse::Close(CloseReason::Incomplete), next }
    }
}
