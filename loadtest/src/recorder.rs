//! What one thread has measured. Bounded: it does not grow with the length of a run.

pub mod decisions;
pub mod labels;
pub mod records;
pub mod users;

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
    /// A stream of events that ended without its last one.
    Truncated,
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
    pub const ALL: [Self; 8] = [
        Self::Connect,
        Self::Reset,
        Self::Truncated,
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
            Self::Truncated => "truncated",
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
    /// Due to the first event that carries text of an answer.
    pub first_token: Histogram<u64>,
    /// Between two such events of one stream.
    pub token_gap: Histogram<u64>,
    /// Streams of events.
    pub streams: u64,
    /// Those that ended with `[DONE]`.
    pub streams_done: u64,
    /// Server-sent events.
    pub events: u64,
    /// Events that carry text of an answer.
    pub tokens: u64,
    /// Requests that were due while the window lasted and were sent, in it or later.
    pub due_and_sent: u64,
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
            first_token: histogram(),
            token_gap: histogram(),
            streams: 0,
            streams_done: 0,
            events: 0,
            tokens: 0,
            due_and_sent: 0,
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
            (&mut self.first_token, &other.first_token),
            (&mut self.token_gap, &other.token_gap),
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
        self.streams += other.streams;
        self.streams_done += other.streams_done;
        self.events += other.events;
        self.tokens += other.tokens;
        self.due_and_sent += other.due_and_sent;
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

/// One second of one thread, for the progress line, the timeline and the interval log.
#[derive(Debug)]
pub struct Second {
    /// Which one since the run started. The measured window starts with a second of its own, so the
    /// last one of the warm-up may be shorter.
    pub second: u64,
    /// When it began, since the run's start.
    pub start: Duration,
    /// Whether it belongs to the warm-up.
    pub is_warmup: bool,
    /// Requests that ended, well or not.
    pub requests: u64,
    /// Those that failed.
    pub failures: u64,
    /// Of whole answers, in nanoseconds; after the warm-up, only of requests that were due after it.
    pub latency: Histogram<u64>,
}

impl Second {
    /// The empty second that `age` falls into, where the warm-up lasts `warmup`.
    pub fn at(age: Duration, warmup: Duration) -> Self {
        let warmup_seconds = warmup.as_secs() + u64::from(warmup.subsec_nanos() > 0);
        let is_warmup = age < warmup;
        let (second, start) = if is_warmup {
            (age.as_secs(), Duration::from_secs(age.as_secs()))
        } else {
            let seconds = (age - warmup).as_secs();
            (warmup_seconds + seconds, warmup + Duration::from_secs(seconds))
        };
        Self { second, start, is_warmup, requests: 0, failures: 0, latency: histogram() }
    }

    /// Adds another thread's part of the same second.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.failures += other.failures;
        let added = self.latency.add(&other.latency);
        debug_assert!(added.is_ok(), "both have the same bounds");
    }
}

/// A histogram of two digits, where there may be many of them: 30 KB.
pub(crate) fn small_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(10_000, LATENCY_NANOSECONDS_MAX, 2).expect("constant, valid bounds")
}

#[cfg(test)]
mod tests;
