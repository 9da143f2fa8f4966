//! What shadow targets draw comes out of the spool as it went in, and what does not is counted.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::Value;
use switchboard_router::config::ExposureMode;
use switchboard_router::counters::{NotCopied, ShadowLoss};
use switchboard_router::shadow::SPOOL_FOLDER;
use switchboard_router::shadow::owned::Kind;
use switchboard_router::shadow::spool::{dump, files};
use switchboard_shared::definition::{
    ArmShare, Definition, Experiment, Members, Outcome, Rule, ShadowTarget,
};
use switchboard_shared::slot::SlotRange;

use crate::client::{Client, post};
use crate::router::{Router, definition, everything};
use crate::upstream::{Then, Upstream};

/// `FEED` with these targets, and an experiment that sends everyone with a Unit to `heavy`.
fn shadowed(stable: SocketAddr, heavy: SocketAddr, targets: Vec<ShadowTarget>) -> Definition {
    let mut definition = definition(&[stable], &[heavy]);
    let feed = &mut definition.objectives[0];
    feed.shadow = targets;
    feed.rules = vec![Rule {
        name: "trial".into(),
        when: None,
        then: Outcome::Experiment(Experiment {
            unit: "user".into(),
            salt: "trial".into(),
            layer: None,
            split: vec![ArmShare { arm: "heavy".into(), slots: vec![SlotRange::ALL] }],
        }),
    }];
    definition
}

fn start(folder: &Path, definition: &Definition, exposures: ExposureMode) -> Router {
    Router::with(definition, |config| {
        config.shadow.enabled = true;
        // On a busy host the shadow core may lag by all that a test sends: that is not what is tested here.
        config.shadow.buffer_bytes_max = 64 << 20;
        config.shadow.exposures = exposures;
        config.shadow.spool_bytes_max = 16 << 20;
        config.state_dir = folder.to_owned();
    })
}

/// Every record of the spool, as `spool dump` prints it.
fn records(folder: &Path) -> Vec<Value> {
    let mut lines = Vec::new();
    dump::dump(&folder.join(SPOOL_FOLDER), &mut lines).unwrap();
    let lines = String::from_utf8(lines).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn sequences(records: &[Value]) -> Vec<u64> {
    records.iter().map(|record| record["sequence"].as_u64().unwrap()).collect()
}

#[test]
fn a_drawn_request_is_spooled_with_its_answer_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let heavy = Upstream::echoing("heavy:");
    let definition = shadowed(heavy.address, heavy.address, vec![everything("ranker@1")]);
    let mut router = start(folder.path(), &definition, ExposureMode::Off);
    let mut client = Client::connect(router.address);
    let bodies = [
        "{\"k\":10}".to_owned(),
        "a\nb\"\\\u{1F600}".to_owned(),
        String::new(),
        "x".repeat(100_000), // more than one read: it streams through
    ];
    for body in &bodies {
        let fields = "x-user-id: u7\r\ncontent-type: text/x\r\nauthorization: secret\r\n";
        client.send(post("FEED", fields, body));
        assert_eq!(client.answer().text(), format!("heavy:{body}"));
    }
    // Chunked both ways: the record holds the data without the chunks.
    client.send("POST /a/b?c=%20 HTTP/1.1\r\nhost: a\r\nx-switchboard-objective: FEED\r\nx-user-id: u8\r\nx-request-id: mine\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n");
    client.send("2\r\nde\r\n0\r\n\r\n");
    assert_eq!(client.answer().text(), "heavy:abcde");
    router.drain(std::time::Duration::from_secs(30));

    let records = records(folder.path());
    assert_eq!(records.len(), bodies.len() + 1);
    for (line, body) in records.iter().zip(&bodies) {
        assert_eq!((&line["key"], &line["topic"]), (&"u7".into(), &"switchboard.shadow".into()));
        let record = &line["record"];
        assert_eq!(record["request"]["content"], body.as_str());
        assert_eq!(record["response"]["content"], format!("heavy:{body}"));
        assert_eq!(record["request"]["body"], if body.is_empty() { "none" } else { "whole" });
        assert_eq!(record["response"]["complete"], true);
        assert_eq!(record["decision"]["arm"], "heavy");
        assert_eq!(record["decision"]["reason"], "experiment");
        assert_eq!(record["target"]["model"], "ranker@1");
        let content_type = serde_json::json!([["content-type", "text/x"]]);
        assert_eq!(record["request"]["headers"], content_type, "no credential");
    }
    let chunked = &records[bodies.len()]["record"];
    assert_eq!(chunked["request"]["content"], "abcde");
    assert_eq!(chunked["request"]["target"], "/a/b?c=%20");
    assert_eq!(chunked["request"]["id"], "mine");
    assert_eq!(chunked["response"]["content"], "heavy:abcde");
    assert_eq!(router.counted(|worker| worker.shadow_sampled.get()), records.len() as u64);
    assert_eq!(router.of_shadow(|shadow| shadow.spool_records.get()), records.len() as u64);
}

