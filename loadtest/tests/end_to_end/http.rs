use std::io::{Read, Write};

use serde_json::{Value, json};

use crate::process::{Upstream, run};

/// Splits pipelined answers with Content-Length into their bodies.
fn bodies(mut answers: &str) -> Vec<Value> {
    let mut bodies = Vec::new();
    while let Some((head, rest)) = answers.split_once("\r\n\r\n") {
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        let (body, after) = rest.split_at(length.parse().unwrap());
        bodies.push(serde_json::from_str(body).unwrap());
        answers = after;
    }
    assert_eq!(answers, "");
    bodies
}

#[test]
fn an_echo_tells_method_target_headers_and_body_as_they_came() {
    let upstream = Upstream::start(&[]);
    let answer = upstream.raw(
        b"PUT /a?b=%20c HTTP/1.1\r\nHOST: h\r\nX-Echo: 1\r\nx-b: 2\r\nX-A:  3 \r\n\
          content-length: 3\r\nconnection: close\r\n\r\nabc",
    );
    let echo = &bodies(&answer)[0];
    assert_eq!(echo["method"], "PUT");
    assert_eq!(echo["target"], "/a?b=%20c");
    let headers = json!([
        ["HOST", "h"],
        ["X-Echo", "1"],
        ["x-b", "2"],
        ["X-A", "3"],
        ["content-length", "3"],
        ["connection", "close"]
    ]);
    assert_eq!(echo["headers"], headers);
    assert_eq!(echo["body"], "abc");
    assert_eq!(echo["body_blake3"], blake3::hash(b"abc").to_hex().as_str());
    assert!(answer.contains("x-model-server: m1\r\n"));
}

#[test]
fn pipelined_requests_are_answered_in_order_on_one_connection() {
    let upstream = Upstream::start(&[]);
    let mut requests = Vec::new();
    for number in 0..20 {
        let close = if number == 19 { "connection: close\r\n" } else { "" };
        let body = "x".repeat(number * 37);
        let length = body.len();
        let head = format!("POST /{number} HTTP/1.1\r\nx-echo: 1\r\n{close}");
        requests.extend(format!("{head}content-length: {length}\r\n\r\n{body}").into_bytes());
    }
    let echoes = bodies(&upstream.raw(&requests));
    assert_eq!(echoes.len(), 20);
    for (number, echo) in echoes.iter().enumerate() {
        assert_eq!(echo["target"], format!("/{number}"));
        assert_eq!(echo["connection_request"], number + 1);
        assert_eq!(echo["connection"], echoes[0]["connection"]);
        assert_eq!(echo["body_bytes"], number * 37);
    }
}

#[test]
fn a_chunked_body_arrives_whole_in_whatever_pieces() {
    let upstream = Upstream::start(&[]);
    let mut stream = upstream.connect();
    let request = b"POST /echo HTTP/1.1\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n\
        5\r\nhello\r\n6;x=y\r\n world\r\n0\r\ntrailer: 1\r\n\r\n";
    for piece in request.chunks(9) {
        stream.write_all(piece).unwrap();
        std::thread::yield_now();
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(bodies(&answer)[0]["body"], "hello world");
}

#[test]
fn a_generator_sends_chunked_bodies_that_arrive_whole() {
    let upstream = Upstream::start(&[]);
    let flags = ["--chunked", "--body-bytes=70001", "--requests=20", "--expect-status=200"];
    let report = run(&[&["--url", &upstream.url("/x")], &flags[..]].concat());
    assert_eq!((report.code, report.json["answers"].as_u64()), (0, Some(20)));
    assert_eq!(upstream.stats()["body_bytes"], 20 * 70_001);
}

#[test]
fn a_client_that_waits_for_continue_gets_it_before_its_body() {
    let upstream = Upstream::start(&[]);
    let mut stream = upstream.connect();
    stream
        .write_all(
            b"POST /echo HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\
              connection: close\r\n\r\n",
        )
        .unwrap();
    let mut interim = [0; 25];
    stream.read_exact(&mut interim).unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"ok").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(bodies(&answer)[0]["body"], "ok");
}

#[test]
fn an_answer_to_head_has_no_body_and_the_connection_goes_on() {
    let upstream = Upstream::start(&["--body-bytes=100"]);
    let answer =
        upstream.raw(b"HEAD /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\nconnection: close\r\n\r\n");
    let heads: Vec<_> = answer.split("HTTP/1.1 200 OK").collect();
    assert_eq!(heads.len(), 3, "{answer}");
    assert!(heads[1].contains("content-length: 100") && heads[1].ends_with("\r\n\r\n"));
    assert!(heads[2].ends_with('}'));

    let report = run(&["--url", &upstream.url("/"), "-X", "HEAD", "--requests=50", "-c", "1"]);
    assert_eq!((report.code, report.json["connections_opened"].as_u64()), (0, Some(1)));
}

#[test]
fn what_is_not_http_gets_400_and_an_end() {
    let upstream = Upstream::start(&[]);
    let both = b"POST / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n";
    for request in [&b"\x16\x03\x01\x02\x00"[..], both, b"GET / HTTP/9.9\r\n\r\n"] {
        let answer = upstream.raw(request);
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
    }
    let endless = format!("GET / HTTP/1.1\r\nx: {}", "a".repeat(70_000));
    assert!(upstream.raw(endless.as_bytes()).starts_with("HTTP/1.1 431 "));
    assert_eq!(upstream.stats()["malformed"], 4);
}

#[test]
fn both_sides_speak_over_a_unix_socket() {
    let folder = tempfile::tempdir().unwrap();
    let listen = format!("unix:{}", folder.path().join("model.sock").display());
    let upstream = Upstream::start_on(&listen, &["--threads=2"]);
    assert_eq!(upstream.address, listen);
    let report =
        run(&["--url=http://model/x", "--target", &listen, "--requests=200", "--threads=2"]);
    assert_eq!((report.code, report.json["answers"].as_u64()), (0, Some(200)));
    assert_eq!(report.json["model_servers"]["m1"], 200);
}

#[test]
fn pipelined_and_new_connections_work_at_load() {
    let upstream = Upstream::start(&[]);
    let url = upstream.url("/");
    let pipelined = run(&["--url", &url, "--pipeline=8", "-c", "4", "--requests=8000"]);
    assert_eq!((pipelined.code, pipelined.json["answers"].as_u64()), (0, Some(8000)));
    assert_eq!(pipelined.json["connections_opened"], 4);
    let fresh = run(&["--url", &url, "--new-connection-per-request", "--requests=300"]);
    assert_eq!((fresh.code, fresh.json["answers"].as_u64()), (0, Some(300)));
    assert_eq!(fresh.json["connections_opened"], 300);
}
