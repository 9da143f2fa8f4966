//! A run in numbers: what `--json` writes and the table shows.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::percentiles::{Percentiles, microseconds};
use super::shares::{ArmShares, SampleRatio};
use super::timeline::Row;
use crate::accounting::Usage;
use crate::generator::{Finished, Plan, Reuse, Source};
use crate::recorder::{Failure, Tally};
use crate::schedule::{Arrivals, Load};

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
    /// Open loop: `constant`, `poisson` or `recorded`.
    pub arrivals: Option<&'static str>,
    pub connections: u32,
    pub threads: u16,
    pub pipeline: u16,
    pub keep_alive: bool,
    /// Whether the generator did what it was asked: see `invalid_because`.
    pub valid: bool,
    pub invalid_because: Vec<String>,
    /// What was asked of the answers and does not hold.
    pub failed_checks: Vec<String>,
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
    /// One for each Objective whose shares were expected.
    pub sample_ratios: Vec<SampleRatio>,
    pub snapshots: BTreeMap<String, u64>,
    pub reasons: BTreeMap<String, u64>,
    pub model_servers: BTreeMap<String, u64>,
    pub cpu: Vec<Cpu>,
    pub timeline: Vec<Row>,
    /// Where records were replayed.
    pub replay: Option<Replayed>,
}

/// Where the requests of a replay came from.
#[derive(Debug, Serialize)]
pub struct Replayed {
    /// Records that were read and can be sent.
    pub records: u64,
    /// Those that cannot, by reason.
    pub skipped: BTreeMap<&'static str, u64>,
    /// How long the recorded answers took.
    pub recorded_latency_us: Percentiles,
}

/// How well the schedule was kept.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the names say it; what they do not say is said")]
pub struct Schedule {
    /// The mean over the window.
    pub asked_rate: Option<f64>,
    /// Requests that were due in the window.
    pub due: u64,
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
    /// CPU time of the busiest generator thread over the time that passed, `0..=1`.
    pub busy: f64,
    /// Whether all requests that were due were sent.
    pub target_kept_up: bool,
}

/// Server-sent events.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Stream {
    pub streams: u64,
    pub streams_done: u64,
    pub events: u64,
    pub tokens: u64,
    pub first_event_us: Percentiles,
    pub event_gap_us: Percentiles,
    pub first_token_us: Percentiles,
    pub token_gap_us: Percentiles,
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
    /// Different users among the first `USERS_COUNTED_MAX`; of Arms of one Objective, a user may
    /// count more than once.
    pub users: u64,
    pub user_share: Option<f64>,
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
    /// What the users' shares should be.
    pub shares: ArmShares,
    /// CPU times over the window.
    pub usages: Vec<Usage>,
    /// Second by second.
    pub timeline: Vec<Row>,
}

/// Requests that may stay unsent, as a share of those that were due.
const UNSENT_SHARE_MAX: f64 = 0.005;

/// A thread that is busier than this may itself be what requests wait for.
const BUSY_MAX: f64 = 0.95;

impl Summary {
    /// Draws the conclusions.
    pub fn new(plan: &Plan, finished: &Finished, around: Around) -> Self {
        let tally = &finished.tally;
        let window_seconds = around.window.as_secs_f64();
        let per_second =
            |count: u64| if window_seconds > 0.0 { float(count) / window_seconds } else { 0.0 };
        let schedule = Schedule::new(plan, finished, per_second(tally.sent_in_window), &around);
        let invalid_because = schedule.objections();
        let sample_ratios = around.shares.test(&tally.decisions.rows());
        let failed_checks = failed_checks(plan, tally, &sample_ratios);
        Self {
            tool: "switchboard-loadtest",
            version: env!("CARGO_PKG_VERSION"),
            command: around.command,
            started_unix_ms: around.started_unix_ms,
            target: plan.target.to_string(),
            mode: match plan.load {
                Load::Closed => "closed",
                Load::Open { .. } | Load::Recorded => "open",
            },
            arrivals: match plan.load {
                Load::Closed => None,
                Load::Open { arrivals: Arrivals::Constant, .. } => Some("constant"),
                Load::Open { arrivals: Arrivals::Poisson { .. }, .. } => Some("poisson"),
                Load::Recorded => Some("recorded"),
            },
            connections: plan.connections,
            threads: plan.threads,
            pipeline: plan.pipeline,
            keep_alive: plan.reuse == Reuse::KeepAlive,
            valid: invalid_because.is_empty(),
            invalid_because,
            failed_checks,
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
            sample_ratios,
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
            replay: None,
        }
    }
}

