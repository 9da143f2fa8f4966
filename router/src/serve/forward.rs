//! Getting an answer: an endpoint, a connection, the request out and the answer's head in, again where that
//! is safe.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use switchboard_shared::decide::Reason;

use super::answer::{self, Answering};
use super::body::Body;
use super::edit::{self, Outbound};
use super::facts;
use super::fault::Fault;
use super::pump;
use super::relay::{self, BeforeHead, Towards};
use super::request::Request;
use crate::http1::{HeaderKind, Next, RequestSent, ResponseView, Reuse};
use crate::limits::ATTEMPTS_MAX;
use crate::net::clock;
use crate::net::stream::Writer;
use crate::upstream::pool::{Endpoint, InFlight, Lease, Shard, Tried};
use crate::upstream::rest::{self, Verdict};
use crate::worker::Worker;
use crate::worker::connection::Client;
use crate::worker::link::Clock;
use crate::worker::scratch::Scratch;

/// Why an endpoint, or a whole Arm, gave no answer.
pub struct Refusal {
    /// What happened.
    pub fault: Fault,
    /// Whether a model server may have begun the request.
    pub may_have_begun: bool,
}

/// How an exchange left both connections.
pub struct Exchanged {
    /// Whether the endpoint's connection serves another request.
    pub reuse: Reuse,
    /// What the client's connection does next.
    pub next: Next,
}

/// Asks the decided Arm, then the default Arm if the first one's Shard is down.
pub async fn forward(
    worker: &Rc<Worker>,
    client: &mut Client,
    scratch: &mut Scratch,
    request: &mut Request,
) -> Next {
    let mut outcome = ask(worker, client, scratch, request).await;
    if let Err(refusal) = &outcome
        && may_ask_again(request, refusal)
        && request.fall_out(worker, Reason::ArmDown)
    {
        outcome = match facts::stand_in(worker, client, scratch, request) {
            Ok(()) => ask(worker, client, scratch, request).await,
            Err(fault) => Err(Refusal { fault, may_have_begun: false }),
        };
    }
    match outcome {
        Ok(next) => next,
        Err(refusal) => {
            let subject = request.objective().map(|objective| objective.token.as_str());
            let Scratch { server, fields, .. } = scratch;
            let server = RefCell::new(server);
            let Client { link, writer, .. } = client;
            let answering = Answering { writer, link, server: &server, fields };
            answer::problem(worker, answering, &refusal.fault, subject).await
        }
    }
}

fn may_ask_again(request: &Request, refusal: &Refusal) -> bool {
    let is_final = match refusal.fault {
        Fault::Refused
        | Fault::ConnectSlow
        | Fault::ShardDown { .. }
        | Fault::EndpointRests { .. }
        | Fault::Upstream(_) => false,
        Fault::UpstreamSlow(clock) => clock == Clock::Total,
        _ => true,
    };
    !is_final && (!refusal.may_have_begun || request.is_repeatable())
}

async fn ask(
    worker: &Rc<Worker>,
    client: &mut Client,
    scratch: &mut Scratch,
    request: &Request,
) -> Result<Next, Refusal> {
    let Some(shard) = request.arm().and_then(|arm| request.view.shard(arm)) else {
        return Err(unreachable_shard(Duration::ZERO));
    };
    let Scratch { server, fields, .. } = scratch;
    let head = server.head().view(client.input.filled());
    let outbound = edit::render(worker, request, &head, &client.input, fields);
    let mut sending = Sending { worker, client, scratch, request, outbound };
    let outcome = sending.try_endpoints(shard).await;
    sending.outbound.recycle(worker);
    outcome
}

fn unreachable_shard(retry_after: Duration) -> Refusal {
    Refusal { fault: Fault::ShardDown { retry_after }, may_have_begun: false }
}

struct Sending<'a> {
    worker: &'a Rc<Worker>,
    client: &'a mut Client,
    scratch: &'a mut Scratch,
    request: &'a Request,
    outbound: Outbound,
}

