//! When requests are due. Pure: time comes in as an argument.

pub mod rates;

use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand_distr::{Distribution, Exp1};

use self::rates::Rates;

/// How long after its end an open loop still sends what was due before. Without it a stall at the
/// very end would not count; with all of it a slow target would hold the run up for ever.
const OVERDUE_MAX: Duration = Duration::from_secs(1);

/// When requests are sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// Closed loop: each connection sends as soon as its last answer has come. It slows down with
    /// the server, and so hides how bad a stall is (coordinated omission).
    Closed,
    /// Open loop: requests are due at these rates, whatever the server does; latency counts from
    /// the moment a request was due.
    Open {
        /// Requests per second over all threads.
        rates: Rates,
        /// How they are spread.
        arrivals: Arrivals,
    },
    /// Open loop: each request is due at the time that was recorded with it.
    Recorded,
}

/// How an open loop's requests are spread over time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Arrivals {
    /// At even distances.
    Constant,
    /// At random, independent of each other, as many clients do: a Poisson process.
    Poisson {
        /// Makes the draws repeatable.
        seed: u64,
    },
}

impl Load {
    /// Whether requests wait for answers.
    pub fn is_closed(&self) -> bool {
        *self == Self::Closed
    }
}

/// Where a run starts and ends.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The first request is due here.
    pub start: Instant,
    /// Results count from here; until then the run warms up.
    pub measured_from: Instant,
    /// No request is due from here on; `None`: only the number of requests ends the run.
    pub end: Option<Instant>,
}

/// One thread's share of the schedule: every `threads`-th request, or, of random arrivals, an
/// independent process with its share of the rate (their sum is a Poisson process again).
#[derive(Clone, Debug)]
pub struct Schedule {
    load: Load,
    span: Span,
    thread: u64,
    threads: u64,
    taken: u64,
    requests_max: Option<u64>,
    random: Xoshiro256PlusPlus,
    /// Of random arrivals: the next request comes where the whole run reaches this count.
    next_at: f64,
}

/// Permission to send one request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ticket {
    /// Number of the request in its run, from zero; unique over all threads.
    pub number: u64,
    /// When the request is due. Closed loop: when the ticket was taken.
    pub due: Instant,
    /// When the ticket was taken: later than due where no connection was free.
    pub taken: Instant,
}

impl Schedule {
    /// The share of thread `thread` of `threads`. `requests_max` is the whole run's.
    pub fn new(
        load: Load,
        span: Span,
        (thread, threads): (u64, u64),
        requests_max: Option<u64>,
    ) -> Self {
        let seed = match load {
            Load::Open { arrivals: Arrivals::Poisson { seed }, .. } => seed,
            _ => 0,
        };
        let random = Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_mul(513).wrapping_add(thread));
        let mut schedule =
            Self { load, span, thread, threads, taken: 0, requests_max, random, next_at: 0.0 };
        schedule.draw();
        schedule
    }

    /// The next request; `None` once the schedule has ended, for good. `recorded` is how long after
    /// the run's start a recorded request is due.
    pub fn take(&mut self, now: Instant, recorded: Option<Duration>) -> Option<Ticket> {
        let number = self.number();
        if self.requests_max.is_some_and(|max| number >= max) {
            return None;
        }
        let due = match self.next_due(recorded) {
            Some(due) => due,
            None if self.load.is_closed() => now.max(self.span.start),
            None => return None,
        };
        if self.span.end.is_some_and(|end| due >= end || now >= end + OVERDUE_MAX) {
            return None;
        }
        self.taken += 1;
        self.draw();
        Some(Ticket { number, due, taken: now })
    }

    /// Whether the next request of an open loop is due already; always in a closed loop.
    pub fn is_due(&self, now: Instant) -> bool {
        self.load.is_closed() || self.next_due(None).is_some_and(|due| due <= now)
    }

    /// How many requests are due already and were not taken; zero in a closed loop, and unknown,
    /// so zero, where times were recorded.
    pub fn overdue(&self, now: Instant) -> u64 {
        let now = self.span.end.map_or(now, |end| now.min(end));
        let Load::Open { rates, arrivals } = &self.load else { return 0 };
        if *arrivals != Arrivals::Constant {
            let mut ahead = self.clone();
            let taken = std::iter::from_fn(|| {
                let is_due = ahead.next_due(None).is_some_and(|due| due < now);
                if is_due { ahead.take(self.span.start, None) } else { None }
            });
            return taken.count() as u64;
        }
        let due = rates.due_before(now.saturating_duration_since(self.span.start)).ceil();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a positive number of requests far below 2^53"
        )]
        let due_in_run = due as u64;
        let due_in_run = self.requests_max.map_or(due_in_run, |max| due_in_run.min(max));
        let due_here = due_in_run.saturating_sub(self.thread).div_ceil(self.threads);
        due_here.saturating_sub(self.taken)
    }

    fn number(&self) -> u64 {
        self.taken * self.threads + self.thread
    }

    /// `None` in a closed loop, and where the rates have ended.
    #[expect(clippy::cast_precision_loss, reason = "runs have far fewer than 2^53 requests")]
    fn next_due(&self, recorded: Option<Duration>) -> Option<Instant> {
        let age = match &self.load {
            Load::Closed => None,
            Load::Recorded => recorded,
            Load::Open { rates, arrivals: Arrivals::Constant } => {
                rates.reaching(self.number() as f64)
            }
            Load::Open { rates, arrivals: Arrivals::Poisson { .. } } => {
                rates.reaching(self.next_at)
            }
        }?;
        Some(self.span.start + age)
    }

    /// Of a process with a `threads`-th of the rate, the distances are `threads` times as long.
    #[expect(clippy::cast_precision_loss, reason = "a few hundred threads")]
    fn draw(&mut self) {
        let distance: f64 = Exp1.sample(&mut self.random);
        self.next_at += distance * self.threads as f64;
    }
}

#[cfg(test)]
mod tests;