#[test]
fn a_body_above_the_limit_is_not_copied_and_a_long_answer_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let echo = Upstream::echoing("");
    let definition = shadowed(echo.address, echo.address, vec![everything("ranker@1")]);
    let mut router = Router::with(&definition, |config| {
        config.shadow.enabled = true;
        config.shadow.request_bytes_max = 50_000;
        config.shadow.response_bytes_max = 10_000;
        config.state_dir = folder.path().to_owned();
    });
    let mut client = Client::connect(router.address);
    let chunked = "x".repeat(60_000);
    for request in [
        post("FEED", "x-user-id: u1\r\n", &"y".repeat(50_001)),
        post("FEED", "x-user-id: u2\r\n", &"z".repeat(50_000)),
        format!(
            "POST / HTTP/1.1\r\nhost: a\r\nx-switchboard-objective: FEED\r\nx-user-id: u3\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{chunked}\r\n0\r\n\r\n",
            chunked.len()
        ),
    ] {
        client.send(request);
        assert_eq!(client.answer().status, 200);
    }
    router.drain(std::time::Duration::from_secs(30));
    let records = records(folder.path());
    assert_eq!(records.len(), 1);
    let response = &records[0]["record"]["response"];
    assert_eq!((&response["body"], &response["body_bytes"]), (&"cut".into(), &10_000.into()));
    assert_eq!(response["body_bytes_total"], 50_000);
    assert_eq!(response["complete"], true, "the client got all of it");
    let lost = router.counted(|worker| worker.shadow_not_copied.get(NotCopied::TooLarge));
    assert_eq!((lost, router.counted(|worker| worker.shadow_sampled.get())), (2, 3));
}

#[test]
fn each_target_gets_its_own_record_with_what_it_may_see() {
    let folder = tempfile::tempdir().unwrap();
    let echo = Upstream::echoing("");
    let kept = ShadowTarget {
        members: Members::Keep(vec!["/k".into()]),
        topic: Some("kept".into()),
        captures_response: false,
        ..everything("ranker@2")
    };
    let of_stable = ShadowTarget { arm: Some("stable".into()), ..everything("ranker@2") };
    let targets = vec![everything("ranker@1"), kept, of_stable];
    let definition = shadowed(echo.address, echo.address, targets);
    let mut router = start(folder.path(), &definition, ExposureMode::Off);
    let mut client = Client::connect(router.address);
    for body in ["{\"secret\":1,\"k\":[1, 2]}", "no JSON"] {
        client.send(post("FEED", "x-user-id: u7\r\n", body));
        assert_eq!(client.answer().status, 200);
    }
    router.drain(std::time::Duration::from_secs(30));
    let shown: Vec<_> = records(folder.path())
        .iter()
        .map(|line| {
            let request = &line["record"]["request"];
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            (text(&line["topic"]), text(&request["body"]), text(&request["content"]))
        })
        .collect();
    let shown: Vec<_> = shown
        .iter()
        .map(|(topic, how, text)| (topic.as_str(), how.as_str(), text.as_str()))
        .collect();
    assert_eq!(
        shown,
        [
            ("switchboard.shadow", "whole", "{\"secret\":1,\"k\":[1, 2]}"),
            ("kept", "edited", "{\"k\":[1,2]}"),
            ("switchboard.shadow", "whole", "no JSON"),
            ("kept", "withheld", ""),
        ]
    );
}

