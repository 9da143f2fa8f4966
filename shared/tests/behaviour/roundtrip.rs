//! A Definition is built, opened, and asked.

use switchboard_shared::{
    context::{Context, Value},
    decide::{Reason, decide},
    slot::{Slot, SlotKey, Unit},
    snapshot::{Expectations, Snapshot, SnapshotVersion, build},
};

use crate::sample;

#[test]
fn what_was_built_opens_and_decides() {
    let file = build(&sample::definition(), SnapshotVersion::FIRST, 1_000, &sample::key())
        .expect("the sample is good");
    let snapshot = Snapshot::open(&file, &sample::trusted(), Expectations::of_group("test"))
        .expect("what `build` made");
    assert_eq!(snapshot.bytes(), file);

    let objective = snapshot.objective(b"RECOMMEND_HOME_FEED").expect("it was defined");
    let (user, _) = objective.attributes().find(|(_, one)| one.name == "user_id").expect("there");
    let (country, _) =
        objective.attributes().find(|(_, one)| one.name == "country").expect("there");

    let mut context = Context::with_defaults(objective);
    context.set(user, Value::Text("u1"));
    let decision = decide(snapshot.payload(), objective, &context);
    assert_eq!(decision.reason, Reason::Rule);
    assert_eq!(objective.arm(decision.arm).name, "heavy");

    let mut shares = [0; 3];
    for number in 0..10_000 {
        let name = format!("user-{number}");
        let mut context = Context::with_defaults(objective);
        context.set(user, Value::Text(&name));
        context.set(country, Value::Text("DE"));
        let decision = decide(snapshot.payload(), objective, &context);
        let unit = Unit::text(&name).expect("not blank");
        match decision.reason {
            Reason::Experiment => {
                assert_eq!(decision.slot, Some(Slot::of(&SlotKey::derive("heavy-trial"), &unit)));
                assert!(Slot::of(&SlotKey::derive("ranking-2026"), &unit).get() < 8_000);
                shares[decision.arm.get()] += 1;
            }
            _ => shares[2] += 1,
        }
    }
    assert!(shares.iter().all(|share| *share > 1_000), "{shares:?}");

    assert!(snapshot.objective(b"RECOMMEND_HOME_FEEDS").is_none());
    assert!(snapshot.objective(b"").is_none());
}
