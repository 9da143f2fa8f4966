//! The record of one replay, `switchboard.shadow-result/1`; `docs/shadow-worker.md` describes its form.
//!
//! Like a Shadow record: one line of JSON, a line break, then the bytes of the candidate's answer.

use serde::{Deserialize, Serialize};
use switchboard_shared::shadow_record::{Envelope, RecordedBody, RecordedResponse, ShadowRecord};

use super::{
    candidate::Candidate,
    compare::{Comparison, Measure, Primary, Reason},
    limits::OUTPUT_BYTES_MAX,
    replay::Replayed,
};

/// Names the form.
pub const RESULT_SCHEMA: &str = "switchboard.shadow-result/1";

/// All of a result but the answer's bytes.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ShadowResult {
    /// [`RESULT_SCHEMA`].
    pub schema: String,
    /// When it was made; microseconds since 1970.
    pub time_unix_us: u64,
    /// Where the Shadow record lies.
    pub source: Source,
    /// `name@version` that was asked.
    pub candidate: String,
    /// What came of it.
    pub outcome: Outcome,
    /// Why not, where nothing was answered: a stable label.
    pub reason: Option<String>,
    /// Attempts that reached the candidate.
    pub attempts: u16,
    /// Who answered, or failed to, last.
    pub endpoint: Option<String>,
    /// What the record says of itself; `None`: it is unreadable.
    pub record: Option<Recorded>,
    /// What the client got; `None`: nothing, or it is not known.
    pub primary: Option<Answered>,
    /// What the candidate answered; its body follows the envelope.
    pub answer: Option<Answered>,
    /// How many bytes of the answer's body follow.
    pub body_bytes: usize,
    /// Both beside each other; `None`: there is no answer.
    pub comparison: Option<Compared>,
}

/// Where a Shadow record lies in Kafka.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Source {
    /// Topic.
    pub topic: String,
    /// Partition.
    pub partition: i32,
    /// Offset.
    pub offset: i64,
}

/// What came of a Shadow record.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The candidate answered, with whatever status.
    Answered,
    /// It was asked, and did not answer.
    Unanswered,
    /// The record does not hold what a request needs.
    NotReplayed,
    /// The bytes are no Shadow record.
    Unreadable,
}

/// What a Shadow record says of itself.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Recorded {
    /// The record's id.
    pub id: String,
    /// When the client asked; microseconds since 1970.
    pub time_unix_us: u64,
    /// Token of the Objective.
    pub objective: String,
    /// Version of the Snapshot that decided.
    pub snapshot: u64,
    /// The Unit's text.
    pub unit: Option<String>,
    /// The Arm that answered the client.
    pub arm: String,
    /// Its Model version.
    pub model: String,
}

/// An answer, its bytes apart.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Answered {
    /// Its status.
    pub status: u16,
    /// Length of the whole body; `None`: not captured whole.
    pub body_bytes_total: Option<u64>,
    /// From sending the request to the answer's head, in microseconds.
    pub first_byte_us: Option<u64>,
    /// To its last byte: the candidate's from sending the request, the primary's from the client's head.
    pub total_us: Option<u64>,
}

/// A comparison, and what it went by.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Compared {
    /// `exact`, `json` or `field:POINTER`.
    pub by: String,
    /// What it says.
    #[serde(flatten)]
    pub comparison: Comparison,
}

/// Why bytes are no result of this build's form.
#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    /// Nothing ends the envelope.
    #[error("no line break ends an envelope")]
    NoEnvelope,
    /// The first line is another thing than an envelope.
    #[error("the first line is no envelope of a result")]
    Envelope(#[from] serde_json::Error),
    /// Another form.
    #[error("its schema is not {RESULT_SCHEMA}")]
    Schema,
}

impl ShadowResult {
    /// Of a record that could not be read, or makes no request.
    pub(super) fn of_nothing(
        source: Source,
        candidate: &Candidate,
        time_unix_us: u64,
        outcome: Outcome,
        reason: &'static str,
    ) -> Self {
        Self {
            schema: RESULT_SCHEMA.to_owned(),
            time_unix_us,
            source,
            candidate: candidate.reference.clone(),
            outcome,
            reason: Some(reason.to_owned()),
            attempts: 0,
            endpoint: None,
            record: None,
            primary: None,
            answer: None,
            body_bytes: 0,
            comparison: None,
        }
    }

    /// The same with what the record says.
    pub(super) fn of_record(self, envelope: &Envelope) -> Self {
        let response = envelope.response.as_ref();
        let primary = response.map(|response| Answered {
            status: response.status,
            body_bytes_total: (response.body == RecordedBody::Whole).then_some(response.body_bytes),
            first_byte_us: envelope.timing.first_byte_us,
            total_us: envelope.timing.total_us,
        });
        let record = Recorded {
            id: envelope.id.clone(),
            time_unix_us: envelope.time_unix_us,
            objective: envelope.objective.clone(),
            snapshot: envelope.snapshot,
            unit: envelope.unit.as_ref().map(|unit| unit.value.clone()),
            arm: envelope.decision.arm.clone(),
            model: envelope.decision.model.clone(),
        };
        Self { record: Some(record), primary, ..self }
    }

