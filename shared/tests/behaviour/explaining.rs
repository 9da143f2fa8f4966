//! What an explanation tells.

use serde_json::json;
use switchboard_shared::{
    context::{Context, Value},
    decide::{decide, explain},
    slot::{Slot, SlotKey, Unit},
};

use crate::sample;

/// A user of whom the two Slots are as wanted.
fn user_where(wanted: impl Fn(u16, u16) -> bool) -> (String, u16, u16) {
    let (layer, own) = (SlotKey::derive("ranking-2026"), SlotKey::derive("heavy-trial"));
    (0..)
        .map(|number| format!("user-{number}"))
        .find_map(|user| {
            let unit = Unit::text(&user)?;
            let (outer, inner) = (Slot::of(&layer, &unit).get(), Slot::of(&own, &unit).get());
            wanted(outer, inner).then_some((user, outer, inner))
        })
        .expect("there are many users")
}

#[test]
fn every_rule_that_was_tried_is_told_with_what_was_found() {
    let snapshot = sample::open(&sample::definition());
    let objective = snapshot.objective(b"RECOMMEND_HOME_FEED").expect("it was built");
    let (user, layer_slot, slot) =
        user_where(|outer, inner| outer < 8_000 && (5_000..9_500).contains(&inner));
    let mut context = Context::with_defaults(objective);
    sample::set(&mut context, objective, "user_id", Value::Text(&user));
    sample::set(&mut context, objective, "country", Value::Text("DE"));
    sample::set(&mut context, objective, "age", Value::Number(17.0));
    sample::set(&mut context, objective, "app_version", Value::Text("1.9.0"));

    let (decision, explanation) = explain(snapshot.payload(), objective, &context);
    assert_eq!(decision, decide(snapshot.payload(), objective, &context));
    assert_eq!(
        serde_json::to_value(&explanation).expect("plain data"),
        json!({
            "objective": "RECOMMEND_HOME_FEED",
            "arm": "heavy",
            "model": "feed-ranker@2",
            "rule": "heavy-trial",
            "slot": slot,
            "reason": "experiment",
            "unit_missing": false,
            "tried": [
                {
                    "rule": "staff",
                    "held": false,
                    "tests": [
                        { "test": r#"user_id in ["u1", "u2"]"#, "found": user, "passed": false },
                    ],
                    "outcome": "not_held",
                },
                {
                    "rule": "old-apps",
                    "held": false,
                    "tests": [
                        { "test": r#"semver(app_version, "<2.0.0")"#, "found": "1.9.0", "passed": true },
                        { "test": "not age < 18", "found": 17.0, "passed": false },
                    ],
                    "outcome": "not_held",
                },
                {
                    "rule": "heavy-trial",
                    "held": true,
                    "tests": [
                        { "test": r#"country in ["AT", "DE"]"#, "found": "DE", "passed": true },
                    ],
                    "layer": { "layer": "ranking", "slot": layer_slot, "inside": true },
                    "slot": slot,
                    "outcome": { "arm": "heavy" },
                },
            ],
        })
    );
}

#[test]
fn an_experiment_that_does_not_decide_tells_why() {
    let snapshot = sample::open(&sample::definition());
    let objective = snapshot.objective(b"RECOMMEND_HOME_FEED").expect("it was built");
    let outcome = |user: Option<&str>| {
        let mut context = Context::with_defaults(objective);
        sample::set(&mut context, objective, "country", Value::Text("AT"));
        if let Some(user) = user {
            sample::set(&mut context, objective, "user_id", Value::Text(user));
        }
        let (decision, explanation) = explain(snapshot.payload(), objective, &context);
        assert_eq!(decision, decide(snapshot.payload(), objective, &context));
        let last = explanation.tried.last().expect("three rules");
        (json!(last.outcome), last.held, json!(last.layer.as_ref().map(|layer| layer.inside)))
    };
    assert_eq!(outcome(None), (json!("no_unit"), true, json!(null)));
    let (user, ..) = user_where(|outer, _| outer >= 8_000);
    assert_eq!(outcome(Some(&user)), (json!("outside_layer"), true, json!(false)));
    let (user, ..) = user_where(|outer, inner| outer < 8_000 && inner >= 9_500);
    assert_eq!(outcome(Some(&user)), (json!("unowned"), true, json!(true)));
}
