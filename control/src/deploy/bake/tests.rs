use super::*;
use crate::broadcaster::Standing;

const LIMITS: BakeLimits = BakeLimits {
    span: Duration::from_secs(60),
    requests_min: 100,
    errors_max: 0.05,
    fallouts_max: 0.2,
};

fn router(socket: &str, arms: &[(&str, [u64; 3])]) -> RouterStatus {
    let mut counters = BTreeMap::from([("switchboard_requests_total".to_owned(), 7)]);
    for (arm, values) in arms {
        for (name, value) in ["arm_requests", "arm_errors", "arm_fallouts"].iter().zip(values) {
            counters.insert(format!("{name}{{{arm}}}"), *value);
        }
    }
    RouterStatus {
        socket: socket.to_owned(),
        router: None,
        group: None,
        build: None,
        standing: Standing::Current,
        running: None,
        refusal: None,
        error: None,
        heard_ms: None,
        uptime_ms: None,
        health: None,
        slowest_swap_us: None,
        counters,
    }
}

#[test]
fn what_failed_before_the_activation_does_not_count() {
    let mut watched = Watched::begin(&[router("a", &[("HOME/heavy", [1000, 900, 0])])]);
    watched.look(&[router("a", &[("HOME/heavy", [1100, 905, 0])])]);
    assert_eq!(watched.breach(LIMITS), None, "5 of 100 are 5 %");
    watched.look(&[router("a", &[("HOME/heavy", [1100, 906, 0])])]);
    assert_eq!(
        watched.breach(LIMITS).unwrap(),
        "HOME/heavy: 6 of 100 requests failed since the activation, more than 5.0 %"
    );
}

#[test]
fn few_requests_say_nothing_and_routers_are_summed() {
    let mut watched = Watched::begin(&[]);
    watched.look(&[router("a", &[("HOME/heavy", [99, 99, 0])])]);
    assert_eq!(watched.breach(LIMITS), None);
    watched.look(&[
        router("a", &[("HOME/heavy", [99, 99, 0])]),
        router("b", &[("HOME/heavy", [1, 0, 0])]),
    ]);
    assert!(watched.breach(LIMITS).unwrap().starts_with("HOME/heavy: 99 of 100 requests failed"));
}

#[test]
fn fallouts_count_against_what_was_decided() {
    let mut watched = Watched::begin(&[]);
    watched.look(&[router("a", &[("HOME/heavy", [80, 0, 20]), ("HOME/stable", [920, 0, 0])])]);
    assert_eq!(watched.breach(LIMITS), None);
    watched.look(&[router("a", &[("HOME/heavy", [80, 0, 21]), ("HOME/stable", [920, 0, 0])])]);
    assert_eq!(
        watched.breach(LIMITS).unwrap(),
        "HOME/heavy: 21 of 101 requests fell out since the activation, more than 20.0 %"
    );
}

#[test]
fn a_router_that_restarts_or_leaves_keeps_what_it_told() {
    let mut watched = Watched::begin(&[router("a", &[("HOME/heavy", [500, 0, 0])])]);
    watched.look(&[router("a", &[("HOME/heavy", [550, 3, 0])])]);
    watched.look(&[router("a", &[("HOME/heavy", [20, 2, 0])])]);
    assert_eq!(watched.sums()["HOME/heavy"], Sums { requests: 70, errors: 5, fallouts: 0 });
    watched.look(&[]);
    watched.look(&[router("a", &[("HOME/heavy", [60, 2, 0])])]);
    assert_eq!(watched.sums()["HOME/heavy"], Sums { requests: 110, errors: 5, fallouts: 0 });
    assert_eq!(watched.breach(LIMITS), None);
    assert_eq!(watched.told(LIMITS.span), "110 requests in 60s: 5 failed, 0 fell out");
}