impl Schedule {
    fn new(plan: &Plan, finished: &Finished, sent_rate: f64, around: &Around) -> Self {
        let lag_max = around.lag_max;
        let asked_rate = match &plan.load {
            Load::Open { rates, .. } => {
                Some(rates.mean_between(plan.warmup, plan.warmup + around.window))
            }
            Load::Closed | Load::Recorded => None,
        };
        let due = finished.tally.due_and_sent + finished.unsent;
        Self {
            asked_rate,
            due,
            sent_rate,
            rate_error: asked_rate.map(|asked| sent_rate / asked - 1.0),
            lag_us: Percentiles::of(&finished.tally.lag),
            lag_max_us: lag_max.as_secs_f64() * 1e6,
            waited_for_connection: finished.tally.waited_for_connection,
            unsent: finished.unsent,
            busy: finished.busy,
            target_kept_up: float(finished.unsent) <= UNSENT_SHARE_MAX * float(due),
        }
    }

    /// Why the numbers must not be trusted. A target that is too slow is no reason: its latency
    /// counts from when requests were due.
    fn objections(&self) -> Vec<String> {
        let late = (self.lag_us.p99 > self.lag_max_us).then(|| {
            format!(
                "the generator fell behind its schedule: p99 of its own lag is {:.0} us, over {:.0} us; \
                 give it a core of its own or ask for less",
                self.lag_us.p99, self.lag_max_us
            )
        });
        // Connections that wait for a thread that has no time look just like a slow target.
        let waited = float(self.waited_for_connection + self.unsent);
        let has_waited = waited > UNSENT_SHARE_MAX * float(self.due);
        let busy = (self.lag_us.count > 0 && has_waited && self.busy > BUSY_MAX).then(|| {
            format!(
                "the generator fell behind its schedule: a thread was busy for {:.0} % of the window, \
                 so requests waited for it and not for the target; use more --threads or ask for less",
                self.busy * 100.0
            )
        });
        late.into_iter().chain(busy).collect()
    }
}

/// What was asked of the answers and does not hold, in words. A bad status is a failed check only
/// where somebody said which ones are good.
fn failed_checks(plan: &Plan, tally: &Tally, sample_ratios: &[SampleRatio]) -> Vec<String> {
    let mut asked_for = vec![&plan.checks];
    if let Source::Scenario(scenario) = &plan.source {
        asked_for.extend(scenario.requests.iter().filter_map(|request| request.checks.as_ref()));
    }
    let asks_status = asked_for.iter().any(|checks| !checks.statuses.is_empty());
    let of_answers = [(Failure::Status, asks_status), (Failure::Header, true)];
    let of_answers = of_answers.into_iter().filter_map(|(failure, is_asked)| {
        let count = tally.failures[failure as usize];
        let text = || format!("{count} answers with another {} than expected", failure.name());
        (is_asked && count > 0).then(text)
    });
    let of_shares = sample_ratios.iter().filter(|test| test.is_mismatch).map(|test| {
        let p_value = test.p_value.unwrap_or_default();
        let objective = &test.objective;
        format!("the Arms' shares of {objective}'s users are not as expected (p = {p_value:.2e})")
    });
    of_answers.chain(of_shares).collect()
}

fn failures(tally: &Tally) -> BTreeMap<&'static str, u64> {
    let count = |failure: Failure| tally.failures[failure as usize];
    Failure::ALL.into_iter().map(|failure| (failure.name(), count(failure))).collect()
}

fn stream(tally: &Tally) -> Option<Stream> {
    (tally.streams > 0).then(|| Stream {
        streams: tally.streams,
        streams_done: tally.streams_done,
        events: tally.events,
        tokens: tally.tokens,
        first_event_us: Percentiles::of(&tally.first_event),
        event_gap_us: Percentiles::of(&tally.event_gap),
        first_token_us: Percentiles::of(&tally.first_token),
        token_gap_us: Percentiles::of(&tally.token_gap),
    })
}

fn decisions(tally: &Tally) -> Vec<Decision> {
    let rows = tally.decisions.rows();
    let mut of_objective: BTreeMap<_, (u64, u64)> = BTreeMap::new();
    for ((objective, _), row) in &rows {
        let (answers, users) = of_objective.entry(*objective).or_default();
        *answers += row.answers;
        *users += row.users.count();
    }
    rows.into_iter()
        .map(|((objective, arm), row)| {
            let at = |quantile| microseconds(row.latency.value_at_quantile(quantile));
            let (answers, users) = of_objective[objective];
            Decision {
                objective: objective.to_owned(),
                arm: arm.to_owned(),
                answers: row.answers,
                failures: row.failures,
                share: float(row.answers) / float(answers),
                users: row.users.count(),
                user_share: (users > 0).then(|| float(row.users.count()) / float(users)),
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
