//! What one thread has measured. Bounded: it does not grow with the length of a run.

pub mod decisions;
pub mod labels;
pub mod records;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use self::decisions::Decisions;
use crate::limits::LATENCY_NANOSECONDS_MAX;

/// Why a request failed. A request counts under one of them.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Failure {
    /// No connection.
    Connect,
    /// The connection broke or ended before the answer's last byte.
    Reset,
    /// No whole answer within `--timeout`.
    Timeout,
    /// The answer is not HTTP.
    Parse,
    /// Another status than expected.
    Status,
    /// A header field that was expected is missing or has another value.
    Header,
    /// Still under way when the run was stopped.
    Unfinished,
}

impl Failure {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 7] = [
        Self::Connect,
        Self::Reset,
        Self::Timeout,
        Self::Parse,
        Self::Status,
        Self::Header,
        Self::Unfinished,
    ];

    /// A stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Reset => "reset",
            Self::Timeout => "timeout",
            Self::Parse => "parse",
            Self::Status => "status",
            Self::Header => "header",
            Self::Unfinished => "unfinished",
        }
    }
}

/// The moments of one request.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// When it was due.
    pub due: Instant,
    /// When its first byte was handed to the kernel.
    pub sent: Instant,
    /// When the answer's last byte had come, or the failure was seen.
    pub done: Instant,
}

/// Everything that one thread has counted since the measured window began.
#[derive(Debug)]
pub struct Tally {
    /// Due to last byte, in nanoseconds; whole answers only, failed checks among them.
    pub latency: Histogram<u64>,
    /// Sent to last byte.
    pub service: Histogram<u64>,
    /// How late requests left although a connection was free.
    pub lag: Histogram<u64>,
    /// Due to the first server-sent event.
    pub first_event: Histogram<u64>,
    /// Between two events of one stream.
    pub event_gap: Histogram<u64>,
    /// Server-sent events.
    pub events: u64,
    /// Whole answers.
    pub answers: u64,
    /// Answers that were whole before the window ended: what the CPU time of the window bought.
    pub answers_in_window: u64,
    /// Requests that were sent while the window lasted.
    pub sent_in_window: u64,
    /// Requests that found no free connection when they were due.
    pub waited_for_connection: u64,
    /// One count for each [`Failure`].
    pub failures: [u64; Failure::ALL.len()],
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Bytes sent, heads included.
    pub bytes_sent: u64,
    /// Bytes received, heads included.
    pub bytes_received: u64,
    /// Connections opened.
    pub connections_opened: u64,
    /// When the last request ended.
    pub last_done: Option<Instant>,
    /// Answers by Objective and Arm.
    pub decisions: Decisions,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            latency: histogram(),
            service: histogram(),
            lag: histogram(),
            first_event: histogram(),
            event_gap: histogram(),
            events: 0,
            answers: 0,
            answers_in_window: 0,
            sent_in_window: 0,
            waited_for_connection: 0,
            failures: [0; Failure::ALL.len()],
            statuses: BTreeMap::new(),
            bytes_sent: 0,
            bytes_received: 0,
            connections_opened: 0,
            last_done: None,
            decisions: Decisions::default(),
        }
    }
}

impl Tally {
    /// Counts a whole answer.
    pub fn answer(&mut self, status: u16, times: Times) {
        self.answers += 1;
        *self.statuses.entry(status).or_default() += 1;
        record(&mut self.latency, times.done.saturating_duration_since(times.due));
        record(&mut self.service, times.done.saturating_duration_since(times.sent));
    }

    /// Counts a failure.
    pub fn fail(&mut self, failure: Failure) {
        self.failures[failure as usize] += 1;
    }

    /// All failures together.
    pub fn failures_total(&self) -> u64 {
        self.failures.iter().sum()
    }

    /// Adds another thread's tally.
    pub fn merge(&mut self, other: &Self) {
        let pairs = [
            (&mut self.latency, &other.latency),
            (&mut self.service, &other.service),
            (&mut self.lag, &other.lag),
            (&mut self.first_event, &other.first_event),
            (&mut self.event_gap, &other.event_gap),
        ];
        for (ours, theirs) in pairs {
            let added = ours.add(theirs);
            debug_assert!(added.is_ok(), "both have the same bounds");
        }
        for (ours, theirs) in self.failures.iter_mut().zip(other.failures) {
            *ours += theirs;
        }
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        self.events += other.events;
        self.answers += other.answers;
        self.answers_in_window += other.answers_in_window;
        self.sent_in_window += other.sent_in_window;
        self.waited_for_connection += other.waited_for_connection;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.connections_opened += other.connections_opened;
        self.last_done = self.last_done.max(other.last_done);
        self.decisions.merge(&other.decisions);
    }
}

/// A histogram of nanoseconds: 1 µs to an hour, three digits; 180 KB.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1000, LATENCY_NANOSECONDS_MAX, 3).expect("constant, valid bounds")
}

/// Records a duration; what is longer than an hour counts as an hour.
pub(crate) fn record(histogram: &mut Histogram<u64>, duration: Duration) {
    histogram.saturating_record(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
}

/// One second of one thread, for the progress line and the timeline.
#[derive(Debug)]
pub struct Second {
    /// Seconds since the run started.
    pub second: u64,
    /// Requests that ended, well or not.
    pub requests: u64,
    /// Those that failed.
    pub failures: u64,
    /// Of whole answers, in nanoseconds, two digits.
    pub latency: Histogram<u64>,
}

impl Second {
    /// An empty second.
    pub(crate) fn new(second: u64) -> Self {
        let latency = Histogram::new_with_bounds(10_000, LATENCY_NANOSECONDS_MAX, 2)
            .expect("constant, valid bounds");
        Self { second, requests: 0, failures: 0, latency }
    }
}

#[cfg(test)]
mod tests;
