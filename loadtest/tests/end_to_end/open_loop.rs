use crate::process::{Upstream, run};

#[test]
fn an_open_loop_shows_a_stall_that_a_closed_loop_hides() {
    let upstream = Upstream::start(&["--pause-every=1s", "--pause-for=200ms"]);
    let url = upstream.url("/");
    let open = run(&["--url", &url, "--rate=500", "--connections=8", "--duration=3s"]);
    let closed = run(&["--url", &url, "--connections=1", "--duration=3s"]);

    // A fifth of the open loop's requests are due in a stall of up to 200 ms.
    assert!(open.number("/latency_us/p99") > 150_000.0, "{}", open.json["latency_us"]);
    // The closed loop sends almost nothing in it, so only its maximum knows.
    assert!(closed.number("/latency_us/max") > 100_000.0, "{}", closed.json["latency_us"]);
    let (hidden, shown) = (closed.number("/latency_us/p99"), open.number("/latency_us/p99"));
    assert!(hidden < shown / 3.0, "closed {hidden} us, open {shown} us");
    println!("p99 over a 200 ms stall: open loop {shown:.0} us, closed loop {hidden:.0} us");

    // The server's doing is no reason to distrust the generator.
    assert!(open.number("/schedule/waited_for_connection") > 100.0);
    assert_eq!(open.json["schedule"]["target_kept_up"], true);
}

#[test]
fn an_open_loop_sends_what_was_asked() {
    let upstream = Upstream::start(&[]);
    let flags = ["--rate=800", "--threads=2", "--warmup=500ms", "--duration=3s"];
    let report = run(&[&["--url", &upstream.url("/")], &flags[..]].concat());
    assert_eq!(report.json["answers"], 2400);
    assert_eq!(upstream.stats()["requests"], 2800);
    let error = report.number("/schedule/rate_error");
    println!("rate error {error:+.5}");
    assert!(error.abs() <= 0.005 || report.json["valid"] == false, "{error}");
}

#[test]
fn each_request_is_due_exactly_when_the_rate_says() {
    let upstream = Upstream::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let records = folder.path().join("records.jsonl");
    let flags = ["--rate=400@1s,1600@1s", "--threads=2", "--lag-max=10s", "--record"];
    let path = records.to_str().unwrap();
    let report = run(&[&["--url", &upstream.url("/")], &flags[..], &[path]].concat());
    // Counted over the schedule: 400 and then 1600, none more, none less.
    assert_eq!(
        (report.json["answers"].as_u64(), report.json["schedule"]["due"].as_u64()),
        (Some(2000), Some(2000))
    );
    assert_eq!(report.number("/schedule/asked_rate"), 1000.0);
    let mut due: Vec<(u64, f64)> = std::fs::read_to_string(&records)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|record| {
            assert!(record["sent_us"].as_f64() >= record["due_us"].as_f64(), "{record}");
            (record["number"].as_u64().unwrap(), record["due_us"].as_f64().unwrap())
        })
        .collect();
    due.sort_by_key(|(number, _)| *number);
    for (number, due_us) in due {
        let exact = match number {
            0..400 => number as f64 / 400.0,
            _ => 1.0 + (number - 400) as f64 / 1600.0,
        };
        assert!((due_us - exact * 1e6).abs() < 1.0, "request {number}: {due_us} us");
    }
}

#[test]
fn random_arrivals_send_all_that_was_drawn_and_repeat_with_their_seed() {
    let upstream = Upstream::start(&[]);
    let url = upstream.url("/");
    let flags = ["--rate=1000", "--arrivals=poisson", "--duration=1s", "--lag-max=10s"];
    let drawn = |seed: &str| {
        let report = run(&[&["--url", &url, "--seed", seed], &flags[..]].concat());
        assert_eq!(report.json["answers"], report.json["schedule"]["due"]);
        assert_eq!(report.json["arrivals"], "poisson");
        report.number("/answers")
    };
    let first = drawn("5");
    // Four standard deviations are 126.
    assert!((874.0..=1126.0).contains(&first), "{first}");
    assert_eq!(drawn("5"), first);
}

#[test]
fn a_generator_that_falls_behind_says_so() {
    let upstream = Upstream::start(&[]);
    // No generator is never a microsecond late.
    let flags = ["--rate=200", "--duration=500ms", "--lag-max=1us"];
    let report = run(&[&["--url", &upstream.url("/")], &flags[..]].concat());
    assert_eq!(report.json["valid"], false);
    assert_eq!(report.code, 3);
    let objection = report.json["invalid_because"][0].as_str().unwrap();
    assert!(objection.contains("fell behind its schedule"), "{objection}");
}

#[test]
fn a_target_that_does_not_keep_up_is_told() {
    let upstream = Upstream::start(&["--latency=fixed:100ms"]);
    let flags = ["--rate=100", "--connections=1", "--duration=1s", "--lag-max=10s"];
    let report = run(&[&["--url", &upstream.url("/")], &flags[..]].concat());
    assert_eq!(report.json["schedule"]["target_kept_up"], false);
    let (answers, unsent) = (report.number("/answers"), report.number("/schedule/unsent"));
    assert_eq!(answers + unsent, 100.0);
    // A second of schedule and a second after it, 100 ms each: twenty at most.
    assert!(unsent >= 80.0, "{unsent}");
    // What was sent late counts from when it was due.
    assert!(report.number("/latency_us/max") > report.number("/service_us/max") * 3.0);
}
