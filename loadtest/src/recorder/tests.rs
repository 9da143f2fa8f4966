use proptest::prelude::*;

use super::decisions::Seen;
use super::*;

proptest! {
    #[test]
    fn percentiles_are_those_of_the_recorded_samples(
        mut samples in prop::collection::vec(1_000_u64..10_000_000_000, 1..400),
        percentile in 0.0_f64..=100.0,
    ) {
        let mut histogram = histogram();
        for sample in &samples {
            record(&mut histogram, Duration::from_nanos(*sample));
        }
        samples.sort_unstable();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small rank")]
        let rank = ((percentile / 100.0 * samples.len() as f64).ceil() as usize).max(1);
        let exact = samples[rank - 1] as f64;
        let seen = histogram.value_at_percentile(percentile) as f64;
        // Three digits, or the half microsecond that is told apart at the lower end.
        prop_assert!((seen - exact).abs() <= (exact / 1000.0).max(512.0), "{seen} against {exact}");
    }
}

#[test]
fn a_latency_over_an_hour_counts_as_an_hour() {
    let mut histogram = histogram();
    record(&mut histogram, Duration::from_secs(7200));
    assert_eq!(histogram.len(), 1);
    assert!(histogram.equivalent(histogram.max(), LATENCY_NANOSECONDS_MAX));
}

#[test]
fn threads_add_up() {
    let due = Instant::now();
    let mut tallies = [Tally::default(), Tally::default()];
    for (position, tally) in tallies.iter_mut().enumerate() {
        // Each thread meets the Arms in another order, so its labels differ.
        for arm in [["stable", "heavy"], ["heavy", "stable"]][position] {
            let seen = Seen { arm: tally.decisions.labels.of(arm.as_bytes()), ..Seen::default() };
            let times = Times { due, sent: due, done: due + Duration::from_millis(2) };
            tally.answer(200, times);
            tally.decisions.count(seen, Some(position as u64), 2_000_000, None);
        }
        tally.fail(Failure::Reset);
    }
    let [mut first, second] = tallies;
    first.merge(&second);
    assert_eq!((first.answers, first.latency.len(), first.statuses[&200]), (4, 4, 4));
    assert_eq!(first.failures[Failure::Reset as usize], 2);
    let rows = first.decisions.rows();
    assert_eq!(rows[&("", "stable")].answers, 2);
    assert_eq!(rows[&("", "heavy")].answers, 2);
    assert_eq!(rows[&("", "heavy")].users.count(), 2);
}

#[test]
fn each_failure_has_its_own_place() {
    let mut tally = Tally::default();
    for failure in Failure::ALL {
        tally.fail(failure);
    }
    assert_eq!(tally.failures, [1; Failure::ALL.len()]);
}
