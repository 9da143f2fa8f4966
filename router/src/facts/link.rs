//! One core's connection to one server: greeted, shared by all requests, and made anew when it is lost.
//!
//! Nothing here drops an operation: whoever finds that the connection must end *shuts* it, and both directions
//! complete in the ordinary way. While there is no connection nobody waits: the lookup is refused at once.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::breaker::Breaker;
use super::cluster::Cluster;
use super::lookup::{Lookup, LookupPool};
use super::near::Near;
use super::pipeline::{Pipeline, Sending};
use super::resp::NoResp;
use super::supply::{Server, Supply};
use super::tls::{Opened, Tls};
use super::wire::{Wire, WireError};
use crate::counters::{WorkerCounters, Writer};
use crate::limits::{BUFFER_BYTES, FACT_GREETING_SPAN, FACT_STALL_SPAN};
use crate::net::buffer::Buffer;
use crate::net::stream::{self, Reader, Shut, Stream, Writer as StreamWriter};
use crate::net::{clock, task};

/// What all connections of one core share.
pub struct Shared {
    /// Where the servers are, and who we are there.
    pub supply: Arc<Supply>,
    /// This core's counters.
    pub counters: Rc<Writer<WorkerCounters>>,
    /// Spare lookups.
    pub pool: LookupPool,
    /// What the cache said a moment ago.
    pub near: Option<Near>,
}

/// The connection, or the lack of one.
pub struct Link {
    shared: Rc<Shared>,
    server: Server,
    /// Where the server is a node of one.
    cluster: Option<Weak<Cluster>>,
    pipeline: RefCell<Pipeline>,
    breaker: Cell<Breaker>,
    /// The connection that may be asked.
    up: Cell<Option<Up>>,
    /// Nobody will ask any more.
    is_over: Cell<bool>,
    to_send: task::Doorbell,
    to_watch: task::Doorbell,
    to_connect: task::Doorbell,
    /// When the watch looks next.
    armed: Cell<Option<Instant>>,
}

#[derive(Clone, Copy)]
struct Up {
    fd: std::os::fd::RawFd,
    /// When the last reply came, or, if all were answered, the last command was sent.
    heard: Instant,
}

impl Link {
    /// A link that connects in the background, from now until it is ended, or the core is.
    pub fn start(
        shared: &Rc<Shared>,
        server: Server,
        cluster: Option<Weak<Cluster>>,
        seed: u64,
    ) -> Rc<Self> {
        let link = Rc::new(Self {
            shared: Rc::clone(shared),
            server,
            cluster,
            pipeline: RefCell::default(),
            breaker: Cell::default(),
            up: Cell::default(),
            is_over: Cell::new(false),
            to_send: task::Doorbell::default(),
            to_watch: task::Doorbell::default(),
            to_connect: task::Doorbell::default(),
            armed: Cell::default(),
        });
        task::spawn(keep(Rc::clone(&link), seed));
        task::spawn(watch(Rc::clone(&link)));
        link
    }

    /// Whether it may be asked.
    pub fn is_up(&self) -> bool {
        self.up.get().is_some()
    }

    /// Asks for some Facts of a lookup. `false`: there is no connection, or too many wait.
    pub fn send(
        &self,
        lookup: &Rc<Lookup>,
        places: &[usize],
        sending: Sending,
        now: Instant,
    ) -> bool {
        let Some(up) = self.up.get() else { return false };
        let mut pipeline = self.pipeline.borrow_mut();
        let was_quiet = pipeline.unanswered() == 0;
        if !pipeline.send(lookup, places, sending) {
            return false;
        }
        drop(pipeline);
        if was_quiet {
            self.up.set(Some(Up { heard: now, ..up }));
        }
        self.to_send.ring();
        let deadline = lookup.deadline();
        if self.armed.get().is_none_or(|armed| deadline < armed) {
            self.to_watch.ring();
        }
        true
    }

