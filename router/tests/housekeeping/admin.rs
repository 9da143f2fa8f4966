//! The admin listener over real sockets.

use std::collections::{HashMap, HashSet};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;
use switchboard_router::cores::WorkerIndex;
use switchboard_router::limits::ADMIN_CONNECTIONS_MAX;
use switchboard_shared::snapshot::{ArmIndex, Expectations, Snapshot};
use tempfile::TempDir;

use crate::controller::Controller;
use crate::get::{ask, connect, get};
use crate::router::Router;
use crate::samples;

fn file(version: u64) -> Vec<u8> {
    samples::file(&samples::definition(&["FEED"], &["127.0.0.1:9001"]), version)
}

fn started() -> (TempDir, Router) {
    let folder = tempfile::tempdir().unwrap();
    let router = Router::start(folder.path());
    (folder, router)
}

/// All samples of a page in the text format; panics at anything that is not of it.
fn samples_of(page: &str) -> HashMap<String, f64> {
    let (mut samples, mut announced) = (HashMap::new(), HashSet::new());
    let mut family = (String::new(), String::new());
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a help text");
            assert!(announced.insert(name.to_owned()), "{name} is announced twice");
            assert!(!help.is_empty());
            name.clone_into(&mut family.0);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a type");
            assert_eq!(name, family.0);
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            kind.clone_into(&mut family.1);
        } else {
            let (series, value) = line.rsplit_once(' ').expect("a value");
            let name = series.split('{').next().expect("a name");
            let suffix = name.strip_prefix(&family.0).expect("a sample of its family");
            let known =
                if family.1 == "histogram" { &["_bucket", "_sum", "_count"][..] } else { &[""] };
            assert!(known.contains(&suffix), "{line}");
            let value: f64 = value.parse().expect("a number");
            assert!(samples.insert(series.to_owned(), value).is_none(), "{series} twice");
        }
    }
    samples
}

#[test]
fn it_is_alive_at_once_and_ready_with_a_snapshot_until_it_drains() {
    let (_folder, router) = started();
    assert_eq!(get(router.admin(), "/healthz").status, 200);
    let answer = get(router.admin(), "/readyz");
    assert_eq!((answer.status, answer.body.as_str()), (503, "no snapshot yet\n"));
    Controller::connect(router.socket()).push(&file(1));
    assert_eq!(get(router.admin(), "/readyz").status, 200);
    router.status.drain();
    let answer = get(router.admin(), "/readyz");
    assert_eq!((answer.status, answer.body.as_str()), (503, "draining\n"));
    assert_eq!(get(router.admin(), "/healthz").status, 200);
}

#[test]
fn every_line_of_the_metrics_is_of_the_text_format() {
    let (_folder, router) = started();
    let before = samples_of(&get(router.admin(), "/metrics").body);
    assert_eq!(before["switchboard_ready"], 0.0);
    assert!(!before.contains_key("switchboard_snapshot_version"));

    let mut controller = Controller::connect(router.socket());
    controller.push(&file(7));
    controller.refusal(&file(6));
    let worker = router.counters.worker(WorkerIndex(1)).unwrap();
    worker.requests.add(5);
    let active = router.activation.published().unwrap();
    let objective = active.snapshot.find(b"FEED").unwrap();
    let arm = ArmIndex::new(1).unwrap();
    active.arm_counters(objective, arm, WorkerIndex(1)).requests.add(3);

    let answer = get(router.admin(), "/metrics");
    assert!(answer.head.contains("Content-Type: text/plain; version=0.0.4; charset=utf-8"));
    let after = samples_of(&answer.body);
    for (series, value) in [
        ("switchboard_ready", 1.0),
        ("switchboard_snapshot_version", 7.0),
        ("switchboard_snapshot_from_disk", 0.0),
        ("switchboard_snapshot_expired", 0.0),
        ("switchboard_snapshot_created_timestamp_seconds", 1_800_000_000.0),
        ("switchboard_snapshot_refusals_total{reason=\"not_newer\"}", 1.0),
        ("switchboard_activations_total", 1.0),
        ("switchboard_controllers_active", 1.0),
        ("switchboard_requests_total", 5.0),
        ("switchboard_arm_requests_total{objective=\"FEED\",arm=\"heavy\"}", 3.0),
        ("switchboard_arm_requests_total{objective=\"FEED\",arm=\"stable\"}", 0.0),
    ] {
        assert_eq!(after.get(series), Some(&value), "{series}");
    }
    assert!(after.contains_key("switchboard_worker_swap_seconds{worker=\"1\"}"));
    assert!(after["process_resident_memory_bytes"] > 0.0);
}

