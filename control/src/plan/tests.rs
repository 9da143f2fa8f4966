use super::*;
use crate::rules::{Draft, RuleFile, Unmentioned, read};

const RULES: &str = r#"kind: Objective
token: RECOMMEND
context: { user: { from: "header:x-user", type: string }, n: { from: "query:n", type: number } }
default: a
arms: { a: { model: m@1 }, b: { model: m@1 }, c: { model: m@1 } }
rules:
  - name: trial
    when: n > 1
    experiment: { unit: user, salt: s, layer: l, layer_share: 4000, split: { a: 5000, b: 2500 } }
  - { name: last, arm: c }
---
{ kind: Layer, name: l }
---
{ kind: Model, name: m, version: "1", shard: s }
---
{ kind: Shard, name: s, endpoints: [{ address: "h:1" }] }
"#;

fn content(before: &Content, text: &str) -> Content {
    let file = RuleFile { name: "rules.yaml".to_owned(), text: text.to_owned() };
    let documents = read(&[file]).expect("good rules");
    let (set, allocations) = (&before.set, &before.allocations);
    let draft = Draft::of_change(
        set,
        allocations,
        &Default::default(),
        &documents,
        Unmentioned::Prune,
        "g",
    );
    let draft = draft.expect("a good draft");
    Content { set: draft.set, allocations: draft.allocations }
}

fn plan(change: impl Fn(&str) -> String) -> Plan {
    let before = content(&Content::default(), RULES);
    let after = content(&before, &change(RULES));
    Plan::between(Some(1), &before, &after)
}

/// From, to and percent of every move of the one experiment.
fn moves(plan: &Plan) -> Vec<(Option<&str>, Option<&str>, f64)> {
    let [experiment] = plan.experiments.as_slice() else { panic!("{plan:?}") };
    experiment
        .moves
        .iter()
        .map(|way| (way.from.as_deref(), way.to.as_deref(), way.percent))
        .collect()
}

#[test]
fn the_same_rules_are_an_empty_plan() {
    assert!(plan(str::to_owned).is_empty());
}

#[test]
fn a_weight_in_a_layer_moves_a_part_of_a_part() {
    let plan = plan(|rules| rules.replace("a: 5000, b: 2500", "a: 4000, b: 3500"));
    assert_eq!(moves(&plan), [(Some("a"), Some("b"), 4.0)]); // 10 % of 40 %
    let experiment = &plan.experiments[0];
    assert_eq!(experiment.moves[0].slots, Some(1000));
    assert_eq!(experiment.moves[0].slot_ranges, ["4000-4999"]);
    assert!(experiment.exact && !experiment.audience_changed);
}

#[test]
fn a_growing_share_of_a_layer_only_adds_units() {
    let plan = plan(|rules| rules.replace("4000", "6000"));
    assert_eq!(moves(&plan), [(None, Some("a"), 10.0), (None, Some("b"), 5.0)]);
    // They come with Slots of the Layer; no Slot of the Experiment changes hands.
    assert_eq!(plan.experiments[0].moves[0].slots, None);
}

#[test]
fn share_and_weights_together_are_counted_exactly() {
    let plan = plan(|rules| rules.replace("4000", "2000").replace("b: 2500", "b: 5000"));
    // 20 % stay in the Layer's share, where 2500 Slots get an owner; 20 % leave it.
    let expected = [(None, Some("b"), 5.0), (Some("a"), None, 10.0), (Some("b"), None, 5.0)];
    assert_eq!(moves(&plan), expected);
    assert!(plan.experiments[0].moves.iter().all(|way| way.slots.is_none()));
}

#[test]
fn another_salt_moves_what_is_expected_and_says_so() {
    let plan = plan(|rules| rules.replace("salt: s,", "salt: t,"));
    assert!(!plan.experiments[0].exact);
    let moves = moves(&plan);
    let total: f64 = moves.iter().map(|(_, _, percent)| percent).sum();
    // Shares 20, 10 and 70 %, twice and independently.
    assert!((total - (100.0 - 4.0 - 1.0 - 49.0)).abs() < 1e-9, "{moves:?}");
}

#[test]
fn what_comes_and_goes_is_exact() {
    let removed = plan(|rules| {
        let rule = rules.find("  - name: trial").expect("it is there");
        let end = rules.find("  - { name: last").expect("it is there");
        format!("{}{}", &rules[..rule], &rules[end..])
    });
    assert_eq!(moves(&removed), [(Some("a"), None, 20.0), (Some("b"), None, 10.0)]);
    assert_eq!(removed.experiments[0].change, Change::Removed);
    let added = Plan::between(None, &Content::default(), &content(&Content::default(), RULES));
    assert_eq!(moves(&added), [(None, Some("a"), 20.0), (None, Some("b"), 10.0)]);
    assert_eq!(added.experiments[0].change, Change::Added);
}

#[test]
fn another_condition_is_told_though_no_slot_moves() {
    let plan = plan(|rules| rules.replace("n > 1", "n > 2"));
    assert!(moves(&plan).is_empty());
    assert!(plan.experiments[0].audience_changed);
    assert_eq!(plan.objects[0].fields[0].path, "rules[trial].when");
}

#[test]
fn the_order_of_rules_is_one_change() {
    let plan = plan(|rules| {
        let last = "  - { name: last, arm: c }\n";
        rules.replace(last, "").replace("rules:\n", &format!("rules:\n{last}"))
    });
    let paths: Vec<_> = plan.objects[0].fields.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(paths, ["rules (order)"]);
}

#[test]
fn a_renamed_object_goes_and_comes() {
    let plan =
        plan(|rules| rules.replace("name: s,", "name: t,").replace("shard: s ", "shard: t "));
    let told: Vec<_> =
        plan.objects.iter().map(|one| (one.kind.as_str(), one.name.as_str(), one.change)).collect();
    let expected = [
        ("Model", "m@1", Change::Changed),
        ("Shard", "s", Change::Removed),
        ("Shard", "t", Change::Added),
    ];
    assert_eq!(told, expected);
}
