//! One core's connection to Redis: greeted, shared by all requests, and made anew when it is lost.
//!
//! Nothing here drops an operation: whoever finds that the connection must end *shuts* it, and both directions
//! complete in the ordinary way. While there is no connection nobody waits: the lookup is refused at once.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use switchboard_shared::snapshot::ArchivedFact;

use super::breaker::Breaker;
use super::lookup::Lookup;
use super::pipeline::Pipeline;
use super::resp::NoResp;
use super::supply::Supply;
use super::tls::{Opened, Tls};
use super::wire::{Wire, WireError};
use crate::counters::{WorkerCounters, Writer};
use crate::limits::{BUFFER_BYTES, FACT_GREETING_SPAN, FACT_STALL_SPAN};
use crate::net::buffer::Buffer;
use crate::net::stream::{self, Reader, Shut, Stream, Writer as StreamWriter};
use crate::net::{clock, task};

/// The connection, or the lack of one.
pub struct Link {
    supply: Arc<Supply>,
    counters: Rc<Writer<WorkerCounters>>,
    pipeline: RefCell<Pipeline>,
    breaker: Cell<Breaker>,
    /// The connection that may be asked.
    up: Cell<Option<Up>>,
    to_send: task::Doorbell,
    to_watch: task::Doorbell,
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
    /// A link that connects in the background, from now until the core ends.
    pub fn start(supply: Arc<Supply>, counters: Rc<Writer<WorkerCounters>>, seed: u64) -> Rc<Self> {
        let link = Rc::new(Self {
            supply,
            counters,
            pipeline: RefCell::default(),
            breaker: Cell::default(),
            up: Cell::default(),
            to_send: task::Doorbell::default(),
            to_watch: task::Doorbell::default(),
            armed: Cell::default(),
        });
        task::spawn(keep(Rc::clone(&link), seed));
        task::spawn(watch(Rc::clone(&link)));
        link
    }

    /// Asks for some Facts of one Unit. `None`: there is no connection, or too many wait.
    pub fn ask<'a>(
        &self,
        facts: impl Iterator<Item = &'a ArchivedFact>,
        unit: &str,
        now: Instant,
        deadline: Instant,
    ) -> Option<Rc<Lookup>> {
        let up = self.up.get()?;
        let mut pipeline = self.pipeline.borrow_mut();
        let was_quiet = pipeline.unanswered() == 0;
        let lookup = pipeline.ask(facts, unit, deadline)?;
        if was_quiet {
            self.up.set(Some(Up { heard: now, ..up }));
        }
        self.to_send.ring();
        if self.armed.get().is_none_or(|armed| deadline < armed) {
            self.to_watch.ring();
        }
        Some(lookup)
    }

    /// Takes a lookup back from its request.
    pub fn give_back(&self, lookup: Rc<Lookup>) {
        self.pipeline.borrow_mut().give_back(lookup);
    }

    /// Nobody asks from now on; the connection's operations complete.
    fn fail(&self) {
        if let Some(up) = self.up.take() {
            self.counters.facts_connected.set(0);
            stream::shut(up.fd, Shut::Both);
        }
        self.to_send.ring();
    }

    /// Replies came in.
    fn heard(&self, in_time: u32, late: u32) {
        if in_time > 0 {
            let mut breaker = self.breaker.get();
            breaker.answered();
            self.breaker.set(breaker);
        }
        self.counters.facts_replies_unheard.add(u64::from(late));
        if let Some(up) = self.up.get() {
            self.up.set(Some(Up { heard: clock::now(), ..up }));
        }
    }

    /// Ends what is due; tells when to look again.
    fn expire(&self, now: Instant) -> Option<Instant> {
        let mut pipeline = self.pipeline.borrow_mut();
        let (late, next) = pipeline.expire(now);
        let unanswered = pipeline.unanswered();
        drop(pipeline);
        let mut breaker = self.breaker.get();
        let is_failing = late > 0 && breaker.late(late, self.supply.late_max());
        self.breaker.set(breaker);
        let heard = self.up.get().map(|up| up.heard);
        let has_stalled = unanswered > 0
            && heard.is_some_and(|heard| now.saturating_duration_since(heard) >= FACT_STALL_SPAN);
        if is_failing || has_stalled {
            self.counters.facts_breaker_opened.add(1);
            self.fail();
        }
        let stall = heard.filter(|_| unanswered > 0).map(|heard| heard + FACT_STALL_SPAN);
        next.into_iter().chain(stall.filter(|at| *at > now)).min()
    }
}

/// Cuts lookups at their deadlines. One timer for all of them: requests set none.
async fn watch(link: Rc<Link>) {
    loop {
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
    loop {
        let since = match greet(&link).await {
            Ok(wire) => {
                let since = clock::now();
                serve(&link, wire, since).await;
                Some(since)
            }
            Err(error) => {
                link.counters.facts_connect_failures.add(1);
                link.supply.report(&error);
                None
            }
        };
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let mut breaker = link.breaker.get();
        let pause = breaker.lost(since, clock::now(), random >> 33);
        link.breaker.set(breaker);
        clock::sleep(pause).await;
    }
}

/// A connection that is authenticated, on its database, and answers within the budget.
async fn greet(link: &Link) -> Result<Wire, WireError> {
    let supply = &link.supply;
    let address = supply.address().ok_or_else(|| {
        WireError::Connect(io::Error::new(io::ErrorKind::NotFound, "its name has no address"))
    })?;
    let mut wire = Wire::connect(&address, supply.connector()).await?;
    if let Some(secret) = supply.secret() {
        let (name, secret): (&[u8], _) = (supply.username().as_bytes(), secret.reveal());
        let long: &[&[&[u8]]] = &[&[b"AUTH"], &[name], &[secret]];
        let short: &[&[&[u8]]] = &[&[b"AUTH"], &[secret]];
        let command = if name.is_empty() { short } else { long };
        wire.exchange(command, b"OK", "the user and password").await?;
    }
    if supply.database() != 0 {
        let database = supply.database().to_string();
        wire.exchange(&[&[b"SELECT"], &[database.as_bytes()]], b"OK", "the database").await?;
    }
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
    let up = Up { fd: reader.fd(), heard: since };
    link.up.set(Some(up));
    link.counters.facts_connected.set(1);
    link.counters.facts_connects.add(1);
    link.supply.report_up();
    let tls = tls.as_ref();
    task::both(receive(link, &mut reader, tls), send(link, &mut writer, tls)).await;
    debug_assert!(link.up.get().is_none(), "both directions end by `fail`");
    link.pipeline.borrow_mut().lose();
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
        let delivered = link.pipeline.borrow_mut().deliver(arrived);
        match delivered {
            Ok(delivered) => link.heard(delivered.in_time, delivered.late),
            Err(NoResp) => {
                link.counters.facts_protocol_errors.add(1);
                break;
            }
        }
        match opened {
            Ok(Opened::Open) => {}
            Ok(Opened::Closed) => break,
            Err(_) => {
                link.counters.facts_protocol_errors.add(1);
                break;
            }
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
