//! Shadow targets: what the check refuses, and that drawing is independent of bucketing.

use switchboard_shared::{
    definition::{Members, SampleBy, ShadowTarget},
    limits::{SHADOW_MEMBERS_MAX, SHADOW_TARGETS_MAX},
    slot::{Slot, SlotKey, Unit},
    snapshot::{BuildError, check},
};

use crate::sample;

fn refused(change: impl FnOnce(&mut ShadowTarget), expected: &str) {
    let mut definition = sample::definition();
    change(&mut definition.objectives[0].shadow[0]);
    let Err(BuildError::Check(error)) = check(&definition) else {
        unreachable!("must be refused: {expected}")
    };
    assert_eq!(error.fault.to_string(), expected);
}

#[test]
fn a_bad_shadow_target_is_refused() {
    refused(|one| one.model = "ghost@1".into(), "there is no Model version `ghost@1`");
    refused(|one| one.arm = Some("ghost".into()), "there is no arm `ghost`");
    refused(|one| one.unit = Some("ghost".into()), "there is no attribute `ghost`");
    refused(
        |one| one.unit = Some("beta".into()),
        "its unit `beta` is a boolean; a unit is a text or a number",
    );
    refused(|one| one.unit = None, "samples by unit, but names no attribute that is the unit");
    refused(|one| one.sample = 0, "its sample is not within 1..=10000");
    refused(|one| one.sample = 10_001, "its sample is not within 1..=10000");
    refused(|one| one.bytes_per_second_max = Some(0), "its bytes per second are 0");
    for topic in ["", ".", "..", "a b", "ä", &"x".repeat(250)] {
        refused(
            |one| one.topic = Some(topic.into()),
            "its topic is not of the form [A-Za-z0-9._-]{1,249}, and neither `.` nor `..`",
        );
    }
    let form =
        "a kept or dropped member is not of the form a JSON Pointer such as /context/country";
    refused(|one| one.members = Members::Keep(vec![]), form);
    refused(|one| one.members = Members::Drop(vec!["country".into()]), form);
    let many = vec!["/a".to_owned(); SHADOW_MEMBERS_MAX + 1];
    refused(|one| one.members = Members::Keep(many), "more than 64 kept or dropped members");
}

#[test]
fn targets_differ_by_candidate_or_arm_and_are_few() {
    let mut definition = sample::definition();
    let target = definition.objectives[0].shadow[0].clone();
    let other = ShadowTarget { arm: None, by: SampleBy::Random, unit: None, ..target.clone() };
    definition.objectives[0].shadow.push(other);
    check(&definition).expect("another Arm's requests, drawn at random");

    let mut twice = definition.clone();
    twice.objectives[0].shadow.push(target.clone());
    let Err(BuildError::Check(error)) = check(&twice) else { unreachable!("a target twice") };
    assert_eq!(
        format!("{error}: {}", error.fault),
        "Objective RECOMMEND_HOME_FEED, shadow target feed-ranker@2: defined twice"
    );

    definition.objectives[0].shadow = vec![target; SHADOW_TARGETS_MAX + 1];
    let Err(BuildError::Check(error)) = check(&definition) else { unreachable!("too many") };
    assert_eq!(error.fault.to_string(), "more than 8 shadow targets");
}

/// EX-01: a sample of 10 % holds 10 % of each Arm, whatever the experiment's salt, even the token itself.
#[test]
fn drawing_is_independent_of_bucketing() {
    let (draw, bucket) = (SlotKey::derive_sample("FEED"), SlotKey::derive("FEED"));
    let (mut drawn, mut both) = (0_u32, 0_u32);
    for number in 0..100_000_u32 {
        let text = number.to_string();
        let unit = Unit::text(&text).expect("not blank");
        if Slot::of(&draw, &unit).get() < 1_000 {
            drawn += 1;
            both += u32::from(Slot::of(&bucket, &unit).get() < 1_000);
        }
    }
    // Six standard deviations of 100 000 × 0.1 and of 10 000 × 0.1 are 570 and 180.
    assert!(drawn.abs_diff(10_000) < 570, "{drawn}");
    assert!(both.abs_diff(1_000) < 180, "{both}");
}

/// Frozen, as `docs/bucketing.md` tells it; the numbers are from Python's `blake3`.
#[test]
fn drawing_never_changes() {
    let key = SlotKey::derive_sample("RECOMMEND_HOME_FEED");
    let slot = |text| Slot::of(&key, &Unit::text(text).expect("not blank")).get();
    assert_eq!([slot("u1"), slot("u7"), slot("ü")], [3_590, 9_370, 1_110]);
}
