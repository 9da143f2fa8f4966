use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::process::{BINARY, Report, Upstream, report};

/// A line as `spool dump` writes it, recorded `milliseconds` after the first.
fn line(number: u64, milliseconds: u64) -> String {
    let body = format!("{{\"number\":{number}}}");
    let record = json!({
        "schema": "switchboard.shadow/1", "id": format!("r{number}"),
        "time_unix_us": 1_796_072_000_000_000_u64 + milliseconds * 1000, "router": "r",
        "traffic_class": "live", "objective": "HOME", "snapshot": 1,
        "target": {"model": "feed@3"}, "unit": {"attribute": "user_id", "value": format!("u{number}")},
        "decision": {"arm": "stable", "model": "feed@1", "reason": "default"}, "facts": null,
        "request": {
            "id": format!("x{number}"), "method": "POST", "target": format!("/infer/{number}"),
            "headers": [["content-type", "application/json"]], "model_place": null,
            "body": "whole", "body_bytes": body.len(), "content": body
        },
        "response": null, "timing": {"overhead_us": 1, "first_byte_us": 10, "total_us": 20_000}
    });
    json!({"sequence": number, "topic": "t", "key": null, "record": record}).to_string() + "\n"
}

fn replay(upstream: &Upstream, flags: &[&str], input: &str) -> Output {
    let mut child = Command::new(BINARY)
        .args(["replay", "-", "--json", "-", "--lag-max", "10s", "--url", &upstream.url("/")])
        .args(flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// Replays and returns the report, and the records of its requests by number.
fn recorded(upstream: &Upstream, flags: &[&str], input: &str) -> (Report, Vec<Value>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("records.jsonl");
    let record = ["--record", path.to_str().unwrap()];
    let report = report(&replay(upstream, &[flags, &record[..]].concat(), input));
    let text = std::fs::read_to_string(&path).unwrap();
    let mut records: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    records.sort_by_key(|record| record["number"].as_u64());
    (report, records)
}

#[test]
fn records_are_sent_byte_for_byte_at_the_pace_at_which_they_were_recorded() {
    let upstream = Upstream::start(&[]);
    let input: String =
        [0, 100, 130, 400].iter().zip(0..).map(|(at, number)| line(number, *at)).collect();
    let (report, records) = recorded(&upstream, &[], &input);
    assert_eq!((report.code, report.json["answers"].as_u64()), (0, Some(4)));
    let due: Vec<_> =
        records.iter().map(|record| record["due_us"].as_f64().unwrap().round()).collect();
    assert_eq!(due, [0.0, 100_000.0, 130_000.0, 400_000.0]);
    assert_eq!(records[2]["user"], "u2");
    assert_eq!(upstream.stats()["body_bytes"], 4 * 12);
    assert!((report.number("/replay/recorded_latency_us/p50") - 20_000.0).abs() < 100.0);
    assert_eq!(report.json["schedule"]["unsent"], 0);

    let (_, twice) = recorded(&upstream, &["--speed=2"], &input);
    let due: Vec<_> =
        twice.iter().map(|record| record["due_us"].as_f64().unwrap().round()).collect();
    assert_eq!(due, [0.0, 50_000.0, 65_000.0, 200_000.0]);
}

#[test]
fn a_fixed_rate_or_a_closed_loop_takes_the_place_of_the_recorded_pace() {
    let upstream = Upstream::start(&[]);
    let hours_apart: String = (0..50).map(|number| line(number, number * 3_600_000)).collect();
    let (rate, records) = recorded(&upstream, &["--rate=500", "--threads=2"], &hours_apart);
    assert_eq!((rate.code, rate.json["answers"].as_u64()), (0, Some(50)));
    assert!(records.iter().all(|record| record["due_us"].as_f64().unwrap() < 100_000.0));
    let (closed, _) = recorded(&upstream, &["--closed"], &hours_apart);
    assert_eq!(
        (closed.json["answers"].as_u64(), &closed.json["mode"]),
        (Some(50), &"closed".into())
    );
}

#[test]
fn what_cannot_be_sent_again_is_counted_by_reason() {
    let upstream = Upstream::start(&[]);
    let cut = line(1, 0).replace("\"whole\"", "\"cut\"");
    let input = format!(
        "not json\n{}{cut}\n{{\"record\":{{\"schema\":\"switchboard.exposure/1\"}}}}\n",
        line(0, 0)
    );
    let report = report(&replay(&upstream, &[], &input));
    assert_eq!((report.code, report.json["answers"].as_u64()), (0, Some(1)));
    let skipped = json!({"not_a_record": 1, "body_cut": 1, "other_schema": 1});
    assert_eq!(report.json["replay"]["skipped"], skipped);

    let nothing = replay(&upstream, &[], "not json\n");
    assert_eq!(nothing.status.code(), Some(1));
    let message = String::from_utf8(nothing.stderr).unwrap();
    assert!(message.contains("no record could be sent: 1 not_a_record"), "{message}");
}
