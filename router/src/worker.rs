//! One core: listeners → connections → [`crate::serve`], with everything that the core owns.
//!
//! A worker shares nothing that it writes. It reads the published Activation between requests, and
//! its counters are cells that others only read.

pub mod connection;
pub mod link;
pub mod links;
pub mod scratch;
pub mod view;

use std::cell::{Cell, RefCell};
use std::os::fd::RawFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use self::link::Link;
use self::links::Links;
use self::scratch::ScratchPool;
use self::view::View;
use crate::activation::{Activation, ActivationReader, Held};
use crate::config::{Config, Listen};
use crate::cores::{CorePlan, WorkerPlan};
use crate::counters::{Counters, ResponseClass, WorkerCounters, Writer};
use crate::facts::Facts;
use crate::facts::supply::Supply;
use crate::http1::HeadLimits;
use crate::limits::{ACCEPT_PAUSE, FACTS_SERVED_POOLED_MAX, POOL_SWEEP_EVERY, WORKER_TICK};
use crate::net::buffer::BufferPool;
use crate::net::hangup::Hangups;
use crate::net::listener::{self, Listener, Listening};
use crate::net::ring::{self, RingMode};
use crate::net::stream::{self, Shut, Stream};
use crate::net::{affinity, clock, slice, task};
use crate::serve::request::Request;
use crate::serve::served::Served;
use crate::shadow::copies::{Copies, RingEnd};
use crate::shadow::{self, Shadow};
use crate::upstream::budget::RetryBudget;
use crate::upstream::pool::{Endpoints, PoolLimits};
use crate::upstream::survey::{Survey, Surveyed};

/// What one core owns. All of it is used by that core's thread only.
pub struct Worker {
    /// The static settings.
    pub config: Arc<Config>,
    /// This core's counters.
    pub counters: Rc<Writer<WorkerCounters>>,
    /// Where Facts are looked up.
    pub facts: Facts,
    /// Spare buffers.
    pub buffers: Rc<BufferPool>,
    /// Spare parsing tables.
    pub scratches: ScratchPool,
    /// Endpoints and their pooled connections.
    pub endpoints: Endpoints,
    /// What the pools may keep.
    pub pool_limits: PoolLimits,
    /// What a request's head may be.
    pub head_limits: HeadLimits,
    /// How often requests may be sent again.
    pub retries: Cell<RetryBudget>,
    /// What the shadow core gets.
    pub copies: Copies,
    #[expect(clippy::vec_box, reason = "they are moved between requests as one pointer")]
    served: RefCell<Vec<Box<Served>>>,
    surveyed: Surveyed,
    plan: WorkerPlan,
    hangups: Hangups,
    links: RefCell<Links>,
    reader: RefCell<ActivationReader>,
    view: RefCell<Option<(Held, Rc<View>)>>,
    tick: Cell<Instant>,
    random: Cell<u64>,
    request_id_prefix: u64,
    request_count: Cell<u64>,
    is_draining: Cell<bool>,
}

impl Worker {
    fn new(seat: &mut Seat, reader: ActivationReader) -> anyhow::Result<Rc<Self>> {
        let config = Arc::clone(&seat.config);
        let seed = seed();
        let counters = seat.counters.worker(seat.plan.worker).context("counters are taken once")?;
        let counters = Rc::new(counters);
        let facts = Facts::start(&config.facts, seat.supply.as_ref(), &counters, seed);
        Ok(Rc::new(Self {
            counters,
            facts,
            served: RefCell::default(),
            surveyed: Surveyed::new(Arc::clone(&seat.survey), seat.plan.worker),
            plan: seat.plan,
            buffers: BufferPool::of_this_core()?,
            scratches: ScratchPool::default(),
            endpoints: Endpoints::default(),
            pool_limits: PoolLimits {
                idle_max: config.upstream.idle_per_endpoint_max as usize,
                idle: config.upstream.idle,
                age: config.upstream.age,
            },
            head_limits: HeadLimits::new(
                config.limits.head_bytes_max,
                config.limits.target_bytes_max,
            )
            .context("limits of a request's head")?,
            retries: Cell::default(),
            copies: shadow::copies(seat.copies.take(), &config),
            hangups: Hangups::new().context("cannot watch for hang-ups")?,
            links: RefCell::default(),
            reader: RefCell::new(reader),
            view: RefCell::default(),
            tick: Cell::new(clock::now()),
            random: Cell::new(seed),
            request_id_prefix: seed,
            request_count: Cell::new(0),
            is_draining: Cell::new(false),
            config,
        }))
    }

