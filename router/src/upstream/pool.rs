//! One core's connections to its endpoints: taken for a request, put back when its answer is whole.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::balance::{self, Candidate};
use super::health::{Health, Role, Standing};
use super::survey::EndpointState;
use crate::active::EndpointAddress;
use crate::counters::Ejection;
use crate::limits::{DOUBTED_PERCENT_MAX, ENDPOINTS_TRIED_MAX};
use crate::net::clock;
use crate::net::stream::Stream;

/// What the pool may keep.
#[derive(Clone, Copy, Debug)]
pub struct PoolLimits {
    /// Spare connections per endpoint and core.
    pub idle_max: usize,
    /// A connection that was unused for longer is closed: below what servers allow themselves
    /// (uvicorn: 5 s), so that they seldom close one that we are about to use.
    pub idle: Duration,
    /// A connection is not used again after this age, so that load spreads after a change behind a
    /// virtual address.
    pub age: Duration,
}

/// One endpoint, as one core sees it. It outlives Snapshots: it is known by its address.
pub struct Endpoint {
    /// Where it is.
    pub address: EndpointAddress,
    idle: RefCell<Vec<Idle>>,
    in_flight: Cell<u32>,
    health: Cell<Health>,
    opened: Cell<u64>,
    reused: Cell<u64>,
}

struct Idle {
    stream: Stream,
    born: Instant,
    since: Instant,
}

/// A connection that serves one request now.
pub struct Lease {
    /// The connection.
    pub stream: Stream,
    /// Whether earlier requests used it: then it may have died unnoticed.
    pub is_reused: bool,
    endpoint: Rc<Endpoint>,
    born: Instant,
}

impl Endpoint {
    fn new(address: EndpointAddress) -> Self {
        Self {
            address,
            idle: RefCell::default(),
            in_flight: Cell::new(0),
            health: Cell::default(),
            opened: Cell::new(0),
            reused: Cell::new(0),
        }
    }

    /// Requests that this core sent there and that are not answered yet.
    pub fn in_flight(&self) -> u32 {
        self.in_flight.get()
    }

    /// Spare connections.
    pub fn idle(&self) -> usize {
        self.idle.borrow().len()
    }

    /// Counts a request in until the guard is dropped.
    pub fn enter(self: &Rc<Self>, now: Instant) -> InFlight {
        self.in_flight.set(self.in_flight.get() + 1);
        let role = self.change_health(|health| health.began(now));
        InFlight { endpoint: Rc::clone(self), role, is_told: false }
    }

    /// The newest spare connection that is still good. Newest first, so that the oldest can leave.
    pub fn take_idle(self: &Rc<Self>, limits: &PoolLimits, now: Instant) -> Option<Lease> {
        loop {
            let idle = self.idle.borrow_mut().pop()?;
            let is_young = now.saturating_duration_since(idle.since) < limits.idle
                && now.saturating_duration_since(idle.born) < limits.age;
            if is_young && idle.stream.is_quiet() {
                let (stream, born) = (idle.stream, idle.born);
                self.reused.set(self.reused.get() + 1);
                return Some(Lease { stream, is_reused: true, endpoint: Rc::clone(self), born });
            }
        }
    }

    /// A new connection.
    ///
    /// # Errors
    /// What the kernel said, or `TimedOut`.
    pub async fn connect(self: &Rc<Self>, limit: Duration) -> io::Result<Lease> {
        let connected = clock::within(limit, Stream::connect(&self.address)).await;
        let stream = connected.unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into()))?;
        let endpoint = Rc::clone(self);
        self.opened.set(self.opened.get() + 1);
        Ok(Lease { stream, is_reused: false, endpoint, born: clock::now() })
    }

    /// How it is, for people.
    pub fn state(&self, now: Instant) -> EndpointState {
        let health = self.health.get();
        EndpointState {
            address: self.address.clone(),
            standing: health.standing(now),
            ejection: health.ejection(),
            retry_after: health.retry_after(now),
            share: health.share(now),
            consecutive_failures: health.consecutive_failures(),
            in_flight: self.in_flight(),
            idle: self.idle(),
            opened: self.opened.get(),
            reused: self.reused.get(),
        }
    }

    fn change_health<T>(&self, change: impl FnOnce(&mut Health) -> T) -> T {
        let mut health = self.health.get();
        let told = change(&mut health);
        self.health.set(health);
        told
    }

    fn close_stale(&self, limits: &PoolLimits, now: Instant) {
        self.idle.borrow_mut().retain(|idle| {
            now.saturating_duration_since(idle.since) < limits.idle && idle.stream.is_quiet()
        });
    }
}

