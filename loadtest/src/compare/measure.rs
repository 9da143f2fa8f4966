//! One measurement: a running proxy is loaded by a `run` of this very binary.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::peer::Peer;
use super::workload::{HEAVY_SHARE, USERS};
use crate::report::percentiles::Percentiles;

/// How requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Closed loop: as many as the proxy takes.
    Saturation,
    /// Open loop at this many requests per second.
    Rate(f64),
}

impl Phase {
    /// In progress lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Saturation => "saturation",
            Self::Rate(_) => "rate",
        }
    }
}

/// What one measurement found.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// Whose.
    pub peer: Peer,
    /// Which.
    pub phase: Phase,
    /// In which round, from zero.
    pub round: usize,
    /// What `run` reported.
    pub report: Report,
    /// What the model servers saw of it.
    pub seen: Seen,
}

/// What was seen from outside during one measurement, its warm-up included: at the model servers, and of our
/// router's threads.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Seen {
    /// Requests.
    pub requests: u64,
    /// Connections that were opened for them; those that were open already are reused.
    pub connections: u64,
    /// CPU time of our router's network cores, in nanoseconds; zero for everyone else.
    pub worker_nanos: u64,
}

/// Two model servers are asked what they saw, each over a connection of its own.
const ASKING_CONNECTIONS: u64 = 2;

impl Seen {
    /// What came between two looks at all that came.
    pub fn between(before: Self, after: Self) -> Self {
        let opened = after.connections.saturating_sub(before.connections);
        Self {
            requests: after.requests.saturating_sub(before.requests),
            connections: opened.saturating_sub(ASKING_CONNECTIONS),
            worker_nanos: after.worker_nanos.saturating_sub(before.worker_nanos),
        }
    }

    /// CPU time of the network cores per request, in microseconds.
    pub fn worker_us(self) -> Option<f64> {
        let is_known = self.worker_nanos > 0 && self.requests > 0;
        is_known.then(|| self.worker_nanos as f64 / self.requests as f64 / 1e3)
    }

    /// The share of requests that did not need a connection of their own, in percent.
    pub fn reuse_percent(self) -> Option<f64> {
        let share = self.connections as f64 / self.requests as f64;
        (self.requests > 0).then(|| 100.0 * (1.0 - share.min(1.0)))
    }
}

/// The part of `run`'s report that is compared.
#[derive(Clone, Debug, Deserialize)]
pub struct Report {
    /// Answers per second.
    pub rate: f64,
    /// Whole answers.
    pub answers: u64,
    /// Length of the measured window.
    pub window_seconds: f64,
    /// Failed requests; none in a fit measurement.
    pub failures_total: u64,
    /// Whether the generator kept its schedule.
    pub valid: bool,
    /// From when requests were due.
    pub latency_us: Percentiles,
    /// Server-sent events, where there were any.
    pub stream: Option<ReportedStream>,
    /// Answers by the router's reason.
    pub reasons: BTreeMap<String, u64>,
    /// Answers by model server.
    pub model_servers: BTreeMap<String, u64>,
    /// The proxy's process, unless there is none.
    pub cpu: Vec<ReportedCpu>,
}

/// Server-sent events.
#[derive(Clone, Debug, Deserialize)]
pub struct ReportedStream {
    /// How many.
    pub events: u64,
    /// From when the request was due to its first event.
    pub first_event_us: Percentiles,
    /// Between two events of one answer.
    pub event_gap_us: Percentiles,
}

/// CPU time of the proxy.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct ReportedCpu {
    /// User and system time over the answers of the window.
    pub cpu_us_per_answer: f64,
    /// User and system time of the window.
    pub cpu_us: f64,
    /// Resident memory at the end.
    pub resident_bytes: u64,
}

impl Measurement {
    /// Why its numbers must not be used; `None` where they may.
    pub fn objection(&self) -> Option<String> {
        let report = &self.report;
        if report.failures_total > 0 || report.answers == 0 {
            let (failed, answers) = (report.failures_total, report.answers);
            return Some(format!("{failed} requests failed, {answers} were answered"));
        }
        if self.peer.is_proxy() && report.cpu.is_empty() {
            return Some("its CPU time is not known".to_owned());
        }
        if let Some(fallouts) = self.objection_to_fallouts() {
            return Some(fallouts);
        }
        self.peer.splits_by_user().then(|| self.objection_to_share()).flatten()
    }

    /// Our router tells why it chose; what fell out to the default Arm did less than its job.
    fn objection_to_fallouts(&self) -> Option<String> {
        let told: u64 = self.report.reasons.values().sum();
        let chosen = self.report.reasons.get("experiment").copied().unwrap_or(0);
        let fallouts = told - chosen;
        (fallouts as f64 > FALLOUT_SHARE_MAX * told as f64).then(|| {
            let reasons = &self.report.reasons;
            format!("{fallouts} of {told} requests fell out to the default Arm: {reasons:?}")
        })
    }

