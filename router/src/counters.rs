//! What the router counts: one block per worker, written only by it, summed by the admin thread.
//!
//! To add a counter, add its line to [`WorkerCounters`] or [`FeedCounters`]: it appears in `/metrics`
//! with its doc line as help. Labels come from closed lists, or from the Snapshot (see [`arms`]).

use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub mod arms;
mod block;
mod cell;
mod histogram;
mod housekeeping;
mod labels;
mod text;
mod worker;

pub use block::Kind;
pub use cell::{By, Counter, Gauge};
pub use histogram::Histogram;
pub use housekeeping::{FeedCounters, ShadowCounters};
pub use labels::{
    BadRequest, Ejection, Labels, NotCopied, ResponseClass, ShadowLoss, SnapshotRefusal,
    UpstreamFailure,
};
pub use text::{METRICS_CONTENT_TYPE, MetricsText, Seconds};
pub use worker::WorkerCounters;

use crate::cores::WorkerIndex;
use block::{Block, Family};

/// All counters of one router: shared by all threads, each block written by one.
#[derive(Debug)]
pub struct Counters {
    workers: Box<[Slotted<WorkerCounters>]>,
    feed: Slotted<FeedCounters>,
    shadow: Slotted<ShadowCounters>,
}

/// A block, and whether its only writer was given away.
#[derive(Debug, Default)]
struct Slotted<B> {
    block: Arc<B>,
    is_taken: AtomicBool,
}

/// The right to write one block. There is one per block, and it cannot be shared between threads.
#[derive(Debug)]
pub struct Writer<B> {
    block: Arc<B>,
    one_thread: PhantomData<Cell<()>>,
}

impl<B> Deref for Writer<B> {
    type Target = B;

    #[inline]
    fn deref(&self) -> &B {
        &self.block
    }
}

impl Counters {
    /// All at zero.
    #[must_use]
    pub fn new(workers: usize) -> Arc<Self> {
        let workers = (0..workers).map(|_| Slotted::default()).collect();
        Arc::new(Self { workers, feed: Slotted::default(), shadow: Slotted::default() })
    }

    /// The block of one worker; `None` if there is no such worker, or if it was taken before.
    #[must_use]
    pub fn worker(&self, worker: WorkerIndex) -> Option<Writer<WorkerCounters>> {
        self.workers.get(worker.get())?.take()
    }

    /// The block of the snapshot feed; `None` if it was taken before.
    #[must_use]
    pub fn feed(&self) -> Option<Writer<FeedCounters>> {
        self.feed.take()
    }

    /// The block of the shadow core; `None` if it was taken before.
    #[must_use]
    pub fn shadow(&self) -> Option<Writer<ShadowCounters>> {
        self.shadow.take()
    }

    /// Writes all of them, workers summed.
    pub fn write(&self, page: &mut MetricsText) {
        write_sum(self.workers.iter().map(|slot| &*slot.block), page);
        write_sum([&*self.feed.block], page);
        write_sum([&*self.shadow.block], page);
    }

    /// All sums with their names, labels included: of histograms, the count and the sum of nanoseconds.
    #[must_use]
    pub fn totals(&self) -> Vec<(String, u64)> {
        let mut totals = Vec::new();
        total(self.workers.iter().map(|slot| &*slot.block), &mut totals);
        total([&*self.feed.block], &mut totals);
        total([&*self.shadow.block], &mut totals);
        totals
    }

    /// Snapshots that were refused, whatever the reason.
    #[must_use]
    pub fn refusals(&self) -> u64 {
        let refusals = &self.feed.block.refusals;
        (0..SnapshotRefusal::COUNT).map(|place| refusals.at(place)).sum()
    }

    /// One value of the shadow core, such as `|shadow| shadow.spool_records.get()`.
    pub fn of_shadow(&self, value: impl Fn(&ShadowCounters) -> u64) -> u64 {
        value(&self.shadow.block)
    }

    /// Sums one value over all workers, such as `|worker| worker.requests.get()`.
    pub fn sum(&self, value: impl Fn(&WorkerCounters) -> u64) -> u64 {
        self.workers.iter().map(|slot| value(&slot.block)).fold(0, u64::wrapping_add)
    }
}

impl<B> Slotted<B> {
    fn take(&self) -> Option<Writer<B>> {
        let was_taken = self.is_taken.swap(true, Ordering::Relaxed);
        (!was_taken).then(|| Writer { block: Arc::clone(&self.block), one_thread: PhantomData })
    }
}

fn write_sum<'a, B: Block + 'a>(blocks: impl IntoIterator<Item = &'a B>, page: &mut MetricsText) {
    for (family, values) in sums(blocks) {
        page.block_family(&family, &values);
    }
}

fn total<'a, B: Block + 'a>(
    blocks: impl IntoIterator<Item = &'a B>,
    totals: &mut Vec<(String, u64)>,
) {
    for (family, values) in sums(blocks) {
        let name = family.name;
        match (family.kind, family.labels) {
            (Kind::Histogram, _) => {
                let Some((sum_nanos, buckets)) = values.split_last() else { continue };
                totals.push((format!("{name}_count"), buckets.iter().sum()));
                totals.push((format!("{name}_sum_nanos"), *sum_nanos));
            }
            (_, Some(labels)) => {
                let series =
                    labels.texts.iter().map(|text| format!("{name}{{{}=\"{text}\"}}", labels.name));
                totals.extend(series.zip(values));
            }
            (_, None) => totals.extend(values.into_iter().map(|value| (name.to_owned(), value))),
        }
    }
}

/// The values of each metric, blocks summed.
fn sums<'a, B: Block + 'a>(blocks: impl IntoIterator<Item = &'a B>) -> Vec<(Family, Vec<u64>)> {
    let mut sums: Vec<u64> = Vec::new();
    let mut values = Vec::new();
    for block in blocks {
        values.clear();
        block.sample(&mut values);
        sums.resize(values.len(), 0);
        for (sum, value) in sums.iter_mut().zip(&values) {
            *sum = sum.wrapping_add(*value);
        }
    }
    let mut sums = sums.into_iter();
    let families = B::families().into_iter();
    families.map(|family| (family, sums.by_ref().take(family.values).collect())).collect()
}

#[cfg(test)]
mod tests;
