//! Shadow records as they lie in Kafka and in the spool: the one reader for whoever replays them.
//!
//! `docs/shadow.md` is the form's description: one line of JSON, then the bodies' bytes.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// Names the form; the only one that this build reads.
pub const SHADOW_RECORD_SCHEMA: &str = "switchboard.shadow/1";

/// A sampled copy of a request, and of its response where that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct ShadowRecord<'a> {
    /// Everything but the bodies.
    pub envelope: Envelope,
    /// As [`RecordedRequest::body`] says.
    pub request_body: &'a [u8],
    /// As [`RecordedResponse::body`] says; empty where there is no response.
    pub response_body: &'a [u8],
}

/// Why bytes are no Shadow record of this build's form. Reading them again will not help.
#[derive(Debug, thiserror::Error)]
pub enum ShadowRecordError {
    /// Nothing ends the envelope.
    #[error("no line break ends an envelope")]
    NoEnvelope,
    /// The first line is another thing than an envelope.
    #[error("the first line is no envelope")]
    Envelope(#[source] serde_json::Error),
    /// A record of another form, such as an Exposure.
    #[error("its schema is not {SHADOW_RECORD_SCHEMA}")]
    Schema,
    /// The bodies are shorter or longer than the envelope says.
    #[error("{found} bytes of bodies where the envelope says {announced}")]
    Lengths {
        /// What the envelope says.
        announced: u64,
        /// What is there.
        found: u64,
    },
    /// The model's place is not within the body.
    #[error("the model's place lies outside of the body")]
    ModelPlace,
}

impl ShadowRecordError {
    /// A stable label.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::NoEnvelope => "no_envelope",
            Self::Envelope(_) => "bad_envelope",
            Self::Schema => "other_schema",
            Self::Lengths { .. } => "wrong_lengths",
            Self::ModelPlace => "bad_model_place",
        }
    }
}

impl<'a> ShadowRecord<'a> {
    /// Reads one record. The bodies stay where they are.
    ///
    /// # Errors
    /// See [`ShadowRecordError`].
    pub fn read(bytes: &'a [u8]) -> Result<Self, ShadowRecordError> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let (line, bodies) =
            end.and_then(|end| bytes.split_at_checked(end)).ok_or(ShadowRecordError::NoEnvelope)?;
        let bodies = bodies.get(1..).unwrap_or_default();
        // The schema first: another form's envelope would only be told apart by a member it lacks.
        let Named { schema } = serde_json::from_slice(line).map_err(ShadowRecordError::Envelope)?;
        if schema != SHADOW_RECORD_SCHEMA {
            return Err(ShadowRecordError::Schema);
        }
        let envelope: Envelope =
            serde_json::from_slice(line).map_err(ShadowRecordError::Envelope)?;
        let request_bytes = envelope.request.body_bytes;
        let response_bytes = envelope.response.as_ref().map_or(0, |response| response.body_bytes);
        let found = u64::try_from(bodies.len()).unwrap_or(u64::MAX);
        let announced = request_bytes.saturating_add(response_bytes);
        let split = usize::try_from(request_bytes).ok();
        let split = split.filter(|_| announced == found);
        let (request_body, response_body) = split
            .and_then(|split| bodies.split_at_checked(split))
            .ok_or(ShadowRecordError::Lengths { announced, found })?;
        if let Some([start, end]) = envelope.request.model_place
            && request_body.get(start..end).is_none()
        {
            return Err(ShadowRecordError::ModelPlace);
        }
        Ok(Self { envelope, request_body, response_body })
    }
}

#[derive(Deserialize)]
struct Named {
    schema: String,
}

