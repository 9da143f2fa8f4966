//! Who owns which Slots follows changes with as few moves as possible, and survives an export.

use switchboard_control::rules::{Draft, ExperimentKey, RuleFault, Unmentioned, read};
use switchboard_shared::allocation::moves;

use crate::{
    export::exported,
    rules::{GOOD, draft, file},
};

fn good() -> Draft {
    draft(&read(&[file(GOOD)]).expect("good rules")).expect("a good draft")
}

fn changed(before: &Draft, text: &str) -> Result<Draft, Vec<RuleFault>> {
    let documents = read(&[file(text)])?;
    Draft::of_change(
        &before.set,
        &before.allocations,
        &before.conditions,
        &documents,
        Unmentioned::Keep,
        "default",
    )
}

fn key() -> ExperimentKey {
    ExperimentKey { objective: "RECOMMEND".to_owned(), rule: "trial".to_owned() }
}

#[test]
fn a_new_weight_moves_exactly_the_difference() {
    let before = good();
    let text = GOOD.replacen("stable: 9000, heavy: 1000", "stable: 8000, heavy: 2000", 1);
    let after = changed(&before, &text).expect("a good change");
    let arms = |draft: &Draft| draft.allocations.experiments[&key()].arms.clone();
    let moves = moves(&arms(&before), &arms(&after));
    let moves: Vec<_> =
        moves.iter().map(|one| (one.from.as_deref(), one.to.as_deref(), one.slots)).collect();
    assert_eq!(moves, [(Some("stable"), Some("heavy"), 1000)]);
}

#[test]
fn a_change_of_something_else_moves_nothing() {
    let before = good();
    let text = GOOD.replacen("weight: 2", "weight: 3", 1);
    let after = changed(&before, &text).expect("a good change");
    assert_eq!(after.allocations, before.allocations);
}

#[test]
fn another_salt_starts_anew_and_the_old_one_is_forgotten() {
    let before = good();
    let shrunk = GOOD.replacen("stable: 9000, heavy: 1000", "stable: 8000, heavy: 2000", 1);
    let shrunk = changed(&before, &shrunk).expect("a good change");
    let resalted = changed(&shrunk, &GOOD.replacen("trial-1", "trial-2", 1)).expect("good");
    let fresh = draft(&read(&[file(&GOOD.replacen("trial-1", "trial-2", 1))]).expect("good"));
    let fresh = fresh.expect("a good draft");
    assert_eq!(resalted.allocations.experiments, fresh.allocations.experiments);
}

#[test]
fn an_export_keeps_the_slots_that_history_made() {
    let mut history = good();
    for split in
        ["stable: 5000, heavy: 5000", "stable: 9000, heavy: 500", "stable: 7000, heavy: 3000"]
    {
        let text = GOOD.replacen("stable: 9000, heavy: 1000", split, 1);
        history = changed(&history, &text).expect("a good change");
    }
    let fresh = draft(
        &read(&[file(&GOOD.replacen("stable: 9000, heavy: 1000", "stable: 7000, heavy: 3000", 1))])
            .expect("good rules"),
    )
    .expect("a good draft");
    assert_ne!(history.allocations, fresh.allocations, "history matters");
    let again = draft(&read(&[file(&exported(&history))]).expect("good rules"));
    assert_eq!(again.expect("a good draft"), history);
}

#[test]
fn an_allocation_that_does_not_fit_is_refused() {
    let document = "---
kind: Allocation
objective: RECOMMEND
rule: trial
salt: trial-1
layer: { salt: layer/ranking, slots: [\"0-3999\"] }
split: { stable: [\"0-8999\"], heavy: [\"9000-9999\"] }
";
    assert!(draft(&read(&[file(&format!("{GOOD}{document}"))]).expect("good")).is_ok());
    for (before, after, expected) in [
        (
            "rule: trial",
            "rule: trail",
            "36:7: found the experiment `RECOMMEND/trail`, expected an Objective with an experiment in a Rule of that name",
        ),
        (
            "salt: trial-1\nlayer",
            "salt: trial-0\nlayer",
            "37:7: found the salt `trial-0`, expected the experiment's: `trial-1`",
        ),
        (
            "0-3999",
            "0-3998",
            "38:38: found 3999 Slots of the Layer `ranking`, expected 4000, as the experiment's layer_share says",
        ),
        (
            "salt: layer/ranking",
            "salt: other",
            "38:16: found the Layer's salt `other`, expected `layer/ranking`, as the Layer `ranking` says",
        ),
        (
            "9000-9999",
            "9000-9998",
            "39:37: found 999 Slots for the Arm `heavy`, expected 1000, as the experiment's split says",
        ),
    ] {
        let text = format!("{GOOD}{document}").replacen(
            before,
            after,
            if before.contains("trial") { 2 } else { 1 },
        );
        let text = if before.contains("trial") {
            format!("{GOOD}{}", document.replacen(before, after, 1))
        } else {
            text
        };
        let faults = draft(&read(&[file(&text)]).expect("readable")).expect_err(after);
        assert_eq!(faults[0].to_string(), format!("rules.yaml:{expected}"));
    }
    for (before, after) in
        [("9000-9999", "8999-9998"), ("9000-9999", "9999-9000"), ("\"9000-9999\"", "1")]
    {
        let text = format!("{GOOD}{}", document.replacen(before, after, 1));
        assert!(read(&[file(&text)]).is_err(), "{after}");
    }
}

#[test]
fn an_allocation_cannot_take_what_another_experiment_keeps() {
    let second = r#"---
kind: Objective
token: SECOND
context: { user_id: { from: "header:x-user-id", type: string } }
default: only
arms: { only: { model: ranker@1 } }
rules:
  - name: trial
    experiment: { unit: user_id, salt: second-1, layer: ranking, layer_share: 6000, split: { only: 10000 } }
"#;
    let before = good();
    let claim = "---
kind: Allocation
objective: SECOND
rule: trial
salt: second-1
layer: { salt: layer/ranking, slots: [\"SLOTS\"] }
split: { only: [\"0-9999\"] }
";
    let with =
        |slots: &str| changed(&before, &format!("{second}{}", claim.replace("SLOTS", slots)));
    let faults = with("3999-9998").expect_err("slot 3999 is taken");
    let told = faults[0].to_string();
    assert!(
        told.contains("slot 3999 is owned by `RECOMMEND/trial` and by `SECOND/trial`"),
        "{told}"
    );
    let after = with("4000-9999").expect("free Slots");
    let owners = &after.allocations.layers["ranking"].experiments;
    assert_eq!((owners.weight("RECOMMEND/trial"), owners.weight("SECOND/trial")), (4000, 6000));
}
