//! What the router says that it decided: answers by Objective and Arm, by Snapshot, by server.

use std::collections::{BTreeMap, HashMap};

use hdrhistogram::Histogram;

use super::labels::{Label, Labels};
use super::users::UserSet;
use super::{Failure, small_histogram};
use crate::limits::DECISIONS_MAX;

/// The labels of one answer.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Seen {
    /// `x-switchboard-objective`
    pub objective: Label,
    /// `x-switchboard-arm`
    pub arm: Label,
    /// `x-switchboard-snapshot`
    pub snapshot: Label,
    /// `x-switchboard-reason`
    pub reason: Label,
    /// `x-model-server`
    pub model_server: Label,
}

/// Counts of one thread.
#[derive(Debug, Default)]
pub struct Decisions {
    /// The values behind all labels.
    pub labels: Labels,
    rows: HashMap<(Label, Label), Row>,
    snapshots: HashMap<Label, u64>,
    reasons: HashMap<Label, u64>,
    model_servers: HashMap<Label, u64>,
}

/// One Objective × Arm.
#[derive(Clone, Debug)]
pub struct Row {
    /// Whole answers.
    pub answers: u64,
    /// Those that failed a check.
    pub failures: u64,
    /// In nanoseconds, two digits.
    pub latency: Histogram<u64>,
    /// Whom they were for; empty where requests are not sent for drawn users.
    pub users: UserSet,
}

impl Row {
    fn new() -> Self {
        Self { answers: 0, failures: 0, latency: small_histogram(), users: UserSet::default() }
    }
}

impl Decisions {
    /// The labels of an answer's head.
    pub fn see(&mut self, headers: &[httparse::Header<'_>]) -> Seen {
        let mut seen = Seen::default();
        for header in headers {
            let label = match header.name.len() {
                14 if header.name.eq_ignore_ascii_case("x-model-server") => &mut seen.model_server,
                17 if header.name.eq_ignore_ascii_case("x-switchboard-arm") => &mut seen.arm,
                20 if header.name.eq_ignore_ascii_case("x-switchboard-reason") => &mut seen.reason,
                22 if header.name.eq_ignore_ascii_case("x-switchboard-snapshot") => {
                    &mut seen.snapshot
                }
                23 if header.name.eq_ignore_ascii_case("x-switchboard-objective") => {
                    &mut seen.objective
                }
                _ => continue,
            };
            *label = self.labels.of(header.value);
        }
        seen
    }

    /// Counts one whole answer.
    pub fn count(
        &mut self,
        seen: Seen,
        user: Option<u64>,
        latency_nanoseconds: u64,
        failure: Option<Failure>,
    ) {
        let mut key = (seen.objective, seen.arm);
        if self.rows.len() >= DECISIONS_MAX && !self.rows.contains_key(&key) {
            key = (Label::OTHER, Label::OTHER);
        }
        let row = self.rows.entry(key).or_insert_with(Row::new);
        row.answers += 1;
        row.failures += u64::from(failure.is_some());
        row.latency.saturating_record(latency_nanoseconds);
        if let Some(user) = user {
            row.users.add(user);
        }
        *self.snapshots.entry(seen.snapshot).or_default() += 1;
        *self.reasons.entry(seen.reason).or_default() += 1;
        *self.model_servers.entry(seen.model_server).or_default() += 1;
    }

    /// Adds another thread's counts, by name: each thread has labels of its own.
    pub fn merge(&mut self, other: &Self) {
        let translate = |ours: &mut Labels, label: Label| match label {
            Label::ABSENT | Label::OTHER => label,
            label => ours.of(other.labels.name(label).as_bytes()),
        };
        for ((objective, arm), row) in &other.rows {
            let key = (translate(&mut self.labels, *objective), translate(&mut self.labels, *arm));
            let ours = self.rows.entry(key).or_insert_with(Row::new);
            ours.answers += row.answers;
            ours.failures += row.failures;
            let added = ours.latency.add(&row.latency);
            debug_assert!(added.is_ok(), "both have the same bounds");
            ours.users.merge(&row.users);
        }
        for (ours, theirs) in [
            (&mut self.snapshots, &other.snapshots),
            (&mut self.reasons, &other.reasons),
            (&mut self.model_servers, &other.model_servers),
        ] {
            for (label, count) in theirs {
                *ours.entry(translate(&mut self.labels, *label)).or_default() += count;
            }
        }
    }

    /// The rows by the names of Objective and Arm.
    pub fn rows(&self) -> BTreeMap<(&str, &str), &Row> {
        let name = |label| self.labels.name(label);
        self.rows
            .iter()
            .map(|((objective, arm), row)| ((name(*objective), name(*arm)), row))
            .collect()
    }

    /// Answers by Snapshot version.
    pub fn snapshots(&self) -> BTreeMap<&str, u64> {
        self.named(&self.snapshots)
    }

    /// Answers by the reason of their decision.
    pub fn reasons(&self) -> BTreeMap<&str, u64> {
        self.named(&self.reasons)
    }

    /// Answers by model server.
    pub fn model_servers(&self) -> BTreeMap<&str, u64> {
        self.named(&self.model_servers)
    }

    fn named(&self, counts: &HashMap<Label, u64>) -> BTreeMap<&str, u64> {
        counts.iter().map(|(label, count)| (self.labels.name(*label), *count)).collect()
    }
}