    /// What this core evaluates now; `None` until the first Activation. Swaps first if a newer one was
    /// published. A request keeps what it got to its end.
    pub fn view(&self) -> Option<Rc<View>> {
        let mut reader = self.reader.borrow_mut();
        let held = reader.current()?;
        let mut view = self.view.borrow_mut();
        if let Some((of, view)) = view.as_ref()
            && Rc::ptr_eq(of, held)
        {
            return Some(Rc::clone(view));
        }
        let fresh = Rc::new(View::new(Arc::clone(held), &self.endpoints));
        *view = Some((Rc::clone(held), Rc::clone(&fresh)));
        Some(fresh)
    }

    /// A request came: it earns its share of a retry.
    pub fn earn_retry(&self) {
        let mut retries = self.retries.get();
        retries.earn();
        self.retries.set(retries);
    }

    /// Whether a request may be sent again; it is paid and counted then.
    pub fn may_retry(&self) -> bool {
        let mut retries = self.retries.get();
        let may = retries.spend();
        self.retries.set(retries);
        if may {
            self.counters.retries.add(1);
        } else {
            self.counters.retries_refused.add(1);
        }
        may
    }

    /// Counts a request that is over.
    pub fn record(&self, request: &Request) {
        let served = request.served.get();
        let active = &request.view.active;
        let arm = active.arm_counters(request.objective, request.decision.arm, self.plan.worker);
        arm.requests.add(1);
        match served.status {
            0 => arm.failures.add(1),
            status => arm.responses.add(ResponseClass::of(status), 1),
        }
        if request.decision.reason.is_fallout() {
            let left =
                active.arm_counters(request.objective, request.decided_arm, self.plan.worker);
            left.fallouts.add(1);
        }
        let nanos = u64::try_from(served.upstream.as_nanos()).unwrap_or(u64::MAX);
        arm.upstream_nanos.add(nanos);
        self.counters.upstream.record(served.upstream);
        self.counters.overhead.record(served.overhead);
    }