impl Lease {
    /// Puts the connection back for the next request. Only after a whole answer that allows it.
    pub fn put_back(self, limits: &PoolLimits, now: Instant) {
        let is_young = now.saturating_duration_since(self.born) < limits.age;
        let mut idle = self.endpoint.idle.borrow_mut();
        if is_young && idle.len() < limits.idle_max {
            idle.push(Idle { stream: self.stream, born: self.born, since: now });
        }
    }
}

/// A request on its way at an endpoint.
pub struct InFlight {
    endpoint: Rc<Endpoint>,
    role: Role,
    is_told: bool,
}

impl InFlight {
    /// The endpoint answered.
    pub fn succeeded(&mut self, now: Instant) {
        self.tell(|health, role| health.succeeded(role, now));
    }

    /// It did not connect, or broke before it answered. Tells whether and why this ejected it.
    pub fn failed(&mut self, now: Instant) -> Option<Ejection> {
        self.tell(|health, role| health.failed(role, now))
    }

    /// It answered that what is behind it failed. Tells whether and why this ejected it.
    pub fn answered_badly(&mut self, now: Instant) -> Option<Ejection> {
        self.tell(|health, role| health.answered_badly(role, now))
    }

    /// It asked to be left alone for `span`.
    pub fn rest(&mut self, now: Instant, span: Duration) {
        self.tell(|health, role| {
            health.succeeded(role, now);
            health.rest(now, span);
        });
    }

    fn tell<T>(&mut self, change: impl FnOnce(&mut Health, Role) -> T) -> T {
        self.is_told = true;
        let role = self.role;
        self.endpoint.change_health(|health| change(health, role))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.endpoint.in_flight.set(self.endpoint.in_flight.get() - 1);
        if !self.is_told {
            let role = self.role;
            self.endpoint.change_health(|health| health.untold(role));
        }
    }
}

/// A Shard's endpoints with their weights, in the order of the Snapshot.
pub struct Shard {
    endpoints: Vec<(Rc<Endpoint>, u16)>,
}

/// Which endpoints of a Shard a request has tried.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tried(u64);

const _: () = assert!(ENDPOINTS_TRIED_MAX == u64::BITS, "one bit for each endpoint");

impl Tried {
    fn has(self, index: usize) -> bool {
        u32::try_from(index).is_ok_and(|bit| bit < u64::BITS && self.0 >> bit & 1 == 1)
    }

    fn add(&mut self, index: usize) {
        if index < u64::BITS as usize {
            self.0 |= 1 << index;
        }
    }
}

/// An endpoint that was chosen.
pub struct Choice<'a> {
    /// It.
    pub endpoint: &'a Rc<Endpoint>,
    /// Whether it works badly, and was chosen because too few others work well.
    pub is_panic: bool,
}

