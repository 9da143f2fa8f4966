//! A run in numbers: what `--json` writes and the table shows.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::percentiles::{Percentiles, microseconds};
use super::timeline::Row;
use crate::accounting::Usage;
use crate::generator::{Finished, Plan, Reuse};
use crate::recorder::{Failure, Tally};
use crate::schedule::Load;

/// Everything about one run. Times are in microseconds, from when a request was due.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the names say it; what they do not say is said")]
pub struct Summary {
    pub tool: &'static str,
    pub version: &'static str,
    /// The command as it was typed.
    pub command: Vec<String>,
    pub started_unix_ms: u64,
    pub target: String,
    pub mode: &'static str,
    pub connections: u32,
    pub threads: u16,
    pub pipeline: u16,
    pub keep_alive: bool,
    /// Whether the generator did what it was asked: see `invalid_because`.
    pub valid: bool,
    pub invalid_because: Vec<String>,
    pub schedule: Schedule,
    /// Length of the measured window, warm-up excluded.
    pub window_seconds: f64,
    /// Whole answers to requests that were due in the window.
    pub answers: u64,
    /// Answers that were whole in the window, per second.
    pub rate: f64,
    pub answers_in_window: u64,
    pub failures_total: u64,
    pub failures: BTreeMap<&'static str, u64>,
    pub statuses: BTreeMap<u16, u64>,
    /// Due to last byte.
    pub latency_us: Percentiles,
    /// Sent to last byte: what a closed loop would have reported.
    pub service_us: Percentiles,
    pub stream: Option<Stream>,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub connections_opened: u64,
    pub decisions: Vec<Decision>,
    pub snapshots: BTreeMap<String, u64>,
    pub reasons: BTreeMap<String, u64>,
    pub model_servers: BTreeMap<String, u64>,
    pub cpu: Vec<Cpu>,
    pub timeline: Vec<Row>,
}

/// How well the schedule was kept.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the names say it; what they do not say is said")]
pub struct Schedule {
    pub asked_rate: Option<f64>,
    /// Requests that left in the window, per second.
    pub sent_rate: f64,
    /// Share by which `sent_rate` misses `asked_rate`.
    pub rate_error: Option<f64>,
    /// How late requests left although a connection was free.
    pub lag_us: Percentiles,
    pub lag_max_us: f64,
    /// Requests that had to wait for a connection: the target's doing, counted in latency.
    pub waited_for_connection: u64,
    /// Requests that were due but never sent, for want of connections.
    pub unsent: u64,
    /// Whether all requests that were due were sent.
    pub target_kept_up: bool,
}

/// Server-sent events.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Stream {
    pub events: u64,
    pub first_event_us: Percentiles,
    pub event_gap_us: Percentiles,
}

/// Answers of one Objective × Arm, by the answers' own header fields.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Decision {
    pub objective: String,
    pub arm: String,
    pub answers: u64,
    pub failures: u64,
    pub share: f64,
    pub p50_us: f64,
    pub p90_us: f64,
    pub p99_us: f64,
    pub max_us: f64,
}

/// CPU time of one process over the window.
#[derive(Debug, Serialize)]
pub struct Cpu {
    /// The process and its time.
    #[serde(flatten)]
    pub usage: Usage,
    /// User and system time over the answers of the window.
    pub cpu_us_per_answer: f64,
}

/// What a run leaves behind besides its tally.
#[derive(Debug)]
pub struct Around {
    /// The command as it was typed.
    pub command: Vec<String>,
    /// When it started, in unix milliseconds.
    pub started_unix_ms: u64,
    /// Length of the measured window.
    pub window: Duration,
    /// Largest p99 of the generator's lag in an honest open loop.
    pub lag_max: Duration,
    /// CPU times over the window.
    pub usages: Vec<Usage>,
    /// Second by second.
    pub timeline: Vec<Row>,
}

/// Requests that may stay unsent, as a share of those that were due.
const UNSENT_SHARE_MAX: f64 = 0.005;

