use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::process::{Upstream, command, report, run};

#[test]
fn reported_percentiles_are_those_of_the_recorded_requests() {
    let upstream = Upstream::start(&["--latency=lognormal:3ms,0.6"]);
    let folder = tempfile::tempdir().unwrap();
    let records = folder.path().join("records.jsonl");
    let path = records.to_str().unwrap();
    let flags = ["--rate=500", "--duration=2s", "--lag-max=1s", "--record", path];
    let report = run(&[&["--url", &upstream.url("/")], &flags[..]].concat());
    assert_eq!(report.json["answers"], 1000);
    let text = std::fs::read_to_string(&records).unwrap();
    let mut latencies: Vec<f64> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["latency_us"].as_f64().unwrap())
        .collect();
    latencies.sort_by(f64::total_cmp);
    for (pointer, rank) in [("p50", 500), ("p90", 900), ("p99", 990), ("max", 1000)] {
        let (exact, seen) = (latencies[rank - 1], report.number(&format!("/latency_us/{pointer}")));
        assert!((seen - exact).abs() <= exact / 500.0, "{pointer}: {seen} against {exact}");
    }
}

#[test]
fn a_signal_ends_a_run_with_a_full_report() {
    let upstream = Upstream::start(&[]);
    let url = upstream.url("/");
    let child = command(&["--url", &url, "--rate=200", "--duration=1h", "--lag-max=10s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    upstream.wait_for(|stats| stats["requests"].as_u64() > Some(20));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let report = report(&child.wait_with_output().unwrap());
    assert_eq!(report.code, 0);
    assert!(report.number("/answers") > 20.0);
    assert_eq!(report.json["failures_total"], 0);
    assert_eq!(report.json["latency_us"]["count"], report.json["answers"]);
    assert_eq!(report.json["schedule"]["unsent"], 0, "nobody waited for the rest of the hour");
}

#[test]
fn a_stalled_request_does_not_hold_a_signalled_run_up() {
    let upstream = Upstream::start(&["--stall-rate=1"]);
    let child = command(&["--url", &upstream.url("/"), "-c", "3", "--duration=1h"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    upstream.wait_for(|stats| stats["requests"] == 3);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let report = report(&child.wait_with_output().unwrap());
    assert_eq!(report.json["failures"]["unfinished"], 3, "{}", report.json["failures"]);
}

#[test]
fn cpu_time_of_a_process_is_told_per_answer() {
    let upstream = Upstream::start(&[]);
    let pid = upstream.pid().to_string();
    let flags = ["--duration=1s", "--warmup=200ms", "--cpu-of", &pid];
    let report = run(&[&["--url", &upstream.url("/")], &flags[..]].concat());
    let per_answer = report.number("/cpu/0/cpu_us_per_answer");
    println!("model server: {per_answer:.2} us of CPU per answer");
    assert!((0.5..1000.0).contains(&per_answer), "{per_answer}");
    assert_eq!(report.json["cpu"][0]["pid"], upstream.pid());
    let total = report.number("/cpu/0/cpu_us") / report.number("/answers_in_window");
    assert!((total - per_answer).abs() < 1e-6);
}

#[test]
fn the_timeline_accounts_for_every_request() {
    let upstream = Upstream::start(&[]);
    let flags = ["--rate=300", "--duration=2500ms", "--threads=2", "--lag-max=10s"];
    let report = run(&[&["--url", &upstream.url("/")], &flags[..]].concat());
    let rows = report.json["timeline"].as_array().unwrap();
    let total: u64 = rows.iter().map(|row| row["requests"].as_u64().unwrap()).sum();
    assert_eq!(total, 750);
    assert!(rows.len() >= 3, "{rows:?}");
}

#[test]
fn a_model_server_ends_in_order_and_takes_its_socket_along() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.sock");
    let listen = format!("unix:{}", path.display());
    let upstream = Upstream::start_on(&listen, &[]);
    assert!(path.exists());
    let pid = Pid::from_raw(i32::try_from(upstream.pid()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let start = std::time::Instant::now();
    while path.exists() {
        assert!(start.elapsed() < Duration::from_secs(60), "the socket is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
}
