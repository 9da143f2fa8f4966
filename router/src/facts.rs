//! Facts: what is looked up for a Unit, within a budget that nothing can exceed.
//!
//! In reading order: [`redis`] is one core's way to the cache. [`lookup`] holds one request's commands and values, [`near`] what was said
//! a moment ago, [`pipeline`] keeps a connection's replies in order, [`resp`] knows the bytes, [`breaker`] when not to ask, [`hedge`] when
//! to ask twice. `wire` makes a connection, with [`tls`] or without, [`link`] moves the bytes, [`cluster`] knows which of many to ask.
//! [`file`] is a source without a cache. [`supply`] is what all cores share of either.

pub mod breaker;
pub mod cluster;
pub mod file;
pub mod hedge;
pub mod link;
pub mod lookup;
pub mod near;
pub mod pipeline;
pub mod redis;
pub mod reply;
pub mod resp;
pub mod secret;
pub mod supply;
pub mod tls;
pub mod value;
mod wire;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use switchboard_shared::slot::Unit;
use switchboard_shared::snapshot::ArchivedFact;

use self::lookup::{Lookup, LookupPool};
use self::redis::Redis;
use self::supply::Supply;
use crate::config::{BudgetFrom, Facts as Settings, FactsSource};
use crate::counters::{WorkerCounters, Writer};
use crate::net::clock;

/// One core's source of Facts.
pub struct Facts {
    settings: Settings,
    source: Source,
}

enum Source {
    Off,
    Redis(Redis),
    File(FileSource),
}

struct FileSource {
    supply: Arc<Supply>,
    key: RefCell<Vec<u8>>,
    pool: LookupPool,
}

/// What became of asking.
#[derive(Debug)]
pub enum Asked {
    /// The answers are here, or on their way.
    Lookup(Rc<Lookup>),
    /// The request carries no Unit: nothing is known of nobody.
    NoUnit,
    /// There is no source, it is away, or too many wait for it already.
    Unavailable,
}

impl Facts {
    /// For a core of a router with these settings; `supply` is `None` where the source is off. Runs on the core's
    /// ring, as a connection is opened there.
    #[must_use]
    pub fn start(
        settings: &Settings,
        supply: Option<&Arc<Supply>>,
        counters: &Rc<Writer<WorkerCounters>>,
        seed: u64,
    ) -> Self {
        let source = match supply {
            None => Source::Off,
            Some(supply) => match supply.source() {
                FactsSource::Off => Source::Off,
                FactsSource::Redis => Source::Redis(Redis::start(settings, supply, counters, seed)),
                FactsSource::File => Source::File(FileSource {
                    supply: Arc::clone(supply),
                    key: RefCell::default(),
                    pool: LookupPool::default(),
                }),
            },
        };
        Self { settings: settings.clone(), source }
    }

    /// When a request whose head was complete at `head` and that asks now has waited enough.
    #[must_use]
    pub fn deadline(&self, head: Instant, now: Instant) -> Instant {
        let from = match self.settings.budget_from {
            BudgetFrom::Asking => now,
            BudgetFrom::Head => head,
        };
        from + self.settings.budget
    }

    /// Asks for Facts of a Unit. Never waits; no more than `FACTS_PER_ARM_MAX` are asked for.
    pub fn ask<'a>(
        &self,
        facts: impl Iterator<Item = &'a ArchivedFact>,
        unit: Option<&Unit<'_>>,
        now: Instant,
        deadline: Instant,
    ) -> Asked {
        let Some(unit) = unit else { return Asked::NoUnit };
        let lookup = match &self.source {
            Source::Off => None,
            Source::Redis(redis) => redis.ask(facts, unit.as_str(), now, deadline),
            Source::File(file) => Some(file.ask(facts, unit.as_str(), now, deadline)),
        };
        lookup.map_or(Asked::Unavailable, Asked::Lookup)
    }

    /// Waits until the answers are here or the deadline has passed, whichever comes first; counts how long, and how
    /// much of it was too long.
    pub async fn wait(&self, asked: &Asked, counters: &WorkerCounters) {
        let Asked::Lookup(lookup) = asked else { return };
        let began = clock::now();
        match &self.source {
            Source::Redis(redis) => redis.wait(lookup).await,
            Source::File(_) | Source::Off => {} // all is there
        }
        let now = clock::now();
        counters.facts_wait.record(now.saturating_duration_since(began));
        if let Some(overrun) = now.checked_duration_since(lookup.deadline()) {
            counters.facts_overrun.record(overrun);
        }
    }

    /// Takes back what a request asked for.
    pub fn give_back(&self, asked: Asked) {
        let Asked::Lookup(lookup) = asked else { return };
        match &self.source {
            Source::Off => {}
            Source::Redis(redis) => redis.give_back(lookup),
            Source::File(file) => file.pool.give_back(lookup),
        }
    }
}

impl FileSource {
    fn ask<'a>(
        &self,
        facts: impl Iterator<Item = &'a ArchivedFact>,
        unit: &str,
        now: Instant,
        deadline: Instant,
    ) -> Rc<Lookup> {
        let table = self.supply.table();
        let lookup = self.pool.take(now, deadline);
        let mut key = self.key.borrow_mut();
        for (place, fact) in facts.enumerate() {
            if lookup.expect() {
                lookup.answer(place, Ok(table.find(fact, unit, &mut key)));
            }
        }
        lookup
    }
}
