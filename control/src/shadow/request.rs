//! From a record to the request that the candidate gets.

use http_body_util::Full;
use hyper::{
    Method, Request, Uri,
    body::Bytes,
    header::{self, HeaderName, HeaderValue},
};
use serde_json::{Map, Value};
use switchboard_shared::shadow_record::{RecordedBody, ShadowRecord};

use super::candidate::Candidate;

/// Tells a model server that nobody waits for this answer. Routers let no client's `x-switchboard-*` through.
const TRAFFIC_CLASS: HeaderName = HeaderName::from_static("x-switchboard-traffic-class");
const SHADOW: HeaderValue = HeaderValue::from_static("shadow");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What a router records. Others in a record came from somebody else, and could frame another request.
const HEADERS: [HeaderName; 4] = [
    header::ACCEPT,
    header::CONTENT_ENCODING,
    header::CONTENT_TYPE,
    HeaderName::from_static("traceparent"),
];

/// Why a record makes no request.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(super) enum RequestError {
    /// Privacy settings kept the body back.
    #[error("the record does not hold the request's body")]
    Withheld,
    /// Not the method or the target of a request.
    #[error("the record's method or target is none")]
    Malformed,
    /// Facts belong into a JSON object, and the body is none.
    #[error("the Facts' place is not in the body")]
    NoFactsPlace,
}

impl RequestError {
    /// A stable label.
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::Withheld => "body_withheld",
            Self::Malformed => "malformed_request",
            Self::NoFactsPlace => "no_place_for_facts",
        }
    }
}

/// The request of a record, without a Host: that is the endpoint's.
pub(super) fn request(
    record: &ShadowRecord<'_>,
    candidate: &Candidate,
    facts_into: Option<&str>,
) -> Result<Request<Full<Bytes>>, RequestError> {
    let recorded = &record.envelope.request;
    match recorded.body {
        RecordedBody::Whole | RecordedBody::Edited | RecordedBody::None => {}
        RecordedBody::Cut | RecordedBody::Withheld | RecordedBody::Unknown => {
            return Err(RequestError::Withheld);
        }
    }
    let method: Method = recorded.method.parse().map_err(|_| RequestError::Malformed)?;
    let target: Uri = candidate
        .path
        .as_ref()
        .unwrap_or(&recorded.target)
        .parse()
        .map_err(|_| RequestError::Malformed)?;
    if method == Method::CONNECT || target.authority().is_some() || !target.path().starts_with('/')
    {
        return Err(RequestError::Malformed);
    }
    let body = match (facts_into, &record.envelope.facts) {
        (Some(pointer), Some(facts)) if !facts.is_empty() => {
            let named = with_name(record, candidate);
            let facts = facts.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            with_facts(&named, pointer, facts).ok_or(RequestError::NoFactsPlace)?
        }
        _ => with_name(record, candidate),
    };
    let mut request = Request::new(Full::new(Bytes::from(body)));
    *request.method_mut() = method;
    *request.uri_mut() = target;
    let headers = request.headers_mut();
    for (name, value) in &recorded.headers {
        let known = HEADERS.into_iter().find(|known| known.as_str().eq_ignore_ascii_case(name));
        if let (Some(name), Ok(value)) = (known, HeaderValue::from_str(value)) {
            headers.append(name, value);
        }
    }
    headers.insert(TRAFFIC_CLASS, SHADOW);
    if let Ok(id) = HeaderValue::from_str(&recorded.id) {
        headers.insert(REQUEST_ID, id);
    }
    Ok(request)
}

/// The body with the candidate's name where the client named the Objective.
fn with_name(record: &ShadowRecord<'_>, candidate: &Candidate) -> Vec<u8> {
    let body = record.request_body;
    let place = record.envelope.request.model_place;
    let place = place.and_then(|[start, end]| Some((body.get(..start)?, body.get(end..)?)));
    let Some((before, after)) = place else { return body.to_vec() };
    let name = Value::from(candidate.served_name.as_str()).to_string();
    [before, name.as_bytes(), after].concat()
}