impl Summary {
    /// Draws the conclusions.
    pub fn new(plan: &Plan, finished: &Finished, around: Around) -> Self {
        let tally = &finished.tally;
        let window_seconds = around.window.as_secs_f64();
        let per_second =
            |count: u64| if window_seconds > 0.0 { float(count) / window_seconds } else { 0.0 };
        let schedule =
            Schedule::new(plan, finished, per_second(tally.sent_in_window), around.lag_max);
        let invalid_because = schedule.objections();
        Self {
            tool: "switchboard-loadtest",
            version: env!("CARGO_PKG_VERSION"),
            command: around.command,
            started_unix_ms: around.started_unix_ms,
            target: plan.target.to_string(),
            mode: match plan.load {
                Load::Closed => "closed",
                Load::Constant { .. } => "open",
            },
            connections: plan.connections,
            threads: plan.threads,
            pipeline: plan.pipeline,
            keep_alive: plan.reuse == Reuse::KeepAlive,
            valid: invalid_because.is_empty(),
            invalid_because,
            schedule,
            window_seconds,
            answers: tally.answers,
            rate: per_second(tally.answers_in_window),
            answers_in_window: tally.answers_in_window,
            failures_total: tally.failures_total(),
            failures: failures(tally),
            statuses: tally.statuses.clone(),
            latency_us: Percentiles::of(&tally.latency),
            service_us: Percentiles::of(&tally.service),
            stream: stream(tally),
            bytes_sent: tally.bytes_sent,
            bytes_received: tally.bytes_received,
            connections_opened: tally.connections_opened,
            decisions: decisions(tally),
            snapshots: owned(tally.decisions.snapshots()),
            reasons: owned(tally.decisions.reasons()),
            model_servers: owned(tally.decisions.model_servers()),
            cpu: around
                .usages
                .into_iter()
                .map(|usage| Cpu {
                    cpu_us_per_answer: usage.cpu_us / float(tally.answers_in_window.max(1)),
                    usage,
                })
                .collect(),
            timeline: around.timeline,
        }
    }
}

impl Schedule {
    fn new(plan: &Plan, finished: &Finished, sent_rate: f64, lag_max: Duration) -> Self {
        let asked_rate = match plan.load {
            Load::Constant { rate } => Some(rate),
            Load::Closed => None,
        };
        let due = finished.tally.sent_in_window + finished.unsent;
        Self {
            asked_rate,
            sent_rate,
            rate_error: asked_rate.map(|asked| sent_rate / asked - 1.0),
            lag_us: Percentiles::of(&finished.tally.lag),
            lag_max_us: lag_max.as_secs_f64() * 1e6,
            waited_for_connection: finished.tally.waited_for_connection,
            unsent: finished.unsent,
            target_kept_up: float(finished.unsent) <= UNSENT_SHARE_MAX * float(due),
        }
    }

    /// Why the numbers must not be trusted. A target that is too slow is no reason: its latency
    /// counts from when requests were due.
    fn objections(&self) -> Vec<String> {
        let late = self.asked_rate.is_some() && self.lag_us.p99 > self.lag_max_us;
        late.then(|| {
            format!(
                "the generator fell behind its schedule: p99 of its own lag is {:.0} us, over {:.0} us; \
                 give it a core of its own or ask for less",
                self.lag_us.p99, self.lag_max_us
            )
        })
        .into_iter()
        .collect()
    }
}

fn failures(tally: &Tally) -> BTreeMap<&'static str, u64> {
    let count = |failure: Failure| tally.failures[failure as usize];
    Failure::ALL.into_iter().map(|failure| (failure.name(), count(failure))).collect()
}

fn stream(tally: &Tally) -> Option<Stream> {
    (tally.events > 0).then(|| Stream {
        events: tally.events,
        first_event_us: Percentiles::of(&tally.first_event),
        event_gap_us: Percentiles::of(&tally.event_gap),
    })
}

fn decisions(tally: &Tally) -> Vec<Decision> {
    let rows = tally.decisions.rows();
    let mut of_objective = BTreeMap::new();
    for ((objective, _), row) in &rows {
        *of_objective.entry(*objective).or_insert(0) += row.answers;
    }
    rows.into_iter()
        .map(|((objective, arm), row)| {
            let at = |quantile| microseconds(row.latency.value_at_quantile(quantile));
            Decision {
                objective: objective.to_owned(),
                arm: arm.to_owned(),
                answers: row.answers,
                failures: row.failures,
                share: float(row.answers) / float(of_objective[objective]),
                p50_us: at(0.5),
                p90_us: at(0.9),
                p99_us: at(0.99),
                max_us: microseconds(row.latency.max()),
            }
        })
        .collect()
}

fn owned(counts: BTreeMap<&str, u64>) -> BTreeMap<String, u64> {
    counts
        .into_iter()
        .filter(|(name, _)| !name.is_empty())
        .map(|(name, count)| (name.to_owned(), count))
        .collect()
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}
