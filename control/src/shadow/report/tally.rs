//! Results added up, in bounded memory.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::{Agreement, Disagreement, Latency, Records, Report, Sides, spans::SpanHistogram};
use crate::shadow::{
    compare::Verdict,
    limits::{REPORT_IDS_MAX, REPORT_LABELS_MAX, REPORT_OBJECTIVES_MAX, WORST_MAX},
    result::{Compared, Outcome, ShadowResult, Source},
};

/// What does not get a line of its own.
const OTHERS: &str = "others";

/// Counts results as they come, in any order; each record once.
#[derive(Clone, Debug)]
pub struct Tally {
    candidate: String,
    compared_by: BTreeSet<String>,
    known: HashSet<u64>,
    records: Records,
    agreement: Agreement,
    objectives: BTreeMap<String, Agreement>,
    primary: Side,
    other: Side,
    /// The largest distances, sorted.
    worst: Vec<Disagreement>,
}

#[derive(Clone, Debug)]
struct Side {
    statuses: BTreeMap<u16, u64>,
    first_byte: SpanHistogram,
    total: SpanHistogram,
}

impl Side {
    fn new() -> Self {
        Self {
            statuses: BTreeMap::new(),
            first_byte: SpanHistogram::new(),
            total: SpanHistogram::new(),
        }
    }
}

impl Tally {
    /// Of one candidate.
    #[must_use]
    pub fn new(candidate: &str) -> Self {
        Self {
            candidate: candidate.to_owned(),
            compared_by: BTreeSet::new(),
            known: HashSet::new(),
            records: Records::default(),
            agreement: Agreement::default(),
            objectives: BTreeMap::new(),
            primary: Side::new(),
            other: Side::new(),
            worst: Vec::new(),
        }
    }

    /// A record for another candidate.
    pub fn pass_over(&mut self) {
        self.records.passed_over += 1;
    }

    /// One result. The first of a record counts; above [`REPORT_IDS_MAX`] records, a repeated one counts again.
    pub fn add(&mut self, result: &ShadowResult) {
        if self.known.contains(&result.identity()) {
            self.records.repeated += 1;
            return;
        }
        if self.known.len() < REPORT_IDS_MAX {
            self.known.insert(result.identity());
        }
        let records = &mut self.records;
        *match result.outcome {
            Outcome::Answered => &mut records.answered,
            Outcome::Unanswered => &mut records.unanswered,
            Outcome::NotReplayed => &mut records.not_replayed,
            Outcome::Unreadable => &mut records.unreadable,
        } += 1;
        if let Some(reason) = &result.reason {
            count(&mut records.reasons, reason);
        }
        if let Some(primary) = &result.primary {
            *self.primary.statuses.entry(primary.status).or_default() += 1;
        }
        if let Some(answer) = &result.answer {
            *self.other.statuses.entry(answer.status).or_default() += 1;
        }
        self.add_spans(result);
        if let Some(compared) = &result.comparison {
            self.add_comparison(result, compared);
        }
    }

    /// Only requests that both sides answered well: a refusal is quicker than an answer.
    fn add_spans(&mut self, result: &ShadowResult) {
        let (Some(primary), Some(answer)) = (&result.primary, &result.answer) else { return };
        let is_good = |status| (200..300).contains(&status);
        if !is_good(primary.status) || !is_good(answer.status) {
            return;
        }
        if let (Some(one), Some(other)) = (primary.first_byte_us, answer.first_byte_us) {
            self.primary.first_byte.add(one);
            self.other.first_byte.add(other);
        }
        if let (Some(one), Some(other)) = (primary.total_us, answer.total_us) {
            self.primary.total.add(one);
            self.other.total.add(other);
        }
    }

    fn add_comparison(&mut self, result: &ShadowResult, compared: &Compared) {
        let comparison = &compared.comparison;
        if self.compared_by.len() < REPORT_LABELS_MAX {
            self.compared_by.insert(compared.by.clone());
        }
        let reason = comparison.reason.map(|reason| reason.label()).unwrap_or_default();
        let objective = result.record.as_ref().map(|record| record.objective.as_str());
        let objectives = &mut self.objectives;
        let own = objective.and_then(|name| {
            if objectives.len() < REPORT_OBJECTIVES_MAX && !objectives.contains_key(name) {
                objectives.insert(name.to_owned(), Agreement::default());
            }
            objectives.get_mut(name)
        });
        for agreement in [Some(&mut self.agreement), own].into_iter().flatten() {
            match comparison.verdict {
                Verdict::Same => agreement.same += 1,
                Verdict::Different => {
                    agreement.different += 1;
                    *agreement.different_by.entry(reason.to_owned()).or_default() += 1;
                }
                Verdict::NotComparable => {
                    *agreement.not_comparable.entry(reason.to_owned()).or_default() += 1;
                }
            }
        }
        if comparison.verdict == Verdict::Different {
            self.add_disagreement(result, compared, reason);
        }
    }

    fn add_disagreement(&mut self, result: &ShadowResult, compared: &Compared, reason: &str) {
        let Some(record) = &result.record else { return };
        let distance = compared.comparison.distance;
        // Equal distances by id: the order in which answers came must not decide what a report shows.
        let place = self.worst.partition_point(|worse| {
            worse
                .distance
                .total_cmp(&distance)
                .reverse()
                .then_with(|| worse.id.cmp(&record.id))
                .is_le()
        });
        if place >= WORST_MAX {
            return;
        }
        let Source { topic, partition, offset } = &result.source;
        let disagreement = Disagreement {
            distance,
            id: record.id.clone(),
            objective: record.objective.clone(),
            unit: record.unit.clone(),
            source: format!("{topic}/{partition}/{offset}"),
            reason: reason.to_owned(),
            differences: compared.comparison.differences.clone(),
        };
        self.worst.insert(place, disagreement);
        self.worst.truncate(WORST_MAX);
    }

    /// What all of them say so far.
    #[must_use]
    pub fn report(&self) -> Report {
        let sides = |one: &SpanHistogram, other: &SpanHistogram| Sides {
            primary: one.spans(),
            candidate: other.spans(),
        };
        let objectives = self.objectives.iter();
        Report {
            candidate: self.candidate.clone(),
            compared_by: self.compared_by.iter().cloned().collect(),
            records: self.records.clone(),
            agreement: self.agreement.with_rate(),
            latency: Latency {
                first_byte: sides(&self.primary.first_byte, &self.other.first_byte),
                total: sides(&self.primary.total, &self.other.total),
            },
            primary_statuses: self.primary.statuses.clone(),
            candidate_statuses: self.other.statuses.clone(),
            objectives: objectives.map(|(name, one)| (name.clone(), one.with_rate())).collect(),
            worst: self.worst.clone(),
        }
    }
}

/// Adds one under `label`, or under [`OTHERS`] where there are as many labels as may be.
fn count(counts: &mut BTreeMap<String, u64>, label: &str) {
    let has_room = counts.len() < REPORT_LABELS_MAX || counts.contains_key(label);
    *counts.entry(if has_room { label } else { OTHERS }.to_owned()).or_default() += 1;
}
