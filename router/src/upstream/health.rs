//! Whether one endpoint is trusted with requests: passive, from what requests met.
//!
//! Two signals eject it. Failures in a row say that it is dead: nothing connects, or it closes before it
//! answers. A high share of failures within a window says that it works badly: gateway errors among its
//! answers count there too, but no other status does, since a 4xx or 500 says that something listens and
//! speaks HTTP. An ejection lasts for a span that doubles with each one soon after another; then one
//! request at a time tries the endpoint (half-open), a success restores it, and its share of the traffic
//! grows from a little to all of it (slow start). Apart from that an endpoint may ask for a rest
//! (`Retry-After`), which is no failure.

use std::time::{Duration, Instant};

use crate::counters::Ejection;
use crate::limits::{
    EJECTION_FIRST, EJECTION_FORGOTTEN, EJECTION_MAX, FAILURE_PERCENT_TO_EJECT,
    FAILURE_SAMPLES_MIN, FAILURE_WINDOW, FAILURES_TO_EJECT, SLOW_START_SPAN, SLOW_START_STEPS,
};

/// One endpoint's state, as one core sees it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Health {
    consecutive_failures: u32,
    window: Window,
    ejections_in_a_row: u32,
    ejected: Option<Ejected>,
    restored: Option<Instant>,
    rests_until: Option<Instant>,
    is_probed: bool,
}

/// How an endpoint stands, from best to worst.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Standing {
    /// It gets its share.
    Sound,
    /// It asked to be left alone for a while: others come first.
    Rests,
    /// It answers, but too often with a failure: others come first, unless too many are like that.
    Doubted,
    /// It is dead as far as this core knows, or is being probed.
    Out,
}

/// What a request is to an endpoint's health.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    /// One of many.
    Ordinary,
    /// The one that ends the endpoint's ejection, or lengthens it.
    Probe,
}

#[derive(Clone, Copy, Debug)]
struct Ejected {
    until: Instant,
    cause: Ejection,
}

/// What an endpoint did since a moment.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    began: Option<Instant>,
    answered: u32,
    failed: u32,
}

impl Window {
    fn at(self, now: Instant) -> Self {
        let is_over = |began: Instant| now.saturating_duration_since(began) >= FAILURE_WINDOW;
        if self.began.is_none_or(is_over) {
            return Self { began: Some(now), answered: 0, failed: 0 };
        }
        self
    }

    fn is_bad(self) -> bool {
        let all = u64::from(self.answered) + u64::from(self.failed);
        all >= FAILURE_SAMPLES_MIN && u64::from(self.failed) * 100 >= all * FAILURE_PERCENT_TO_EJECT
    }
}

impl Health {
    /// How it stands now.
    #[must_use]
    pub fn standing(&self, now: Instant) -> Standing {
        match self.ejected {
            _ if self.is_probed => Standing::Out,
            Some(ejected) if now < ejected.until => match ejected.cause {
                Ejection::InARow => Standing::Out,
                Ejection::Share => Standing::Doubted,
            },
            _ if self.rests_until.is_some_and(|until| now < until) => Standing::Rests,
            _ => Standing::Sound,
        }
    }

    /// Its share of the traffic in steps, 1 to `SLOW_START_STEPS`: all of it, unless it is just back.
    #[must_use]
    pub fn share(&self, now: Instant) -> u16 {
        let Some(restored) = self.restored else { return SLOW_START_STEPS };
        let step = (SLOW_START_SPAN / u32::from(SLOW_START_STEPS)).as_millis().max(1);
        let passed = now.saturating_duration_since(restored).as_millis() / step;
        u16::try_from(passed).map_or(SLOW_START_STEPS, |steps| (steps + 1).min(SLOW_START_STEPS))
    }

    /// A request is sent there. With the ejection's span over, it is the one probe.
    pub fn began(&mut self, now: Instant) -> Role {
        let is_due = self.ejected.is_some_and(|ejected| now >= ejected.until);
        if !is_due {
            return Role::Ordinary;
        }
        self.is_probed = true;
        Role::Probe
    }