/// The body with the Facts as members of the object at `pointer`, which is made where it is missing. Facts win over the
/// client's members of their names. `None`: something else than an object is there.
fn with_facts(body: &[u8], pointer: &str, facts: Map<String, Value>) -> Option<Vec<u8>> {
    let mut whole: Value = serde_json::from_slice(body).ok()?;
    let mut place = whole.as_object_mut()?;
    for segment in pointer.split('/').skip(1) {
        let segment = segment.replace("~1", "/").replace("~0", "~");
        let inner = place.entry(segment).or_insert_with(|| Value::Object(Map::new()));
        place = inner.as_object_mut()?;
    }
    place.extend(facts);
    serde_json::to_vec(&whole).ok()
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    fn candidate(path: Option<&str>) -> Candidate {
        let candidate = Candidate::at("chat@2", &["127.0.0.1:1".to_owned()]).unwrap();
        Candidate { path: path.map(str::to_owned), ..candidate }
    }

    /// A record with this request; `body` follows it.
    fn line(request: &str) -> String {
        format!(
            r#"{{"schema":"switchboard.shadow/1","id":"1","time_unix_us":1,"router":"r","traffic_class":"live","objective":"A","snapshot":1,"target":{{"model":"chat@2"}},"unit":null,"decision":{{"arm":"a","model":"chat@1","reason":"default"}},"facts":{{"country":"DE","age":7}},"request":{request},"response":null,"timing":{{"first_byte_us":null,"total_us":null}}}}"#
        )
    }

    fn made(
        request_json: &str,
        body: &[u8],
        candidate: &Candidate,
        facts_into: Option<&str>,
    ) -> Result<(Request<()>, Vec<u8>), RequestError> {
        let bytes = [line(request_json).as_bytes(), b"\n", body].concat();
        let record = ShadowRecord::read(&bytes).unwrap();
        let (parts, body) = request(&record, candidate, facts_into)?.into_parts();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let body = runtime.block_on(body.collect()).unwrap().to_bytes().to_vec();
        Ok((Request::from_parts(parts, ()), body))
    }

    #[test]
    fn the_candidate_gets_the_clients_bytes_and_knows_that_they_are_shadow_traffic() {
        let json = r#"{"id":"r-7","method":"POST","target":"/v2/x?y=1","headers":[["content-type","application/json"],["authorization","Bearer s"],["transfer-encoding","chunked"]],"model_place":null,"body":"whole","body_bytes":3}"#;
        let (request, body) = made(json, b"{ }", &candidate(None), None).unwrap();
        assert_eq!(
            (request.method(), request.uri().to_string()),
            (&Method::POST, "/v2/x?y=1".into())
        );
        assert_eq!(body, b"{ }");
        let mut headers: Vec<_> = request
            .headers()
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        headers.sort_unstable();
        assert_eq!(
            headers,
            [
                ("content-type", "application/json"),
                ("x-request-id", "r-7"),
                ("x-switchboard-traffic-class", "shadow")
            ]
        );
    }

    #[test]
    fn the_candidates_path_and_name_take_their_places() {
        let json = r#"{"id":"1","method":"POST","target":"/v1/chat","headers":[],"model_place":[9,22],"body":"whole","body_bytes":30}"#;
        let body = br#"{"model":"objective/A","n":1} "#;
        let (request, body) = made(json, body, &candidate(Some("/infer")), None).unwrap();
        assert_eq!(request.uri(), "/infer");
        assert_eq!(body, br#"{"model":"chat","n":1} "#);
    }

    #[test]
    fn facts_replace_the_clients_members_of_their_names() {
        let json = r#"{"id":"1","method":"POST","target":"/","headers":[],"model_place":null,"body":"whole","body_bytes":43}"#;
        let body = br#"{"parameters":{"country":"FR","x":1},"k":2}"#;
        let (_, body) = made(json, body, &candidate(None), Some("/parameters")).unwrap();
        assert_eq!(body, br#"{"k":2,"parameters":{"age":7,"country":"DE","x":1}}"#);
    }

    #[test]
    fn facts_without_a_place_make_no_request() {
        let json = |bytes: usize| {
            format!(
                r#"{{"id":"1","method":"POST","target":"/","headers":[],"model_place":null,"body":"whole","body_bytes":{bytes}}}"#
            )
        };
        for body in [&b"[]"[..], b"text", br#"{"a":1}"#] {
            let made = made(&json(body.len()), body, &candidate(None), Some("/a/b"));
            assert_eq!(made.unwrap_err(), RequestError::NoFactsPlace);
        }
    }

    #[test]
    fn what_is_no_request_is_not_sent() {
        let json = |method: &str, target: &str, body: &str| {
            format!(
                r#"{{"id":"1","method":"{method}","target":"{target}","headers":[],"model_place":null,"body":"{body}","body_bytes":0}}"#
            )
        };
        let reason = |json: String| made(&json, b"", &candidate(None), None).unwrap_err().reason();
        assert_eq!(reason(json("CONNECT", "/", "none")), "malformed_request");
        assert_eq!(reason(json("G T", "/", "none")), "malformed_request");
        assert_eq!(reason(json("GET", "http://other/", "none")), "malformed_request");
        assert_eq!(reason(json("GET", "*", "none")), "malformed_request");
        assert_eq!(reason(json("GET", "/a b", "none")), "malformed_request");
        for body in ["withheld", "cut", "sealed"] {
            assert_eq!(reason(json("GET", "/", body)), "body_withheld");
        }
    }
}
