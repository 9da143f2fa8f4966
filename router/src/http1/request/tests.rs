#![expect(clippy::indexing_slicing, reason = "a test may stop at once")]

use super::*;

const LIMITS: HeadLimits = HeadLimits::DEFAULT;

/// Parses at once and byte by byte; both must tell the same.
fn parse(bytes: &[u8]) -> Result<Option<RequestHead>, HeadError> {
    let mut whole = RequestHead::new();
    let at_once = whole.parse(bytes, &LIMITS);
    let mut growing = RequestHead::new();
    let mut step = Ok(Progress::Partial);
    for end in 0..=bytes.len() {
        step = growing.parse(&bytes[..end], &LIMITS);
        if step != Ok(Progress::Partial) {
            break;
        }
    }
    assert_eq!(step, at_once, "byte by byte: {}", bytes.escape_ascii());
    match at_once? {
        Progress::Partial => Ok(None),
        Progress::Complete => {
            // The one was scanned line by line, the other parsed at once; nothing else may differ.
            (growing.scan, whole.scan) = (Scan::default(), Scan::default());
            assert_eq!(format!("{growing:?}"), format!("{whole:?}"));
            Ok(Some(whole))
        }
    }
}

fn head(text: &str) -> RequestHead {
    parse(text.as_bytes()).unwrap().unwrap()
}

fn error(bytes: impl AsRef<[u8]>) -> HeadError {
    let bytes = bytes.as_ref();
    match parse(bytes) {
        Err(error) => error,
        Ok(found) => panic!("accepted {}: {found:?}", bytes.escape_ascii()),
    }
}

fn with_fields(fields: &str) -> String {
    format!(
        "POST /v1/predict HTTP/1.1\r\nHost: router.test\r\nContent-Type: application/json\r\n{fields}\r\n"
    )
}

#[test]
fn a_plain_head_is_read() {
    let text = with_fields("X-User-Id:  u7 \t\r\ncontent-length: 12\r\n") + "{\"k\":10}";
    let head = head(&text);
    let view = head.view(text.as_bytes());
    assert_eq!(head.bytes(), text.len() - 8);
    assert_eq!(
        (head.method(), head.version(), head.framing()),
        (Method::Post, Version::Http11, RequestFraming::Length(12))
    );
    assert_eq!(
        (view.path(), view.query(), view.host()),
        (&b"/v1/predict"[..], None, Some(&b"router.test"[..]))
    );
    assert_eq!(view.header(b"x-user-id"), Some(&b"u7"[..]));
    assert_eq!(view.header(b"x-user"), None);
    assert_eq!(view.value(HeaderKind::ContentType), Some(&b"application/json"[..]));
    assert_eq!(view.method_bytes(), b"POST");
    let names: Vec<_> = view.headers().map(|header| (header.name, header.kind)).collect();
    assert_eq!(
        names[1..3],
        [(&b"Content-Type"[..], HeaderKind::ContentType), (b"X-User-Id", HeaderKind::Other)]
    );
    assert!(head.keep_alive());
    assert!(!head.expects_continue());
}

#[test]
fn a_head_can_be_read_after_its_buffer_moved() {
    let text = with_fields("X-A: 1\r\n");
    let head = head(&text);
    let moved = text.clone().into_bytes();
    assert_eq!(head.view(&moved).header(b"X-A"), Some(&b"1"[..]));
}

#[test]
fn a_head_is_reused_without_traces_of_the_one_before() {
    let mut head = RequestHead::new();
    let first = b"POST http://a/x?y HTTP/1.1\r\nHost: b\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(head.parse(first, &LIMITS), Ok(Progress::Complete));
    head.reset();
    assert_eq!(head.bytes(), 0);
    let second = b"GET / HTTP/1.0\r\n\r\n";
    assert_eq!(head.parse(second, &LIMITS), Ok(Progress::Complete));
    let view = head.view(second);
    assert_eq!((view.host(), view.query(), view.path()), (None, None, &b"/"[..]));
    assert_eq!(
        (head.framing(), head.expects_continue(), head.keep_alive()),
        (RequestFraming::None, false, false)
    );
    assert_eq!(view.headers().count(), 0);
    assert_eq!(view.value(HeaderKind::TransferEncoding), None);
}

