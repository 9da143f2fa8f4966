use std::collections::BTreeMap;

use super::*;

fn golden(expect: &[(&str, Scalar)], tolerance: f64) -> Golden {
    Golden {
        path: "/infer".to_owned(),
        body: Some("{}".to_owned()),
        content_type: "application/json".to_owned(),
        status: 200,
        expect: expect.iter().map(|(at, value)| ((*at).to_owned(), value.clone())).collect(),
        tolerance,
    }
}

fn number(value: f64) -> Scalar {
    Scalar::Number(value)
}

#[test]
fn a_value_that_differs_is_told_with_its_place() {
    let body = br#"{"outputs":[{"data":[7,0.5]}],"name":"digits","ok":true}"#;
    let wrong =
        |expect: &[(&str, Scalar)], tolerance| wrong_value(&golden(expect, tolerance), body);
    assert_eq!(wrong(&[("/outputs/0/data/0", number(7.0))], 0.0), None);
    assert_eq!(wrong(&[("/name", Scalar::String("digits".to_owned()))], 0.0), None);
    assert_eq!(wrong(&[("/ok", Scalar::Bool(true))], 0.0), None);
    assert_eq!(wrong(&[("/outputs/0/data/1", number(0.51))], 0.011), None);
    assert_eq!(
        wrong(&[("/outputs/0/data/1", number(0.51))], 0.009).unwrap(),
        "/outputs/0/data/1 is 0.5, not 0.51"
    );
    assert_eq!(wrong(&[("/ok", number(1.0))], 0.0).unwrap(), "/ok is true, not 1");
    assert_eq!(
        wrong(&[("/outputs/1", number(1.0))], 0.0).unwrap(),
        "the answer has no /outputs/1, which should be 1"
    );
    assert!(
        wrong_value(&golden(&[("", number(1.0))], 0.0), b"<html>").unwrap().contains("no JSON")
    );
    assert_eq!(wrong_value(&golden(&[], 0.0), b"<html>"), None, "nothing is asked of the body");
}

#[test]
fn a_long_answer_is_shown_in_part() {
    let body = serde_json::to_vec(&BTreeMap::from([("a", "ä".repeat(10_000))])).unwrap();
    let wrong = wrong_value(&golden(&[("/a", number(1.0))], 0.0), &body).unwrap();
    assert!(wrong.chars().count() < 200, "{wrong}");
}

#[test]
fn percentiles_are_nearest_ranks_and_each_limit_counts() {
    let spans = || (1..=100).map(Duration::from_millis).rev().collect::<Vec<_>>();
    let limits = LatencyLimits {
        requests: 100,
        concurrency: 4,
        p50_max_ms: Some(50),
        p95_max_ms: Some(95),
        p99_max_ms: Some(99),
    };
    assert_eq!(
        judge(spans(), limits).unwrap(),
        "p50 50.0 ms, p95 95.0 ms, p99 99.0 ms (100 requests, 4 at once)"
    );
    for (limits, word) in [
        (LatencyLimits { p50_max_ms: Some(49), ..limits }, "p50 is over 49 ms"),
        (LatencyLimits { p95_max_ms: Some(94), ..limits }, "p95 is over 94 ms"),
        (LatencyLimits { p99_max_ms: Some(98), ..limits }, "p99 is over 98 ms"),
    ] {
        assert!(judge(spans(), limits).unwrap_err().starts_with(word));
    }
    let one = judge(vec![Duration::from_millis(7)], LatencyLimits { requests: 1, ..limits });
    assert!(one.unwrap().starts_with("p50 7.0 ms, p95 7.0 ms, p99 7.0 ms"));
}
