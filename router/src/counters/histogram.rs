//! Durations by size: log-linear buckets whose place is found by counting zeros, without a search.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::block::{Kind, LabelSet, Metric};

/// Below this the first bucket takes all: 8 µs.
const FIRST_BITS: u32 = 3;
/// From this on the last bucket takes all: 2²⁷ µs, above two minutes.
const LAST_BITS: u32 = 27;
/// Each doubling has four equal parts, so that no bucket is wider than a quarter of its start.
const PARTS_BITS: u32 = 2;

const PARTS: usize = 1 << PARTS_BITS;
const OCTAVES: usize = (LAST_BITS - FIRST_BITS) as usize;
/// Buckets, the first and the last among them.
pub(super) const BUCKETS: usize = 1 + OCTAVES * PARTS + 1;

/// Counts durations by size, to a quarter of themselves, from 8 µs to two minutes.
///
/// One thread writes it. A bucket's upper bound belongs to it, as Prometheus' `le` says.
#[derive(Debug)]
pub struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum_nanos: AtomicU64,
}

impl Histogram {
    /// Counts one duration. By the block's only writer, or counts get lost.
    #[inline]
    pub fn record(&self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        if let Some(bucket) = self.buckets.get(bucket_of(nanos)) {
            bucket.store(bucket.load(Relaxed).wrapping_add(1), Relaxed);
        }
        self.sum_nanos.store(self.sum_nanos.load(Relaxed).wrapping_add(nanos), Relaxed);
    }

    /// How many durations were counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.load(Relaxed)).sum()
    }

    /// How many durations lie in buckets that end at or below `bound`.
    pub fn count_up_to(&self, bound: Duration) -> u64 {
        let bound = bound.as_micros();
        let below = Self::bounds_micros().take_while(|end| u128::from(*end) <= bound).count();
        self.buckets.iter().take(below).map(|bucket| bucket.load(Relaxed)).sum()
    }

    /// Upper bounds of all buckets but the last, in microseconds.
    pub(super) fn bounds_micros() -> impl Iterator<Item = u64> {
        let first = 1 << FIRST_BITS;
        let octaves = (FIRST_BITS..LAST_BITS).flat_map(|bits| {
            let start = 1_u64 << bits;
            (1..=PARTS as u64).map(move |part| start + (start >> PARTS_BITS) * part)
        });
        std::iter::once(first).chain(octaves)
    }
}

/// The bucket of a duration: `micros` in `(bound below, bound above]`.
fn bucket_of(nanos: u64) -> usize {
    let micros = nanos.saturating_sub(1) / 1_000;
    let bits = micros.checked_ilog2().unwrap_or(0);
    if bits < FIRST_BITS {
        return 0;
    }
    if bits >= LAST_BITS {
        return BUCKETS - 1;
    }
    let octave = (bits - FIRST_BITS) as usize;
    let part = (micros >> (bits - PARTS_BITS)) as usize % PARTS;
    1 + octave * PARTS + part
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: std::array::from_fn(|_| AtomicU64::new(0)), sum_nanos: AtomicU64::new(0) }
    }
}

impl Metric for Histogram {
    const KIND: Kind = Kind::Histogram;

    fn labels() -> Option<LabelSet> {
        None
    }

    fn sample(&self, values: &mut Vec<u64>) {
        values.extend(self.buckets.iter().map(|bucket| bucket.load(Relaxed)));
        values.push(self.sum_nanos.load(Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_belongs_to_the_bucket_below_it() {
        let bounds: Vec<u64> = Histogram::bounds_micros().collect();
        assert_eq!(bounds.len(), BUCKETS - 1);
        assert_eq!(bounds[..6], [8, 10, 12, 14, 16, 20]);
        assert_eq!(bounds[BUCKETS - 2], 1 << LAST_BITS);
        for (bucket, bound) in bounds.iter().enumerate() {
            assert_eq!(bucket_of(bound * 1_000), bucket, "{bound} µs");
            assert_eq!(bucket_of(bound * 1_000 + 1), bucket + 1, "above {bound} µs");
        }
    }

    #[test]
    fn the_extremes_have_a_bucket() {
        assert_eq!(bucket_of(0), 0);
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
        let histogram = Histogram::default();
        histogram.record(Duration::MAX);
        histogram.record(Duration::ZERO);
        assert_eq!(histogram.count(), 2);
    }

    #[test]
    fn no_bucket_is_wider_than_a_quarter_of_its_start() {
        let bounds: Vec<u64> = Histogram::bounds_micros().collect();
        for pair in bounds.windows(2) {
            assert!(pair[1] - pair[0] <= pair[0] / 4, "{pair:?}");
        }
    }
}
