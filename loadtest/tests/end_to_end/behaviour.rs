use std::io::Write;

use serde_json::json;

use crate::process::{Upstream, run};

fn fail(upstream: &Upstream, behaviour: &str, flags: &[&str]) -> serde_json::Value {
    let (status, answer) = upstream.ask("POST", "/__control/behaviour", behaviour);
    assert_eq!(status, 200, "{answer}");
    let report = run(&[&["--url", &upstream.url("/"), "--requests=20"], flags].concat());
    assert_eq!(report.code, 2, "{}", report.json);
    report.json["failures"].clone()
}

#[test]
fn behaviour_changes_at_run_time_and_resets() {
    let upstream = Upstream::start(&["--body-bytes=200"]);
    let failures = fail(&upstream, r#"{"error_rate":1,"error_status":500}"#, &[]);
    assert_eq!(failures["status"], 20);

    let (status, problem) = upstream.ask("POST", "/__control/behaviour", r#"{"error_rat":0}"#);
    assert_eq!(status, 400, "{problem}");
    let (_, behaviour) = upstream.ask("GET", "/__control/behaviour", "");
    assert_eq!(behaviour["error_rate"], 1.0, "a refused change changes nothing");

    assert_eq!(upstream.ask("POST", "/__control/reset", "").0, 200);
    assert_eq!(upstream.stats()["requests"], 0);
    let report = run(&["--url", &upstream.url("/"), "--requests=20", "--expect-status=200"]);
    assert_eq!(report.code, 0);
}

#[test]
fn each_fault_is_seen_as_what_it_is() {
    let upstream = Upstream::start(&[]);
    let reset = fail(&upstream, r#"{"reset_rate":1}"#, &[]);
    assert_eq!(reset["reset"], 20, "{reset}");
    let cut = fail(&upstream, r#"{"reset_rate":0,"cut_rate":1}"#, &[]);
    assert_eq!(cut["reset"], 20, "{cut}");
    let flags = ["--timeout=100ms", "-c", "20"];
    let stall = fail(&upstream, r#"{"cut_rate":0,"stall_rate":1}"#, &flags);
    assert_eq!(stall["timeout"], 20, "{stall}");
    let nobody = run(&["--url=http://127.0.0.1:1/", "--requests=3"]);
    assert_eq!((nobody.code, &nobody.json["failures"]["connect"]), (2, &json!(3)));
}

#[test]
fn a_dripped_chunked_answer_arrives_whole() {
    let flags = ["--drip-rate=1", "--drip-bytes=7", "--drip-interval=100us", "--chunked"];
    let upstream = Upstream::start(&[&flags[..], &["--body-bytes=999"]].concat());
    let folder = tempfile::tempdir().unwrap();
    let records = folder.path().join("records.jsonl");
    let record = ["--record", records.to_str().unwrap(), "--requests=10"];
    let report = run(&[&["--url", &upstream.url("/")], &record[..]].concat());
    assert_eq!(report.code, 0, "{}", report.json["failures"]);
    let lines = std::fs::read_to_string(&records).unwrap();
    assert_eq!(lines.lines().count(), 10);
    assert!(lines.lines().all(|line| line.contains(r#""body_bytes":999,"#)), "{lines}");
}

#[test]
fn a_readiness_probe_says_what_it_is_told() {
    let upstream = Upstream::start(&["--unready", "--error-rate=1"]);
    assert_eq!(upstream.ask("GET", "/v2/health/ready", "").0, 503);
    upstream.ask("POST", "/__control/behaviour", r#"{"unready":false}"#);
    assert_eq!(upstream.ask("GET", "/v2/health/ready", "").0, 200, "faults never hit a probe");
    assert_eq!(upstream.ask("POST", "/v2/models/feed/infer", "{}").0, 503);
    upstream.ask("POST", "/__control/behaviour", r#"{"error_rate":0}"#);
    let (status, answer) = upstream.ask("POST", "/v2/models/feed/infer", "{}");
    assert_eq!((status, &answer["model_name"]), (200, &json!("feed")));
}

#[test]
fn deliveries_are_counted_by_request_identifier() {
    let upstream = Upstream::start(&["--count-deliveries=100", "--threads=2"]);
    for _ in 0..2 {
        let flags = ["-H", "x-request-id: r{n}", "--requests=5"];
        run(&[&["--url", &upstream.url("/")], &flags[..]].concat());
    }
    let stats = upstream.stats();
    let expected = json!({ "r0": 2, "r1": 2, "r2": 2, "r3": 2, "r4": 2 });
    assert_eq!(stats["deliveries"], expected);
}

#[test]
fn a_client_that_leaves_a_stalled_request_is_noticed() {
    let upstream = Upstream::start(&["--stall-rate=1"]);
    let mut stream = upstream.connect();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    upstream.wait_for(|stats| stats["requests"] == 1);
    assert_eq!(upstream.stats()["clients_gone"], 0);
    drop(stream);
    upstream.wait_for(|stats| stats["clients_gone"] == 1 && stats["connections_open"] == 1);
}
