//! Bodies of all framings, both ways, of all sizes.

use std::io::Write as _;

use crate::client::{Client, post};
use crate::router::{Router, definition};
use crate::upstream::{Then, Upstream};

fn echo() -> (Upstream, Router) {
    let upstream = Upstream::echoing("");
    let router = Router::start(&definition(&[upstream.address], &[upstream.address]));
    (upstream, router)
}

#[test]
fn bodies_of_every_size_come_back_whole() {
    let (_upstream, router) = echo();
    let mut client = Client::connect(router.address);
    for size in [0, 1, 100, 8191, 8192, 8193, 32_000, 33_000, 65_536, 300_000, 2_000_000] {
        let body: String = "abcdefghijklmnopqrstuvw".chars().cycle().take(size).collect();
        for objective in ["FEED", "SAFE"] {
            client.send(post(objective, "", &body));
            let answer = client.answer();
            assert!(answer.status == 200 && answer.text() == body, "{objective}, {size} bytes");
        }
    }
    assert_eq!(router.counted(|worker| worker.pool_misses.get()), 1, "one connection serves all");
    router.wait_for(0, |worker| worker.requests_active.get());
    let received = router.counted(|worker| worker.bytes_received.get());
    let sent = router.counted(|worker| worker.bytes_sent.get());
    assert!(received > 2 * 2_455_213 && sent > 2 * 2_455_213, "{received} received, {sent} sent");
}

#[test]
fn a_chunked_body_leaves_as_it_comes() {
    let (upstream, router) = echo();
    let mut client = Client::connect(router.address);
    client.send(
        "POST / HTTP/1.1\r\nhost: a\r\nx-switchboard-objective: FEED\r\ntransfer-encoding: chunked\r\n\r\n",
    );
    for piece in [
        "5;ext=1\r\nhello\r\n",
        "1\r",
        "\n \r\n6\r\nwor",
        "ld!\r\n",
        "0\r\nx-trailer: 1\r\n",
        "\r\n",
    ] {
        client.send(piece);
    }
    assert_eq!(client.answer().text(), "hello world!");
    let seen = upstream.next();
    assert_eq!((seen.count("transfer-encoding"), seen.count("content-length")), (1, 0));
    client.send(post("FEED", "", "next"));
    assert_eq!(client.answer().text(), "next");
}

/// FR-01, FR-05, FR-06: a faulty chunk is answered with 400, and the endpoint never sees a whole request.
#[test]
fn a_faulty_chunk_ends_both_connections() {
    let (upstream, router) = echo();
    let mut client = Client::connect(router.address);
    client.send(
        "POST / HTTP/1.1\r\nhost: a\r\nx-switchboard-objective: FEED\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\n",
    );
    let answer = client.answer();
    assert_eq!((answer.status, answer.header("connection")), (400, Some("close")));
    assert!(client.is_closed());
    assert_eq!(upstream.left(), 0);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let (_upstream, router) = echo();
    let mut client = Client::connect(router.address);
    let requests: String = (0..20).map(|n| post("FEED", "", &format!("body {n}"))).collect();
    client.send(requests);
    for n in 0..20 {
        assert_eq!(client.answer().text(), format!("body {n}"));
    }
    // MS-05: the one behind a malformed one is not read.
    client.send(post("FEED", "", "first") + "BAD\r\n\r\n" + &post("FEED", "", "third"));
    assert_eq!(client.answer().text(), "first");
    assert_eq!(client.answer().status, 400);
    assert!(client.is_closed());
}

#[test]
fn requests_fed_byte_by_byte_are_the_same_requests() {
    let (_upstream, router) = echo();
    let mut client = Client::connect(router.address);
    for byte in post("COUNTRY", "", r#"{"context":{"country":"x"}}"#).as_bytes() {
        client.send([*byte]);
    }
    assert_eq!(client.answer().text(), r#"{"context":{"country":"x"}}"#);
}

/// MS-01
#[test]
fn who_expects_100_gets_it_once_and_the_body_is_taken() {
    let (upstream, router) = echo();
    let mut client = Client::connect(router.address);
    for objective in ["FEED", "COUNTRY", "SAFE"] {
        client.send(format!(
            "POST / HTTP/1.1\r\nhost: a\r\nx-switchboard-objective: {objective}\r\nexpect: 100-continue\r\n\
             content-length: 2\r\n\r\n"
        ));
        assert_eq!(client.head(), "HTTP/1.1 100 Continue\r\n\r\n");
        client.send("{}");
        assert_eq!(client.answer().text(), "{}");
        assert_eq!(upstream.next().header("expect"), None);
    }
}

/// MS-02, MS-03
#[test]
fn answers_without_a_body_end_at_once_and_interim_ones_are_dropped() {
    let upstream = Upstream::start(|seen, stream| {
        let answer = match seen.header("x-case") {
            Some("head") => "HTTP/1.1 200 OK\r\ncontent-length: 120\r\n\r\n",
            Some("204") => "HTTP/1.1 204 No Content\r\nx-a: 1\r\n\r\n",
            Some("304") => "HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\n\r\n",
            _ => {
                "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
            }
        };
        stream.write_all(answer.as_bytes()).unwrap();
        Then::KeepOpen
    });
    let router = Router::start(&definition(&[upstream.address], &[upstream.address]));
    let mut client = Client::connect(router.address);
    for round in 0..3 {
        client.send(
            "HEAD / HTTP/1.1\r\nhost: a\r\nx-switchboard-objective: FEED\r\nx-case: head\r\n\r\n",
        );
        let answer = client.answer_to("HEAD");
        assert_eq!((answer.status, answer.header("content-length")), (200, Some("120")), "{round}");
        for (case, status) in [("204", 204), ("304", 304)] {
            client.send(post("FEED", &format!("x-case: {case}\r\n"), ""));
            assert_eq!(client.answer().status, status);
        }
        client.send(post("FEED", "", ""));
        assert_eq!(client.answer().text(), "ok");
    }
    assert_eq!(router.counted(|worker| worker.pool_misses.get()), 1);
}

/// MS-06
#[test]
fn an_http_10_client_gets_no_chunks() {
    let chunked =
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    let upstream = Upstream::answering(chunked);
    let router = Router::start(&definition(&[upstream.address], &[upstream.address]));
    let mut client = Client::connect(router.address);
    client.send("POST / HTTP/1.0\r\nx-switchboard-objective: FEED\r\ncontent-length: 0\r\n\r\n");
    let answer = client.answer();
    assert_eq!(answer.header("transfer-encoding"), None);
    assert_eq!(answer.text(), "abcde");
}

#[test]
fn an_answer_that_ends_by_closing_is_chunked_for_an_http_11_client() {
    let upstream = Upstream::start(|_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nuntil the end").unwrap();
        Then::Close
    });
    let router = Router::start(&definition(&[upstream.address], &[upstream.address]));
    let mut client = Client::connect(router.address);
    for _ in 0..2 {
        client.send(post("FEED", "", ""));
        assert_eq!(client.answer().text(), "until the end");
    }
}

