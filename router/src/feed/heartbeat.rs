//! STATS: how the router is, once per second.

use std::sync::Arc;

use switchboard_shared::limits::COUNTERS_MAX;
use switchboard_shared::push::{Counter, Health, Stats};

use crate::activation::Activation;
use crate::counters::Counters;
use crate::status::{Source, Status, now_unix_ms};

/// What a heartbeat is made of.
pub(super) struct Heartbeat {
    pub(super) status: Arc<Status>,
    pub(super) counters: Arc<Counters>,
    pub(super) activation: Arc<Activation>,
}

impl Heartbeat {
    /// Every sum with its name and label, as `/metrics` has it; of histograms, count and sum. Then the Arms', as
    /// far as there is room.
    pub(super) fn counters(&self) -> Vec<(String, u64)> {
        let mut totals = self.counters.totals();
        debug_assert!(totals.len() <= COUNTERS_MAX, "a heartbeat holds all counters");
        totals.truncate(COUNTERS_MAX);
        if let Some(active) = self.activation.published() {
            let room = COUNTERS_MAX - totals.len();
            active.series().totals(active.snapshot.payload(), room, &mut totals);
        }
        totals
    }

    /// The heartbeat with these counters.
    pub(super) fn stats<'a>(&self, counters: &'a [(String, u64)]) -> Stats<'a> {
        let running = self.status.running();
        let is_expired = self
            .activation
            .published()
            .is_some_and(|active| active.snapshot.is_expired(now_unix_ms()));
        let is_from_disk = running.is_some_and(|running| running.source == Source::Disk);
        let health = if self.status.is_draining() {
            Health::Draining
        } else if is_expired || is_from_disk {
            Health::Stale
        } else {
            Health::Good
        };
        Stats {
            running: running.map(|running| running.id),
            uptime_ms: u64::try_from(self.status.uptime().as_millis()).unwrap_or(u64::MAX),
            health,
            counters: counters
                .iter()
                .map(|(name, value)| Counter { name, value: *value })
                .collect(),
        }
    }
}
