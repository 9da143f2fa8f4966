//! What is counted per Objective and Arm: a table that comes and goes with the Snapshot.
//!
//! A new Snapshot takes over the series of every Arm that it still has, so that an Activation resets
//! nothing and requests that finish on the old Snapshot count into the same series. A series that no
//! Snapshot in use has is freed with it.

use std::collections::HashMap;
use std::sync::Arc;

use switchboard_shared::snapshot::{ArchivedPayload, Snapshot};

use super::block::Kind;
use super::cell::{By, Counter};
use super::labels::{Labels as _, ResponseClass};
use super::text::{MetricsText, Seconds};
use crate::cores::WorkerIndex;
use crate::limits::ARM_SERIES_MAX;

/// What one worker counts for one Arm. It fills one cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct ArmCounters {
    /// Requests that were decided for this Arm.
    pub requests: Counter,
    /// Responses that it gave, by class.
    pub responses: By<ResponseClass, { ResponseClass::COUNT }>,
    /// Requests that no endpoint of it answered, and that ended there.
    pub failures: Counter,
    /// Requests that left it for the default Arm.
    pub fallouts: Counter,
    /// Sum of the times from request to first byte, in nanoseconds; `responses` is their number.
    pub upstream_nanos: Counter,
}

/// One series per Arm of a Snapshot, in the order of Objectives and their Arms. The first
/// `ARM_SERIES_MAX` Arms have their own; all others share the one that is shown as `other`.
#[derive(Debug)]
pub struct ArmSeries {
    own: Box<[Arc<[ArmCounters]>]>,
    others: Arc<[ArmCounters]>,
}

impl ArmSeries {
    /// Makes the series of a Snapshot, those of Arms that `before` has too taken over from there.
    #[must_use]
    pub fn new(
        payload: &ArchivedPayload,
        workers: usize,
        before: Option<(&Snapshot, &Self)>,
    ) -> Self {
        let mut known = HashMap::new();
        if let Some((snapshot, series)) = before {
            known.extend(names(snapshot.payload()).zip(series.own.iter()));
        }
        let fresh = || (0..workers).map(|_| ArmCounters::default()).collect();
        let own = names(payload)
            .take(ARM_SERIES_MAX)
            .map(|name| known.get(&name).map_or_else(fresh, |series| Arc::clone(series)))
            .collect();
        let others = before.map_or_else(fresh, |(_, series)| Arc::clone(&series.others));
        Self { own, others }
    }

    /// The counters of one worker for the Arm at this place. Hot path: two loads.
    #[inline]
    #[must_use]
    pub fn of(&self, place: usize, worker: WorkerIndex) -> &ArmCounters {
        &self.own.get(place).unwrap_or(&self.others)[worker.get()]
    }

    /// What the control plane watches after an activation, workers summed: requests, errors (failures and 5xx)
    /// and Fallouts of each Arm that has any, in the Snapshot's order, at most `room` sums.
    pub fn totals(&self, payload: &ArchivedPayload, room: usize, totals: &mut Vec<(String, u64)>) {
        let room = totals.len() + room;
        for ((objective, arm), series) in names(payload).zip(self.own.iter()) {
            let requests = sum(series, |own| own.requests.get());
            let fallouts = sum(series, |own| own.fallouts.get());
            if requests + fallouts == 0 {
                continue;
            }
            if totals.len() + WATCHED.len() > room {
                return;
            }
            let server_errors = ResponseClass::index(ResponseClass::ServerError);
            let errors = sum(series, |own| own.failures.get() + own.responses.at(server_errors));
            let values = [requests, errors, fallouts];
            let named = WATCHED.into_iter().zip(values);
            totals
                .extend(named.map(|(name, value)| (format!("{name}{{{objective}/{arm}}}"), value)));
        }
    }

    /// Writes all of them, workers summed.
    pub fn write(&self, payload: &ArchivedPayload, page: &mut MetricsText) {
        for metric in METRICS {
            page.family(metric.name, metric.help, Kind::Counter);
            for ((objective, arm), series) in names(payload).zip(self.own.iter()) {
                (metric.write)(page, metric.name, [objective, arm], series);
            }
            if names(payload).nth(ARM_SERIES_MAX).is_some() {
                (metric.write)(page, metric.name, ["other", "other"], &self.others);
            }
        }
    }
}

/// Tokens and Arm names, in the order of a Snapshot's Arms.
fn names(payload: &ArchivedPayload) -> impl Iterator<Item = (&str, &str)> {
    payload.objectives.iter().flat_map(|objective| {
        let token = objective.token.as_str();
        objective.arms.iter().map(move |arm| (token, arm.name.as_str()))
    })
}

/// Names of an Arm's sums in a heartbeat; behind them stands `{OBJECTIVE/arm}`.
const WATCHED: [&str; 3] = ["arm_requests", "arm_errors", "arm_fallouts"];

struct Metric {
    name: &'static str,
    help: &'static str,
    write: fn(&mut MetricsText, &str, [&str; 2], &[ArmCounters]),
}

const METRICS: [Metric; 5] = [
    Metric {
        name: "switchboard_arm_requests_total",
        help: "Requests that were decided for the Arm.",
        write: |page, name, arm, series| one(page, name, arm, series, |own| own.requests.get()),
    },
    Metric {
        name: "switchboard_arm_responses_total",
        help: "Responses that the Arm gave; classes without any are left out.",
        write: |page, name, [objective, arm], series| {
            for (place, class) in ResponseClass::TEXTS.iter().enumerate() {
                let count = sum(series, |own| own.responses.at(place));
                if count > 0 {
                    let labels = [("objective", objective), ("arm", arm), ("class", *class)];
                    page.sample(name, &labels, count);
                }
            }
        },
    },
    Metric {
        name: "switchboard_arm_failures_total",
        help: "Requests that no endpoint of the Arm answered, and that ended there.",
        write: |page, name, arm, series| one(page, name, arm, series, |own| own.failures.get()),
    },
    Metric {
        name: "switchboard_arm_fallouts_total",
        help: "Requests that left the Arm for the default Arm.",
        write: |page, name, arm, series| one(page, name, arm, series, |own| own.fallouts.get()),
    },
    Metric {
        name: "switchboard_arm_upstream_seconds_total",
        help: "Time from request to first byte, summed; divide by the responses.",
        write: |page, name, [objective, arm], series| {
            let labels = [("objective", objective), ("arm", arm)];
            page.sample(name, &labels, Seconds(sum(series, |own| own.upstream_nanos.get())));
        },
    },
];

fn one(
    page: &mut MetricsText,
    name: &str,
    [objective, arm]: [&str; 2],
    series: &[ArmCounters],
    value: impl Fn(&ArmCounters) -> u64,
) {
    page.sample(name, &[("objective", objective), ("arm", arm)], sum(series, value));
}

fn sum(series: &[ArmCounters], value: impl Fn(&ArmCounters) -> u64) -> u64 {
    series.iter().map(value).fold(0, u64::wrapping_add)
}
