use super::*;
use crate::shadow::{
    compare::{Comparison, Reason, Verdict},
    result::{Answered, Compared, Outcome, RESULT_SCHEMA, Recorded, ShadowResult, Source},
};

fn answered(status: u16, us: u64) -> Answered {
    Answered { status, body_bytes_total: Some(2), first_byte_us: Some(us), total_us: Some(us + 10) }
}

/// The `number`th record: an answer that is so far from the primary's.
fn result(number: u64, distance: f64) -> ShadowResult {
    let comparison = if distance == 0.0 {
        Comparison { verdict: Verdict::Same, reason: None, distance, differences: Vec::new() }
    } else {
        Comparison { distance, ..Comparison::different(Reason::Values) }
    };
    ShadowResult {
        schema: RESULT_SCHEMA.to_owned(),
        time_unix_us: 1,
        source: Source { topic: "t".to_owned(), partition: 0, offset: 7 },
        candidate: "digits@2".to_owned(),
        outcome: Outcome::Answered,
        reason: None,
        attempts: 1,
        endpoint: Some("127.0.0.1:1".to_owned()),
        record: Some(Recorded {
            id: format!("record-{number}"),
            time_unix_us: 1,
            objective: "READ_DIGIT".to_owned(),
            snapshot: 1,
            unit: Some("<script>alert(1)</script>".to_owned()),
            arm: "light".to_owned(),
            model: "digits@1".to_owned(),
        }),
        primary: Some(answered(200, 1_000 + number)),
        answer: Some(answered(200, 2_000 + number)),
        body_bytes: 2,
        comparison: Some(Compared { by: "json".to_owned(), comparison }),
    }
}

fn report(results: impl IntoIterator<Item = ShadowResult>) -> Report {
    let mut tally = Tally::new("digits@2");
    for result in results {
        tally.add(&result);
    }
    tally.report()
}

#[test]
fn a_result_survives_writing_and_reading() {
    let result = result(1, 0.25);
    let bytes = result.write(b"\nbody").unwrap();
    assert_eq!(ShadowResult::read(&bytes).unwrap(), result);
    assert!(bytes.ends_with(b"}\n\nbody"));
}

#[test]
fn the_rate_is_of_what_could_be_compared() {
    let mut missing = result(9, 0.0);
    missing.comparison = Some(Compared {
        by: "json".to_owned(),
        comparison: Comparison::impossible(Reason::PrimaryCut),
    });
    let report = report([result(1, 0.0), result(2, 0.0), result(3, 0.0), result(4, 0.5), missing]);
    let agreement = report.agreement;
    assert_eq!((agreement.same, agreement.different, agreement.rate), (3, 1, Some(0.75)));
    // Wilson's interval of 3 of 4, from the textbook formula.
    assert!((agreement.rate_low.unwrap() - 0.300_642).abs() < 1e-6, "{agreement:?}");
    assert!((agreement.rate_high.unwrap() - 0.954_413).abs() < 1e-6, "{agreement:?}");
    assert_eq!(agreement.not_comparable["primary_cut"], 1);
    assert_eq!(agreement.different_by["values"], 1);
    assert_eq!(report.objectives["READ_DIGIT"].rate, Some(0.75));
}

#[test]
fn a_record_that_was_replayed_twice_counts_once() {
    let report = report([result(1, 0.0), result(2, 0.0), result(1, 0.5)]);
    assert_eq!((report.records.answered, report.records.repeated), (2, 1));
    assert_eq!(report.agreement.rate, Some(1.0));
}

#[test]
fn unreadable_records_are_told_apart_by_their_place() {
    let unreadable = |offset| ShadowResult {
        outcome: Outcome::Unreadable,
        reason: Some("no_envelope".to_owned()),
        source: Source { topic: "t".to_owned(), partition: 0, offset },
        record: None,
        primary: None,
        answer: None,
        comparison: None,
        ..result(1, 0.0)
    };
    let report = report([unreadable(1), unreadable(2), unreadable(1)]);
    assert_eq!((report.records.unreadable, report.records.repeated), (2, 1));
    assert_eq!(report.records.reasons["no_envelope"], 2);
    assert_eq!(report.agreement.rate, None);
}

#[test]
fn both_sides_times_are_of_the_same_requests() {
    let mut failed = result(3, 1.0);
    failed.answer = Some(answered(500, 1));
    let report = report([result(1, 0.0), result(2, 0.0), failed]);
    let Sides { primary, candidate } = report.latency.first_byte;
    assert_eq!((primary.count, primary.min_us, primary.max_us), (2, 1_001, 1_002));
    assert_eq!((candidate.count, candidate.mean_us), (2, 2_001.5));
    assert_eq!(report.candidate_statuses, [(200, 2), (500, 1)].into());
}

#[test]
fn quantiles_are_within_a_thousandth_of_the_exact_ones() {
    let report = report((0..10_000).map(|number| result(number * 13, 0.0)));
    let spans = report.latency.first_byte.primary;
    for (quantile, seen) in
        [(0.5, spans.p50_us), (0.9, spans.p90_us), (0.99, spans.p99_us), (0.999, spans.p999_us)]
    {
        let exact = 1_000.0 + ((quantile * 10_000.0_f64).ceil() - 1.0) * 13.0;
        let apart = (seen as f64 - exact) / exact;
        assert!((0.0..=0.001).contains(&apart), "{quantile}: {seen} instead of {exact}");
    }
}

#[test]
fn the_worst_come_first_and_are_bounded() {
    let report =
        report((1..100_u32).map(|number| result(number.into(), f64::from(number) / 100.0)));
    let distances: Vec<_> = report.worst.iter().map(|one| one.distance).collect();
    let expected: Vec<_> = (80..100_u32).rev().map(|number| f64::from(number) / 100.0).collect();
    assert_eq!(distances, expected);
}

#[test]
fn the_order_of_answers_does_not_change_which_are_the_worst() {
    let results = || (1..60_u32).map(|number| result(number.into(), f64::from(number % 2)));
    let ids = |report: Report| report.worst.into_iter().map(|one| one.id).collect::<Vec<_>>();
    assert_eq!(ids(report(results())), ids(report(results().rev())));
}

#[test]
fn reasons_from_outside_are_bounded() {
    let of_reason = |number: u64| ShadowResult {
        outcome: Outcome::Unanswered,
        reason: Some(format!("reason-{number}")),
        ..result(number, 0.0)
    };
    let report = report((0..500).map(of_reason));
    assert_eq!(report.records.reasons.len(), 65);
    assert_eq!(report.records.reasons["others"], 436);
}

#[test]
fn what_models_and_users_wrote_is_text_in_the_page() {
    let page = page(&report([result(1, 0.5), result(2, 0.0)]));
    assert!(!page.contains("<script>"), "{page}");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(page.contains("<span class=\"rate\">50.00 %</span> of 2 compared answers"));
}

#[test]
fn a_page_of_nothing_is_still_a_page() {
    let page = page(&report([]));
    assert!(page.contains("nothing was compared") && page.ends_with("</html>\n"));
}
