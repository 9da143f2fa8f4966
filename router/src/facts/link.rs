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
use super::resp::{self, NoResp, Reply};
use super::supply::Supply;
use crate::counters::{WorkerCounters, Writer};
use crate::limits::{BUFFER_BYTES, FACT_GREETING_SPAN, FACT_REPLY_LINE_BYTES_MAX, FACT_STALL_SPAN};
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

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
enum LinkError {
    #[error("cannot connect to the cache")]
    Connect(#[source] io::Error),
    #[error("the cache does not answer")]
    Silent,
    #[error("the cache ended the connection")]
    Closed,
    #[error(transparent)]
    NoResp(#[from] NoResp),
    #[error("the cache refused {step}")]
    Refused { step: &'static str },
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
            Ok(stream) => {
                let since = clock::now();
                serve(&link, stream, since).await;
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
async fn greet(link: &Link) -> Result<Stream, LinkError> {
    let address = link.supply.address().ok_or_else(|| {
        LinkError::Connect(io::Error::new(io::ErrorKind::NotFound, "its name has no address"))
    })?;
    let connected = clock::within(FACT_GREETING_SPAN, Stream::connect(&address)).await;
    let mut stream = connected.ok_or(LinkError::Silent)?.map_err(LinkError::Connect)?;
    if let Some(secret) = link.supply.secret() {
        let mut command = Vec::new();
        match link.supply.username() {
            "" => resp::write(&mut command, &[&[b"AUTH"], &[secret.reveal()]]),
            name => {
                resp::write(&mut command, &[&[b"AUTH"], &[name.as_bytes()], &[secret.reveal()]])
            }
        }
        exchange(&mut stream, command, b"OK", "the user and password").await?;
    }
    if link.supply.database() != 0 {
        let database = link.supply.database().to_string();
        let mut command = Vec::new();
        resp::write(&mut command, &[&[b"SELECT"], &[database.as_bytes()]]);
        exchange(&mut stream, command, b"OK", "the database").await?;
    }
    let mut command = Vec::new();
    resp::write(&mut command, &[&[b"PING"]]);
    let began = clock::now();
    exchange(&mut stream, command, b"PONG", "PING").await?;
    // While it is too slow for anyone, nobody shall wait for it.
    if clock::now().saturating_duration_since(began) > link.supply.budget() {
        return Err(LinkError::Silent);
    }
    Ok(stream)
}

/// One command and its reply, before anyone else uses the connection.
async fn exchange(
    stream: &mut Stream,
    command: Vec<u8>,
    expected: &[u8],
    step: &'static str,
) -> Result<(), LinkError> {
    let mut outgoing = Buffer::default();
    outgoing.extend(&command);
    let (result, _) = stream.writer.write_all(outgoing).await;
    result.map_err(|fault| LinkError::Connect(fault.error))?;
    let mut input = Buffer::with_capacity(FACT_REPLY_LINE_BYTES_MAX);
    let fd = stream.fd();
    let deadline = clock::now() + FACT_GREETING_SPAN;
    loop {
        if let Some((reply, _)) = resp::read(input.filled(), 0, 0)? {
            return match reply {
                Reply::Status(text) if text == expected => Ok(()),
                _ => Err(LinkError::Refused { step }),
            };
        }
        input.reserve(1);
        let left = deadline.saturating_duration_since(clock::now());
        // The read is never dropped: the clock shuts the socket, and the read completes.
        let read = stream.reader.read(std::mem::take(&mut input));
        let (result, buffer) = task::with_alarm(left, || stream::shut(fd, Shut::Both), read).await;
        input = buffer;
        match result {
            Ok(1..) => {}
            Ok(0) if clock::now() >= deadline => return Err(LinkError::Silent),
            Ok(0) => return Err(LinkError::Closed),
            Err(error) => return Err(LinkError::Connect(error)),
        }
    }
}

async fn serve(link: &Link, stream: Stream, since: Instant) {
    let Stream { mut reader, mut writer } = stream;
    let up = Up { fd: reader.fd(), heard: since };
    link.up.set(Some(up));
    link.counters.facts_connected.set(1);
    link.counters.facts_connects.add(1);
    link.supply.report_up();
    task::both(receive(link, &mut reader), send(link, &mut writer)).await;
    debug_assert!(link.up.get().is_none(), "both directions end by `fail`");
    link.pipeline.borrow_mut().lose();
}

/// Until the connection ends: replies to whom they are for.
async fn receive(link: &Link, reader: &mut Reader) {
    let mut input = Buffer::with_capacity(BUFFER_BYTES);
    loop {
        input.reserve(BUFFER_BYTES / 2);
        let (result, buffer) = reader.read(input).await;
        input = buffer;
        if !matches!(result, Ok(1..)) {
            break;
        }
        let delivered = link.pipeline.borrow_mut().deliver(&mut input);
        match delivered {
            Ok(delivered) => link.heard(delivered.in_time, delivered.late),
            Err(NoResp) => {
                link.counters.facts_protocol_errors.add(1);
                break;
            }
        }
    }
    link.fail();
}

/// Until the connection ends: all commands that came together leave together.
async fn send(link: &Link, writer: &mut StreamWriter) {
    let mut outgoing = Buffer::with_capacity(BUFFER_BYTES);
    while link.up.get().is_some() {
        if !link.pipeline.borrow().has_outgoing() {
            link.to_send.wait().await;
            continue;
        }
        link.pipeline.borrow_mut().take_outgoing(&mut outgoing);
        let result;
        (result, outgoing) = writer.write_all(outgoing).await;
        outgoing.clear();
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
