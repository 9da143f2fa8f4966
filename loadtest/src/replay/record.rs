//! One line of a spool's dump, or one message of a topic → a request for the candidate. Pure.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;
use switchboard_shared::shadow_record::{
    Envelope, RecordedBody, SHADOW_RECORD_SCHEMA, ShadowRecord, ShadowRecordError,
};

use crate::generator::feed::Recorded;
use crate::http1::framing::Asked;

/// What each request gets besides what was recorded.
#[derive(Clone, Debug)]
pub struct Form {
    /// The Host header field.
    pub authority: String,
    /// The model's name, for bodies that have a place for it.
    pub model: Option<String>,
    /// Header fields that replace recorded ones.
    pub fields: Vec<(String, String)>,
    /// Whether the Objective goes along.
    pub names_objective: bool,
    /// How many times as fast as it was recorded.
    pub speed: f64,
}

/// Why a header field was refused.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` is no header field that can be sent; write `name: value`")]
pub struct FormError(String);

/// A line that can be sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Microseconds since 1970: when the recorded request's head was complete.
    pub time_unix_us: u64,
    /// How long the recorded answer took, if it came.
    pub recorded_latency: Option<Duration>,
    /// Without its offset, which depends on the first record's time.
    pub recorded: Recorded,
}

/// Why a line cannot be sent. Reading it again will not help.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Refusal {
    /// No JSON, or not what a dump holds.
    NotARecord,
    /// Another kind of record, such as an Exposure.
    OtherSchema,
    /// The body is missing, or has another length than the record says.
    WrongLength,
    /// Only the first bytes of the body were recorded.
    BodyCut,
    /// The body was withheld for privacy.
    BodyWithheld,
    /// A method, path or header field that would break the request.
    Unsendable,
    /// Longer than any record may be.
    TooLong,
}

impl Refusal {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::NotARecord,
        Self::OtherSchema,
        Self::WrongLength,
        Self::BodyCut,
        Self::BodyWithheld,
        Self::Unsendable,
        Self::TooLong,
    ];

    /// A stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotARecord => "not_a_record",
            Self::OtherSchema => "other_schema",
            Self::WrongLength => "wrong_length",
            Self::BodyCut => "body_cut",
            Self::BodyWithheld => "body_withheld",
            Self::Unsendable => "unsendable",
            Self::TooLong => "too_long",
        }
    }
}

/// Told by the generator itself, or about the client's own connection.
const OWN_FIELDS: [&str; 5] =
    ["host", "content-length", "transfer-encoding", "connection", "x-switchboard-objective"];

impl Form {
    /// Header fields as flags give them.
    ///
    /// # Errors
    /// The first that cannot be sent.
    pub fn fields(flags: &[String]) -> Result<Vec<(String, String)>, FormError> {
        let fields = flags.iter().map(|flag| {
            let refused = || FormError(flag.clone());
            let (name, value) = flag.split_once(':').ok_or_else(refused)?;
            let (name, value) = (name.trim().to_ascii_lowercase(), value.trim().to_owned());
            let is_own = OWN_FIELDS.contains(&name.as_str());
            if is_field(&name, &value) && !is_own { Ok((name, value)) } else { Err(refused()) }
        });
        fields.collect()
    }

