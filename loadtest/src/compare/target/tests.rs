use super::super::alone::{Activation, Alone, Estimate, Known, Memory};
use super::super::measure::Phase;
use super::super::measure::tests::measurement;
use super::super::outcome::Outcome;
use super::super::workload::Workload;
use super::*;

fn spread(median: f64) -> Spread {
    Spread { median, min: median, max: median }
}

fn alone() -> Alone {
    Alone {
        decide: Known::Seen(vec![
            Estimate { what: "one".to_owned(), nanoseconds: 250.0 },
            Estimate { what: "any".to_owned(), nanoseconds: 350.0 },
        ]),
        activation: Known::Seen(Activation {
            push_ms: spread(12.0),
            swap_us: spread(30.0),
            p99_with_reloads_us: spread(500.0),
            p99_without_us: spread(510.0),
            reloads_per_second: 100.0,
            reloads: 1000,
            requests: 50_000,
            failed: 0,
        }),
        memory: Known::Seen(Memory {
            idle_bytes: 6 << 20,
            filled_bytes: (6 << 20) + 5_000 * 2048,
            connections: 5_000,
        }),
    }
}

fn small(router: f64, haproxy: f64) -> Summary {
    let mut measurements = Vec::new();
    for phase in [Phase::Saturation, Phase::Rate(100.0)] {
        measurements.push(measurement(Peer::Router, phase, 0, router));
        measurements.push(measurement(Peer::Haproxy, phase, 0, haproxy));
        measurements.push(measurement(Peer::Direct, phase, 0, 1.0));
    }
    let workload = Workload::all().remove(0);
    let outcome = Outcome { workload, rate: 100.0, measurements, mishaps: Vec::new() };
    outcome.summary(&[Peer::Direct, Peer::Haproxy, Peer::Router])
}

fn target<'a>(targets: &'a [Target], what: &str) -> &'a Target {
    targets.iter().find(|target| target.what.contains(what)).unwrap()
}

#[test]
fn a_goal_is_met_or_not_by_medians() {
    let alone = alone();
    for (router, haproxy, verdict) in [(20.0, 40.0, Verdict::Met), (30.0, 40.0, Verdict::NotMet)] {
        let workloads = [small(router, haproxy)];
        let targets = judge(Evidence { workloads: &workloads, alone: &alone });
        let cpu = target(&targets, "of haproxy's");
        assert_eq!(cpu.verdict, verdict, "{cpu:?}");
        assert!(cpu.seen.contains(&format!("({router:.1} of {haproxy:.1} µs)")), "{cpu:?}");
    }
}

#[test]
fn what_did_not_run_is_not_measured_and_never_met() {
    let nothing = Alone {
        decide: Known::NotMeasured("no estimates".to_owned()),
        activation: Known::NotMeasured("left out".to_owned()),
        memory: Known::NotMeasured("left out".to_owned()),
    };
    let targets = judge(Evidence { workloads: &[], alone: &nothing });
    assert!(targets.len() >= 15);
    for target in targets {
        assert!(matches!(target.verdict, Verdict::NotMeasured(_)), "{target:?}");
        assert_eq!(target.seen, "");
    }
}

#[test]
fn the_router_alone_is_judged_by_its_worst() {
    let alone = alone();
    let targets = judge(Evidence { workloads: &[], alone: &alone });
    assert_eq!(target(&targets, "decide()").verdict, Verdict::NotMet);
    assert_eq!(target(&targets, "PREPARE to ACTIVE").verdict, Verdict::Met);
    assert_eq!(target(&targets, "swapped").verdict, Verdict::Met);
    assert_eq!(target(&targets, "hot reloads").verdict, Verdict::Met);
    let each = target(&targets, "per idle keep-alive");
    assert_eq!(
        (&each.verdict, each.seen.as_str()),
        (&Verdict::Met, "2.00 KiB, over 5000 connections")
    );
}

#[test]
fn one_failed_request_or_a_missing_reload_fails_the_reloads() {
    for (failed, reloads) in [(1, 1000), (0, 999)] {
        let mut alone = alone();
        if let Known::Seen(activation) = &mut alone.activation {
            (activation.failed, activation.reloads) = (failed, reloads);
        }
        let targets = judge(Evidence { workloads: &[], alone: &alone });
        assert_eq!(target(&targets, "hot reloads").verdict, Verdict::NotMet);
    }
}

#[test]
fn a_latency_is_told_with_its_ratio_to_each_peer() {
    let (alone, workloads) = (alone(), [small(20.0, 40.0)]);
    let targets = judge(Evidence { workloads: &workloads, alone: &alone });
    let lowest = target(&targets, "p99 at the same load");
    assert_eq!((&lowest.verdict, lowest.ratios.as_str()), (&Verdict::Met, "haproxy 0.50"));
}
