//! The cap on a shadow target's bytes per second, over all workers. Pure: time is an argument.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::limits::RATES_MAX;

/// What a target is told from others by, across Snapshots: Objective, candidate and Arm.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct TargetName(pub(super) String);

/// A token bucket per target that has a cap. It holds one second's worth.
#[derive(Debug, Default)]
pub(super) struct Rates {
    buckets: HashMap<TargetName, Bucket>,
}

#[derive(Debug)]
struct Bucket {
    bytes: u64,
    filled: Instant,
}

impl Rates {
    /// Whether a record of `bytes` may pass now; it is paid then. A record that is larger than the cap
    /// itself passes when the bucket is full, or it never could.
    pub(super) fn allow(
        &mut self,
        target: TargetName,
        bytes: u64,
        per_second: u64,
        now: Instant,
    ) -> bool {
        if self.buckets.len() >= RATES_MAX && !self.buckets.contains_key(&target) {
            // A bucket that is full again says nothing that a new one does not.
            let whole = Duration::from_secs(1);
            self.buckets.retain(|_, bucket| now.saturating_duration_since(bucket.filled) < whole);
        }
        let full = || Bucket { bytes: per_second, filled: now };
        let bucket = self.buckets.entry(target).or_insert_with(full);
        let span = now.saturating_duration_since(bucket.filled);
        let earned = u128::from(per_second) * span.as_micros() / 1_000_000;
        if earned > 0 {
            let earned = u64::try_from(earned).unwrap_or(u64::MAX);
            bucket.bytes = bucket.bytes.saturating_add(earned).min(per_second);
            bucket.filled = now;
        }
        let price = bytes.min(per_second);
        if bucket.bytes < price {
            return false;
        }
        bucket.bytes -= price;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::clock;

    fn name() -> TargetName {
        TargetName("FEED/ranker@2".into())
    }

    #[test]
    fn over_ten_seconds_the_cap_and_one_bucket_pass() {
        let (mut rates, start) = (Rates::default(), clock::now());
        let passed = (0..10_000_u64)
            .filter(|milliseconds| {
                let now = start + Duration::from_millis(*milliseconds);
                rates.allow(name(), 300, 1_000, now)
            })
            .count();
        // 1 000 B/s for 10 s and a bucket of 1 000 B, in records of 300 B.
        assert!((34..=36).contains(&passed), "{passed}");
    }

    #[test]
    fn a_record_larger_than_the_cap_passes_once_a_second() {
        let (mut rates, start) = (Rates::default(), clock::now());
        assert!(rates.allow(name(), 5_000, 1_000, start));
        assert!(!rates.allow(name(), 5_000, 1_000, start + Duration::from_millis(999)));
        assert!(rates.allow(name(), 5_000, 1_000, start + Duration::from_millis(1_000)));
    }

    #[test]
    fn targets_do_not_share_a_bucket() {
        let (mut rates, now) = (Rates::default(), clock::now());
        assert!(rates.allow(name(), 1_000, 1_000, now));
        assert!(!rates.allow(name(), 1, 1_000, now));
        assert!(rates.allow(TargetName("FEED/ranker@3".into()), 1_000, 1_000, now));
    }
}