/// The first line of a record. Members that this build does not know are skipped.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Envelope {
    /// The same for each delivery of one record.
    pub id: String,
    /// When the request's head was complete; microseconds since 1970.
    pub time_unix_us: u64,
    /// Who recorded it.
    pub router: String,
    /// `live`, `shadow`, `test` or `replay`.
    pub traffic_class: String,
    /// Token of the Objective.
    pub objective: String,
    /// Version of the Snapshot that decided.
    pub snapshot: u64,
    /// Whom the record is for.
    pub target: RecordedTarget,
    /// The Unit; `None`: the request carried none.
    pub unit: Option<RecordedUnit>,
    /// Who answered, and why.
    pub decision: RecordedDecision,
    /// Facts as the model got them, by name.
    pub facts: Option<BTreeMap<String, Value>>,
    /// What the client asked.
    pub request: RecordedRequest,
    /// What the client got; `None`: the endpoint gave no answer.
    pub response: Option<RecordedResponse>,
    /// How long it took.
    pub timing: RecordedTiming,
}

/// The shadow target that wanted a record.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct RecordedTarget {
    /// `name@version` of the candidate.
    pub model: String,
}

/// The Unit of a request.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct RecordedUnit {
    /// Name of the attribute.
    pub attribute: String,
    /// Its canonical text.
    pub value: String,
}

/// What was decided.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct RecordedDecision {
    /// The Arm that answered.
    pub arm: String,
    /// Its Model version.
    pub model: String,
    /// As in `x-switchboard-reason`.
    pub reason: String,
}

/// A request without its body.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct RecordedRequest {
    /// `x-request-id`.
    pub id: String,
    /// Its method.
    pub method: String,
    /// Path and query, as they were meant for the model server.
    pub target: String,
    /// The few header fields that were kept.
    pub headers: Vec<(String, String)>,
    /// Start and end of the JSON text in the body that a model's name takes, quotes included.
    pub model_place: Option<[usize; 2]>,
    /// What of the body is there.
    pub body: RecordedBody,
    /// Length of what is there.
    pub body_bytes: u64,
}

/// A response without its body.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct RecordedResponse {
    /// Its status.
    pub status: u16,
    /// The few header fields that were kept.
    pub headers: Vec<(String, String)>,
    /// What of the body is there.
    pub body: RecordedBody,
    /// Length of what is there.
    pub body_bytes: u64,
    /// Whether the client got all of it.
    pub complete: bool,
}

/// What of a body a record holds.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum RecordedBody {
    /// Every byte.
    Whole,
    /// Without the members that may not leave; the JSON was written anew.
    Edited,
    /// Only the first bytes.
    Cut,
    /// Nothing, since what may not leave could not be taken out.
    Withheld,
    /// Nothing: there was no body, or it was not captured.
    None,
    /// A word of a later build.
    #[serde(other)]
    Unknown,
}

/// Spans in microseconds; `None`: it did not come that far.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
pub struct RecordedTiming {
    /// From sending the request to the answer's head.
    pub first_byte_us: Option<u64>,
    /// From the request's head to the answer's last byte.
    pub total_us: Option<u64>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The example of docs/shadow.md, with lengths that fit the bodies below.
    const LINE: &str = r#"{"schema":"switchboard.shadow/1","id":"5f0c2a9be1d34477-000000000000002a","time_unix_us":1796072000123456,"router":"router","traffic_class":"live","objective":"RECOMMEND_HOME_FEED","snapshot":42,"target":{"model":"feed-ranker@3-rc","sample":1000,"by":"unit"},"unit":{"attribute":"user_id","value":"u7"},"decision":{"arm":"heavy","model":"feed-ranker@2","reason":"experiment","rule":"heavy-trial","slot":4711,"decided_arm":"heavy"},"facts":{"user_country":"DE"},"request":{"id":"0a4e-01","method":"POST","target":"/v2/models/feed/infer?lang=de","headers":[["content-type","application/json"]],"model_place":null,"body":"whole","body_bytes":8},"response":{"status":200,"headers":[["content-type","application/json"]],"body":"whole","body_bytes":7,"body_bytes_total":7,"complete":true},"timing":{"overhead_us":31,"first_byte_us":8120,"total_us":8203}}"#;
    const REQUEST: &[u8] = b"{\"k\":\n0}";
    const RESPONSE: &[u8] = b"\x00\nraw\xFF\n";

