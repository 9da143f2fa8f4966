//! What of an Objective's requests is copied, for which candidate.

use rkyv::{Archive, Serialize};

/// A candidate that gets a sample of an Objective's requests, as records and never as a call.
#[derive(Clone, Debug, PartialEq)]
pub struct ShadowTarget {
    /// `name@version` of the candidate.
    pub model: String,
    /// Only requests that are decided for this Arm; `None`: for any.
    pub arm: Option<String>,
    /// How many of 10 000 requests or Units; never zero.
    pub sample: u16,
    /// What is drawn.
    pub by: SampleBy,
    /// Name of the attribute that is drawn, and that the records of one Unit keep their order by.
    pub unit: Option<String>,
    /// Bytes of records per second and router; `None`: no cap.
    pub bytes_per_second_max: Option<u64>,
    /// Kafka topic; `None`: the router's own setting.
    pub topic: Option<String>,
    /// Whether the answer's body is copied, too. Its status and times always are.
    pub captures_response: bool,
    /// What of JSON bodies is kept.
    pub members: Members,
}

/// What is drawn.
#[derive(Archive, Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[rkyv(derive(Clone, Copy, Debug, Eq, PartialEq))]
pub enum SampleBy {
    /// Units: all requests of a drawn one. All targets of an Objective draw alike, so that a smaller
    /// sample is part of a larger one, and candidates are compared on the same users.
    Unit,
    /// Requests, each on its own.
    Random,
}

impl ArchivedSampleBy {
    /// The same outside the archive.
    pub const fn to_native(self) -> SampleBy {
        match self {
            Self::Unit => SampleBy::Unit,
            Self::Random => SampleBy::Random,
        }
    }
}

/// What of JSON bodies is kept in records, by JSON Pointer (RFC 6901).
#[derive(Archive, Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[rkyv(derive(Debug, Eq, PartialEq))]
pub enum Members {
    /// Every byte, JSON or not.
    #[default]
    All,
    /// Only these members; a body that is no JSON is withheld.
    Keep(Vec<String>),
    /// All but these members; a body that is no JSON is withheld.
    Drop(Vec<String>),
}