    /// The server is none of ours any more: the connection ends, and is not made anew.
    pub fn end(&self) {
        self.is_over.set(true);
        self.fail();
        self.to_watch.ring();
        self.to_connect.ring();
    }

    /// Nobody asks from now on; the connection's operations complete.
    fn fail(&self) {
        if let Some(up) = self.up.take() {
            self.shared.counters.facts_connected.lower();
            stream::shut(up.fd, Shut::Both);
            if let Some(cluster) = self.cluster.as_ref().and_then(Weak::upgrade) {
                cluster.look_again();
            }
        }
        self.to_send.ring();
    }

    /// Bytes came in: replies to whom they are for.
    fn heard(&self, input: &mut Buffer) -> Result<(), NoResp> {
        let now = clock::now();
        let Shared { counters, pool, near, .. } = &*self.shared;
        let delivered = self.pipeline.borrow_mut().deliver(input, pool, near.as_ref(), now)?;
        if delivered.in_time > 0 {
            let mut breaker = self.breaker.get();
            breaker.answered();
            self.breaker.set(breaker);
        }
        counters.facts_replies_unheard.add(u64::from(delivered.late));
        counters.facts_hedges_won.add(u64::from(delivered.hedges_won));
        if let Some(up) = self.up.get() {
            self.up.set(Some(Up { heard: now, ..up }));
        }
        let cluster = self.cluster.as_ref().and_then(Weak::upgrade);
        if let Some(cluster) = cluster.as_ref().filter(|_| delivered.is_moved) {
            cluster.look_again();
        }
        for redirect in delivered.redirects {
            match &cluster {
                Some(cluster) => cluster.redirect(&redirect, self.server.host(), now),
                None => self.shared.refuse(&redirect.lookup, redirect.place, now),
            }
            pool.give_back(redirect.lookup);
        }
        Ok(())
    }

    /// Ends what is due; tells when to look again.
    fn expire(&self, now: Instant) -> Option<Instant> {
        let mut pipeline = self.pipeline.borrow_mut();
        let (late, next) = pipeline.expire(now);
        let unanswered = pipeline.unanswered();
        drop(pipeline);
        let mut breaker = self.breaker.get();
        let is_failing = late > 0 && breaker.late(late, self.shared.supply.late_max());
        self.breaker.set(breaker);
        let heard = self.up.get().map(|up| up.heard);
        let has_stalled = unanswered > 0
            && heard.is_some_and(|heard| now.saturating_duration_since(heard) >= FACT_STALL_SPAN);
        if is_failing || has_stalled {
            self.shared.counters.facts_breaker_opened.add(1);
            self.fail();
        }
        let stall = heard.filter(|_| unanswered > 0).map(|heard| heard + FACT_STALL_SPAN);
        next.into_iter().chain(stall.filter(|at| *at > now)).min()
    }
}

impl Shared {
    /// A command that no server can answer: the lookup goes without it.
    pub(super) fn refuse(&self, lookup: &Rc<Lookup>, place: usize, now: Instant) {
        let meaning = Err(super::lookup::Answer::Failed(super::resp::ErrorClass::Moved));
        lookup.answer(place, meaning.clone());
        if let Some(near) = self.near.as_ref().filter(|_| !lookup.is_asked(place)) {
            near.settle(lookup, place, &meaning, &self.pool, now);
        }
    }
}

/// Cuts lookups at their deadlines. One timer for all of them: requests set none.
async fn watch(link: Rc<Link>) {
    while !link.is_over.get() {
        let now = clock::now();
        let next = link.expire(now);
        link.armed.set(next);
        match next {
            None => link.to_watch.wait().await,
            Some(at) => {
                let _rung = clock::within(at - now, link.to_watch.wait()).await;
            }
        }
    }
}