/// FR-01
#[test]
fn content_length_with_transfer_encoding_is_refused_in_either_order() {
    for fields in [
        "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n",
        "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: cow\r\nContent-Length: 5\r\n",
        "Transfer-Encoding:\r\nContent-Length: 5\r\n",
    ] {
        let refused = error(with_fields(fields) + "0\r\n\r\nG");
        assert_eq!((refused, refused.status()), (HeadError::LengthAndEncoding, 400), "{fields}");
    }
}

/// FR-02
#[test]
fn only_a_plain_chunked_is_a_transfer_encoding() {
    for fields in [
        "Transfer-Encoding: chunked\r\n",
        "transfer-encoding:chunked\t\r\n",
        "Transfer-Encoding: \t CHUNKED \r\n",
    ] {
        assert_eq!(head(&with_fields(fields)).framing(), RequestFraming::Chunked, "{fields}");
    }
    for fields in [
        "Transfer-Encoding: chunked, gzip\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: cow\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: chunked,\r\n",
        "Transfer-Encoding: \"chunked\"\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunked;q=1\r\n",
        "Transfer-Encoding:\r\n",
    ] {
        let refused = error(with_fields(fields));
        assert_eq!((refused, refused.status()), (HeadError::TransferEncoding, 400), "{fields}");
        assert_eq!(
            error(with_fields(&format!("Content-Length: 5\r\n{fields}"))),
            HeadError::LengthAndEncoding,
            "{fields}"
        );
    }
    let vertical_tab = with_fields("Transfer-Encoding: \x0bchunked\r\n");
    assert_eq!(error(vertical_tab), HeadError::HeaderValue);
}

