use crate::process::{Upstream, run};

#[test]
fn answers_are_held_against_what_was_expected() {
    let upstream = Upstream::start(&[]);
    let url = upstream.url("/");
    let ask = |flags: &[&str]| run(&[&["--url", &url, "--requests=10"], flags].concat());
    assert_eq!(ask(&["--expect-status=200", "--expect-header=X-Model-Server: m1"]).code, 0);
    let status = ask(&["--expect-status=201"]);
    assert_eq!((status.code, status.json["failures"]["status"].as_u64()), (1, Some(10)));
    assert_eq!(status.json["answers"], 10, "an unexpected answer is an answer");
    let header = ask(&["--expect-header=x-model-server: m2"]);
    assert_eq!((header.code, header.json["failures"]["header"].as_u64()), (1, Some(10)));
    assert_eq!(header.json["failed_checks"].as_array().unwrap().len(), 1);
}

#[test]
fn every_user_gets_their_turn_and_every_objective_its_share() {
    let upstream = Upstream::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let records = folder.path().join("records.jsonl");
    let path = records.to_str().unwrap();
    let flags = ["--users=50", "--requests=400", "--objective=A=3", "--objective=B", "--threads=2"];
    let report = run(&[&["--url", &upstream.url("/"), "--record", path], &flags[..]].concat());
    assert_eq!(report.code, 0);
    let text = std::fs::read_to_string(&records).unwrap();
    let mut numbers = Vec::new();
    let mut of_a = 0;
    for line in text.lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        let number = record["number"].as_u64().unwrap();
        assert_eq!(record["user"], format!("u{}", number % 50));
        numbers.push(number);
        of_a += u32::from(record["asked"] == "A");
    }
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..400));
    // 300 expected; four standard deviations are 35.
    assert!((265..=335).contains(&of_a), "{of_a}");
}

#[test]
fn contradictory_flags_are_refused_before_anything_is_sent() {
    let refusals = [
        (&["--rate=0"][..], "--rate must be"),
        (&["--threads=4", "-c", "2"], "4 threads need"),
        (&["--pipeline=2", "--new-connection-per-request"], "--pipeline needs"),
        (&["--duration=0s"], "--duration must be"),
        (&["-H", "no colon"], "no header field"),
        (&["--record=/no/such/folder/x"], "cannot create"),
        (&["--rate=5@1s", "--duration=3s"], "both say how long"),
        (&["--arrivals=poisson"], "--arrivals needs --rate"),
        (&["--pipeline=0"], "--pipeline must be"),
        (&["--connections=0"], "--connections must be"),
        (&["--expect-share=HOME=0.1"], "no share"),
        (&["--out=/proc/no/such"], "cannot write the report"),
    ];
    for (flags, expected) in refusals {
        let all = [&["--url=http://127.0.0.1:1/"], flags].concat();
        let output = crate::process::command(&all).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{flags:?}");
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains(expected), "{flags:?}: {message}");
        assert!(output.stdout.is_empty());
    }
}
