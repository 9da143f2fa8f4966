//! When the cache is not asked, and when it is tried again.

use std::time::{Duration, Instant};

use crate::limits::{FACT_BACKOFF_FIRST, FACT_BACKOFF_MAX, FACT_LINK_PROVEN};

/// Counts lookups that came late, one after another. Pure: it is told what happened, and when.
#[derive(Clone, Copy, Debug, Default)]
pub struct Breaker {
    late_in_a_row: u32,
    backoff: Option<Duration>,
}

impl Breaker {
    /// Some lookups were answered in time.
    pub fn answered(&mut self) {
        self.late_in_a_row = 0;
    }

    /// Some lookups came late. `true`: the cache is failing, so that nobody should wait for it.
    pub fn late(&mut self, count: u32, late_max: u32) -> bool {
        self.late_in_a_row = self.late_in_a_row.saturating_add(count);
        self.late_in_a_row >= late_max
    }

    /// A connection that was good since `since` is lost, or none could be made (`None`). Tells how long to
    /// wait before the next attempt: twice as long as the last time, less up to half of it by `random`, so that
    /// cores and hosts do not come together (RD-02). A connection that held for a while starts anew.
    pub fn lost(&mut self, since: Option<Instant>, now: Instant, random: u64) -> Duration {
        self.late_in_a_row = 0;
        let was_proven =
            since.is_some_and(|since| now.saturating_duration_since(since) >= FACT_LINK_PROVEN);
        let span = match self.backoff.filter(|_| !was_proven) {
            None => FACT_BACKOFF_FIRST,
            Some(before) => (before * 2).min(FACT_BACKOFF_MAX),
        };
        self.backoff = Some(span);
        let parts = u32::try_from(random % 512).unwrap_or(0);
        span - span / 1024 * parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::clock;

    #[test]
    fn attempts_are_spread_and_never_rarer_than_the_maximum() {
        let mut breaker = Breaker::default();
        let now = clock::now();
        for round in 0..20_u64 {
            let full = (FACT_BACKOFF_FIRST * 2_u32.pow(u32::try_from(round).unwrap().min(10)))
                .min(FACT_BACKOFF_MAX);
            let wait = breaker.lost(None, now, round * 7919);
            assert!(wait <= full && wait >= full / 2, "{round}: {wait:?} of {full:?}");
        }
        assert_eq!(
            breaker.lost(Some(now), now, 0),
            FACT_BACKOFF_MAX,
            "one good trip proves nothing"
        );
        let later = now + FACT_LINK_PROVEN;
        assert_eq!(breaker.lost(Some(now), later, 0), FACT_BACKOFF_FIRST);
    }

    #[test]
    fn only_late_ones_in_a_row_count() {
        let mut breaker = Breaker::default();
        assert!(!breaker.late(2, 4));
        breaker.answered();
        assert!(!breaker.late(3, 4));
        assert!(breaker.late(1, 4));
    }
}
