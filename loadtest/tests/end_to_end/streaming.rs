use std::io::{Read, Write};

use crate::process::{Upstream, run};

const ASK: &str = r#"{"model":"feed","stream":true}"#;

#[test]
fn each_event_of_a_stream_is_one_chunk_and_done_is_the_last() {
    let upstream = Upstream::start(&["--tokens=3", "--token-interval=1ms"]);
    let length = ASK.len();
    let answer = upstream.raw(
        format!(
            "POST /v1/chat/completions HTTP/1.1\r\ncontent-length: {length}\r\n\r\n{ASK}\
             GET /after HTTP/1.1\r\nconnection: close\r\n\r\n"
        )
        .as_bytes(),
    );
    let (head, mut rest) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("content-type: text/event-stream"), "{head}");
    assert!(head.contains("transfer-encoding: chunked"), "{head}");
    let mut events = Vec::new();
    let after = loop {
        let (size, after) = rest.split_once("\r\n").unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            break after.strip_prefix("\r\n").unwrap();
        }
        events.push(&after[..size]);
        rest = after[size..].strip_prefix("\r\n").unwrap();
    };
    assert_eq!(events.len(), 6); // role, three tokens, the end, [DONE]
    for event in &events {
        assert!(event.starts_with("data: ") && event.ends_with("\n\n"), "{event}");
        assert_eq!(event.matches("\n\n").count(), 1, "{event}");
    }
    assert_eq!(events[5], "data: [DONE]\n\n");
    assert!(after.starts_with("HTTP/1.1 200 OK"), "{after}");
}

#[test]
fn tokens_leave_when_they_are_due_not_at_the_end() {
    let upstream = Upstream::start(&["--tokens=2", "--token-interval=1h"]);
    let mut stream = upstream.connect();
    let length = ASK.len();
    write!(stream, "POST /v1/chat/completions HTTP/1.1\r\ncontent-length: {length}\r\n\r\n{ASK}")
        .unwrap();
    let mut seen = String::new();
    while !seen.contains(r#""content":"t0 ""#) {
        let mut piece = [0; 4096];
        let length = stream.read(&mut piece).unwrap();
        assert!(length > 0, "{seen}");
        seen.push_str(std::str::from_utf8(&piece[..length]).unwrap());
    }
    assert!(!seen.contains(r#""content":"t1 ""#), "{seen}");

    // A client that goes away in the middle is noticed at once, not an hour later.
    drop(stream);
    let stats = upstream.wait_for(|stats| stats["clients_gone"] == 1);
    assert_eq!(stats["answers"], 0);
}

#[test]
fn a_streamed_answer_is_measured_by_its_events() {
    let upstream = Upstream::start(&["--tokens=10", "--token-interval=10ms"]);
    let url = upstream.url("/v1/chat/completions");
    let report = run(&["--url", &url, "-d", ASK, "--requests=20", "-c", "10"]);
    assert_eq!(report.code, 0);
    assert_eq!(report.json["stream"]["events"], 20 * 13);
    assert_eq!(report.json["stream"]["first_event_us"]["count"], 20);
    assert_eq!(report.json["stream"]["event_gap_us"]["count"], 20 * 12);
    // Nine gaps of 10 ms lie between the first and the last token.
    let whole = report.number("/latency_us/min");
    assert!(whole >= 90_000.0, "{whole}");
    assert!(report.number("/stream/first_event_us/p50") < whole / 2.0);
    assert_eq!(report.json["stream"]["tokens"], 20 * 10);
    assert_eq!(report.json["stream"]["streams_done"], 20);
    assert_eq!(report.json["stream"]["first_token_us"]["count"], 20);
    assert_eq!(report.json["stream"]["token_gap_us"]["count"], 20 * 9);
    let gap = report.number("/stream/event_gap_us/p75");
    assert!((5_000.0..60_000.0).contains(&gap), "{gap}");
}

#[test]
fn a_stream_that_ends_early_is_truncated_and_not_a_fast_answer() {
    let upstream = Upstream::start(&["--tokens=10", "--token-interval=1ms", "--cut-rate=1"]);
    let url = upstream.url("/v1/chat/completions");
    let report = run(&["--url", &url, "-d", ASK, "--requests=20"]);
    assert_eq!(report.code, 2);
    assert_eq!(report.json["failures"]["truncated"], 20, "{}", report.json["failures"]);
    assert_eq!(report.json["answers"], 0);
}

#[test]
fn a_whole_chat_answer_comes_as_one_document() {
    let upstream = Upstream::start(&["--tokens=2"]);
    let (status, answer) = upstream.ask("POST", "/v1/chat/completions", r#"{"model":"feed"}"#);
    assert_eq!((status, &answer["model"]), (200, &"feed".into()));
    assert_eq!(answer["choices"][0]["message"]["content"], "t0 t1 ");
    assert_eq!(upstream.ask("POST", "/v1/chat/completions", "not json").0, 400);
    assert_eq!(upstream.ask("GET", "/v1/models", "").1["data"][0]["id"], "m1");
}