    /// A spare table for the Facts of one request.
    pub fn take_served(&self) -> Box<Served> {
        self.served.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes a table back, unless there are plenty.
    pub fn put_back_served(&self, mut served: Box<Served>) {
        let mut spare = self.served.borrow_mut();
        if spare.len() < FACTS_SERVED_POOLED_MAX && !served.has_grown() {
            served.clear();
            spare.push(served);
        }
    }

    /// The time of the last tick: exact to [`WORKER_TICK`], and free.
    pub fn tick(&self) -> Instant {
        self.tick.get()
    }

    /// Uniform bits for balancing (xorshift64*, Vigna 2016): fast, and nothing secret hangs on them.
    pub fn random(&self) -> u64 {
        let mut state = self.random.get();
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        self.random.set(state);
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A new request id: unique over cores and restarts.
    pub fn next_request_id(&self) -> (u64, u64) {
        let count = self.request_count.get() + 1;
        self.request_count.set(count);
        (self.request_id_prefix, count)
    }

    /// Whether connections are to be closed after their present request.
    pub fn is_draining(&self) -> bool {
        self.is_draining.get()
    }

    fn live(&self) -> u64 {
        self.links.borrow().live()
    }

    fn is_full(&self) -> bool {
        self.live() >= u64::from(self.config.limits.connections_max)
    }
}

/// One worker's place: what its thread is started with.
struct Seat {
    plan: WorkerPlan,
    listening: Vec<Listening>,
    config: Arc<Config>,
    activation: Arc<Activation>,
    counters: Arc<Counters>,
    copies: Option<RingEnd>,
    stop: Arc<Stop>,
    survey: Arc<Survey>,
    supply: Option<Arc<Supply>>,
}

/// What the main thread tells the workers; they look at it every tick.
#[derive(Default)]
struct Stop {
    drain: AtomicBool,
    now: AtomicBool,
}

/// All workers, from the outside.
pub struct Workers {
    threads: Vec<JoinHandle<()>>,
    stop: Arc<Stop>,
    /// Asks them how their endpoints are.
    pub survey: Arc<Survey>,
    /// How the rings were set up: the worst of all cores'.
    pub ring_mode: RingMode,
    /// What is listened on, with the ports that the kernel chose.
    pub addresses: Vec<Listen>,
}

/// Starts one pinned thread per network core, each listening when this returns.
///
/// # Errors
/// An address that cannot be bound, a source of Facts that cannot be read, or no io_uring.
pub fn start(
    plan: &CorePlan,
    config: &Arc<Config>,
    activation: &Arc<Activation>,
    counters: &Arc<Counters>,
    shadow: &mut Shadow,
) -> anyhow::Result<Workers> {
    let (report, reports) = mpsc::channel();
    let stop = Arc::<Stop>::default();
    let mut workers = Workers {
        threads: Vec::new(),
        stop,
        survey: Survey::new(plan.workers.len()),
        ring_mode: RingMode::Deferred,
        addresses: Vec::new(),
    };
    let listening = listener::prepare(&config.listen)?;
    let supply = Supply::open(&config.facts)?;
    for worker in &plan.workers {
        let seat = Seat {
            plan: *worker,
            listening: listening.for_worker()?,
            config: Arc::clone(config),
            activation: Arc::clone(activation),
            counters: Arc::clone(counters),
            copies: shadow.end(worker.worker.get()),
            stop: Arc::clone(&workers.stop),
            survey: Arc::clone(&workers.survey),
            supply: supply.clone(),
        };
        let report = report.clone();
        let thread = std::thread::Builder::new().name(format!("worker-{}", worker.worker.0));
        workers.threads.push(thread.spawn(move || run_thread(seat, &report))?);
    }
    drop(report);
    for _ in 0..workers.threads.len() {
        let mode = reports.recv().context("a worker died as it started")??;
        if mode != RingMode::Deferred {
            workers.ring_mode = mode;
        }
    }
    workers.addresses = listening.into_addresses();
    Ok(workers)
}

impl Workers {
    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.threads.len()
    }

    /// Stops accepting, closes idle connections, lets requests finish for at most `max`, then ends the
    /// rest. Returns when all threads have ended.
    pub fn drain(self, max: Duration) {
        self.stop.drain.store(true, Ordering::Release);
        let deadline = clock::now() + max;
        while clock::now() < deadline && self.threads.iter().any(|thread| !thread.is_finished()) {
            std::thread::park_timeout(WORKER_TICK);
        }
        self.stop.now.store(true, Ordering::Release);
        for thread in self.threads {
            if thread.join().is_err() {
                crate::log::warn("worker_panicked", &[]);
            }
        }
    }
}

type Report = mpsc::Sender<anyhow::Result<RingMode>>;

fn run_thread(seat: Seat, report: &Report) {
    if let Some(core) = seat.plan.core
        && let Err(error) = affinity::pin_current_thread(core)
    {
        let _unheard = report.send(Err(error).context(format!("cannot pin to core {}", core.0)));
        return;
    }
    if let Err(error) = slice::shorten_for_current_thread() {
        crate::log::info("worker_slice_kept", &[("error", &error)]);
    }
    let outcome = ring::run(|mode| run(seat, mode, report));
    if let Err(error) = outcome {
        let _unheard = report.send(Err(error).context("cannot set up io_uring"));
    }
}

async fn run(mut seat: Seat, mode: RingMode, report: &Report) {
    let (worker, listeners) = match start_on_ring(&mut seat) {
        Ok(started) => started,
        Err(error) => {
            let _unheard = report.send(Err(error));
            return;
        }
    };
    let _unheard = report.send(Ok(mode));
    let ears: Vec<RawFd> = listeners.iter().map(Listener::fd).collect();
    for listener in listeners {
        task::spawn(accept(Rc::clone(&worker), listener));
    }
    task::spawn(watch_hang_ups(Rc::clone(&worker)));
    tick(&worker, &seat.stop, &ears).await;
}

fn start_on_ring(seat: &mut Seat) -> anyhow::Result<(Rc<Worker>, Vec<Listener>)> {
    let listening = std::mem::take(&mut seat.listening);
    let listeners = listening.into_iter().map(Listener::start).collect::<Result<_, _>>()?;
    let reader = seat.activation.reader(seat.plan.worker);
    Ok((Worker::new(seat, reader)?, listeners))
}

/// Lets clocks fire, swaps the Activation on an idle core, sweeps pools, and ends the worker.
async fn tick(worker: &Rc<Worker>, stop: &Stop, ears: &[RawFd]) {
    let mut pools_swept = worker.tick();
    loop {
        clock::sleep(WORKER_TICK).await;
        let now = clock::now();
        worker.tick.set(now);
        let _swapped = worker.view();
        sweep_links(worker, now);
        if now.saturating_duration_since(pools_swept) >= POOL_SWEEP_EVERY {
            pools_swept = now;
            worker.endpoints.sweep(&worker.pool_limits, now);
        }
        worker.counters.connections_active.set(worker.live());
        worker.counters.upstream_connections_active.set(worker.endpoints.open());
        worker.counters.endpoints_ejected.set(worker.endpoints.ejected());
        worker.surveyed.answer(|| worker.endpoints.states(now));
        if stop.drain.load(Ordering::Acquire) && !worker.is_draining.replace(true) {
            ears.iter().for_each(|ear| stream::shut(*ear, Shut::Both));
            close_idle(worker);
        }
        let is_over = stop.drain.load(Ordering::Acquire) && worker.live() == 0;
        if is_over || stop.now.load(Ordering::Acquire) {
            return;
        }
    }
}

fn sweep_links(worker: &Worker, now: Instant) {
    for link in worker.links.borrow().iter() {
        link.sweep(now);
    }
}

fn close_idle(worker: &Worker) {
    for link in worker.links.borrow().iter() {
        link.close_if_idle();
    }
}

async fn accept(worker: Rc<Worker>, listener: Listener) {
    while !worker.is_draining() {
        if worker.is_full() {
            // Further clients wait in the kernel's queue.
            clock::sleep(WORKER_TICK).await;
            continue;
        }
        match listener.accept().await {
            Ok(stream) => greet(&worker, stream),
            // Out of descriptors or memory: nothing helps but waiting until others are closed (RS-01).
            Err(_) => {
                worker.counters.accept_failures.add(1);
                clock::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn greet(worker: &Rc<Worker>, stream: Stream) {
    worker.counters.connections_accepted.add(1);
    let link = Rc::new(Link::new(stream.reader.handle()));
    let key = worker.links.borrow_mut().enter(Rc::clone(&link));
    if worker.hangups.watch(stream.fd(), key).is_err() {
        worker.counters.accept_failures.add(1);
        worker.links.borrow_mut().leave(key);
        return;
    }
    let worker = Rc::clone(worker);
    task::spawn(async move {
        connection::run(&worker, stream, link).await;
        worker.links.borrow_mut().leave(key);
    });
}

async fn watch_hang_ups(worker: Rc<Worker>) {
    while worker.hangups.wait().await.is_ok() {
        worker.hangups.drain(|key| {
            let link = worker.links.borrow().get(key);
            if let Some(link) = link {
                link.hang_up();
            }
        });
    }
}

/// Differs by worker, start and host; from the hasher's own random keys.
fn seed() -> u64 {
    use std::hash::BuildHasher;
    std::collections::hash_map::RandomState::new().hash_one(0) | 1
}
