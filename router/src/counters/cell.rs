//! Cells that one thread writes and any thread reads.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::block::{Kind, LabelSet, Metric};
use super::labels::Labels;

/// Counts up. One thread writes it, so that adding is a load, an add and a store: no locked
/// instruction, no cache line that two cores fight for.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `count`. By the block's only writer, or counts get lost.
    #[inline]
    pub fn add(&self, count: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(count), Relaxed);
    }

    /// What was counted so far.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl Metric for Counter {
    const KIND: Kind = Kind::Counter;

    fn labels() -> Option<LabelSet> {
        None
    }

    fn sample(&self, values: &mut Vec<u64>) {
        values.push(self.get());
    }
}

/// Goes up and down; never below zero. One thread writes it.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    /// One more.
    #[inline]
    pub fn raise(&self) {
        self.0.store(self.0.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// One less.
    #[inline]
    pub fn lower(&self) {
        let value = self.0.load(Relaxed);
        debug_assert!(value > 0, "a gauge is lowered only after it was raised");
        self.0.store(value.saturating_sub(1), Relaxed);
    }

    /// The value itself, where the writer knows it.
    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    /// Its value.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl Metric for Gauge {
    const KIND: Kind = Kind::Gauge;

    fn labels() -> Option<LabelSet> {
        None
    }

    fn sample(&self, values: &mut Vec<u64>) {
        values.push(self.get());
    }
}

/// A [`Counter`] for each label of a closed set; `N` is the set's size.
#[derive(Debug)]
pub struct By<L, const N: usize> {
    counters: [Counter; N],
    labels: PhantomData<L>,
}

impl<L: Labels, const N: usize> By<L, N> {
    const FITS: () = assert!(N == L::TEXTS.len(), "a counter for each label");

    /// Adds `count` under a label. By the block's only writer, or counts get lost.
    #[inline]
    pub fn add(&self, label: L::Key, count: u64) {
        if let Some(counter) = self.counters.get(L::index(label)) {
            counter.add(count);
        }
    }

    /// What was counted under a label so far.
    pub fn get(&self, label: L::Key) -> u64 {
        self.at(L::index(label))
    }

    /// What was counted under the label at a place of `Labels::TEXTS`; 0 where there is none.
    pub fn at(&self, place: usize) -> u64 {
        self.counters.get(place).map_or(0, Counter::get)
    }
}

impl<L: Labels, const N: usize> Default for By<L, N> {
    fn default() -> Self {
        const { Self::FITS };
        Self { counters: std::array::from_fn(|_| Counter::default()), labels: PhantomData }
    }
}

impl<L: Labels, const N: usize> Metric for By<L, N> {
    const KIND: Kind = Kind::Counter;

    fn labels() -> Option<LabelSet> {
        Some(LabelSet { name: L::NAME, texts: L::TEXTS })
    }

    fn sample(&self, values: &mut Vec<u64>) {
        values.extend(self.counters.iter().map(Counter::get));
    }
}
