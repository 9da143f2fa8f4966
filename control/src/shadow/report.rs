//! What all results together say: both sides' latencies, how often they agree, and where they do least.

mod file;
mod html;
mod spans;
mod tally;

use std::collections::BTreeMap;

use serde::Serialize;

pub use self::{file::ReportFile, html::page, spans::Spans, tally::Tally};
use super::compare::Difference;

/// The report, as JSON has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// `name@version`.
    pub candidate: String,
    /// What made answers the same: `exact`, `json` or `field:POINTER`; several where workers were told differently.
    pub compared_by: Vec<String>,
    /// What became of the records.
    pub records: Records,
    /// How often the candidate said the same.
    pub agreement: Agreement,
    /// Requests that both sides answered with 2xx, and only those: both sides' times are of the same requests.
    pub latency: Latency,
    /// Answers by status: the primary's.
    pub primary_statuses: BTreeMap<u16, u64>,
    /// The candidate's.
    pub candidate_statuses: BTreeMap<u16, u64>,
    /// By Objective; those above the first [`super::limits::REPORT_OBJECTIVES_MAX`] are in the sums only.
    pub objectives: BTreeMap<String, Agreement>,
    /// The largest distances first; equal ones by id.
    pub worst: Vec<Disagreement>,
}

/// Counts of records; each is in one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Records {
    /// The candidate answered, with whatever status.
    pub answered: u64,
    /// It was asked, and did not answer.
    pub unanswered: u64,
    /// The record does not hold what a request needs.
    pub not_replayed: u64,
    /// Not a record.
    pub unreadable: u64,
    /// For other candidates.
    pub passed_over: u64,
    /// Results of a record that was counted before.
    pub repeated: u64,
    /// Reasons of all that was not answered.
    pub reasons: BTreeMap<String, u64>,
}

/// How often two sides said the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Agreement {
    /// Same answers.
    pub same: u64,
    /// Different ones.
    pub different: u64,
    /// Why they differ.
    pub different_by: BTreeMap<String, u64>,
    /// Nothing to compare with, by reason.
    pub not_comparable: BTreeMap<String, u64>,
    /// `same / (same + different)`; `None`: nothing was compared.
    pub rate: Option<f64>,
    /// 95 % interval of the rate (Wilson 1927).
    pub rate_low: Option<f64>,
    /// Its other end.
    pub rate_high: Option<f64>,
}

/// Both sides' times of the same requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// From sending the request to the answer's head: the model server's own time, on both sides.
    pub first_byte: Sides,
    /// To the answer's last byte; the primary's begins with the client's head, and ends as fast as the client reads.
    pub total: Sides,
}

/// The same measure of both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sides {
    /// Who answered the client.
    pub primary: Spans,
    /// Who was replayed to.
    pub candidate: Spans,
}

/// Two answers that are far apart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Disagreement {
    /// 0 to 1; see [`super::compare::Comparison::distance`].
    pub distance: f64,
    /// The record's id.
    pub id: String,
    /// Token of the Objective.
    pub objective: String,
    /// The Unit's text.
    pub unit: Option<String>,
    /// Where in Kafka the record lies: topic/partition/offset.
    pub source: String,
    /// Why.
    pub reason: String,
    /// Some places that differ.
    pub differences: Vec<Difference>,
}

impl Agreement {
    /// 1.96 standard deviations hold 95 %.
    const Z: f64 = 1.959_963_984_540_054;

    /// The rate and its interval, of the counts.
    fn with_rate(&self) -> Self {
        let (same, all) = (self.same as f64, (self.same + self.different) as f64);
        if all == 0.0 {
            return self.clone();
        }
        let (rate, z2) = (same / all, Self::Z * Self::Z);
        let middle = (rate + z2 / (2.0 * all)) / (1.0 + z2 / all);
        let inner = rate * (1.0 - rate) / all + z2 / (4.0 * all * all);
        let half = Self::Z * inner.sqrt() / (1.0 + z2 / all);
        Self {
            rate: Some(rate),
            rate_low: Some((middle - half).max(0.0)),
            rate_high: Some((middle + half).min(1.0)),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests;
