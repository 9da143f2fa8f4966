use super::super::{
    AnswerBody, BodyDecoder, HeadLimits, HeaderKind, Method, Progress, RequestHead, ResponseHead,
    ServerConnection,
};
use super::*;

fn request(text: &str) -> RequestHead {
    let mut head = RequestHead::new();
    assert_eq!(head.parse(text.as_bytes(), &HeadLimits::DEFAULT), Ok(Progress::Complete));
    head
}

/// What the model server gets for this request, with our two decision headers and without the client's.
fn forward(text: &str, framing: RequestFraming) -> String {
    let head = request(text);
    let view = head.view(text.as_bytes());
    let mut fields = Fields::new();
    fields.push("x-switchboard-arm", FieldValue::new(b"heavy").unwrap());
    let edit = RequestEdit {
        path: RequestPath::new(view.path()).unwrap(),
        host: FieldValue::new(view.host().unwrap_or(b"shard.test")).unwrap(),
        framing,
        dropped: HeaderSet::of(&[HeaderKind::Switchboard, HeaderKind::BodyDigest]),
        fields: &fields,
    };
    let mut out = Vec::new();
    request_head(&mut out, &view, &edit);
    String::from_utf8(out).unwrap()
}

/// HT-01
#[test]
fn what_is_for_one_connection_is_not_forwarded() {
    let text = "POST /v1/predict?a=%20 HTTP/1.1\r\nHost: a.test\r\nX-First: 1\r\nConnection: close, X-Internal-Tenant\r\n\
        X-Internal-Tenant: t1\r\nKeep-Alive: timeout=5\r\nProxy-Connection: close\r\nTE: trailers\r\nX-Second:  2 \r\nx-third:\r\n\
        Proxy-Authorization: Basic eA==\r\nTrailer: X-T\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\nExpect: 100-continue\r\n\
        x-internal-TENANT: t2\r\nX-Last: 3\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(
        forward(text, RequestFraming::Length(5)),
        "POST /v1/predict?a=%20 HTTP/1.1\r\nhost: a.test\r\nX-First: 1\r\nX-Second:  2 \r\nx-third:\r\nX-Last: 3\r\n\
         content-length: 5\r\nx-switchboard-arm: heavy\r\n\r\n"
    );
}

/// HT-01
#[test]
fn a_client_cannot_delete_or_forge_what_the_router_sets() {
    let text = "GET / HTTP/1.1\r\nHost: a\r\nConnection: x-switchboard-arm, host, content-length\r\nX-Switchboard-Arm: forged\r\n\
        Content-Digest: x\r\nDigest: y\r\nContent-Length: 3\r\n\r\n";
    assert_eq!(
        forward(text, RequestFraming::Length(9)),
        "GET / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\nx-switchboard-arm: heavy\r\n\r\n"
    );
}

/// FR-01
#[test]
fn one_framing_and_one_host_leave() {
    let chunked =
        "POST http://a.test?x HTTP/1.1\r\nHost: b.test\r\nTransfer-Encoding: chunked\t\r\n\r\n";
    for (framing, expected) in [
        (RequestFraming::Chunked, "transfer-encoding: chunked\r\n"),
        (RequestFraming::Length(0), "content-length: 0\r\n"),
        (RequestFraming::None, ""),
    ] {
        let expected = format!(
            "POST /?x HTTP/1.1\r\nhost: a.test\r\n{expected}x-switchboard-arm: heavy\r\n\r\n"
        );
        assert_eq!(forward(chunked, framing), expected);
    }
    let old = "GET / HTTP/1.0\r\n\r\n";
    assert_eq!(
        forward(old, RequestFraming::None),
        "GET / HTTP/1.1\r\nhost: shard.test\r\nx-switchboard-arm: heavy\r\n\r\n"
    );
}

#[test]
fn what_is_forwarded_is_read_as_the_same_request() {
    let text = "\r\nPUT /a//b%2F?c=d HTTP/1.1\r\nhost:a\r\nx: \t\r\nY:z\r\nTransfer-Encoding:chunked\r\n\r\n";
    let forwarded = forward(text, RequestFraming::Chunked);
    let (before, after) = (request(text), request(&forwarded));
    let (before, after) = (before.view(text.as_bytes()), after.view(forwarded.as_bytes()));
    assert_eq!(
        (before.method_bytes(), before.path(), before.query()),
        (after.method_bytes(), after.path(), after.query())
    );
    assert_eq!((before.host(), before.header(b"y")), (after.host(), after.header(b"y")));
    assert_eq!(
        (before.header(b"x"), before.head().framing()),
        (after.header(b"x"), after.head().framing())
    );
}

