use super::*;
use crate::net::clock;

const ORDINARY: Role = Role::Ordinary;

fn failed_often(now: Instant) -> Health {
    let mut health = Health::default();
    for _ in 1..FAILURES_TO_EJECT {
        assert_eq!(health.failed(ORDINARY, now), None);
    }
    assert_eq!(health.standing(now), Standing::Sound, "one failure short ejects nobody");
    assert_eq!(health.failed(ORDINARY, now), Some(Ejection::InARow));
    health
}

/// Fails every other request, so that no two failures are in a row.
fn failed_half(now: Instant) -> Health {
    let mut health = Health::default();
    for _ in 0..FAILURE_SAMPLES_MIN {
        health.succeeded(ORDINARY, now);
        if let Some(cause) = health.failed(ORDINARY, now) {
            assert_eq!(cause, Ejection::Share);
            return health;
        }
    }
    panic!("half of all requests failed, and nothing happened");
}

#[test]
fn failures_in_a_row_eject_and_time_lets_one_probe_through() {
    let now = clock::now();
    let mut health = failed_often(now);
    assert_eq!(health.standing(now), Standing::Out);
    let later = now + EJECTION_FIRST;
    assert_eq!(health.standing(later), Standing::Sound);
    assert_eq!(health.began(later), Role::Probe);
    assert_eq!(health.standing(later), Standing::Out, "a second request while the first probes");
}

#[test]
fn a_failed_probe_doubles_the_ejection_up_to_the_maximum() {
    let mut now = clock::now();
    let mut health = failed_often(now);
    let mut span = EJECTION_FIRST;
    for _ in 0..20 {
        assert_eq!(health.retry_after(now), span);
        now += span;
        let role = health.began(now);
        assert_eq!(health.failed(role, now), Some(Ejection::InARow));
        span = (span * 2).min(EJECTION_MAX);
    }
    assert_eq!(span, EJECTION_MAX);
}

#[test]
fn a_probe_that_succeeds_restores_at_once() {
    let now = clock::now();
    let mut health = failed_often(now);
    let later = now + EJECTION_FIRST;
    let role = health.began(later);
    health.succeeded(role, later);
    assert_eq!(health.standing(later), Standing::Sound);
    assert_eq!(health.failed(ORDINARY, later), None, "the count starts anew");
}

#[test]
fn an_answer_that_is_not_the_probes_restores_nothing() {
    let now = clock::now();
    let mut health = failed_half(now);
    health.succeeded(ORDINARY, now);
    assert_eq!(health.standing(now), Standing::Doubted);
}

#[test]
fn a_probe_that_tells_nothing_lets_the_next_one_try() {
    let now = clock::now();
    let mut health = failed_often(now);
    let later = now + EJECTION_FIRST;
    let role = health.began(later);
    health.untold(ORDINARY);
    assert_eq!(health.standing(later), Standing::Out, "an older request is not the probe");
    health.untold(role);
    assert_eq!(health.standing(later), Standing::Sound);
}

#[test]
fn failures_of_requests_that_were_in_flight_do_not_lengthen_an_ejection() {
    let now = clock::now();
    let mut health = failed_often(now);
    for _ in 0..100 {
        assert_eq!(health.failed(ORDINARY, now), None);
    }
    assert_eq!(health.retry_after(now), EJECTION_FIRST);
}

#[test]
fn an_ejection_soon_after_another_is_longer_and_one_long_after_is_not() {
    let now = clock::now();
    for (held, expected) in
        [(Duration::ZERO, EJECTION_FIRST * 2), (EJECTION_FORGOTTEN, EJECTION_FIRST)]
    {
        let mut health = failed_often(now);
        let back = now + EJECTION_FIRST;
        let role = health.began(back);
        health.succeeded(role, back);
        let later = back + held;
        for _ in 0..FAILURES_TO_EJECT {
            health.failed(ORDINARY, later);
        }
        assert_eq!(health.retry_after(later), expected);
    }
}