/// Connects, serves, and begins again.
async fn keep(link: Rc<Link>, mut random: u64) {
    while !link.is_over.get() {
        let since = match greet(&link).await {
            Ok(wire) => {
                let since = clock::now();
                serve(&link, wire, since).await;
                Some(since)
            }
            Err(error) => {
                link.shared.counters.facts_connect_failures.add(1);
                link.shared.supply.report(&error);
                None
            }
        };
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let mut breaker = link.breaker.get();
        let pause = breaker.lost(since, clock::now(), random >> 33);
        link.breaker.set(breaker);
        let _is_over = clock::within(pause, link.to_connect.wait()).await;
    }
}

/// A connection that is authenticated, on its database, and answers within the budget.
async fn greet(link: &Link) -> Result<Wire, WireError> {
    let supply = &link.shared.supply;
    let mut wire = Wire::open(supply, &link.server).await?;
    let began = clock::now();
    wire.exchange(&[&[b"PING"]], b"PONG", "PING").await?;
    // While it is too slow for anyone, nobody shall wait for it.
    if clock::now().saturating_duration_since(began) > supply.budget() {
        return Err(WireError::Silent);
    }
    if wire.has_more() { Err(NoResp.into()) } else { Ok(wire) }
}

async fn serve(link: &Link, wire: Wire, since: Instant) {
    let Wire { stream: Stream { mut reader, mut writer }, tls, .. } = wire;
    if link.is_over.get() {
        return;
    }
    let up = Up { fd: reader.fd(), heard: since };
    link.up.set(Some(up));
    link.shared.counters.facts_connected.raise();
    link.shared.counters.facts_connects.add(1);
    link.shared.supply.report_up();
    let tls = tls.as_ref();
    task::both(receive(link, &mut reader, tls), send(link, &mut writer, tls)).await;
    debug_assert!(link.up.get().is_none(), "both directions end by `fail`");
    link.pipeline.borrow_mut().lose(&link.shared.pool, link.shared.near.as_ref());
}

/// Until the connection ends: replies to whom they are for.
async fn receive(link: &Link, reader: &mut Reader, tls: Option<&Tls>) {
    let (mut input, mut plain) = (Buffer::with_capacity(BUFFER_BYTES), Buffer::default());
    loop {
        input.reserve(BUFFER_BYTES / 2);
        let (result, buffer) = reader.read(input).await;
        input = buffer;
        if !matches!(result, Ok(1..)) {
            break;
        }
        let opened = match tls {
            None => Ok(Opened::Open),
            Some(tls) => tls.open(&mut input, &mut plain),
        };
        let arrived = if tls.is_some() { &mut plain } else { &mut input };
        let heard = link.heard(arrived);
        if heard.is_err() || opened.is_err() {
            link.shared.counters.facts_protocol_errors.add(1);
            break;
        }
        if opened == Ok(Opened::Closed) {
            break;
        }
        if tls.is_some_and(Tls::has_outgoing) {
            link.to_send.ring();
        }
    }
    link.fail();
}

/// Until the connection ends: all commands that came together leave together.
async fn send(link: &Link, writer: &mut StreamWriter, tls: Option<&Tls>) {
    let mut outgoing = Buffer::with_capacity(BUFFER_BYTES);
    let mut sealed = Buffer::default();
    while link.up.get().is_some() {
        if !link.pipeline.borrow().has_outgoing() && !tls.is_some_and(Tls::has_outgoing) {
            link.to_send.wait().await;
            continue;
        }
        link.pipeline.borrow_mut().take_outgoing(&mut outgoing);
        if let Some(tls) = tls {
            let result = tls.seal(outgoing.filled(), &mut sealed);
            outgoing.clear();
            if result.is_err() {
                break;
            }
        }
        let leaving = if tls.is_some() { &mut sealed } else { &mut outgoing };
        let result;
        (result, *leaving) = writer.write_all(std::mem::take(leaving)).await;
        leaving.clear();
        if result.is_err() {
            break;
        }
    }
    link.fail();
}

const _: () = assert!(
    FACT_GREETING_SPAN.as_millis() < Duration::from_secs(1).as_millis(),
    "a stopped cache is tried again in time to be back within two seconds"
);