    /// Reads one line: an object with the record in `record`, or the record itself.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn read(&self, line: &[u8]) -> Result<Line, Refusal> {
        let mut value: Value = serde_json::from_slice(line).map_err(|_| Refusal::NotARecord)?;
        if let Some(record) = value.get_mut("record") {
            value = record.take();
        }
        match value.get("schema").and_then(Value::as_str) {
            Some(SHADOW_RECORD_SCHEMA) => {}
            Some(_) => return Err(Refusal::OtherSchema),
            None => return Err(Refusal::NotARecord),
        }
        let body = body(&value)?;
        let envelope = Envelope::deserialize(value).map_err(|_| Refusal::NotARecord)?;
        self.line(envelope, body)
    }

    /// Reads one message: a record as the router writes it.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn read_message(&self, bytes: &[u8]) -> Result<Line, Refusal> {
        let record = ShadowRecord::read(bytes).map_err(|error| match error {
            ShadowRecordError::Schema => Refusal::OtherSchema,
            ShadowRecordError::Lengths { .. } => Refusal::WrongLength,
            _ => Refusal::NotARecord,
        })?;
        self.line(record.envelope, record.request_body.to_vec())
    }

    fn line(&self, envelope: Envelope, body: Vec<u8>) -> Result<Line, Refusal> {
        match envelope.request.body {
            RecordedBody::Whole | RecordedBody::Edited | RecordedBody::None => {}
            RecordedBody::Cut => return Err(Refusal::BodyCut),
            RecordedBody::Withheld => return Err(Refusal::BodyWithheld),
            RecordedBody::Unknown => return Err(Refusal::NotARecord),
        }
        if envelope.request.body_bytes != body.len() as u64 {
            return Err(Refusal::WrongLength);
        }
        let body = self.with_model(body, envelope.request.model_place)?;
        let wire = self.wire(&envelope, &body)?;
        let asked = if envelope.request.method == "HEAD" { Asked::HeadOnly } else { Asked::Whole };
        Ok(Line {
            time_unix_us: envelope.time_unix_us,
            recorded_latency: envelope.timing.total_us.map(Duration::from_micros),
            recorded: Recorded {
                wire,
                asked,
                offset: Duration::ZERO,
                objective: envelope.objective,
                unit: envelope.unit.map(|unit| unit.value).unwrap_or_default(),
            },
        })
    }

    fn with_model(&self, body: Vec<u8>, place: Option<[usize; 2]>) -> Result<Vec<u8>, Refusal> {
        let (Some(model), Some([start, end])) = (&self.model, place) else { return Ok(body) };
        if body.get(start..end).is_none() {
            return Err(Refusal::NotARecord);
        }
        let name = Value::from(model.as_str()).to_string();
        Ok([&body[..start], name.as_bytes(), &body[end..]].concat())
    }

    fn wire(&self, envelope: &Envelope, body: &[u8]) -> Result<Vec<u8>, Refusal> {
        let request = &envelope.request;
        let is_method = !request.method.is_empty()
            && request.method.bytes().all(|byte| byte.is_ascii_uppercase());
        let is_path = request.target.starts_with('/')
            && request.target.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_method || !is_path || !is_field("x", &envelope.objective) {
            return Err(Refusal::Unsendable);
        }
        let mut head = format!(
            "{} {} HTTP/1.1\r\nhost: {}\r\n",
            request.method, request.target, self.authority
        );
        let is_replaced = |name: &str| {
            let is_given = self.fields.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
            is_given || OWN_FIELDS.iter().any(|own| own.eq_ignore_ascii_case(name))
        };
        let recorded = request.headers.iter().filter(|(name, _)| !is_replaced(name));
        for (name, value) in recorded.chain(&self.fields) {
            if !is_field(name, value) {
                return Err(Refusal::Unsendable);
            }
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if self.names_objective {
            head.push_str(&format!("x-switchboard-objective: {}\r\n", envelope.objective));
        }
        if !body.is_empty() || !matches!(request.method.as_str(), "GET" | "HEAD") {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        Ok([head.as_bytes(), body].concat())
    }
}

/// The request's body as the dump holds it.
fn body(record: &Value) -> Result<Vec<u8>, Refusal> {
    let request = record.get("request").ok_or(Refusal::NotARecord)?;
    match (request.get("content"), request.get("content_base64")) {
        (Some(Value::String(text)), None) => Ok(text.clone().into_bytes()),
        (None, Some(Value::String(text))) => STANDARD.decode(text).map_err(|_| Refusal::NotARecord),
        (None, None) => Ok(Vec::new()),
        _ => Err(Refusal::NotARecord),
    }
}

/// Whether a field would stay one line of a head.
fn is_field(name: &str, value: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token) && !value.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form() -> Form {
        Form {
            authority: "candidate:1".to_owned(),
            model: Some("feed@3".to_owned()),
            fields: Form::fields(&["X-Test: 1".to_owned()]).unwrap(),
            names_objective: false,
            speed: 1.0,
        }
    }

    fn record(request: &Value) -> Value {
        json!({
            "schema": SHADOW_RECORD_SCHEMA, "id": "a", "time_unix_us": 5, "router": "r",
            "traffic_class": "live", "objective": "HOME", "snapshot": 1,
            "target": {"model": "feed@3"}, "unit": {"attribute": "user_id", "value": "u7"},
            "decision": {"arm": "stable", "model": "feed@1", "reason": "default"}, "facts": null,
            "request": request, "response": null, "timing": {"first_byte_us": null, "total_us": 1500}
        })
    }

    fn request(body: &str) -> Value {
        json!({
            "id": "x", "method": "POST", "target": "/v1/chat?x=1",
            "headers": [["content-type", "application/json"], ["x-test", "old"], ["Host", "old"]],
            "model_place": null, "body": "whole", "body_bytes": body.len(), "content": body
        })
    }

    fn read(record: &Value) -> Result<Line, Refusal> {
        form().read(record.to_string().as_bytes())
    }

    #[test]
    fn a_record_becomes_the_request_that_it_was() {
        let dumped =
            json!({"sequence": 1, "topic": "t", "key": "u7", "record": record(&request("{}"))});
        let line = read(&dumped).unwrap();
        let wire = "POST /v1/chat?x=1 HTTP/1.1\r\nhost: candidate:1\r\ncontent-type: application/json\r\n\
            x-test: 1\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!(String::from_utf8(line.recorded.wire.clone()).unwrap(), wire);
        assert_eq!(
            (line.time_unix_us, line.recorded_latency),
            (5, Some(Duration::from_micros(1500)))
        );
        assert_eq!((line.recorded.objective.as_str(), line.recorded.unit.as_str()), ("HOME", "u7"));
        assert_eq!(read(&record(&request("{}"))).unwrap(), line, "the record alone is read, too");
    }

    #[test]
    fn the_candidates_name_takes_the_models_place_and_bytes_stay_bytes() {
        let mut with_place = request(r#"{"model":"objective/HOME","n":1}"#);
        with_place["model_place"] = json!([9, 25]);
        let wire = read(&record(&with_place)).unwrap().recorded.wire;
        assert!(
            String::from_utf8(wire).unwrap().ends_with("\r\n\r\n{\"model\":\"feed@3\",\"n\":1}")
        );
        let mut binary = request("");
        binary["content_base64"] = json!("/wD+");
        binary["body_bytes"] = json!(3);
        binary.as_object_mut().unwrap().remove("content");
        assert!(read(&record(&binary)).unwrap().recorded.wire.ends_with(b"\r\n\r\n\xff\x00\xfe"));
    }

    #[test]
    fn what_cannot_be_sent_again_is_refused_with_its_reason() {
        let with = |name: &str, value: Value| {
            let mut request = request("{}");
            request[name] = value;
            read(&record(&request)).unwrap_err()
        };
        assert_eq!(with("body", json!("cut")), Refusal::BodyCut);
        assert_eq!(with("body", json!("withheld")), Refusal::BodyWithheld);
        assert_eq!(with("body", json!("of a later build")), Refusal::NotARecord);
        assert_eq!(with("body_bytes", json!(3)), Refusal::WrongLength);
        assert_eq!(with("content_base64", json!("e30=")), Refusal::NotARecord);
        assert_eq!(with("method", json!("GET /x HTTP/1.1\r\n")), Refusal::Unsendable);
        assert_eq!(with("target", json!("/a b")), Refusal::Unsendable);
        assert_eq!(with("headers", json!([["a", "b\r\nc: d"]])), Refusal::Unsendable);
        assert_eq!(with("model_place", json!([1, 99])), Refusal::NotARecord);
        assert_eq!(form().read(b"no json"), Err(Refusal::NotARecord));
        assert_eq!(form().read(b"{}"), Err(Refusal::NotARecord));
        let exposure = json!({"record": {"schema": "switchboard.exposure/1"}});
        assert_eq!(read(&exposure), Err(Refusal::OtherSchema));
        assert!(Form::fields(&["Host: x".to_owned()]).is_err());
    }
}