#[test]
fn a_high_share_of_failures_makes_doubted_though_none_are_in_a_row() {
    let now = clock::now();
    let health = failed_half(now);
    assert_eq!(health.standing(now), Standing::Doubted);
    assert_eq!(health.standing(now + EJECTION_FIRST), Standing::Sound, "for a probe");
}

#[test]
fn a_doubted_endpoint_takes_many_requests_where_nothing_better_is_left() {
    let now = clock::now();
    let mut health = failed_half(now);
    for _ in 0..10 {
        assert_eq!(health.began(now), ORDINARY);
        assert_eq!(health.standing(now), Standing::Doubted);
    }
}

#[test]
fn few_requests_prove_no_share() {
    let now = clock::now();
    let mut health = Health::default();
    for _ in 0..(FAILURE_SAMPLES_MIN - 1) {
        assert_eq!(health.answered_badly(ORDINARY, now), None);
    }
    assert_eq!(health.answered_badly(ORDINARY, now), Some(Ejection::Share));
}

#[test]
fn a_low_share_of_failures_ejects_nobody() {
    let now = clock::now();
    let mut health = Health::default();
    for _ in 0..1000 {
        health.succeeded(ORDINARY, now);
        health.succeeded(ORDINARY, now);
        assert_eq!(health.answered_badly(ORDINARY, now), None);
    }
}

#[test]
fn failures_of_a_past_window_are_forgotten() {
    let mut now = clock::now();
    let mut health = Health::default();
    for _ in 0..50 {
        for _ in 0..(FAILURE_SAMPLES_MIN / 2) {
            assert_eq!(health.answered_badly(ORDINARY, now), None);
        }
        now += FAILURE_WINDOW;
    }
}

#[test]
fn a_doubted_endpoint_that_then_refuses_is_out() {
    let now = clock::now();
    let mut health = failed_half(now);
    let failures: Vec<_> = (0..FAILURES_TO_EJECT).map(|_| health.failed(ORDINARY, now)).collect();
    assert!(failures.contains(&Some(Ejection::InARow)));
    assert_eq!(health.standing(now), Standing::Out);
}

#[test]
fn a_dead_endpoint_that_answers_its_probe_badly_is_doubted_and_so_asked_where_nothing_is_left() {
    let now = clock::now();
    let mut health = failed_often(now);
    let later = now + EJECTION_FIRST;
    let role = health.began(later);
    assert_eq!(health.answered_badly(role, later), Some(Ejection::Share));
    assert_eq!(health.standing(later), Standing::Doubted);
}

#[test]
fn a_rest_ends_by_itself_and_a_shorter_one_does_not_cut_it() {
    let now = clock::now();
    let mut health = Health::default();
    health.rest(now, Duration::from_secs(5));
    health.rest(now, Duration::from_secs(1));
    assert_eq!(health.standing(now + Duration::from_millis(4999)), Standing::Rests);
    assert_eq!(health.standing(now + Duration::from_secs(5)), Standing::Sound);
    assert_eq!(health.retry_after(now), Duration::from_secs(5));
    assert_eq!(health.began(now), ORDINARY, "a rest asks for no probe");
}

#[test]
fn an_endpoint_that_is_back_gets_its_share_by_steps() {
    let now = clock::now();
    let mut health = failed_often(now);
    assert_eq!(Health::default().share(now), SLOW_START_STEPS);
    let back = now + EJECTION_FIRST;
    let role = health.began(back);
    health.succeeded(role, back);
    let step = SLOW_START_SPAN / u32::from(SLOW_START_STEPS);
    for steps in 0..SLOW_START_STEPS {
        assert_eq!(health.share(back + step * u32::from(steps)), steps + 1);
    }
    assert_eq!(health.share(back + SLOW_START_SPAN * 1000), SLOW_START_STEPS);
}