#[test]
fn exposures_are_told_once_an_hour_and_a_fallout_is_not_treated() {
    let folder = tempfile::tempdir().unwrap();
    let (stable, dead) =
        (Upstream::echoing(""), std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let dead_address = dead.local_addr().unwrap();
    drop(dead);
    let mut router = start(
        folder.path(),
        &shadowed(stable.address, stable.address, vec![]),
        ExposureMode::Hourly,
    );
    let mut client = Client::connect(router.address);
    let mut ask = |fields: &str| {
        client.send(post("FEED", fields, "{}"));
        assert_eq!(client.answer().status, 200);
    };
    for fields in ["x-user-id: u1\r\n", "x-user-id: u1\r\n", "", "x-user-id: u2\r\n"] {
        ask(fields);
    }
    router.publish(&shadowed(stable.address, dead_address, vec![]), 2);
    ask("x-user-id: u1\r\n");
    router.drain(std::time::Duration::from_secs(30));
    let told: Vec<_> = records(folder.path())
        .iter()
        .map(|line| {
            let record = &line["record"];
            assert_eq!(line["key"], record["unit"]["value"]);
            let text = |name: &str| record[name].as_str().unwrap().to_owned();
            (text("arm"), text("served_arm"), text("reason"), record["treated"].clone())
        })
        .collect();
    let of = |arm: &str, served: &str, reason: &str, treated: bool| {
        (arm.to_owned(), served.to_owned(), reason.to_owned(), Value::from(treated))
    };
    let treated = of("heavy", "heavy", "experiment", true);
    assert_eq!(told, [treated.clone(), treated, of("heavy", "stable", "arm_down", false)]);
    assert_eq!(router.counted(|worker| worker.exposures.get()), 4);
    assert_eq!(router.of_shadow(|shadow| shadow.exposures_repeated.get()), 1);
    assert_eq!(router.of_shadow(|shadow| shadow.shadow_spooled.get(Kind::Exposure)), 3);
}

#[test]
fn a_client_that_leaves_or_never_ends_its_body_is_accounted_for() {
    let folder = tempfile::tempdir().unwrap();
    let silent = Upstream::start(|_, _| Then::Close);
    let definition = shadowed(silent.address, silent.address, vec![everything("ranker@1")]);
    let mut router = start(folder.path(), &definition, ExposureMode::Off);
    let mut client = Client::connect(router.address);
    client.send("POST / HTTP/1.1\r\nhost: a\r\nx-switchboard-objective: FEED\r\nx-user-id: u\r\ncontent-length: 9\r\n\r\nabc");
    client.finish_sending();
    let lost = |worker: &switchboard_router::counters::WorkerCounters| {
        worker.shadow_not_copied.get(NotCopied::RequestCut)
    };
    router.wait_for(1, lost);
    // No answer at all: recorded as that.
    let mut client = Client::connect(router.address);
    client.send(post("FEED", "x-user-id: u\r\n", "{}"));
    assert_eq!(client.answer().status, 502);
    router.drain(std::time::Duration::from_secs(30));
    let records = records(folder.path());
    assert_eq!(records.len(), 1);
    assert_eq!(records[0]["record"]["response"], Value::Null);
    assert_eq!(records[0]["record"]["timing"]["first_byte_us"], Value::Null);
    assert_eq!(router.counted(|worker| worker.shadow_sampled.get()), 2);
}

#[test]
fn a_full_spool_drops_its_oldest_records_and_counts_each() {
    let folder = tempfile::tempdir().unwrap();
    let echo = Upstream::echoing("");
    let target = ShadowTarget { captures_response: false, ..everything("ranker@1") };
    let definition = shadowed(echo.address, echo.address, vec![target]);
    let mut router = start(folder.path(), &definition, ExposureMode::Off);
    let mut client = Client::connect(router.address);
    let body = "x".repeat(500_000);
    let sent = 60;
    for _ in 0..sent {
        client.send(post("FEED", "x-user-id: u1\r\n", &body));
        assert_eq!(client.answer().status, 200);
    }
    router.drain(std::time::Duration::from_secs(30));
    let left = sequences(&records(folder.path()));
    let dropped = router.of_shadow(|shadow| shadow.shadow_dropped.get(ShadowLoss::SpoolFull));
    assert!(dropped > 0, "30 MB do not fit 16 MiB");
    assert_eq!(router.counted(|worker| worker.shadow_sampled.get()), sent);
    assert_eq!(left.len() as u64 + dropped, sent);
    // The oldest went, in order, and nothing in between.
    let expected: Vec<u64> = (dropped..sent).collect();
    assert_eq!(left, expected);
    let bytes: u64 = files(&folder.path().join(SPOOL_FOLDER))
        .unwrap()
        .iter()
        .map(|path| path.metadata().unwrap().len())
        .sum();
    assert!(bytes <= 16 << 20, "{bytes}");
}

#[test]
fn a_restart_goes_on_behind_a_torn_end() {
    let folder = tempfile::tempdir().unwrap();
    let echo = Upstream::echoing("");
    let definition = shadowed(echo.address, echo.address, vec![everything("ranker@1")]);
    let ask = |router: &mut Router, count: usize| {
        let mut client = Client::connect(router.address);
        for _ in 0..count {
            client.send(post("FEED", "x-user-id: u1\r\n", "{}"));
            assert_eq!(client.answer().status, 200);
        }
        router.drain(std::time::Duration::from_secs(30));
    };
    ask(&mut start(folder.path(), &definition, ExposureMode::Off), 5);
    // As a crash within the last write leaves it: the last record lacks its end.
    let spool = folder.path().join(SPOOL_FOLDER);
    let path = files(&spool).unwrap().pop().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let mut frames = switchboard_router::shadow::spool::frame::Frames::new(&bytes);
    let last = frames.by_ref().last().unwrap().1;
    std::fs::write(&path, &bytes[..last.end - 1]).unwrap();
    let verified = dump::verify(&spool).unwrap();
    assert_eq!((verified.records, verified.torn_bytes), (4, (last.len() - 1) as u64));

    let mut router = start(folder.path(), &definition, ExposureMode::Off);
    ask(&mut router, 3);
    assert_eq!(router.of_shadow(|shadow| shadow.spool_records.get()), 7);
    assert_eq!(sequences(&records(folder.path())), [0, 1, 2, 3, 5, 6, 7]);
}