/// What the client gets of a model server's answer.
fn relay(request: &str, response: &[u8]) -> String {
    let mut connection = ServerConnection::new(HeadLimits::DEFAULT);
    assert_eq!(connection.read_head(request.as_bytes()), Ok(Progress::Complete));
    let mut head = ResponseHead::new();
    assert_eq!(head.parse(response, connection.head().method()), Ok(Progress::Complete));
    let answer = connection.begin_answer(AnswerBody::of(&head));
    let mut fields = Fields::new();
    fields.push("x-switchboard-reason", FieldValue::new(b"rule").unwrap());
    let edit = ResponseEdit {
        answer,
        dropped: HeaderSet::of(&[HeaderKind::Switchboard]),
        fields: &fields,
    };
    let mut out = Vec::new();
    response_head(&mut out, &head.view(response), &edit);
    out.escape_ascii().to_string().replace("\\r\\n", "\r\n")
}

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// HT-01
#[test]
fn an_answer_is_cleaned_and_framed_anew() {
    let response = b"HTTP/1.0 200 Fine\xE9\r\nServer: m\r\nConnection: x-hop, keep-alive\r\nX-Hop: 1\r\nContent-Length: 007\r\nKeep-Alive: 5\r\n\
        X-Switchboard-Reason: forged\r\nTrailer: x\r\nProxy-Authenticate: Basic\r\nUpgrade: h2c\r\nX-B: \xFF\r\n\r\n";
    assert_eq!(
        relay(GET, response),
        "HTTP/1.1 200 Fine\\xe9\r\nServer: m\r\nX-B: \\xff\r\ncontent-length: 7\r\nx-switchboard-reason: rule\r\n\r\n"
    );
}

/// MS-06
#[test]
fn an_http_1_0_client_never_gets_chunks() {
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(
        relay("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", chunked),
        "HTTP/1.1 200 OK\r\nconnection: close\r\nx-switchboard-reason: rule\r\n\r\n"
    );
    assert_eq!(
        relay(
            "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
        ),
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: keep-alive\r\nx-switchboard-reason: rule\r\n\r\n"
    );
}

#[test]
fn an_answer_of_unknown_length_is_chunked_for_http_1_1() {
    for response in
        [&b"HTTP/1.1 200 OK\r\n\r\n"[..], b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"]
    {
        assert_eq!(
            relay(GET, response),
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nx-switchboard-reason: rule\r\n\r\n"
        );
    }
}

/// MS-03
#[test]
fn an_answer_to_head_states_its_length_only() {
    let head = "HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    assert_eq!(
        relay(head, b"HTTP/1.1 200 OK\r\nContent-Length: 120\r\n\r\n"),
        "HTTP/1.1 200 OK\r\ncontent-length: 120\r\nconnection: close\r\nx-switchboard-reason: rule\r\n\r\n"
    );
    assert_eq!(
        relay(GET, b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n"),
        "HTTP/1.1 204 No Content\r\nx-switchboard-reason: rule\r\n\r\n"
    );
}

fn local(request: &str) -> String {
    let mut connection = ServerConnection::new(HeadLimits::DEFAULT);
    let is_read = connection.read_head(request.as_bytes()).is_ok();
    let status = if is_read { 404 } else { 400 };
    let answer = connection.begin_answer(AnswerBody::Length(2));
    let response = LocalResponse {
        status,
        content_type: "application/problem+json",
        body: b"{}",
        fields: &Fields::new(),
    };
    let mut out = Vec::new();
    local_response(&mut out, &response, &answer);
    String::from_utf8(out).unwrap()
}

#[test]
fn a_local_answer_has_its_length_and_no_body_for_head() {
    let head = "content-type: application/problem+json\r\ncontent-length: 2\r\n";
    assert_eq!(local(GET), format!("HTTP/1.1 404 Not Found\r\n{head}\r\n{{}}"));
    assert_eq!(
        local("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"),
        format!("HTTP/1.1 404 Not Found\r\n{head}\r\n")
    );
    assert_eq!(
        local("GET\r\n\r\n"),
        format!("HTTP/1.1 400 Bad Request\r\n{head}connection: close\r\n\r\n{{}}")
    );
}

#[test]
fn every_status_we_may_send_has_a_phrase() {
    for status in (200..600).filter(|status| !reason_phrase(*status).is_empty()) {
        assert!(
            reason_phrase(status).bytes().all(|byte| byte == b' ' || byte.is_ascii_alphanumeric())
        );
    }
    for status in [400, 413, 414, 417, 431, 501, 502, 503, 504, 505] {
        assert!(!reason_phrase(status).is_empty(), "{status}");
    }
}

#[test]
fn what_is_written_can_be_read_by_our_own_parser() {
    let text = relay(GET, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    let mut head = ResponseHead::new();
    assert_eq!(head.parse(text.as_bytes(), Method::Get), Ok(Progress::Complete));
    let mut body = BodyDecoder::for_response(head.framing());
    assert!(body.decode(b"0\r\n\r\n").is_ok());
    assert!(body.is_complete());
}