/// FR-02
#[test]
fn transfer_encoding_in_http_1_0_is_faulty_framing() {
    let refused = error("POST /v1/predict HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert_eq!(refused, HeadError::TransferEncoding);
}

/// FR-03
#[test]
fn a_repeated_or_malformed_content_length_is_refused() {
    for fields in
        ["Content-Length: 5\r\nContent-Length: 6\r\n", "Content-Length: 5\r\ncontent-length: 5\r\n"]
    {
        assert_eq!(error(with_fields(fields)), HeadError::ContentLengthRepeated, "{fields}");
    }
    let digits = "1".repeat(400);
    for value in [
        "5, 5",
        "+5",
        "-1",
        "5x",
        "0x5",
        "5 5",
        "",
        "9223372036854775808",
        "18446744073709551616",
        &digits,
    ] {
        let refused = error(with_fields(&format!("Content-Length: {value}\r\n")));
        assert_eq!((refused, refused.status()), (HeadError::ContentLength, 400), "{value}");
    }
    let largest = head(&with_fields("Content-Length: 9223372036854775807\r\n"));
    assert_eq!(largest.framing(), RequestFraming::Length(9_223_372_036_854_775_807));
}

/// FR-04
#[test]
fn a_blank_before_the_colon_is_refused() {
    for fields in [
        "Content-Length: 8\r\nTransfer-Encoding : chunked\r\n",
        "Host\t: a\r\n",
        ": a\r\n",
        "X\0A: b\r\n",
        "nocolon\r\n",
    ] {
        let refused = error(with_fields(fields));
        assert_eq!(
            (refused, refused.status()),
            (HeadError::HeaderName, 400),
            "{}",
            fields.escape_default()
        );
    }
}

/// FR-04
#[test]
fn a_folded_line_is_refused() {
    for text in [
        with_fields("Content-Length:\r\n 8\r\n"),
        with_fields("X-A: 1\r\n\tContent-Length: 3\r\nContent-Length: 8\r\n"),
        "GET / HTTP/1.1\r\n Host: a\r\n\r\n".to_owned(),
    ] {
        assert_eq!(error(text), HeadError::FoldedLine);
    }
}

#[test]
fn a_bare_line_feed_ends_no_line() {
    for text in [
        "GET / HTTP/1.1\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX:\n\r\n",
        "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        assert_eq!(error(text), HeadError::BareLineFeed, "{}", text.escape_default());
    }
}

#[test]
fn a_carriage_return_stands_only_before_a_line_feed() {
    for (text, expected) in [
        ("GET / HTTP/1.1\rHost: a\r\n\r\n", HeadError::RequestLine),
        ("GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", HeadError::HeaderValue),
        ("GET / HTTP/1.1\r\nHost: a\r\n\rX: b\r\n\r\n", HeadError::HeaderName),
        ("GET / HTTP/1.1\r\nHost: a\r\r\n\r\n", HeadError::HeaderValue),
        ("\r\rGET / HTTP/1.1\r\n\r\n", HeadError::RequestLine),
    ] {
        assert_eq!(error(text), expected, "{}", text.escape_default());
    }
}

#[test]
fn one_empty_line_before_a_request_is_tolerated() {
    let text = "\r\nGET /x HTTP/1.1\r\nHost: a\r\n\r\n";
    let head = head(text);
    assert_eq!((head.bytes(), head.view(text.as_bytes()).path()), (text.len(), &b"/x"[..]));
    assert_eq!(error("\r\n\r\nGET /x HTTP/1.1\r\nHost: a\r\n\r\n"), HeadError::EmptyLines);
}

#[test]
fn what_cannot_become_a_request_is_refused_at_its_first_line() {
    for (bytes, expected, status) in [
        (&b"\x16\x03\x01"[..], HeadError::RequestLine, 400),
        (b" GET", HeadError::RequestLine, 400),
        (b"GET /x\r\n", HeadError::RequestLine, 400),
        (b"GET  /x HTTP/1.1\r\n", HeadError::RequestLine, 400),
        (b"GET /x HTTP/1.1 \r\n", HeadError::RequestLine, 400),
        (b"GET /x y HTTP/1.1\r\n", HeadError::RequestLine, 400),
        (b"GET\t/x HTTP/1.1\r\n", HeadError::RequestLine, 400),
        (b"G(T /x HTTP/1.1\r\n", HeadError::RequestLine, 400),
        (b"GET /x http/1.1\r\n", HeadError::RequestLine, 400),
        (b"GET /x HTTP/11\r\n", HeadError::RequestLine, 400),
        (b"GET /x HTTP/1.2\r\n", HeadError::Version, 505),
        (b"GET /x HTTP/2.0\r\n", HeadError::Version, 505),
        (b"PRI * HTTP/2.0\r\n", HeadError::Version, 505),
        (b"GET /x HTTP/0.9\r\n", HeadError::Version, 505),
        (b"CONNECT a:443 HTTP/1.1\r\n", HeadError::Method, 501),
        (b"CONNECT / HTTP/1.1\r\n", HeadError::Method, 501),
        (b"ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGH / HTTP/1.1\r\n", HeadError::Method, 501),
    ] {
        let refused = error(bytes);
        assert_eq!((refused, refused.status()), (expected, status), "{}", bytes.escape_ascii());
        // Not even a worse fault behind it changes the answer.
        assert_eq!(
            error([bytes, b"\nX : y\r\n\r\n"].concat()),
            expected,
            "{}",
            bytes.escape_ascii()
        );
    }
}

/// HT-01
#[test]
fn the_connection_persists_as_version_and_options_say() {
    for (version, options, expected) in [
        ("1.1", "", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.1", "Connection: X-A, Close\r\n", false),
        ("1.1", "Connection: keep-alive\r\nConnection: close\r\n", false),
        ("1.1", "Connection: closed\r\n", true),
        ("1.1", "Proxy-Connection: close\r\n", true),
        ("1.0", "", false),
        ("1.0", "Connection: keep-alive\r\n", true),
        ("1.0", "Connection: ,, Keep-Alive ,\r\n", true),
        ("1.0", "Connection: keep-alive, close\r\n", false),
    ] {
        let head = head(&format!("GET / HTTP/{version}\r\nHost: a\r\n{options}\r\n"));
        assert_eq!(head.keep_alive(), expected, "{version} {options}");
    }
}

/// HT-01
#[test]
fn a_flood_of_connection_options_is_refused() {
    let options =
        |count: usize| with_fields(&format!("Connection: {}\r\n", vec!["a"; count].join(",")));
    assert!(head(&options(32)).keep_alive());
    let refused = error(options(33));
    assert_eq!((refused, refused.status()), (HeadError::ConnectionOptionsTooMany, 431));
}

/// HT-02
#[test]
fn a_host_is_there_once() {
    for (text, expected) in [
        ("GET / HTTP/1.1\r\n\r\n", HeadError::HostMissing),
        ("GET http://a/ HTTP/1.1\r\n\r\n", HeadError::HostMissing),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", HeadError::HostRepeated),
        ("GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", HeadError::HostRepeated),
        ("GET / HTTP/1.0\r\nHost: a\r\nhost: a\r\n\r\n", HeadError::HostRepeated),
        ("GET / HTTP/1.1\r\nHost:\r\n\r\n", HeadError::Host),
        ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", HeadError::Host),
        ("GET / HTTP/1.1\r\nHost: user@a\r\n\r\n", HeadError::Host),
        ("GET http://a/ HTTP/1.1\r\nHost: b/c\r\n\r\n", HeadError::Host),
    ] {
        let refused = error(text);
        assert_eq!((refused, refused.status()), (expected, 400), "{}", text.escape_default());
    }
    assert_eq!(head("GET / HTTP/1.0\r\n\r\n").host, None);
}

/// HT-03
#[test]
fn the_authority_of_an_absolute_form_target_wins_over_host() {
    for (target, host, path, query) in [
        ("http://a.test/v1/predict", "a.test", "/v1/predict", None),
        ("HTTPS://a.test:8080", "a.test:8080", "/", None),
        ("http://[::1]:8080?x=1", "[::1]:8080", "/", Some("x=1")),
    ] {
        let text = format!("POST {target} HTTP/1.1\r\nHost: b.test\r\n\r\n");
        let head = head(&text);
        let view = head.view(text.as_bytes());
        assert_eq!(
            (view.host(), view.path()),
            (Some(host.as_bytes()), path.as_bytes()),
            "{target}"
        );
        assert_eq!(view.query(), query.map(str::as_bytes), "{target}");
    }
    let text = "GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n";
    assert_eq!(head(text).view(text.as_bytes()).host(), Some(&b"[::1]:8080"[..]), "brackets stay");
    assert_eq!(error("POST ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n"), HeadError::Target);
}

#[test]
fn the_asterisk_is_a_target_of_options_only() {
    for target in ["*", "http://a"] {
        let text = format!("OPTIONS {target} HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(head(&text).view(text.as_bytes()).path(), b"*", "{target}");
    }
    assert_eq!(error("GET * HTTP/1.1\r\nHost: a\r\n\r\n"), HeadError::Target);
}

/// HT-04
#[test]
fn path_and_query_stay_byte_for_byte() {
    for (target, path, query) in [
        (
            "/v1/models/org%2Fname/predict?q=a%20b%2Bc&e=%C3%A9",
            "/v1/models/org%2Fname/predict",
            Some("q=a%20b%2Bc&e=%C3%A9"),
        ),
        ("/v1//predict", "/v1//predict", None),
        ("/v1/predict?x=%zz", "/v1/predict", Some("x=%zz")),
        ("/v1/../predict?", "/v1/../predict", Some("")),
        ("/a?b?c", "/a", Some("b?c")),
    ] {
        let text = format!("POST {target} HTTP/1.1\r\nHost: a\r\n\r\n");
        let head = head(&text);
        let view = head.view(text.as_bytes());
        assert_eq!(
            (view.path(), view.query()),
            (path.as_bytes(), query.map(str::as_bytes)),
            "{target}"
        );
    }
}

/// HT-04
#[test]
fn an_over_long_target_is_414_before_its_end() {
    let target =
        |bytes: usize| format!("POST /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(bytes - 1));
    assert!(parse(target(8192).as_bytes()).unwrap().is_some());
    for text in [target(8193), target(16 * 1024), format!("POST /{}", "a".repeat(9000))] {
        let refused = error(text);
        assert_eq!((refused, refused.status()), (HeadError::TargetTooLong, 414));
    }
    let endless_method = format!("{} / HTTP/1.1\r\nHost: a\r\n\r\n", "A".repeat(9000));
    assert_eq!(error(endless_method), HeadError::TargetTooLong, "whole and in pieces");
}

/// HT-05
#[test]
fn opaque_and_empty_values_pass() {
    let bytes =
        [b"GET / HTTP/1.1\r\nHost: a\r\nX-A: \xC3\xA9\xFF\r\nX-B:\r\nX-C: \t \r\n\r\n".as_slice()]
            .concat();
    let head = parse(&bytes).unwrap().unwrap();
    let view = head.view(&bytes);
    assert_eq!(view.header(b"x-a"), Some(&b"\xC3\xA9\xFF"[..]));
    assert_eq!((view.header(b"x-b"), view.header(b"x-c")), (Some(&b""[..]), Some(&b""[..])));
}

/// HT-05
#[test]
fn no_control_byte_stands_in_a_value() {
    for byte in (0..=0x1F).chain([0x7F]).filter(|byte| !b"\t\n\r".contains(byte)) {
        // Short and long, since a value is looked at in blocks.
        for before in
            ["", "a", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"]
        {
            let mut bytes = format!("GET / HTTP/1.1\r\nHost: a\r\nX-A: {before}").into_bytes();
            bytes.push(byte);
            bytes.extend_from_slice(b"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\n\r\n");
            assert_eq!(error(&bytes), HeadError::HeaderValue, "{byte:#04x} after {}", before.len());
        }
    }
}

/// HT-05
#[test]
fn too_many_or_too_large_headers_are_431() {
    let lines = |count: usize| {
        format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X-A: 1\r\n".repeat(count - 1))
    };
    let all = lines(100);
    assert_eq!(head(&all).view(all.as_bytes()).headers().count(), 100);
    let refused = error(lines(101));
    assert_eq!((refused, refused.status()), (HeadError::HeadersTooMany, 431));
    let refused = error(with_fields(&format!("X-A: {}\r\n", "a".repeat(64 * 1024))));
    assert_eq!((refused, refused.status()), (HeadError::HeadTooLarge, 431));
}

/// MS-01
#[test]
fn only_100_continue_is_an_expectation() {
    let asks = head(&with_fields("Expect: 100-Continue\r\nContent-Length: 5\r\n"));
    assert!(asks.expects_continue());
    let without_body = head(&with_fields("Expect: 100-continue\r\n"));
    assert!(!without_body.expects_continue());
    for fields in [
        "Expect: something-else\r\n",
        "Expect:\r\n",
        "Expect: 100-continue\r\nExpect: 100-continue\r\n",
    ] {
        let refused = error(with_fields(&format!("{fields}Content-Length: 5\r\n")));
        assert_eq!((refused, refused.status()), (HeadError::Expectation, 417), "{fields}");
    }
    for value in ["100-continue", "something-else"] {
        let old = head(&format!("POST / HTTP/1.0\r\nExpect: {value}\r\nContent-Length: 5\r\n\r\n"));
        assert!(!old.expects_continue(), "HTTP/1.0 knows no expectations");
    }
}

#[test]
fn a_request_not_begun_is_told_from_a_slow_one() {
    let mut head = RequestHead::new();
    for untouched in [&b""[..], b"\r", b"\r\n", b"\r\n\r"] {
        assert_eq!(head.parse(untouched, &LIMITS), Ok(Progress::Partial));
        assert!(head.is_untouched(untouched), "{}", untouched.escape_ascii());
    }
    let begun = b"\r\nG";
    let mut head = RequestHead::new();
    assert_eq!(head.parse(begun, &LIMITS), Ok(Progress::Partial));
    assert!(!head.is_untouched(begun));
}

#[test]
fn limits_that_contradict_each_other_are_refused() {
    use super::super::limits::HeadLimitsError;
    assert_eq!(
        HeadLimits::new(65_536, 8192),
        Err(HeadLimitsError::HeadAboveCeiling { asked: 65_536 })
    );
    assert_eq!(
        HeadLimits::new(8192, 8192),
        Err(HeadLimitsError::TargetAboveHead { target: 8192, head: 8192 })
    );
    let tight = HeadLimits::new(1024, 100).unwrap();
    let text = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(100));
    assert_eq!(RequestHead::new().parse(text.as_bytes(), &tight), Err(HeadError::TargetTooLong));
}
