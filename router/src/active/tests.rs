use super::*;
use crate::counters::MetricsText;
use crate::counters::ResponseClass;
use crate::samples;

const WORKERS: usize = 2;
const FIRST: WorkerIndex = WorkerIndex(0);
const SECOND: WorkerIndex = WorkerIndex(1);

fn prepare(tokens: &[&str], version: u64, before: Option<&Arc<Active>>) -> Arc<Active> {
    let definition = samples::definition(tokens, &["127.0.0.1:9001"]);
    let snapshot = samples::snapshot(&definition, version);
    Arc::new(Active::prepare(snapshot, &HostNames::new(), WORKERS, before).unwrap())
}

fn metrics(active: &Active) -> String {
    let mut page = MetricsText::default();
    active.series().write(active.snapshot.payload(), &mut page);
    page.into_text()
}

#[test]
fn each_arm_and_experiment_has_its_own_headers() {
    let active = prepare(&["FIRST", "SECOND"], 12, None);
    let objective = active.snapshot.find(b"SECOND").unwrap();
    let arm = active.snapshot.objective(b"SECOND").unwrap().arm_named("heavy").unwrap();
    assert_eq!(
        std::str::from_utf8(active.arm_headers(objective, arm)).unwrap(),
        "x-switchboard-objective: SECOND\r\nx-switchboard-arm: heavy\r\n\
         x-switchboard-model: ranker@2\r\nx-switchboard-snapshot: 12\r\n"
    );
    let rule = |place| RuleIndex::new(place).unwrap();
    let header = active.experiment_header(objective, rule(0));
    assert_eq!(header, b"x-switchboard-experiment: trial\r\n");
    assert_eq!(active.experiment_header(objective, rule(1)), b"");
}

#[test]
fn endpoints_keep_their_order_and_names_their_addresses() {
    let endpoints = ["[::1]:9001", "unix:/run/a.sock", "model.test:80", "127.0.0.1:9002"];
    let snapshot = samples::snapshot(&samples::definition(&["FEED"], &endpoints), 1);
    let name = ("model.test".to_owned(), 80);
    assert_eq!(host_names(snapshot.payload()), [name.clone()].into());
    let names = HostNames::from([(name, "192.0.2.1:80".parse().unwrap())]);
    let active = Active::prepare(snapshot, &names, WORKERS, None).unwrap();
    let tcp = |text: &str| EndpointAddress::Tcp(text.parse().unwrap());
    assert_eq!(
        active.endpoints(ShardIndex::new(0).unwrap()),
        [
            tcp("[::1]:9001"),
            EndpointAddress::Unix("/run/a.sock".into()),
            tcp("192.0.2.1:80"),
            tcp("127.0.0.1:9002"),
        ]
    );
}

#[test]
fn a_name_without_an_address_refuses_the_snapshot() {
    let snapshot = samples::snapshot(&samples::definition(&["FEED"], &["model.test:80"]), 1);
    let error = Active::prepare(snapshot, &HostNames::new(), WORKERS, None).unwrap_err();
    assert_eq!(error.reason(), "unresolved_endpoint");
    let expected = "shard ranker: no address is known for endpoint model.test:80";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn counts_live_on_over_an_activation_and_leave_with_their_objective() {
    let first = prepare(&["LEAVES", "STAYS"], 1, None);
    let arm = ArmIndex::new(0).unwrap();
    let of = |active: &Active, token: &[u8]| active.snapshot.find(token).unwrap();
    let counters = first.arm_counters(of(&first, b"STAYS"), arm, FIRST);
    counters.requests.add(3);
    counters.responses.add(ResponseClass::Success, 2);
    first.arm_counters(of(&first, b"LEAVES"), arm, FIRST).requests.add(9);

    let second = prepare(&["NEW", "STAYS"], 2, Some(&first));
    // A request that finishes on the first Snapshot still counts into the series of the second.
    first.arm_counters(of(&first, b"STAYS"), arm, SECOND).requests.add(4);
    let page = metrics(&second);
    let requests = "switchboard_arm_requests_total";
    let stays = format!("{requests}{{objective=\"STAYS\",arm=\"stable\"}} 7\n");
    assert!(page.contains(&stays), "{page}");
    assert!(
        page.contains(&format!("{requests}{{objective=\"NEW\",arm=\"stable\"}} 0\n")),
        "{page}"
    );
    assert!(page.contains("responses_total{objective=\"STAYS\",arm=\"stable\",class=\"2xx\"} 2\n"));
    assert!(!page.contains("class=\"5xx\""), "{page}");
    assert!(!page.contains("LEAVES"), "{page}");
}

#[test]
fn activations_do_not_grow_the_page() {
    let mut active = prepare(&["FEED"], 1, None);
    for version in 2..200 {
        let token = format!("FEED_{version}");
        active = prepare(&["FEED", &token], version, Some(&active));
        let objective = active.snapshot.find(token.as_bytes()).unwrap();
        active.arm_counters(objective, ArmIndex::new(1).unwrap(), FIRST).requests.add(1);
    }
    let fresh = metrics(&prepare(&["FEED", "FEED_199"], 1, None));
    assert_eq!(metrics(&active).lines().count(), fresh.lines().count());
}

#[test]
fn arms_beyond_the_bound_share_one_series() {
    let tokens: Vec<String> =
        (0..=crate::limits::ARM_SERIES_MAX / 2).map(|number| format!("T{number}")).collect();
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let active = prepare(&tokens, 1, None);
    let last = active.snapshot.find(tokens[tokens.len() - 1].as_bytes()).unwrap();
    for arm in [0, 1] {
        active.arm_counters(last, ArmIndex::new(arm).unwrap(), SECOND).requests.add(1);
    }
    let page = metrics(&active);
    let other = "switchboard_arm_requests_total{objective=\"other\",arm=\"other\"} 2\n";
    assert!(page.contains(other));
    assert!(!page.contains(tokens[tokens.len() - 1]));
}
