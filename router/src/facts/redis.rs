//! Facts from Redis: one server, one with a replica beside it, or a cluster.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use arrayvec::ArrayVec;
use switchboard_shared::limits::FACTS_PER_ARM_MAX;
use switchboard_shared::snapshot::ArchivedFact;

use super::cluster::Cluster;
use super::hedge::Hedge;
use super::link::{Link, Shared};
use super::lookup::{Cut, Lookup, LookupPool};
use super::near::{Look, Near};
use super::pipeline::Sending;
use super::supply::{Server, Supply};
use crate::config::{Facts as Settings, ReadFrom};
use crate::counters::{WorkerCounters, Writer};
use crate::net::clock;

/// One core's way to the cache.
pub struct Redis {
    shared: Rc<Shared>,
    servers: Servers,
    hedge: Cell<Option<Hedge>>,
}

enum Servers {
    /// The one that is asked, and another that stands in for it.
    Single {
        first: Rc<Link>,
        second: Option<Rc<Link>>,
    },
    Cluster(Rc<Cluster>),
}

impl Redis {
    /// Connects in the background.
    pub fn start(
        settings: &Settings,
        supply: &Arc<Supply>,
        counters: &Rc<Writer<WorkerCounters>>,
        seed: u64,
    ) -> Self {
        let near = (settings.near_bytes_max > 0).then(|| {
            Near::new(settings.near_bytes_max, settings.near_ttl, settings.near_absent_ttl)
        });
        let shared = Rc::new(Shared {
            supply: Arc::clone(supply),
            counters: Rc::clone(counters),
            pool: LookupPool::default(),
            near,
        });
        let servers = if settings.cluster {
            Servers::Cluster(Cluster::start(Rc::clone(&shared), seed))
        } else {
            let start = |server| Link::start(&shared, server, None, seed);
            let primary = start(Server::Primary);
            let replica = (!settings.replica_address.is_empty()).then(|| start(Server::Replica));
            match (settings.read_from, replica) {
                (ReadFrom::Replica, Some(replica)) => {
                    Servers::Single { first: replica, second: Some(primary) }
                }
                (ReadFrom::Primary | ReadFrom::Replica, second) => {
                    Servers::Single { first: primary, second }
                }
            }
        };
        let hedge = settings.hedge_after.map(|after| Hedge::new(after, settings.hedge_percent_max));
        Self { shared, servers, hedge: Cell::new(hedge) }
    }

    /// Asks for some Facts of one Unit. `None`: there is no connection, or too many wait.
    pub fn ask<'a>(
        &self,
        facts: impl Iterator<Item = &'a ArchivedFact>,
        unit: &str,
        now: Instant,
        deadline: Instant,
    ) -> Option<Rc<Lookup>> {
        let lookup = self.shared.pool.take(now, deadline);
        let mut unknown = ArrayVec::<usize, FACTS_PER_ARM_MAX>::new();
        for (place, fact) in facts.enumerate() {
            if !lookup.expect_of_cache(fact, unit) {
                break; // as many as one lookup can have: a Snapshot has no Arm with more
            }
            if self.look(&lookup, place, now) == Look::Unknown {
                unknown.push(place);
            }
        }
        let has_asked = unknown.is_empty() || self.send(&lookup, &unknown, now);
        if lookup.count() == 0 || !has_asked {
            self.shared.pool.give_back(lookup);
            return None;
        }
        if let Some(near) = &self.shared.near {
            let departed = unknown.iter().filter(|place| lookup.is_asked(**place));
            departed.for_each(|place| near.departed(&lookup, *place));
            self.shared.counters.facts_near_bytes.set(near.bytes());
        }
        Some(lookup)
    }

    fn look(&self, lookup: &Rc<Lookup>, place: usize, now: Instant) -> Look {
        let Some(near) = &self.shared.near else { return Look::Unknown };
        let look = near.look(lookup, place, now);
        match look {
            Look::Answered => self.shared.counters.facts_near_hits.add(1),
            Look::Shared => self.shared.counters.facts_near_shared.add(1),
            Look::Unknown => {}
        }
        look
    }

    fn send(&self, lookup: &Rc<Lookup>, places: &[usize], now: Instant) -> bool {
        match &self.servers {
            Servers::Cluster(cluster) => cluster.send(lookup, places, now),
            Servers::Single { first, second } => {
                let sending = Sending::First;
                first.send(lookup, places, sending, now)
                    || second.as_ref().is_some_and(|link| link.send(lookup, places, sending, now))
            }
        }
    }

    /// Waits until the answers are here or the deadline has passed. Somewhere within, the other server is asked, too,
    /// where that is wanted.
    pub async fn wait(&self, lookup: &Rc<Lookup>) {
        if lookup.due().is_none() {
            return;
        }
        if let Servers::Single { first, second: Some(second) } = &self.servers
            && let Some(mut hedge) = self.hedge.get()
        {
            let at = hedge.earn(lookup.began());
            self.hedge.set(Some(hedge));
            let span = at.saturating_duration_since(clock::now());
            let _in_time = clock::within(span, lookup.wait()).await;
            if first.is_up() && second.is_up() {
                self.hedge(lookup, second);
            }
        }
        if lookup.is_shared() {
            // Whoever asked for it watches over its own deadline only.
            let span = lookup.deadline().saturating_duration_since(clock::now());
            if clock::within(span, lookup.wait()).await.is_none() {
                lookup.cut(Cut::Late);
            }
        } else {
            lookup.wait().await;
        }
    }

    /// Asks the other server for what is not there yet, if some was asked for at all.
    fn hedge(&self, lookup: &Rc<Lookup>, second: &Rc<Link>) {
        let missing: ArrayVec<usize, FACTS_PER_ARM_MAX> =
            (0..lookup.count()).filter(|place| lookup.is_awaiting(*place)).collect();
        if lookup.due().is_none() || missing.is_empty() {
            return;
        }
        let Some(mut hedge) = self.hedge.get() else { return };
        if !hedge.spend() {
            self.shared.counters.facts_hedges_refused.add(1);
            return;
        }
        self.hedge.set(Some(hedge));
        if second.send(lookup, &missing, Sending::Hedge, clock::now()) {
            self.shared.counters.facts_hedges.add(1);
        }
    }

    /// Takes a lookup back from its request.
    pub fn give_back(&self, lookup: Rc<Lookup>) {
        self.shared.pool.give_back(lookup);
    }
}