    fn record(line: &str) -> Vec<u8> {
        [line.as_bytes(), b"\n", REQUEST, RESPONSE].concat()
    }

    fn reason(bytes: &[u8]) -> &'static str {
        ShadowRecord::read(bytes).map_or_else(|error| error.reason(), |_| "read")
    }

    #[test]
    fn bodies_with_line_breaks_and_any_bytes_are_read_exactly() {
        let bytes = record(LINE);
        let read = ShadowRecord::read(&bytes).unwrap();
        assert_eq!((read.request_body, read.response_body), (REQUEST, RESPONSE));
        let envelope = read.envelope;
        assert_eq!(envelope.target.model, "feed-ranker@3-rc");
        assert_eq!(envelope.request.headers, [("content-type".into(), "application/json".into())]);
        assert_eq!(envelope.timing.first_byte_us, Some(8120));
        assert_eq!(envelope.facts.unwrap()["user_country"], "DE");
    }

    #[test]
    fn absent_parts_and_later_words_are_read() {
        let line = LINE
            .replace(r#""unit":{"attribute":"user_id","value":"u7"}"#, r#""unit":null"#)
            .replace(r#""facts":{"user_country":"DE"}"#, r#""facts":null"#)
            .replace(r#""body":"whole","body_bytes":8"#, r#""body":"sealed","body_bytes":15"#);
        let response = line.find(r#","response""#).unwrap()..line.find(r#","timing""#).unwrap();
        let mut line = line;
        line.replace_range(response, r#","response":null,"later":[1,{}]"#);
        let bytes = record(&line);
        let read = ShadowRecord::read(&bytes).unwrap();
        assert_eq!(read.envelope.request.body, RecordedBody::Unknown);
        assert_eq!((read.envelope.unit, read.envelope.response), (None, None));
        assert_eq!((read.request_body.len(), read.response_body), (15, &b""[..]));
    }

    #[test]
    fn what_is_no_record_says_why() {
        assert_eq!(reason(b""), "no_envelope");
        assert_eq!(reason(b"\xFF\xFE\x00"), "no_envelope");
        assert_eq!(reason(b"garbage\n"), "bad_envelope");
        assert_eq!(reason(b"{\"schema\":7}\n"), "bad_envelope");
        assert_eq!(reason(b"{\"schema\":\"switchboard.shadow/1\"}\n"), "bad_envelope");
        assert_eq!(
            reason(b"{\"schema\":\"switchboard.exposure/1\",\"id\":\"1\"}\n"),
            "other_schema"
        );
        let deep = format!("{{\"schema\":{}\n", "[".repeat(100_000));
        assert_eq!(reason(deep.as_bytes()), "bad_envelope");
        let whole = record(LINE);
        assert_eq!(reason(&whole[..whole.len() - 1]), "wrong_lengths");
        assert_eq!(reason(&[&whole[..], b"x"].concat()), "wrong_lengths");
        let huge = LINE.replace(r#""body_bytes":8"#, &format!("\"body_bytes\":{}", u64::MAX));
        assert_eq!(reason(&record(&huge)), "wrong_lengths");
    }

    #[test]
    fn a_model_place_outside_of_the_body_is_refused() {
        for (place, expected) in
            [("[0,8]", "read"), ("[0,9]", "bad_model_place"), ("[5,4]", "bad_model_place")]
        {
            let line = LINE.replace(r#""model_place":null"#, &format!("\"model_place\":{place}"));
            assert_eq!(reason(&record(&line)), expected, "{place}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
            reason(&bytes);
        }

        #[test]
        fn a_flipped_byte_never_makes_it_panic(at in 0..900_usize, byte in any::<u8>()) {
            let mut bytes = record(LINE);
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            reason(&bytes);
        }
    }
}
