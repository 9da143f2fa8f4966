//! What all threads of one model server share, and what each has of its own.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, Cache};
use bytes::Bytes;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;

use super::answer::{Answer, Shape};
use super::behaviour::{Behaviour, BehaviourError, Fault};
use super::counters::{Counters, Stats};
use crate::net::timer::Timer;

/// One model server.
#[derive(Debug)]
pub struct Model {
    /// Told in `x-model-server` and in each JSON body.
    pub name: String,
    /// Different request identifiers that one thread counts; zero: none are counted.
    pub deliveries_max: usize,
    /// One set per thread.
    pub counters: Vec<Counters>,
    started: Instant,
    initial: Behaviour,
    current: Arc<ArcSwap<Prepared>>,
}

/// A behaviour with what can be rendered before a request comes.
#[derive(Debug)]
pub struct Prepared {
    /// What it was made from.
    pub behaviour: Behaviour,
    /// A plain answer on a connection that stays open.
    pub plain: Bytes,
    /// Whether a plain request gets `plain` at once, without a draw of luck.
    pub is_plain: bool,
}

impl Model {
    /// A server with this behaviour and one set of counters per thread.
    pub fn new(name: String, behaviour: Behaviour, threads: usize, deliveries_max: usize) -> Self {
        let prepared = Prepared::new(&name, behaviour.clone());
        Self {
            name,
            deliveries_max,
            counters: (0..threads).map(|_| Counters::default()).collect(),
            started: Instant::now(),
            initial: behaviour,
            current: Arc::new(ArcSwap::from_pointee(prepared)),
        }
    }

    /// The behaviour of this moment, as JSON.
    pub fn behaviour(&self) -> Behaviour {
        self.current.load().behaviour.clone()
    }

    /// Changes the behaviour for every request whose answer begins from now on.
    ///
    /// # Errors
    /// What is wrong with the patch; the behaviour before stays.
    pub fn change(&self, patch: &[u8]) -> Result<Behaviour, BehaviourError> {
        let behaviour = self.behaviour().patched(patch)?;
        self.current.store(Arc::new(Prepared::new(&self.name, behaviour.clone())));
        Ok(behaviour)
    }

    /// Back to the first behaviour, with all counters at zero.
    pub fn reset(&self) {
        self.counters.iter().for_each(Counters::reset);
        self.current.store(Arc::new(Prepared::new(&self.name, self.initial.clone())));
    }

    /// What was seen so far.
    pub fn stats(&self) -> Stats {
        Stats::sum(&self.counters)
    }
}

impl Prepared {
    fn new(name: &str, behaviour: Behaviour) -> Self {
        let shape = Shape { chunked: behaviour.chunked, ..Shape::default() };
        let plain = Answer::plain(name, behaviour.body_bytes).render(name, shape).into();
        let waits =
            behaviour.latency != super::latency::Latency::None || !behaviour.pause_for.is_zero();
        let harms = [
            behaviour.error_rate,
            behaviour.reset_rate,
            behaviour.cut_rate,
            behaviour.stall_rate,
            behaviour.drip_rate,
            behaviour.close_rate,
        ]
        .iter()
        .any(|rate| rate.value() > 0.0);
        let is_plain = !waits && !harms && !behaviour.stream;
        Self { behaviour, plain, is_plain }
    }
}

/// One thread of a model server.
pub struct Worker {
    /// What it shares with the others.
    pub model: Arc<Model>,
    /// Its number, from zero.
    pub thread: usize,
    /// Its own timer.
    pub timer: Timer,
    random: RefCell<Xoshiro256PlusPlus>,
    prepared: RefCell<Cache<Arc<ArcSwap<Prepared>>, Arc<Prepared>>>,
}

impl Worker {
    /// The thread's own part; `seed` makes its luck repeatable.
    pub fn new(model: Arc<Model>, thread: usize, timer: Timer, seed: u64) -> Self {
        let prepared = RefCell::new(Cache::new(Arc::clone(&model.current)));
        let random = Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(thread as u64));
        Self { model, thread, timer, random: RefCell::new(random), prepared }
    }

    /// The behaviour for a request whose answer begins now.
    pub fn prepared(&self) -> Arc<Prepared> {
        Arc::clone(self.prepared.borrow_mut().load())
    }

    /// This thread's counters.
    pub fn counters(&self) -> &Counters {
        &self.model.counters[self.thread]
    }

    /// Draws what happens to one request.
    pub fn draw(&self, behaviour: &Behaviour) -> Draw {
        use rand::RngExt;
        let random = &mut *self.random.borrow_mut();
        Draw {
            delay: behaviour.delay(self.model.started.elapsed(), random),
            fault: behaviour.fault(random),
            close: random.random::<f64>() < behaviour.close_rate.value(),
        }
    }
}

/// What luck decided for one request.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    /// Wait before the answer.
    pub delay: Duration,
    /// Harm done to it.
    pub fault: Option<Fault>,
    /// The connection ends in order after it.
    pub close: bool,
}
