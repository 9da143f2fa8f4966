#![expect(clippy::indexing_slicing, reason = "a test may stop at once")]

use super::*;

/// Parses at once and byte by byte; both must tell the same.
fn parse(method: Method, bytes: &[u8]) -> Result<Option<ResponseHead>, HeadError> {
    let mut whole = ResponseHead::new();
    let at_once = whole.parse(bytes, method);
    let mut growing = ResponseHead::new();
    let mut step = Ok(Progress::Partial);
    for end in 0..=bytes.len() {
        step = growing.parse(&bytes[..end], method);
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

fn head(method: Method, text: impl AsRef<[u8]>) -> ResponseHead {
    parse(method, text.as_ref()).unwrap().unwrap()
}

fn error(text: &str) -> HeadError {
    match parse(Method::Post, text.as_bytes()) {
        Err(error) => error,
        Ok(found) => panic!("accepted {}: {found:?}", text.escape_default()),
    }
}

#[test]
fn a_plain_head_is_read() {
    let text = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 2\r\nRetry-After: 3\r\n\r\n{}";
    let head = head(Method::Post, text);
    let view = head.view(text.as_bytes());
    assert_eq!((head.status(), head.bytes(), view.reason()), (200, text.len() - 2, &b"OK"[..]));
    assert_eq!((head.framing(), head.declared_length()), (ResponseFraming::Length(2), Some(2)));
    assert_eq!(view.value(HeaderKind::ContentType), Some(&b"text/event-stream"[..]));
    assert_eq!(view.value(HeaderKind::RetryAfter), Some(&b"3"[..]));
    assert_eq!(view.header(b"CONTENT-length"), Some(&b"2"[..]));
    assert_eq!(view.headers().count(), 3);
    assert!(head.keep_alive());
    assert!(!head.is_interim());
}

#[test]
fn the_body_ends_as_the_fields_say() {
    for (text, framing, keeps) in [
        ("HTTP/1.1 200 OK\r\n\r\n", ResponseFraming::UntilClose, false),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\t\r\n\r\n", ResponseFraming::Chunked, true),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            ResponseFraming::Length(0),
            false,
        ),
        ("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", ResponseFraming::Length(5), false),
        (
            "HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\n",
            ResponseFraming::Length(5),
            true,
        ),
        ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n", ResponseFraming::UntilClose, false),
        (
            "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n",
            ResponseFraming::Length(0),
            true,
        ),
    ] {
        let head = head(Method::Post, text);
        assert_eq!(
            (head.framing(), head.keep_alive()),
            (framing, keeps),
            "{}",
            text.escape_default()
        );
    }
}

/// MS-03
#[test]
fn head_1xx_204_and_304_end_at_the_empty_line_whatever_the_fields_say() {
    let both = "Content-Length: 7\r\nTransfer-Encoding: chunked\r\n";
    for (method, status, fields, stated) in [
        (Method::Head, 200, "Content-Length: 120\r\n", Some(120)),
        (Method::Head, 200, "Transfer-Encoding: chunked\r\n", None),
        (Method::Head, 200, both, None),
        (Method::Head, 200, "", None),
        (Method::Get, 204, "Transfer-Encoding: chunked\r\n", None),
        (Method::Get, 204, "Content-Length: 120\r\n", None),
        (Method::Get, 304, "Content-Length: 120\r\n", Some(120)),
        (Method::Get, 304, "Content-Length: 1x\r\n", None),
        (Method::Get, 103, "Content-Length: 120\r\n", None),
        (Method::Head, 204, "Content-Length: 120\r\n", None),
    ] {
        let head = head(method, format!("HTTP/1.1 {status} X\r\n{fields}\r\n"));
        assert_eq!(head.framing(), ResponseFraming::None, "{method:?} {status} {fields}");
        assert_eq!(head.declared_length(), stated, "{method:?} {status} {fields}");
        assert!(head.keep_alive(), "{method:?} {status} {fields}");
    }
}

#[test]
fn faulty_framing_is_refused() {
    for (fields, expected) in [
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", HeadError::LengthAndEncoding),
        ("Content-Length: 5\r\nContent-Length: 5\r\n", HeadError::ContentLengthRepeated),
        ("Content-Length: 5, 5\r\n", HeadError::ContentLength),
        ("Content-Length: -5\r\n", HeadError::ContentLength),
        ("Transfer-Encoding: gzip, chunked\r\n", HeadError::TransferEncoding),
        ("Transfer-Encoding: identity\r\n", HeadError::TransferEncoding),
    ] {
        assert_eq!(error(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n")), expected, "{fields}");
    }
    assert_eq!(
        error("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        HeadError::TransferEncoding
    );
}

#[test]
fn a_malformed_head_is_refused() {
    for (text, expected) in [
        ("\x00", HeadError::StatusLine),
        ("SSH-2.0", HeadError::StatusLine),
        ("\r\nHTTP/1.1 200 OK\r\n\r\n", HeadError::StatusLine),
        ("HTTP/2 200\r\n\r\n", HeadError::StatusLine),
        ("HTTP/1.2 200 OK\r\n\r\n", HeadError::StatusLine),
        ("HTTP/1.1 20 OK\r\n\r\n", HeadError::StatusLine),
        ("HTTP/1.1 2000 OK\r\n\r\n", HeadError::StatusLine),
        ("HTTP/1.1 099 OK\r\n\r\n", HeadError::StatusLine),
        ("HTTP/1.1  200 OK\r\n\r\n", HeadError::StatusLine),
        ("HTTP/1.1 200 O\0K\r\n\r\n", HeadError::StatusLine),
        ("HTTP/1.1 200 O\rK\r\n\r\n", HeadError::StatusLine),
        ("HTTP/1.1 200 OK\nA: b\r\n\r\n", HeadError::BareLineFeed),
        ("HTTP/1.1 200 OK\r\nA: b\n\r\n", HeadError::BareLineFeed),
        ("HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", HeadError::FoldedLine),
        ("HTTP/1.1 200 OK\r\nA : b\r\n\r\n", HeadError::HeaderName),
        ("HTTP/1.1 200 OK\r\nA: b\0\r\n\r\n", HeadError::HeaderValue),
    ] {
        assert_eq!(error(text), expected, "{}", text.escape_default());
    }
}

/// HT-05
#[test]
fn opaque_reasons_and_values_and_many_lines_pass() {
    let links = "Link: </x>; rel=preload\r\n".repeat(199);
    let bytes =
        [b"HTTP/1.1 599 \xC3\xA9t\xE9 \r\nX-A: \xFF\r\n", links.as_bytes(), b"\r\n"].concat();
    let all = head(Method::Get, &bytes);
    let view = all.view(&bytes);
    assert_eq!((view.reason(), view.header(b"x-a")), (&b"\xC3\xA9t\xE9 "[..], Some(&b"\xFF"[..])));
    assert_eq!(view.headers().count(), 200);
    let more = "Link: </x>\r\n".repeat(201);
    assert_eq!(error(&format!("HTTP/1.1 200 OK\r\n{more}\r\n")), HeadError::HeadersTooMany);
    let large = "a".repeat(65_000);
    assert!(
        parse(Method::Get, format!("HTTP/1.1 200 OK\r\nA: {large}\r\n\r\n").as_bytes())
            .unwrap()
            .is_some()
    );
    assert_eq!(
        error(&format!("HTTP/1.1 200 OK\r\nA: {large}{large}\r\n\r\n")),
        HeadError::HeadTooLarge
    );
}

#[test]
fn a_reason_may_be_missing() {
    for text in ["HTTP/1.1 200\r\n\r\n", "HTTP/1.1 200 \r\n\r\n"] {
        assert_eq!(
            head(Method::Get, text).view(text.as_bytes()).reason(),
            b"",
            "{}",
            text.escape_default()
        );
    }
}

#[test]
fn only_1xx_but_101_is_interim() {
    for (status, expected) in [(100, true), (101, false), (103, true), (199, true), (200, false)] {
        assert_eq!(
            head(Method::Get, format!("HTTP/1.1 {status} X\r\n\r\n")).is_interim(),
            expected,
            "{status}"
        );
    }
}
