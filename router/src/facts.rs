//! Facts: what is looked up for a Unit, within a budget that nothing can exceed.
//!
//! In reading order: [`lookup`] holds one request's values, [`pipeline`] keeps a connection's replies in order,
//! [`resp`] knows the bytes, [`breaker`] when not to ask; `wire` makes a connection, with [`tls`] or without, and [`link`] moves
//! the bytes. [`file`] is a source without a cache. [`supply`] is what all cores share of either.

pub mod breaker;
pub mod file;
pub mod link;
pub mod lookup;
pub mod pipeline;
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

use self::link::Link;
use self::lookup::Lookup;
use self::supply::Supply;
use crate::config::{BudgetFrom, Facts as Settings, FactsSource};
use crate::counters::{WorkerCounters, Writer};
use crate::limits::FACT_LOOKUPS_POOLED_MAX;
use crate::net::clock;

/// One core's source of Facts.
pub struct Facts {
    settings: Settings,
    source: Source,
}

enum Source {
    Off,
    Redis(Rc<Link>),
    File(FileSource),
}

struct FileSource {
    supply: Arc<Supply>,
    key: RefCell<Vec<u8>>,
    spare: RefCell<Vec<Rc<Lookup>>>,
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
                FactsSource::Redis => {
                    Source::Redis(Link::start(Arc::clone(supply), Rc::clone(counters), seed))
                }
                FactsSource::File => Source::File(FileSource {
                    supply: Arc::clone(supply),
                    key: RefCell::default(),
                    spare: RefCell::default(),
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
            Source::Redis(link) => link.ask(facts, unit.as_str(), now, deadline),
            Source::File(file) => Some(file.ask(facts, unit.as_str(), deadline)),
        };
        lookup.map_or(Asked::Unavailable, Asked::Lookup)
    }

    /// Waits until the answers are here or the deadline has passed, whichever comes first; counts how long, and how
    /// much of it was too long.
    pub async fn wait(&self, asked: &Asked, counters: &WorkerCounters) {
        let Asked::Lookup(lookup) = asked else { return };
        let began = clock::now();
        lookup.wait().await;
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
            Source::Redis(link) => link.give_back(lookup),
            Source::File(file) => {
                let mut spare = file.spare.borrow_mut();
                if Rc::strong_count(&lookup) == 1 && spare.len() < FACT_LOOKUPS_POOLED_MAX {
                    spare.push(lookup);
                }
            }
        }
    }
}

impl FileSource {
    fn ask<'a>(
        &self,
        facts: impl Iterator<Item = &'a ArchivedFact>,
        unit: &str,
        deadline: Instant,
    ) -> Rc<Lookup> {
        let table = self.supply.table();
        let spare = self.spare.borrow_mut().pop();
        let lookup = spare.unwrap_or_else(|| Lookup::new(deadline));
        lookup.begin(deadline);
        let mut key = self.key.borrow_mut();
        for (place, fact) in facts.enumerate() {
            if lookup.expect() {
                lookup.answer(place, Ok(table.find(fact, unit, &mut key)));
            }
        }
        lookup
    }
}
