//! When a second server is asked for what the first one is slow with: after a span, and for a share of the lookups only.

use std::time::{Duration, Instant};

use crate::limits::FACT_HEDGES_SAVED_MAX;

/// One core's hedging. Pure: it is told what happened, and when.
#[derive(Clone, Copy, Debug)]
pub struct Hedge {
    after: Duration,
    percent_max: u32,
    /// Hundredths of a hedge that may be made.
    saved: u32,
}

impl Hedge {
    /// Hedges `after` so long, and at most `percent_max` of the lookups.
    #[must_use]
    pub fn new(after: Duration, percent_max: u8) -> Self {
        Self { after, percent_max: percent_max.into(), saved: 100 }
    }

    /// A lookup began: it earns its share of a hedge. Tells when it would be hedged.
    pub fn earn(&mut self, began: Instant) -> Instant {
        self.saved = (self.saved + self.percent_max).min(FACT_HEDGES_SAVED_MAX * 100);
        began + self.after
    }

    /// Whether one lookup may be hedged; it is paid then.
    pub fn spend(&mut self) -> bool {
        let Some(rest) = self.saved.checked_sub(100) else { return false };
        self.saved = rest;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::clock;

    #[test]
    fn a_slow_server_does_not_get_its_load_doubled() {
        let mut hedge = Hedge::new(Duration::from_millis(3), 10);
        let now = clock::now();
        let mut hedged = 0;
        for _ in 0..10_000 {
            assert_eq!(hedge.earn(now), now + Duration::from_millis(3));
            hedged += u32::from(hedge.spend());
        }
        assert_eq!(hedged, 1_001, "a tenth, and the one to begin with");
    }

    #[test]
    fn what_is_saved_is_bounded() {
        let mut hedge = Hedge::new(Duration::ZERO, 50);
        for _ in 0..1_000_000 {
            hedge.earn(clock::now());
        }
        let burst = std::iter::from_fn(|| hedge.spend().then_some(())).count();
        assert_eq!(burst, FACT_HEDGES_SAVED_MAX as usize);
    }
}
