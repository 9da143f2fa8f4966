use std::process::Command;

use serde_json::Value;

use crate::process::{BINARY, Upstream};

/// One connection and 20 ms for each answer: 50 requests per second and not one more.
const SLOW: &[&str] = &["--latency=fixed:20ms"];

fn capacity(upstream: &Upstream, flags: &[&str]) -> (Option<i32>, Value) {
    let url = upstream.url("/");
    let output = Command::new(BINARY)
        .args(["capacity", "--json", "-", "--url", &url, "--lag-max", "10s"])
        .args(flags)
        .output()
        .unwrap();
    let report = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), report)
}

#[test]
fn the_capacity_of_a_known_server_is_found_from_below() {
    let upstream = Upstream::start(SLOW);
    let flags = [
        "-c",
        "1",
        "--p99-max=400ms",
        "--rate-min=5",
        "--duration=2s",
        "--tolerance=0.3",
        "--steps-max=12",
    ];
    let (code, report) = capacity(&upstream, &flags);
    assert_eq!(code, Some(0), "{report}");
    let (found, fails) =
        (report["capacity"].as_f64().unwrap(), report["fails_at"].as_f64().unwrap());
    println!("capacity {found}/s, {fails}/s fails");
    // Over 60/s the last of two seconds' requests wait for more than 400 ms. A noisy host may cost some
    // of it, but cannot give any.
    assert!((5.0..=70.0).contains(&found), "{report}");
    assert!(fails - found <= 0.3 * found, "{report}");
    let steps = report["steps"].as_array().unwrap();
    assert!(steps.len() <= 12);
    assert!(steps.iter().filter(|step| step["holds"] == false).all(|step| step["because"] != ""));
}

#[test]
fn a_limit_that_nothing_holds_is_no_capacity() {
    let upstream = Upstream::start(SLOW);
    let flags = ["--p99-max=1ms", "--rate-min=20", "--duration=500ms"];
    let (code, report) = capacity(&upstream, &flags);
    assert_eq!((code, &report["capacity"]), (Some(1), &Value::Null), "{report}");
    assert_eq!(report["steps"].as_array().unwrap().len(), 2, "a failure is measured once more");
}

#[test]
fn the_number_of_steps_bounds_a_search() {
    let upstream = Upstream::start(&[]);
    let flags = ["--p99-max=10s", "--rate-min=10", "--duration=200ms", "--steps-max=3"];
    let (code, report) = capacity(&upstream, &flags);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["capacity"], 40.0);
    assert_eq!(report["ended_because"], "the most steps were made");
}
