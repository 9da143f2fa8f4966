//! When the next call may leave, so that a candidate gets at most so many per second.

use std::time::{Duration, Instant};

/// Evenly spaced calls; what was not used is not saved up, so there are no bursts.
#[derive(Debug)]
pub(super) struct Pace {
    span: Duration,
    next: Option<Instant>,
}

impl Pace {
    /// At most `per_second` calls; `None`: as many as concurrency allows. Must be above zero.
    pub(super) fn new(per_second: Option<f64>) -> Self {
        let span = per_second.map_or(0.0, |rate| 1.0 / rate);
        Self { span: Duration::try_from_secs_f64(span).unwrap_or(Duration::MAX), next: None }
    }

    /// Takes the next place; the call may leave at the returned time.
    pub(super) fn take(&mut self, now: Instant) -> Instant {
        let at = self.next.map_or(now, |next| next.max(now));
        self.next = at.checked_add(self.span).or(self.next);
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_evenly_spaced_however_many_ask_at_once() {
        let mut pace = Pace::new(Some(100.0));
        let begin = Instant::now();
        let at: Vec<_> =
            (0..4).map(|_| pace.take(begin).duration_since(begin).as_millis()).collect();
        assert_eq!(at, [0, 10, 20, 30]);
    }

    #[test]
    fn unused_time_is_not_saved_up() {
        let mut pace = Pace::new(Some(100.0));
        let begin = Instant::now();
        let later = begin + Duration::from_secs(60);
        pace.take(begin);
        assert_eq!(pace.take(later), later);
        assert_eq!(pace.take(later), later + Duration::from_millis(10));
    }

    #[test]
    fn without_a_rate_nothing_waits() {
        let mut pace = Pace::new(None);
        let now = Instant::now();
        assert!((0..1_000).all(|_| pace.take(now) == now));
    }
}
