//! When requests are due. Pure: time comes in as an argument.

use std::time::{Duration, Instant};

/// How long after its end an open loop still sends what was due before. Without it a stall at the
/// very end would not count; with all of it a slow target would hold the run up for ever.
const OVERDUE_MAX: Duration = Duration::from_secs(1);

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// Closed loop: each connection sends as soon as its last answer has come. It slows down with
    /// the server, and so hides how bad a stall is (coordinated omission).
    Closed,
    /// Open loop: requests are due at a constant rate, whatever the server does; latency counts
    /// from the moment a request was due.
    Constant {
        /// Requests per second over all threads; above zero.
        rate: f64,
    },
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

/// One thread's share of the schedule: every `threads`-th request.
#[derive(Debug)]
pub struct Schedule {
    load: Load,
    span: Span,
    thread: u64,
    threads: u64,
    taken: u64,
    requests_max: Option<u64>,
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
        Self { load, span, thread, threads, taken: 0, requests_max }
    }

    /// The next request; `None` once the schedule has ended, for good.
    pub fn take(&mut self, now: Instant) -> Option<Ticket> {
        let number = self.number();
        if self.requests_max.is_some_and(|max| number >= max) {
            return None;
        }
        let due = match self.load {
            Load::Closed => now.max(self.span.start),
            Load::Constant { rate } => self.due(number, rate),
        };
        if self.span.end.is_some_and(|end| due >= end || now >= end + OVERDUE_MAX) {
            return None;
        }
        self.taken += 1;
        Some(Ticket { number, due, taken: now })
    }

    /// How many requests are due already and were not taken; zero in a closed loop.
    pub fn overdue(&self, now: Instant) -> u64 {
        let Load::Constant { rate } = self.load else { return 0 };
        let now = self.span.end.map_or(now, |end| now.min(end));
        let age = now.saturating_duration_since(self.span.start).as_secs_f64();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a positive number of requests far below 2^53"
        )]
        let due_in_run = (age * rate).ceil() as u64;
        let due_in_run = self.requests_max.map_or(due_in_run, |max| due_in_run.min(max));
        let due_here = due_in_run.saturating_sub(self.thread).div_ceil(self.threads);
        due_here.saturating_sub(self.taken)
    }

    fn number(&self) -> u64 {
        self.taken * self.threads + self.thread
    }

    #[expect(clippy::cast_precision_loss, reason = "runs have far fewer than 2^53 requests")]
    fn due(&self, number: u64, rate: f64) -> Instant {
        // From the start each time: adding up intervals would add up their rounding too.
        self.span.start + Duration::from_secs_f64(number as f64 / rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(end: Option<Duration>) -> Span {
        let start = Instant::now();
        Span { start, measured_from: start, end: end.map(|end| start + end) }
    }

    #[test]
    fn threads_share_a_constant_rate_without_gaps_or_doubles() {
        let span = span(Some(Duration::from_secs(1)));
        let mut tickets = Vec::new();
        for thread in 0..3 {
            let load = Load::Constant { rate: 100.0 };
            let mut schedule = Schedule::new(load, span, (thread, 3), None);
            tickets.extend(std::iter::from_fn(|| schedule.take(span.start)));
        }
        tickets.sort_by_key(|ticket| ticket.number);
        assert_eq!(tickets.len(), 100);
        for (number, ticket) in (0_u32..).zip(&tickets) {
            assert_eq!(ticket.number, u64::from(number));
            assert_eq!(ticket.due - span.start, Duration::from_millis(10) * number);
        }
    }

    #[test]
    fn what_is_overdue_is_sent_for_a_while_after_the_end() {
        let span = span(Some(Duration::from_secs(1)));
        let mut schedule = Schedule::new(Load::Constant { rate: 10.0 }, span, (0, 1), None);
        assert_eq!(schedule.take(span.start + Duration::from_millis(1999)).unwrap().number, 0);
        let too_late = span.start + Duration::from_millis(2000);
        assert_eq!(schedule.take(too_late), None);
        assert_eq!(schedule.overdue(too_late), 9);
    }

    #[test]
    fn the_number_of_requests_ends_a_schedule_too() {
        let span = span(None);
        let taken: Vec<_> = (0..2)
            .map(|thread| {
                let mut schedule = Schedule::new(Load::Closed, span, (thread, 2), Some(5));
                std::iter::from_fn(|| schedule.take(span.start)).count()
            })
            .collect();
        assert_eq!(taken, [3, 2]);
    }

    #[test]
    fn a_closed_loop_is_due_when_it_asks() {
        let span = span(Some(Duration::from_secs(1)));
        let mut schedule = Schedule::new(Load::Closed, span, (0, 1), None);
        let now = span.start + Duration::from_millis(300);
        assert_eq!(schedule.take(now).unwrap().due, now);
        assert_eq!(schedule.take(span.start + Duration::from_secs(1)), None);
    }

    #[test]
    fn what_nobody_took_in_time_is_overdue() {
        let span = span(Some(Duration::from_secs(1)));
        let load = Load::Constant { rate: 10.0 };
        let mut schedule = Schedule::new(load, span, (1, 2), None);
        let at = |milliseconds| span.start + Duration::from_millis(milliseconds);
        // This thread's requests are due at 100, 300, 500, 700 and 900 ms.
        assert_eq!(schedule.overdue(at(0)), 0);
        assert_eq!(schedule.overdue(at(350)), 2);
        schedule.take(at(350));
        assert_eq!(schedule.overdue(at(350)), 1);
        assert_eq!(schedule.overdue(at(99_000)), 4);
    }
}
