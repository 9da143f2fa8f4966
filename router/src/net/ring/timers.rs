//! Deadlines of one core, soonest first.
//!
//! A binary heap with lazy deletion: a deadline that was given up stays until it is due, so that
//! setting and giving up cost no search, and nothing is allocated in steady state.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::task::{Context, Waker};
use std::time::Instant;

use slab::Slab;

/// What waits for a time.
#[derive(Default)]
pub(super) struct Timers {
    due: BinaryHeap<Reverse<Due>>,
    waiting: Slab<Waiting>,
    generation: u64,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Due {
    at: Instant,
    id: TimerId,
}

/// One deadline; a place is reused, its generation is not.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(in crate::net) struct TimerId {
    place: usize,
    generation: u64,
}

struct Waiting {
    generation: u64,
    waker: Waker,
}

impl Timers {
    /// Wakes the task once it is `at` or later.
    pub(super) fn set(&mut self, at: Instant, waker: Waker) -> TimerId {
        self.generation += 1;
        let generation = self.generation;
        let id = TimerId { place: self.waiting.insert(Waiting { generation, waker }), generation };
        self.due.push(Reverse(Due { at, id }));
        id
    }

    /// Another task, or the same one under another waker, waits now. False: the deadline has passed.
    pub(super) fn keep(&mut self, id: TimerId, context: &Context<'_>) -> bool {
        match self.waiting.get_mut(id.place) {
            Some(waiting) if waiting.generation == id.generation => {
                waiting.waker.clone_from(context.waker());
                true
            }
            _ => false,
        }
    }

    /// Nobody waits for this one any more.
    pub(super) fn give_up(&mut self, id: TimerId) {
        if self.is_waited_for(id) {
            drop(self.waiting.remove(id.place));
        }
    }

    /// When the next one is due.
    pub(super) fn next(&mut self) -> Option<Instant> {
        while let Some(Reverse(due)) = self.due.peek().copied() {
            if self.is_waited_for(due.id) {
                return Some(due.at);
            }
            self.due.pop();
        }
        None
    }

    /// The waker of one that is due.
    pub(super) fn pop(&mut self, now: Instant) -> Option<Waker> {
        if self.next()? > now {
            return None;
        }
        let Reverse(due) = self.due.pop()?;
        Some(self.waiting.remove(due.id.place).waker)
    }

    fn is_waited_for(&self, id: TimerId) -> bool {
        self.waiting.get(id.place).is_some_and(|waiting| waiting.generation == id.generation)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::net::clock;

    #[test]
    fn the_soonest_deadline_comes_first_and_a_given_up_one_never() {
        let mut timers = Timers::default();
        let start = clock::now();
        let after = |millis| start + Duration::from_millis(millis);
        timers.set(after(30), Waker::noop().clone());
        let given_up = timers.set(after(10), Waker::noop().clone());
        timers.set(after(20), Waker::noop().clone());
        assert_eq!(timers.next(), Some(after(10)));
        timers.give_up(given_up);
        assert_eq!(timers.next(), Some(after(20)));
        assert!(timers.pop(after(19)).is_none());
        assert!(timers.pop(after(25)).is_some());
        assert_eq!(timers.next(), Some(after(30)));
        assert!(timers.pop(after(25)).is_none());
    }

    #[test]
    fn a_reused_place_is_not_taken_for_the_one_before() {
        let mut timers = Timers::default();
        let start = clock::now();
        let first = timers.set(start, Waker::noop().clone());
        assert!(timers.pop(start).is_some());
        let second = timers.set(start + Duration::from_secs(1), Waker::noop().clone());
        assert_eq!(first.place, second.place);
        timers.give_up(first);
        assert!(!timers.keep(first, &Context::from_waker(Waker::noop())));
        assert!(timers.keep(second, &Context::from_waker(Waker::noop())));
    }
}
