//! The candidate's answer beside the primary's: the same, different, or not to be compared.

mod field;
mod json;
mod number;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::{json::JsonRules, number::Tolerance};
use super::limits::EXCERPT_BYTES_MAX;

/// What makes two answers the same.
#[derive(Clone, Debug, PartialEq)]
pub enum Measure {
    /// Every byte.
    Bytes,
    /// The same JSON: members in any order, numbers within a tolerance, some places ignored.
    Json(JsonRules),
    /// The same value at one place.
    Field {
        /// JSON Pointer (RFC 6901).
        pointer: String,
        /// For numbers.
        tolerance: Tolerance,
    },
}

/// The primary's answer, as far as the record has it.
#[derive(Clone, Copy, Debug)]
pub enum Primary<'a> {
    /// Every byte of a successful answer.
    Whole(&'a [u8]),
    /// There is nothing that an answer could be compared with.
    Missing(Reason),
}

/// Why two answers differ, or are not compared. Labels of results and reports.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The primary gave no answer.
    PrimaryUnanswered,
    /// The primary's status is not 2xx.
    PrimaryFailed,
    /// The record has no response body.
    PrimaryNotCaptured,
    /// The record has only a part of it.
    PrimaryCut,
    /// Privacy settings took members out of it.
    PrimaryEdited,
    /// It is compressed, or otherwise coded.
    PrimaryEncoded,
    /// It is no JSON.
    PrimaryNotJson,
    /// The asked field is not in it.
    PrimaryLacksField,
    /// The candidate's status is not 2xx, the primary's is.
    CandidateFailed,
    /// The candidate's answer is coded, the primary's is not.
    CandidateEncoded,
    /// The candidate's answer is no JSON, the primary's is.
    CandidateNotJson,
    /// The asked field is not in the candidate's answer.
    CandidateLacksField,
    /// Both are there, and differ.
    Values,
}

impl Reason {
    /// The same word as in JSON.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::PrimaryUnanswered => "primary_unanswered",
            Self::PrimaryFailed => "primary_failed",
            Self::PrimaryNotCaptured => "primary_not_captured",
            Self::PrimaryCut => "primary_cut",
            Self::PrimaryEdited => "primary_edited",
            Self::PrimaryEncoded => "primary_encoded",
            Self::PrimaryNotJson => "primary_not_json",
            Self::PrimaryLacksField => "primary_lacks_field",
            Self::CandidateFailed => "candidate_failed",
            Self::CandidateEncoded => "candidate_encoded",
            Self::CandidateNotJson => "candidate_not_json",
            Self::CandidateLacksField => "candidate_lacks_field",
            Self::Values => "values",
        }
    }
}

/// What a comparison says.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As the measure asks.
    Same,
    /// Not the same.
    Different,
    /// There is nothing to compare with.
    NotComparable,
}

/// A comparison, as results carry it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Comparison {
    /// What it says.
    pub verdict: Verdict,
    /// Why, unless it is `Same`.
    pub reason: Option<Reason>,
    /// How far apart, 0 to 1: the mean over all leaves of the JSON, where a leaf that differs counts 1 and a number its
    /// relative difference. 0 unless `Different`.
    pub distance: f64,
    /// Some places that differ, in the document's order.
    pub differences: Vec<Difference>,
}

/// One place that differs.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Difference {
    /// JSON Pointer; empty for the whole.
    pub pointer: String,
    /// The primary's value as text, shortened; `None`: it has none there.
    pub primary: Option<String>,
    /// The candidate's, likewise.
    pub candidate: Option<String>,
}

impl Comparison {
    const SAME: Self =
        Self { verdict: Verdict::Same, reason: None, distance: 0.0, differences: Vec::new() };

    /// There is nothing to compare with.
    #[must_use]
    pub const fn impossible(reason: Reason) -> Self {
        Self {
            verdict: Verdict::NotComparable,
            reason: Some(reason),
            distance: 0.0,
            differences: Vec::new(),
        }
    }

    /// The whole answer is another.
    #[must_use]
    pub const fn different(reason: Reason) -> Self {
        Self {
            verdict: Verdict::Different,
            reason: Some(reason),
            distance: 1.0,
            differences: Vec::new(),
        }
    }
}

impl Measure {
    /// A word for results and reports.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Bytes => "exact".to_owned(),
            Self::Json(_) => "json".to_owned(),
            Self::Field { pointer, .. } => format!("field:{pointer}"),
        }
    }

    /// Compares the body of a successful answer of the candidate with the primary's.
    #[must_use]
    pub fn compare(&self, primary: Primary<'_>, candidate: &[u8]) -> Comparison {
        let primary = match primary {
            Primary::Whole(primary) => primary,
            Primary::Missing(reason) => return Comparison::impossible(reason),
        };
        match self {
            Self::Bytes => bytes(primary, candidate),
            Self::Json(rules) => parsed(primary, candidate, |one, other| rules.compare(one, other)),
            Self::Field { pointer, tolerance } => parsed(primary, candidate, |one, other| {
                field::compare(pointer, *tolerance, one, other)
            }),
        }
    }
}

fn bytes(primary: &[u8], candidate: &[u8]) -> Comparison {
    if primary == candidate {
        return Comparison::SAME;
    }
    let shown = |bytes: &[u8]| Some(excerpt(&String::from_utf8_lossy(bytes)));
    let whole =
        Difference { pointer: String::new(), primary: shown(primary), candidate: shown(candidate) };
    Comparison { differences: vec![whole], ..Comparison::different(Reason::Values) }
}

fn parsed(
    primary: &[u8],
    candidate: &[u8],
    compare: impl FnOnce(&Value, &Value) -> Comparison,
) -> Comparison {
    let Ok(primary) = serde_json::from_slice(primary) else {
        return Comparison::impossible(Reason::PrimaryNotJson);
    };
    match serde_json::from_slice(candidate) {
        Ok(candidate) => compare(&primary, &candidate),
        Err(_) => Comparison::different(Reason::CandidateNotJson),
    }
}

/// At most so many bytes of a text, whole characters.
fn excerpt(text: &str) -> String {
    if text.len() <= EXCERPT_BYTES_MAX {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(EXCERPT_BYTES_MAX);
    format!("{}…", text.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests;