#[test]
fn histogram_buckets_are_cumulative_and_end_with_the_count() {
    let (_folder, router) = started();
    Controller::connect(router.socket()).push(&file(1));
    let page = get(router.admin(), "/metrics").body;
    let name = "switchboard_activation_seconds";
    let bucket = format!("{name}_bucket{{le=\"");
    let buckets: Vec<(f64, f64)> = page
        .lines()
        .filter_map(|line| line.strip_prefix(&bucket))
        .map(|rest| {
            let (bound, value) = rest.split_once("\"} ").unwrap();
            (bound.parse().unwrap(), value.parse().unwrap())
        })
        .collect();
    assert!(buckets.len() > 50);
    assert!(buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
    let (bound, count) = buckets[buckets.len() - 1];
    assert_eq!((bound, count), (f64::INFINITY, 1.0));
    assert_eq!(samples_of(&page)[&format!("{name}_count")], 1.0);
}

#[test]
fn the_snapshot_page_tells_what_runs_and_what_was_refused() {
    let (folder, router) = started();
    let page = |router: &Router| -> Value {
        serde_json::from_str(&get(router.admin(), "/snapshot").body).unwrap()
    };
    let nothing = page(&router);
    assert_eq!((&nothing["ready"], &nothing["active"]), (&Value::Bool(false), &Value::Null));

    let mut controller = Controller::connect(router.socket());
    controller.push(&file(7));
    controller.refusal(&file(6));
    let found = page(&router);
    let expected = Expectations::of_group(samples::GROUP);
    let snapshot = Snapshot::open(&file(7), &samples::trusted(), expected).unwrap();
    let active = &found["active"];
    assert_eq!(active["version"], 7);
    assert_eq!(active["digest"], snapshot.digest().to_string());
    assert_eq!(active["key_id"], snapshot.key_id().to_string());
    assert_eq!(active["created_unix_ms"], 1_800_000_000_000_u64);
    assert_eq!(active["source"], "push");
    assert_eq!(active["expired"], false);
    assert_eq!(active["swap_micros"].as_array().unwrap().len(), 2);
    assert_eq!(found["refusals"], 1);
    assert_eq!(found["last_refusal"]["reason"], "not_newer");
    assert_eq!(found["last_refusal"]["version"], 6);
    drop((router, controller));
    assert_eq!(page(&Router::start(folder.path()))["active"]["source"], "disk");
}

#[test]
fn a_head_answer_has_the_length_and_no_body() {
    let (_folder, router) = started();
    let full = get(router.admin(), "/");
    let head = ask(router.admin(), b"HEAD / HTTP/1.1\r\nHost: router\r\n\r\n").unwrap();
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert!(head.head.contains(&format!("Content-Length: {}\r\n", full.body.len())));
}

#[test]
fn what_is_no_page_or_no_request_has_its_status() {
    let (_folder, router) = started();
    assert_eq!(get(router.admin(), "/nothing").status, 404);
    assert_eq!(get(router.admin(), "/healthz?verbose=1").status, 200);
    let post = b"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
    let answer = ask(router.admin(), post).unwrap();
    assert_eq!(answer.status, 405);
    assert!(answer.head.contains("Allow: GET, HEAD"));
    assert_eq!(ask(router.admin(), b"\x16\x03\x01\x00\x05hello\r\n\r\n").unwrap().status, 400);
    let long = [b"GET / HTTP/1.1\r\nX: ".as_slice(), &[b'x'; 20_000]].concat();
    assert_eq!(ask(router.admin(), &long).unwrap().status, 431);
}

#[test]
fn slow_clients_take_places_but_not_the_listener() {
    let (_folder, router) = started();
    let mut slow: Vec<TcpStream> = Vec::new();
    for _ in 1..ADMIN_CONNECTIONS_MAX {
        let mut stream = connect(router.admin());
        stream.write_all(b"GET /healthz HTT").unwrap();
        slow.push(stream);
    }
    assert_eq!(get(router.admin(), "/healthz").status, 200);
    // With the last place taken, a further one is closed at once; with one left, it works again.
    slow.push(connect(router.admin()));
    while ask(router.admin(), b"GET /healthz HTTP/1.1\r\n\r\n").is_some() {}
    drop(slow.pop());
    while ask(router.admin(), b"GET /healthz HTTP/1.1\r\n\r\n").is_none() {}
    assert_eq!(slow.len(), ADMIN_CONNECTIONS_MAX - 1);
}

#[test]
fn a_request_that_trickles_is_cut() {
    let (_folder, router) = started();
    let mut stream = connect(router.admin());
    let mut trickle = stream.try_clone().unwrap();
    let writer = std::thread::spawn(move || {
        while trickle.write_all(b"x").is_ok() {
            std::thread::park_timeout(std::time::Duration::from_millis(100));
        }
    });
    let mut answer = Vec::new();
    let outcome = stream.read_to_end(&mut answer);
    let is_timeout = outcome.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
    assert!(!is_timeout, "it was not cut");
    assert!(answer.is_empty());
    writer.join().unwrap();
}

#[test]
fn the_endpoints_of_each_shard_are_listed_though_no_worker_knows_them_yet() {
    let (_folder, router) = started();
    let mut controller = Controller::connect(router.socket());
    controller.push(&file(1));
    let page = get(router.admin(), "/upstreams");
    assert_eq!(page.status, 200);
    let page: Value = serde_json::from_str(&page.body).unwrap();
    assert_eq!((&page["workers"], &page["workers_silent"]), (&2.into(), &0.into()));
    let endpoint = &page["shards"][0]["endpoints"][0];
    assert_eq!(endpoint["address"], "127.0.0.1:9001");
    assert_eq!(endpoint["workers"], Value::Array(Vec::new()));
}
