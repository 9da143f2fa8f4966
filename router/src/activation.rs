//! The moment a Snapshot becomes the one that every core evaluates.
//!
//! The feed publishes an [`Active`]; each worker notices between two requests, swaps its own pointer
//! and acknowledges. Requests that run finish on what they started with.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;

use crate::active::Active;
use crate::cores::WorkerIndex;
use crate::limits::ACKNOWLEDGEMENT_POLL;
use crate::net::clock;

/// What is published, and which worker has taken it. Shared by all threads.
#[derive(Debug)]
pub struct Activation {
    published: ArcSwapOption<Active>,
    /// Publications so far. Read by each worker between requests, written by the feed.
    generation: AtomicU64,
    /// When the last one happened, in nanoseconds since `epoch`.
    published_nanos: AtomicU64,
    epoch: Instant,
    workers: Box<[Acknowledgement]>,
}

/// What one worker has taken. Only that worker writes it.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Acknowledgement {
    generation: AtomicU64,
    /// From the publication to the swap.
    swap_nanos: AtomicU64,
}

/// Publishes. There is one: the feed's.
#[derive(Debug)]
pub struct Publisher {
    activation: Arc<Activation>,
    /// What was published before and may still be in use. It is freed here, on the housekeeping core:
    /// a worker that freed a large Snapshot would keep its requests waiting.
    retired: Vec<Arc<Active>>,
}

/// An [`Active`] as one core holds it: cloning it per request writes to nothing that another core
/// reads.
pub type Held = Rc<Arc<Active>>;

/// A worker's own pointer to what is published. Made and kept on its thread.
#[derive(Debug)]
pub struct ActivationReader {
    activation: Arc<Activation>,
    worker: WorkerIndex,
    generation: u64,
    held: Option<Held>,
}

/// Workers that have not swapped in time.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{} workers have not swapped in time, the first of them worker {}", .0.len(), .0.first().map_or(0, |worker| worker.0))]
pub struct Stragglers(pub Vec<WorkerIndex>);

impl Activation {
    /// Nothing is published yet.
    #[must_use]
    pub fn new(workers: usize) -> (Publisher, Arc<Self>) {
        let activation = Arc::new(Self {
            published: ArcSwapOption::empty(),
            generation: AtomicU64::new(0),
            published_nanos: AtomicU64::new(0),
            epoch: clock::now(),
            workers: (0..workers).map(|_| Acknowledgement::default()).collect(),
        });
        (Publisher { activation: Arc::clone(&activation), retired: Vec::new() }, activation)
    }

    /// The worker's own pointer. It acknowledges at its first [`ActivationReader::current`].
    ///
    /// # Panics
    /// If there is no such worker.
    #[must_use]
    pub fn reader(self: &Arc<Self>, worker: WorkerIndex) -> ActivationReader {
        assert!(worker.get() < self.workers.len(), "the core plan has this worker");
        ActivationReader { activation: Arc::clone(self), worker, generation: 0, held: None }
    }

    /// What is published, for threads off the request path.
    #[must_use]
    pub fn published(&self) -> Option<Arc<Active>> {
        self.published.load_full()
    }

    /// How many workers there are.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// From the last publication to each worker's swap; `None` for one that has not swapped.
    pub fn swap_times(&self) -> impl Iterator<Item = Option<Duration>> {
        let generation = self.generation.load(Ordering::Acquire);
        self.workers.iter().map(move |worker| worker.swapped(generation))
    }

    fn nanos_since_epoch(&self, now: Instant) -> u64 {
        let nanos = now.saturating_duration_since(self.epoch).as_nanos();
        u64::try_from(nanos).expect("a router runs for less than 500 years")
    }
}

impl Acknowledgement {
    /// The swap time, if this generation or a later one was taken.
    fn swapped(&self, generation: u64) -> Option<Duration> {
        (self.generation.load(Ordering::Acquire) >= generation)
            .then(|| Duration::from_nanos(self.swap_nanos.load(Ordering::Relaxed)))
    }
}

impl Publisher {
    /// Makes `active` the one that every worker will evaluate from its next request on.
    pub fn publish(&mut self, active: Active) {
        let activation = &self.activation;
        let before = activation.published.swap(Some(Arc::new(active)));
        activation
            .published_nanos
            .store(activation.nanos_since_epoch(clock::now()), Ordering::Relaxed);
        // Release: who sees the new generation sees what was published.
        activation.generation.fetch_add(1, Ordering::Release);
        self.retired.extend(before);
    }

    /// Waits until every worker has swapped; then, how long each took.
    ///
    /// # Errors
    /// The workers that had not by `patience`. They will yet; until then they evaluate the one before.
    pub fn wait(&self, patience: Duration) -> Result<Vec<Duration>, Stragglers> {
        let deadline = clock::now() + patience;
        loop {
            let swaps: Vec<_> = self.activation.swap_times().collect();
            if swaps.iter().all(Option::is_some) {
                return Ok(swaps.into_iter().flatten().collect());
            }
            if clock::now() >= deadline {
                let late = (0..).zip(&swaps).filter(|(_, swap)| swap.is_none());
                return Err(Stragglers(late.map(|(worker, _)| WorkerIndex(worker)).collect()));
            }
            std::thread::park_timeout(ACKNOWLEDGEMENT_POLL);
        }
    }

    /// Frees what no request uses any more; returns how many are still in use.
    pub fn free_unused(&mut self) -> usize {
        // Nobody can take a new reference to a retired one, so that a count of 1 stays 1.
        self.retired.retain(|active| Arc::strong_count(active) > 1);
        self.retired.len()
    }

    /// What is published.
    #[must_use]
    pub fn activation(&self) -> &Arc<Activation> {
        &self.activation
    }
}

impl ActivationReader {
    /// What to evaluate now; `None` before the first Snapshot. Call it once per request and keep a
    /// clone until the request ends; call it every `WORKER_TICK` while idle.
    ///
    /// Hot path: one load that only an Activation makes miss the cache.
    #[inline]
    pub fn current(&mut self) -> Option<&Held> {
        let generation = self.activation.generation.load(Ordering::Acquire);
        if generation != self.generation {
            self.swap(generation);
        }
        self.held.as_ref()
    }

    #[cold]
    fn swap(&mut self, generation: u64) {
        let activation = &*self.activation;
        self.held = activation.published.load_full().map(Rc::new);
        self.generation = generation;
        let own = &activation.workers[self.worker.get()];
        let published = activation.published_nanos.load(Ordering::Relaxed);
        let nanos = activation.nanos_since_epoch(clock::now()).saturating_sub(published);
        own.swap_nanos.store(nanos, Ordering::Relaxed);
        own.generation.store(generation, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