impl Sending<'_> {
    async fn try_endpoints(&mut self, shard: &Rc<Shard>) -> Result<Next, Refusal> {
        let worker = self.worker;
        let mut tried = Tried::default();
        let mut last = None;
        for attempt in 0..ATTEMPTS_MAX {
            let Some(choice) = shard.choose(&mut tried, worker.tick(), worker.random()) else {
                break;
            };
            if attempt > 0 && !worker.may_retry() {
                break;
            }
            worker.counters.panics.add(u64::from(choice.is_panic));
            let mut in_flight = choice.endpoint.enter(worker.tick());
            let others = Others { shard, tried, has_attempt: attempt + 1 < ATTEMPTS_MAX };
            match self.try_endpoint(choice.endpoint, &mut in_flight, others).await {
                Ok(next) => return Ok(next),
                Err(refusal) => {
                    self.count_failure(&refusal, &mut in_flight);
                    if !may_ask_again(self.request, &refusal) {
                        return Err(refusal);
                    }
                    last = Some(refusal);
                }
            }
        }
        match last {
            Some(refusal) if refusal.may_have_begun => Err(refusal),
            _ => Err(unreachable_shard(shard.retry_after(clock::now()))),
        }
    }

    fn count_failure(&self, refusal: &Refusal, in_flight: &mut InFlight) {
        let counters = &self.worker.counters;
        match refusal.fault {
            Fault::Refused | Fault::ConnectSlow | Fault::Upstream(_) | Fault::UpstreamSlow(_) => {
                counters.upstream_failures.add(refusal.fault.reason(), 1);
                if let Some(cause) = in_flight.failed(clock::now()) {
                    counters.ejections.add(cause, 1);
                }
            }
            // The client's doing says nothing about the endpoint (UP-03).
            _ => {}
        }
    }

    async fn try_endpoint(
        &mut self,
        endpoint: &Rc<Endpoint>,
        in_flight: &mut InFlight,
        others: Others<'_>,
    ) -> Result<Next, Refusal> {
        let mut lease = self.open(endpoint).await?;
        self.client.link.attach(lease.stream.fd());
        let outcome = match self.request.body {
            Body::Streams => self.stream(&mut lease, in_flight).await,
            Body::Held(_) | Body::Read(_) => self.exchange(&mut lease, in_flight, others).await,
        };
        self.client.link.detach();
        let Exchanged { reuse, next } = outcome?;
        // The client may have left while the last bytes of the answer were here already.
        if reuse == Reuse::Pool && !self.client.link.upstream_is_shut() {
            lease.put_back(&self.worker.pool_limits, self.worker.tick());
        }
        Ok(relay::next_of(&self.client.link, next))
    }

    async fn open(&self, endpoint: &Rc<Endpoint>) -> Result<Lease, Refusal> {
        let worker = self.worker;
        if self.client.link.has_left() {
            return Err(Refusal { fault: Fault::ClientLeft, may_have_begun: false });
        }
        if let Some(lease) = endpoint.take_idle(&worker.pool_limits, worker.tick()) {
            worker.counters.pool_hits.add(1);
            return Ok(lease);
        }
        worker.counters.pool_misses.add(1);
        let connected = endpoint.connect(self.request.clocks.connect).await;
        connected.map_err(|error| {
            let is_slow = error.kind() == std::io::ErrorKind::TimedOut;
            let fault = if is_slow { Fault::ConnectSlow } else { Fault::Refused };
            Refusal { fault, may_have_begun: false }
        })
    }

    async fn stream(
        &mut self,
        lease: &mut Lease,
        in_flight: &mut InFlight,
    ) -> Result<Exchanged, Refusal> {
        let Self { worker, client, scratch, request, outbound } = self;
        pump::stream(worker, client, scratch, request, lease, in_flight, outbound).await
    }

    /// One request, whole in memory, on one connection.
    async fn exchange(
        &mut self,
        lease: &mut Lease,
        in_flight: &mut InFlight,
        others: Others<'_>,
    ) -> Result<Exchanged, Refusal> {
        let Self { worker, client, scratch, request, outbound } = self;
        let Scratch { server, exchange, fields, .. } = &mut **scratch;
        let link = &client.link;
        link.request_is_whole(client.input.len().saturating_sub(request.input_bytes()));
        link.watch_upstream(Clock::FirstByte, worker.tick(), request.clocks.first_byte);
        exchange.begin(request.method);
        let sending = clock::now();
        let sent = send(&mut lease.stream.writer, outbound).await;
        // Even if sending failed: an endpoint may answer early, say 413, and close (MS-04).
        let reader = &mut lease.stream.reader;
        let input = match relay::read_head(worker, link, reader, exchange).await {
            Ok(input) => input,
            Err(BeforeHead { fault, begun }) => {
                return Err(Refusal { fault, may_have_begun: begun || sent != Sent::Nothing });
            }
        };
        let answered = clock::now();
        let asked = judge(worker, in_flight, &exchange.head().view(input.filled()), answered);
        if let Some(retry_after) = asked
            && request.is_repeatable()
            && others.can_be_tried(worker)
        {
            worker.buffers.put_back(input);
            let fault = Fault::EndpointRests { retry_after };
            return Err(Refusal { fault, may_have_begun: true });
        }
        request.answer_began(exchange.head().status(), sending, answered);
        if worker.is_draining() {
            server.close_after_this();
        }
        let answer = server.begin_answer(relay::answer_body(exchange));
        request.write_answer_fields(worker, fields);
        let towards = Towards { writer: &mut client.writer, link, answer, fields };
        let relay::Relayed { end, left_over } =
            relay::relay(worker, request, towards, reader, exchange, input).await;
        let sent = if sent == Sent::All { RequestSent::Whole } else { RequestSent::Partly };
        Ok(Exchanged { reuse: exchange.reuse(left_over, sent), next: server.finish_answer(end) })
    }
}

