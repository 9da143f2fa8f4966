//! A core's own copies of what the cache said a moment ago, and lookups that wait for the same answer together.
//!
//! An entry's name is the command that asks for it, so that it holds across Snapshots and a changed Fact is another
//! entry. Pure: time comes in as an argument, and nothing here waits.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use quick_cache::Weighter;
use quick_cache::unsync::Cache;

use super::lookup::{Answer, Lookup, LookupPool};
use crate::limits::NEAR_ENTRY_BYTES;

/// The near-cache of one core.
pub struct Near {
    ttl: Duration,
    absent_ttl: Duration,
    entries: RefCell<Cache<Box<[u8]>, Entry, Weight>>,
    /// What was asked for and not answered, with whom else to tell.
    flights: RefCell<HashMap<Box<[u8]>, Vec<Waiting>>>,
}

/// A lookup that shares a question, and which of its Facts that is.
type Waiting = (Rc<Lookup>, usize);

/// What the cache said, and when.
struct Entry {
    told: Instant,
    /// `None`: there is no value.
    value: Option<Box<[u8]>>,
}

#[derive(Clone, Copy)]
struct Weight;

impl Weighter<Box<[u8]>, Entry> for Weight {
    fn weight(&self, key: &Box<[u8]>, entry: &Entry) -> u64 {
        let value = entry.value.as_ref().map_or(0, |value| value.len());
        (key.len() + value) as u64 + NEAR_ENTRY_BYTES
    }
}

/// What is known of a Fact here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Look {
    /// The answer.
    Answered,
    /// It was asked for a moment ago; the lookup will be told, too.
    Shared,
    /// Nothing: the cache has to be asked.
    Unknown,
}

impl Near {
    /// An empty one of at most `bytes_max`, in which values hold for `ttl` and the lack of one for `absent_ttl`.
    #[must_use]
    pub fn new(bytes_max: u64, ttl: Duration, absent_ttl: Duration) -> Self {
        // An estimate, by which the table begins: it grows to what the entries need.
        let entries = usize::try_from(bytes_max / (4 * NEAR_ENTRY_BYTES)).unwrap_or(usize::MAX);
        let entries = Cache::with_weighter(entries.min(1 << 16), bytes_max, Weight);
        Self { ttl, absent_ttl, entries: RefCell::new(entries), flights: RefCell::default() }
    }

    /// Looks for the Fact at `place` of a lookup. Allocates nothing where it is found.
    pub fn look(&self, lookup: &Rc<Lookup>, place: usize, now: Instant) -> Look {
        let entries = self.entries.borrow();
        let command = lookup.command(place);
        let is_fresh = |entry: &&Entry| {
            let span = self.span(lookup, place, entry.value.as_deref());
            now.saturating_duration_since(entry.told) < span
        };
        if let Some(entry) = entries.get(&*command).filter(is_fresh) {
            drop(command);
            lookup.answer(place, Ok(entry.value.as_deref()));
            return Look::Answered;
        }
        if let Some(waiting) = self.flights.borrow_mut().get_mut(&*command) {
            drop(command);
            lookup.share(place);
            waiting.push((Rc::clone(lookup), place));
            return Look::Shared;
        }
        Look::Unknown
    }

    /// The cache was asked for the Fact at `place` of a lookup: who asks now waits with it.
    pub fn departed(&self, lookup: &Lookup, place: usize) {
        let command = lookup.command(place);
        self.flights.borrow_mut().entry((*command).into()).or_default();
    }

    /// The cache answered a lookup, whoever still waits for it.
    pub fn settle(
        &self,
        lookup: &Lookup,
        place: usize,
        meaning: &Result<Option<&[u8]>, Answer>,
        pool: &LookupPool,
        now: Instant,
    ) {
        let command = lookup.command(place);
        let waiting = self.flights.borrow_mut().remove(&*command);
        if let Ok(value) = meaning {
            let entry = Entry { told: now, value: value.map(Into::into) };
            if !self.span(lookup, place, *value).is_zero() {
                self.entries.borrow_mut().insert((*command).into(), entry);
            }
        }
        for (other, place) in waiting.unwrap_or_default() {
            other.answer(place, meaning.clone());
            pool.give_back(other);
        }
    }

    /// How long an answer to this question holds.
    fn span(&self, lookup: &Lookup, place: usize, value: Option<&[u8]>) -> Duration {
        let span = if value.is_some() { self.ttl } else { self.absent_ttl };
        lookup.fresh_for(place).map_or(span, |fresh_for| fresh_for.min(span))
    }

    /// No server that was asked for the Fact at `place` of a lookup will answer.
    pub fn lost(&self, lookup: &Lookup, place: usize, pool: &LookupPool) {
        let command = lookup.command(place);
        let waiting = self.flights.borrow_mut().remove(&*command);
        for (other, place) in waiting.unwrap_or_default() {
            other.lost(place);
            pool.give_back(other);
        }
    }

    /// Bytes of all entries, those that are not fresh any more among them.
    pub fn bytes(&self) -> u64 {
        self.entries.borrow().weight()
    }
}

#[cfg(test)]
mod tests;