    /// Whether the heavy model got its share of the users, as far as so many answers can tell.
    fn objection_to_share(&self) -> Option<String> {
        let heavy = self.report.model_servers.get("heavy").copied().unwrap_or(0);
        let share = heavy as f64 / self.report.answers as f64;
        (!share_is_plausible(share, self.report.answers))
            .then(|| format!("the heavy model got a share of {share:.3} instead of {HEAVY_SHARE}"))
    }

    /// A line for whoever waits.
    pub fn progress(&self) -> String {
        let Self { peer, phase, report, round, .. } = self;
        let cpu = report
            .cpu
            .first()
            .map_or(String::new(), |cpu| format!(", {:.1} us of CPU each", cpu.cpu_us_per_answer));
        format!(
            "  round {} {:<10} {:<16} {:>7.0}/s, p50 {:.0} us, p99 {:.0} us{cpu}{}",
            round + 1,
            phase.name(),
            peer.name(),
            report.rate,
            report.latency_us.p50,
            report.latency_us.p99,
            if report.valid { "" } else { " (in doubt: the generator fell behind)" },
        )
    }
}

/// Fallouts that a measurement may have: a hiccup of the host longer than the Facts' budget.
const FALLOUT_SHARE_MAX: f64 = 0.01;

/// Four standard deviations of as many different users as asked, and a little for those of a last
/// unfinished turn.
fn share_is_plausible(share: f64, answers: u64) -> bool {
    let users = (answers as f64).min(f64::from(USERS)).max(1.0);
    let deviation = (HEAVY_SHARE * (1.0 - HEAVY_SHARE) / users).sqrt();
    (share - HEAVY_SHARE).abs() <= 4.0 * deviation + 0.003
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn measurement(peer: Peer, phase: Phase, round: usize, cpu: f64) -> Measurement {
        let latency = Percentiles {
            p50: cpu * 10.0,
            p99: cpu * 20.0,
            p99_9: cpu * 30.0,
            ..Percentiles::default()
        };
        let report = Report {
            rate: 20_000.0,
            answers: 100_000,
            window_seconds: 5.0,
            failures_total: 0,
            valid: true,
            latency_us: latency,
            stream: None,
            reasons: [("experiment".to_owned(), 100_000)].into(),
            model_servers: [("heavy".to_owned(), 10_000), ("stable".to_owned(), 90_000)].into(),
            cpu: vec![ReportedCpu {
                cpu_us_per_answer: cpu,
                cpu_us: cpu * 100_000.0,
                resident_bytes: 10 << 20,
            }],
        };
        Measurement {
            peer,
            phase,
            round,
            report,
            seen: Seen { requests: 1000, connections: 10, worker_nanos: 5_000_000 },
        }
    }

    #[test]
    fn reuse_is_what_needed_no_new_connection() {
        assert_eq!(
            Seen { requests: 1000, connections: 1, ..Seen::default() }.reuse_percent(),
            Some(99.9)
        );
        assert_eq!(
            Seen { requests: 10, connections: 64, ..Seen::default() }.reuse_percent(),
            Some(0.0)
        );
        assert_eq!(Seen::default().reuse_percent(), None);
    }

    #[test]
    fn the_comparisons_own_questions_are_no_connections_of_a_proxy() {
        let before = Seen { requests: 100, connections: 70, ..Seen::default() };
        let after = Seen { requests: 300, connections: 75, ..Seen::default() };
        assert_eq!(
            Seen::between(before, after),
            Seen { requests: 200, connections: 3, ..Seen::default() }
        );
    }

    #[test]
    fn failures_and_a_wrong_split_make_a_measurement_unfit() {
        let fit = measurement(Peer::Nginx, Phase::Saturation, 0, 20.0);
        assert_eq!(fit.objection(), None);
        let mut failed = fit.clone();
        failed.report.failures_total = 1;
        assert!(failed.objection().unwrap().contains("1 requests failed"));
        let mut split = fit.clone();
        split.report.model_servers.insert("heavy".to_owned(), 50_000);
        assert!(split.objection().unwrap().contains("a share of 0.500"));
        split.peer = Peer::VllmRouter; // takes its models in turn
        assert_eq!(split.objection(), None);
    }

    #[test]
    fn fallouts_make_a_measurement_unfit_where_they_are_more_than_a_hiccup() {
        let mut fit = measurement(Peer::Router, Phase::Saturation, 0, 20.0);
        fit.report.reasons.insert("facts_late".to_owned(), 1_000);
        assert_eq!(fit.objection(), None);
        fit.report.reasons.insert("facts_late".to_owned(), 2_000);
        assert!(fit.objection().unwrap().contains("2000 of 102000 requests fell out"));
    }

    #[test]
    fn few_answers_may_miss_the_share_by_more_than_many() {
        assert!(share_is_plausible(0.2, 80));
        assert!(!share_is_plausible(0.2, 8_000));
        assert!(share_is_plausible(0.1, 1_000_000));
    }
}