    /// The same with what the candidate did, and the bytes of its answer that go behind it.
    pub(super) fn of_replay(
        self,
        replayed: Replayed,
        record: &ShadowRecord<'_>,
        measure: &Measure,
    ) -> (Self, Vec<u8>) {
        let Replayed { answer, endpoint, attempts } = replayed;
        let this = Self { attempts, endpoint: Some(endpoint), ..self };
        let answer = match answer {
            Err(unanswered) => {
                let reason = Some(unanswered.reason().to_owned());
                return (Self { outcome: Outcome::Unanswered, reason, ..this }, Vec::new());
            }
            Ok(answer) => answer,
        };
        let compared = match primary(record) {
            Primary::Missing(reason) => Comparison::impossible(reason),
            Primary::Whole(_) if !answer.status.is_success() => {
                Comparison::different(Reason::CandidateFailed)
            }
            Primary::Whole(_) if answer.encoded => Comparison::different(Reason::CandidateEncoded),
            whole @ Primary::Whole(_) => measure.compare(whole, &answer.body),
        };
        let micros = |span: std::time::Duration| u64::try_from(span.as_micros()).ok();
        let body = answer.body.get(..OUTPUT_BYTES_MAX).unwrap_or(&answer.body).to_vec();
        let result = Self {
            outcome: Outcome::Answered,
            reason: None,
            answer: Some(Answered {
                status: answer.status.as_u16(),
                body_bytes_total: u64::try_from(answer.body.len()).ok(),
                first_byte_us: micros(answer.first_byte),
                total_us: micros(answer.total),
            }),
            body_bytes: body.len(),
            comparison: Some(Compared { by: measure.name(), comparison: compared }),
            ..this
        };
        (result, body)
    }

    /// The same without what may be large: for a broker that refused the whole.
    pub(super) fn shortened(&self) -> Self {
        let mut short = self.clone();
        short.body_bytes = 0;
        if let Some(compared) = &mut short.comparison {
            compared.comparison.differences.clear();
        }
        short
    }

    /// The bytes of a message: the envelope, then the answer's body.
    ///
    /// # Errors
    /// An envelope that is no JSON, which none is.
    pub(super) fn write(&self, body: &[u8]) -> serde_json::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec(self)?;
        bytes.push(b'\n');
        bytes.extend_from_slice(body);
        Ok(bytes)
    }

    /// Reads a message of the results' topic; the answer's body is what follows the first line.
    ///
    /// # Errors
    /// See [`ResultError`].
    pub fn read(bytes: &[u8]) -> Result<Self, ResultError> {
        let end = bytes.iter().position(|byte| *byte == b'\n').ok_or(ResultError::NoEnvelope)?;
        let read: Self = serde_json::from_slice(bytes.get(..end).unwrap_or_default())?;
        if read.schema == RESULT_SCHEMA { Ok(read) } else { Err(ResultError::Schema) }
    }

    /// The same for every result of one record, however often it was replayed.
    #[must_use]
    pub fn identity(&self) -> u64 {
        let Source { topic, partition, offset } = &self.source;
        let mut hasher = blake3::Hasher::new();
        match &self.record {
            Some(record) => hasher.update(b"id").update(record.id.as_bytes()),
            None => hasher
                .update(b"place")
                .update(&partition.to_le_bytes())
                .update(&offset.to_le_bytes())
                .update(topic.as_bytes()),
        };
        let mut first = [0; 8];
        hasher.finalize_xof().fill(&mut first);
        u64::from_le_bytes(first)
    }
}

/// What a candidate's answer is compared with.
fn primary<'a>(record: &ShadowRecord<'a>) -> Primary<'a> {
    let Some(response) = &record.envelope.response else {
        return Primary::Missing(Reason::PrimaryUnanswered);
    };
    if !(200..300).contains(&response.status) {
        return Primary::Missing(Reason::PrimaryFailed);
    }
    if is_encoded(response) {
        return Primary::Missing(Reason::PrimaryEncoded);
    }
    match response.body {
        RecordedBody::Whole if response.complete => Primary::Whole(record.response_body),
        RecordedBody::Whole | RecordedBody::Cut => Primary::Missing(Reason::PrimaryCut),
        RecordedBody::Edited | RecordedBody::Withheld => Primary::Missing(Reason::PrimaryEdited),
        RecordedBody::None | RecordedBody::Unknown => Primary::Missing(Reason::PrimaryNotCaptured),
    }
}

fn is_encoded(response: &RecordedResponse) -> bool {
    response.headers.iter().any(|(name, value)| {
        name.eq_ignore_ascii_case("content-encoding") && !value.eq_ignore_ascii_case("identity")
    })
}
