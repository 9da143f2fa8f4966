use std::path::Path;
use std::process::Command;

use crate::process::{BINARY, Report, Upstream, run};

/// Runs a scenario that is written beside nothing else.
fn scenario(upstream: &Upstream, text: &str, flags: &[&str]) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scenario.toml");
    std::fs::write(&path, text).unwrap();
    let url = upstream.url("/");
    run(&[&["--url", &url, "--scenario", path.to_str().unwrap()], flags].concat())
}

#[test]
fn a_scenario_mixes_requests_by_weight_and_checks_each_by_its_own_rules() {
    let upstream = Upstream::start(&[]);
    let text = r#"
[load]
requests = 400
connections = 4
[users]
count = 50
choice = "uniform"
[attributes.country]
values = ["D E"]
[[request]]
weight = 3
objective = "A"
path = "/a?country={country}"
headers = { x-user-id = "{user}" }
body = '{"country":"{country}"}'
[[request]]
objective = "B"
path = "/b"
[request.checks]
status = [404]
"#;
    let report = scenario(&upstream, text, &[]);
    assert_eq!(report.code, 1, "the second kind of request is answered with 200");
    let failed = report.number("/failures/status");
    // 100 expected; four standard deviations are 35.
    assert!((65.0..=135.0).contains(&failed), "{failed}");
    assert_eq!(report.json["answers"], 400);
}

#[test]
fn a_flag_takes_precedence_over_the_file() {
    let upstream = Upstream::start(&[]);
    let report = scenario(&upstream, "[load]\nrequests = 5\n[[request]]\n", &["--requests=7"]);
    assert_eq!((report.code, report.json["answers"].as_u64()), (0, Some(7)));
}

#[test]
fn shares_of_arms_are_tested_by_users() {
    // A model server that names an Arm in its answers is missing here, so nobody is on the Arm.
    let upstream = Upstream::start(&[]);
    let flags = ["--requests=300", "--expect-share=HOME/heavy=0.1"];
    let report = run(&[&["--url", &upstream.url("/")], &flags[..]].concat());
    assert_eq!(report.code, 0, "no user of the Objective was seen: too few to tell");
    assert_eq!(report.json["sample_ratios"][0]["users"], 0);
    assert!(report.json["sample_ratios"][0]["p_value"].is_null());
}

#[test]
fn a_file_with_an_unknown_key_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scenario.toml");
    std::fs::write(
        &path,
        "[target]\nurl = \"http://127.0.0.1:1/\"\n\n[[request]]\nbody_byte = 5\n",
    )
    .unwrap();
    let output = Command::new(BINARY).args(["run", "--scenario"]).arg(&path).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("line 5") && message.contains("body_byte"), "{message}");
}

#[test]
fn a_report_folder_holds_every_form_and_refers_to_nothing_outside() {
    let upstream = Upstream::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("report");
    let flags = ["--rate=300", "--warmup=500ms", "--duration=3s", "--lag-max=10s", "--out"];
    let path = out.to_str().unwrap();
    let report = run(&[&["--url", &upstream.url("/")], &flags[..], &[path]].concat());
    assert_eq!(report.code, 0);
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    let json: serde_json::Value = serde_json::from_str(&read("report.json")).unwrap();
    assert_eq!(json["latency_us"], report.json["latency_us"]);
    assert!(read("latency.hgrm").contains("#[Max"));
    assert!(read("latency.hlog").contains("Tag=warmup,"));
    let page = read("report.html");
    for outside in ["<script", "src=", "href=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    for plot in ["percentiles.svg", "latency.svg", "throughput.svg"] {
        assert!(page.contains(read(plot).trim()), "{plot}");
    }
    assert!(!Path::new("report").exists());
}
