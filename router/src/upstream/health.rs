//! Whether one endpoint is trusted with requests: passive, from what requests met.
//!
//! Consecutive failures eject it for a span that doubles with each ejection in a row; when the span
//! is over, one request at a time tries it (half-open), and a success restores it at once. An answer
//! of any status is a success here: a 4xx or 5xx says that something listens and speaks HTTP.

use std::time::{Duration, Instant};

use crate::limits::{EJECTION_FIRST, EJECTION_MAX, FAILURES_TO_EJECT};

/// One endpoint's state, as one core sees it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Health {
    consecutive_failures: u32,
    ejections_in_a_row: u32,
    ejected_until: Option<Instant>,
    is_probed: bool,
}

impl Health {
    /// Whether a request may go there now.
    #[must_use]
    pub fn is_usable(&self, now: Instant) -> bool {
        match self.ejected_until {
            None => true,
            Some(until) => now >= until && !self.is_probed,
        }
    }

    /// A request was sent there. While the endpoint is ejected, this makes it the one probe.
    pub fn began(&mut self) {
        self.is_probed = self.ejected_until.is_some();
    }

    /// It answered.
    pub fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// The request ended without telling: the client left, or another clock fired.
    pub fn untold(&mut self) {
        self.is_probed = false;
    }

    /// It did not connect, or broke before it answered. Tells whether this ejected it.
    pub fn failed(&mut self, now: Instant) -> bool {
        self.consecutive_failures = self.consecutive_failures.saturating_add(1);
        let probe_failed = std::mem::take(&mut self.is_probed);
        let is_ejected = self.ejected_until.is_some();
        if !probe_failed && (is_ejected || self.consecutive_failures < FAILURES_TO_EJECT) {
            return false;
        }
        let doublings = self.ejections_in_a_row.min(16);
        let span = (EJECTION_FIRST * (1 << doublings)).min(EJECTION_MAX);
        self.ejections_in_a_row = self.ejections_in_a_row.saturating_add(1);
        self.ejected_until = Some(now + span);
        true
    }

    /// How long until it may be tried again; zero where it may be now.
    #[must_use]
    pub fn retry_after(&self, now: Instant) -> Duration {
        self.ejected_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::clock;

    fn failed_often(now: Instant) -> Health {
        let mut health = Health::default();
        for _ in 1..FAILURES_TO_EJECT {
            assert!(!health.failed(now));
        }
        assert!(health.is_usable(now), "one failure short of the threshold ejects nobody");
        assert!(health.failed(now));
        health
    }

    #[test]
    fn consecutive_failures_eject_and_time_lets_one_probe_through() {
        let now = clock::now();
        let mut health = failed_often(now);
        assert!(!health.is_usable(now));
        let later = now + EJECTION_FIRST;
        assert!(health.is_usable(later));
        health.began();
        assert!(!health.is_usable(later), "a second request while the first probes");
    }

    #[test]
    fn a_failed_probe_doubles_the_ejection_up_to_the_maximum() {
        let mut now = clock::now();
        let mut health = failed_often(now);
        let mut span = EJECTION_FIRST;
        for _ in 0..20 {
            assert_eq!(health.retry_after(now), span);
            now += span;
            health.began();
            assert!(health.failed(now));
            span = (span * 2).min(EJECTION_MAX);
        }
        assert_eq!(span, EJECTION_MAX);
    }

    #[test]
    fn a_success_restores_at_once() {
        let now = clock::now();
        let mut health = failed_often(now);
        health.began();
        health.succeeded();
        assert!(health.is_usable(now));
        assert!(!health.failed(now), "the count starts anew");
    }

    #[test]
    fn a_probe_that_tells_nothing_lets_the_next_one_try() {
        let now = clock::now();
        let mut health = failed_often(now);
        let later = now + EJECTION_FIRST;
        health.began();
        health.untold();
        assert!(health.is_usable(later));
    }

    #[test]
    fn failures_of_requests_that_were_in_flight_do_not_lengthen_an_ejection() {
        let now = clock::now();
        let mut health = failed_often(now);
        for _ in 0..100 {
            assert!(!health.failed(now));
        }
        assert_eq!(health.retry_after(now), EJECTION_FIRST);
    }
}