/// ST-01: each event leaves when it comes. The model server waits for the client to have it.
#[test]
fn a_stream_is_never_held_back() {
    let (allow, allowed) = std::sync::mpsc::channel::<()>();
    let allowed = std::sync::Mutex::new(allowed);
    let upstream = Upstream::start(move |_, stream| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        for n in 0..5 {
            stream.write_all(format!("9\r\ndata: {n}\n\n\r\n").as_bytes()).unwrap();
            allowed.lock().unwrap().recv().unwrap();
        }
        stream.write_all(b"0\r\n\r\n").unwrap();
        Then::KeepOpen
    });
    let router = Router::start(&definition(&[upstream.address], &[upstream.address]));
    let mut client = Client::connect(router.address);
    client.send(post("FEED", "", ""));
    assert!(client.head().starts_with("HTTP/1.1 200"));
    for n in 0..5 {
        assert_eq!(client.chunk().unwrap(), format!("data: {n}\n\n").as_bytes());
        allow.send(()).unwrap();
    }
    assert_eq!(client.chunk(), Some(Vec::new()));
}

/// MS-08
#[test]
fn a_truncated_answer_never_ends_cleanly() {
    let upstream = Upstream::start(|seen, stream| {
        let answer = match seen.header("x-case") {
            Some("length") => "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort",
            _ => "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n",
        };
        stream.write_all(answer.as_bytes()).unwrap();
        Then::Close
    });
    let router = Router::start(&definition(&[upstream.address], &[upstream.address]));
    let mut client = Client::connect(router.address);
    client.send(post("FEED", "", ""));
    client.head();
    assert_eq!(client.chunk().unwrap(), b"data: 1\n\n");
    assert_eq!(client.chunk(), None);
    let mut client = Client::connect(router.address);
    client.send(post("FEED", "x-case: length\r\n", ""));
    client.head();
    assert_eq!(client.rest(), b"short");
    assert_eq!(upstream.left(), 2, "an answer that began is not asked for again");
}

/// FR-08
#[test]
fn the_body_of_a_refused_request_is_never_taken_for_a_request() {
    let (upstream, router) = echo();
    let smuggled = "GET /smuggled HTTP/1.1\r\nhost: a\r\nx-switchboard-objective: FEED\r\n\r\n";
    let mut client = Client::connect(router.address);
    client.send(post("NOPE", "", smuggled));
    assert_eq!(client.answer().status, 404);
    client.send(post("FEED", "", "mine"));
    assert_eq!(client.answer().text(), "mine");

    let mut client = Client::connect(router.address);
    let request = post("NOPE", "", smuggled);
    let (head, body) = request.split_at(request.len() - smuggled.len());
    client.send(head);
    assert_eq!(client.answer().status, 404);
    client.send(body);
    client.send(post("FEED", "", "mine too"));
    assert_eq!(client.answer().text(), "mine too");
    upstream.next();
    upstream.next();
    assert_eq!(upstream.left(), 0);
}

#[test]
fn bodies_over_the_limit_are_answered_with_413() {
    let upstream = Upstream::echoing("");
    let both = [upstream.address];
    let router =
        Router::with(&definition(&both, &both), |config| config.limits.body_bytes_max = 1000);
    let mut client = Client::connect(router.address);
    client.send("POST / HTTP/1.1\r\nhost: a\r\nx-switchboard-objective: FEED\r\ncontent-length: 1001\r\n\r\n");
    let answer = client.answer();
    assert_eq!((answer.status, answer.header("connection")), (413, Some("close")));
    for objective in ["FEED", "COUNTRY"] {
        let mut client = Client::connect(router.address);
        client.try_send(format!(
            "POST / HTTP/1.1\r\nhost: a\r\nx-switchboard-objective: {objective}\r\n\
             transfer-encoding: chunked\r\n\r\n3e8\r\n{}\r\n1\r\n",
            "x".repeat(1000)
        ));
        assert_eq!(client.answer().status, 413, "{objective}");
    }
}