    /// It answered. Only the probe ends an ejection: an endpoint that works badly answers some requests.
    pub fn succeeded(&mut self, role: Role, now: Instant) {
        self.consecutive_failures = 0;
        match role {
            Role::Probe => {
                self.is_probed = false;
                if self.ejected.take().is_some() {
                    self.restored = Some(now);
                    self.window = Window::default();
                }
            }
            Role::Ordinary => {
                self.window = self.window.at(now);
                self.window.answered = self.window.answered.saturating_add(1);
            }
        }
    }

    /// The request ended without telling: the client left, or another clock fired.
    pub fn untold(&mut self, role: Role) {
        if role == Role::Probe {
            self.is_probed = false;
        }
    }

    /// It did not connect, or broke before it answered. Tells whether and why this ejected it.
    pub fn failed(&mut self, role: Role, now: Instant) -> Option<Ejection> {
        self.consecutive_failures = self.consecutive_failures.saturating_add(1);
        self.doubt(role, now)
    }

    /// It answered that what is behind it failed (502, 503, 504). Tells whether and why this ejected it.
    pub fn answered_badly(&mut self, role: Role, now: Instant) -> Option<Ejection> {
        self.consecutive_failures = 0;
        self.doubt(role, now)
    }

    /// It asks to be left alone for `span`.
    pub fn rest(&mut self, now: Instant, span: Duration) {
        self.rests_until = self.rests_until.max(Some(now + span));
    }

    fn doubt(&mut self, role: Role, now: Instant) -> Option<Ejection> {
        let in_a_row = self.consecutive_failures >= FAILURES_TO_EJECT;
        self.window = self.window.at(now);
        self.window.failed = self.window.failed.saturating_add(1);
        let before = self.ejected.map(|ejected| ejected.cause);
        let cause = match (before, role) {
            (None, _) if in_a_row => Ejection::InARow,
            (None, _) if self.window.is_bad() => Ejection::Share,
            // The probe failed. What was doubted and now is dead counts as dead; what was dead and now answers
            // is doubted, or a server that says 503 while it loads its model would stay out long after.
            (Some(_), Role::Probe) if in_a_row => Ejection::InARow,
            (Some(_), Role::Probe) if self.consecutive_failures == 0 => Ejection::Share,
            (Some(cause), Role::Probe) => cause,
            (Some(Ejection::Share), Role::Ordinary) if in_a_row => Ejection::InARow,
            // Requests that were in flight when it was ejected say nothing new.
            _ => return None,
        };
        if role == Role::Probe {
            self.is_probed = false;
        }
        self.eject(now, cause);
        Some(cause)
    }

    fn eject(&mut self, now: Instant, cause: Ejection) {
        let has_held =
            |restored: Instant| now.saturating_duration_since(restored) >= EJECTION_FORGOTTEN;
        if self.ejected.is_none() && self.restored.is_none_or(has_held) {
            self.ejections_in_a_row = 0;
        }
        let doublings = self.ejections_in_a_row.min(16);
        let span = (EJECTION_FIRST * (1 << doublings)).min(EJECTION_MAX);
        self.ejections_in_a_row = self.ejections_in_a_row.saturating_add(1);
        self.ejected = Some(Ejected { until: now + span, cause });
        self.window = Window::default();
    }

    /// Why it is ejected, if it is; also while it awaits its probe.
    #[must_use]
    pub fn ejection(&self) -> Option<Ejection> {
        self.ejected.map(|ejected| ejected.cause)
    }

    /// Failures since the last answer.
    #[must_use]
    pub fn consecutive_failures(&self) -> u32 {
        self.consecutive_failures
    }

    /// How long until it may be tried again; zero where it may be now.
    #[must_use]
    pub fn retry_after(&self, now: Instant) -> Duration {
        let ejected = self.ejected.map(|ejected| ejected.until);
        let until = ejected.max(self.rests_until);
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests;