/// What is left to try beside the present endpoint.
#[derive(Clone, Copy)]
struct Others<'a> {
    shard: &'a Shard,
    tried: Tried,
    has_attempt: bool,
}

impl Others<'_> {
    /// Whether the next attempt will be made, so that an answer may be given up for it.
    fn can_be_tried(self, worker: &Worker) -> bool {
        self.has_attempt
            && worker.retries.get().has_one()
            && self.shard.has_sound(self.tried, worker.tick())
    }
}

/// Tells an endpoint's health what its answer says. Returns the rest that it asks for.
pub fn judge(
    worker: &Worker,
    in_flight: &mut InFlight,
    head: &ResponseView<'_>,
    now: Instant,
) -> Option<Duration> {
    match rest::verdict(head.head().status(), head.value(HeaderKind::RetryAfter)) {
        Verdict::Sound => in_flight.succeeded(now),
        Verdict::Failing => {
            if let Some(cause) = in_flight.answered_badly(now) {
                worker.counters.ejections.add(cause, 1);
            }
        }
        Verdict::Rest(span) => {
            worker.counters.rests.add(1);
            in_flight.rest(now, span);
            return Some(span);
        }
    }
    None
}

/// How much of a request left.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Sent {
    All,
    Some,
    Nothing,
}

async fn send(writer: &mut Writer, outbound: &mut Outbound) -> Sent {
    let head = std::mem::take(&mut outbound.head);
    let result = if outbound.body.is_empty() {
        let (result, head) = writer.write_all(head).await;
        outbound.head = head;
        result
    } else {
        let (result, head, body) =
            writer.write_both(head, std::mem::take(&mut outbound.body)).await;
        (outbound.head, outbound.body) = (head, body);
        result
    };
    match result {
        Ok(()) => Sent::All,
        Err(fault) if fault.sent == 0 => Sent::Nothing,
        Err(_) => Sent::Some,
    }
}