impl Shard {
    /// An endpoint that this request has not tried; it counts as tried then. Sound ones come first, then
    /// those that rest or are doubted; one that is out is not chosen at all.
    pub fn choose(&self, tried: &mut Tried, now: Instant, random: u64) -> Option<Choice<'_>> {
        let is_panic = self.panics(now);
        let is_first = |standing| match standing {
            Standing::Sound => true,
            Standing::Doubted => is_panic,
            Standing::Rests | Standing::Out => false,
        };
        let first = self.choose_among(*tried, now, random, is_first);
        let is_last_resort = |standing| standing != Standing::Out;
        let index = first.or_else(|| self.choose_among(*tried, now, random, is_last_resort))?;
        tried.add(index);
        let (endpoint, _) = self.endpoints.get(index)?;
        let is_doubted = endpoint.health.get().standing(now) == Standing::Doubted;
        Some(Choice { endpoint, is_panic: is_panic && is_doubted })
    }

    /// Whether a sound endpoint is left that this request has not tried.
    pub fn has_sound(&self, tried: Tried, now: Instant) -> bool {
        let mut endpoints = self.endpoints.iter().enumerate();
        endpoints.any(|(index, (endpoint, _))| {
            !tried.has(index) && endpoint.health.get().standing(now) == Standing::Sound
        })
    }

    /// Whether so many of its endpoints are doubted that doubt is no reason to prefer others.
    fn panics(&self, now: Instant) -> bool {
        let is_doubted =
            |endpoint: &Endpoint| endpoint.health.get().standing(now) == Standing::Doubted;
        let doubted = self.endpoints.iter().filter(|(endpoint, _)| is_doubted(endpoint)).count();
        doubted * 100 > self.endpoints.len() * DOUBTED_PERCENT_MAX
    }

    fn choose_among(
        &self,
        tried: Tried,
        now: Instant,
        random: u64,
        is_wanted: impl Fn(Standing) -> bool + Copy,
    ) -> Option<usize> {
        let candidates = self.endpoints.iter().enumerate().map(|(index, (endpoint, weight))| {
            let health = endpoint.health.get();
            Candidate {
                weight: u32::from(*weight) * u32::from(health.share(now)),
                in_flight: endpoint.in_flight.get(),
                usable: !tried.has(index) && is_wanted(health.standing(now)),
            }
        });
        balance::choose(candidates, random)
    }

    /// When the first of its endpoints may be tried again.
    pub fn retry_after(&self, now: Instant) -> Duration {
        let spans =
            self.endpoints.iter().map(|(endpoint, _)| endpoint.health.get().retry_after(now));
        spans.min().unwrap_or(Duration::ZERO)
    }
}

/// All endpoints that a core knows, over all Snapshots that still serve a request.
#[derive(Default)]
pub struct Endpoints {
    by_address: RefCell<HashMap<EndpointAddress, Rc<Endpoint>>>,
}

impl Endpoints {
    /// A Shard over these addresses; connections and health of known ones go on.
    pub fn shard<'a>(
        &self,
        addresses: impl Iterator<Item = (&'a EndpointAddress, u16)>,
    ) -> Rc<Shard> {
        let mut known = self.by_address.borrow_mut();
        let endpoints = addresses.map(|(address, weight)| {
            let endpoint = known
                .entry(address.clone())
                .or_insert_with(|| Rc::new(Endpoint::new(address.clone())));
            (Rc::clone(endpoint), weight)
        });
        Rc::new(Shard { endpoints: endpoints.collect() })
    }

    /// Closes connections that were unused for too long or that the peer closed, and forgets
    /// endpoints that no Snapshot names any more.
    pub fn sweep(&self, limits: &PoolLimits, now: Instant) {
        self.by_address.borrow_mut().retain(|_, endpoint| {
            endpoint.close_stale(limits, now);
            Rc::strong_count(endpoint) > 1
        });
    }

    /// How all of them are, in no order.
    pub fn states(&self, now: Instant) -> Box<[EndpointState]> {
        self.by_address.borrow().values().map(|endpoint| endpoint.state(now)).collect()
    }

    /// How many are ejected.
    pub fn ejected(&self) -> u64 {
        let known = self.by_address.borrow();
        known.values().map(|endpoint| u64::from(endpoint.health.get().ejection().is_some())).sum()
    }

    /// Connections of all endpoints that are open: spare, or with a request on its way.
    pub fn open(&self) -> u64 {
        let known = self.by_address.borrow();
        let open =
            |endpoint: &Rc<Endpoint>| endpoint.idle() as u64 + u64::from(endpoint.in_flight());
        known.values().map(open).sum()
    }
}
