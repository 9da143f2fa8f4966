//! Facts in rule files: who needs them, for which Unit, and where they go.

use switchboard_control::rules::{FaultKind, Object, RuleFault, read, write};
use switchboard_shared::definition::{FactsConflict, FactsInto, FactsObject, FactsOwner, Source};

use crate::rules::{draft, file};

/// `INTO` and `MORE` are replaced by the tests.
const RULES: &str = r#"kind: Objective
token: RANK
context: { user_id: { from: "header:x-user-id", type: string } }
unit: user_id
default: stable
arms:
  stable: { model: ranker@1 }
  heavy: { model: ranker@2, facts: [user_country]INTO }
rules: [{ name: r, when: 'fact.spend > 5 && fact.user_country in ["DE"]', arm: heavy }]
---
{ kind: Model, name: ranker, version: "1", shard: s }
---
{ kind: Model, name: ranker, version: "2", shard: s, facts: [recent_items], facts_into: { preset: openai } }
---
{ kind: Shard, name: s, endpoints: [{ address: "127.0.0.1:1" }] }
---
{ kind: Fact, name: user_country, type: string, redis: { key: "user:{unit}:country" } }
---
{ kind: Fact, name: recent_items, type: json, redis: { key: "user:{unit}", field: items }, default: '[]' }
---
{ kind: Fact, name: spend, type: number, redis: { key: "spend:{unit}" }, fresh_for: 2s }
"#;

fn rules(into: &str) -> String {
    RULES.replace("INTO", into)
}

fn faults(text: &str) -> Vec<RuleFault> {
    match read(&[file(text)]) {
        Ok(documents) => draft(&documents).err().unwrap_or_default(),
        Err(faults) => faults,
    }
}

fn object(pointer: &str, owner: FactsOwner, conflict: FactsConflict) -> FactsObject {
    FactsObject { pointer: pointer.to_owned(), owner, as_text: false, conflict }
}

#[test]
fn facts_go_where_the_arm_says_or_else_its_model() {
    use FactsConflict::{Refuse, Replace};
    use FactsOwner::{Router, Shared};
    for (into, expected) in [
        (
            "",
            FactsInto::Body(FactsObject { as_text: true, ..object("/metadata", Shared, Replace) }),
        ),
        (", facts_into: headers", FactsInto::Headers),
        (
            ", facts_into: { preset: v2, on_conflict: refuse }",
            FactsInto::Body(object("/parameters", Shared, Refuse)),
        ),
        (", facts_into: { body: /a/b }", FactsInto::Body(object("/a/b", Router, Replace))),
        (", facts_into: { body: \"\", merge: true }", FactsInto::Body(object("", Shared, Replace))),
    ] {
        let documents = read(&[file(&rules(into))]).expect(into);
        let draft = draft(&documents).expect(into);
        let objective = &draft.definition.objectives[0];
        let heavy = objective.arms.iter().find(|arm| arm.name == "heavy").expect("it is there");
        assert_eq!(heavy.facts_into, expected, "{into}");
        assert_eq!(heavy.facts, ["recent_items", "user_country"], "the Arm's and its Model's");
        assert_eq!(objective.unit.as_deref(), Some("user_id"));
        let asked = objective.context.iter().filter_map(|attribute| match &attribute.source {
            Source::Fact(name) => Some((attribute.name.as_str(), name.as_str())),
            _ => None,
        });
        let expected = [("fact.spend", "spend"), ("fact.user_country", "user_country")];
        assert_eq!(asked.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn how_old_a_fact_may_be_is_kept_as_it_was_said() {
    let draft = draft(&read(&[file(&rules(""))]).expect("good rules")).expect("a good draft");
    let fresh_for = |name: &str| {
        let fact = draft.definition.facts.iter().find(|fact| fact.name == name);
        fact.expect("it is there").fresh_for_ms
    };
    assert_eq!((fresh_for("spend"), fresh_for("user_country")), (Some(2_000), None));
}

#[test]
fn what_export_writes_is_read_as_the_same() {
    let into = ", facts_into: { body: /a, merge: true, as_text: true, on_conflict: refuse }";
    let first = draft(&read(&[file(&rules(into))]).expect("good rules")).expect("a good draft");
    let objects: Vec<Object> = first.set.selection().chain(first.set.placement()).collect();
    let written = write(&objects).expect("they can be written");
    let second = draft(&read(&[file(&written)]).expect(&written)).expect("a good draft");
    assert_eq!(first.set, second.set);
}

#[test]
fn a_mistake_about_facts_is_told_with_its_place() {
    for (before, after, kind, expected) in [
        (
            "unit: user_id\n",
            "",
            FaultKind::MissingField,
            "rules.yaml:7:10: found the Arm `heavy`, which needs Facts, expected the field `unit`: the attribute that Facts are looked up for",
        ),
        (
            "unit: user_id\n",
            "unit: who\n",
            FaultKind::Dangling,
            "rules.yaml:4:7: found the unit `who`, expected one of the attributes of the context: user_id",
        ),
        (
            "facts: [recent_items]",
            "facts: [recent]",
            FaultKind::Dangling,
            "rules.yaml:13:61: found the Fact `recent`, expected one of the Facts: recent_items, spend, user_country",
        ),
        (
            "default: '[]'",
            "default: '[1'",
            FaultKind::Value,
            "rules.yaml:19:101: found `[1`, expected a text that holds one JSON value, such as '[]'",
        ),
        (
            "fresh_for: 2s",
            "fresh_for: 25h",
            FaultKind::Value,
            "rules.yaml:21:85: found `25h`, expected a duration from 1ms to 24h, a whole number of ms, s, m or h, such as 250ms",
        ),
        (
            "preset: openai",
            "preset: v3",
            FaultKind::Value,
            "rules.yaml:13:99: found `v3`, expected one of: v2, openai",
        ),
    ] {
        let text = rules("").replacen(before, after, 1);
        let faults = faults(&text);
        assert_eq!(faults.first().map(|fault| fault.kind), Some(kind), "{after}: {faults:?}");
        assert_eq!(faults[0].to_string(), expected);
    }
    // Types of Facts are known only when all documents are.
    for (before, after, expected) in [
        (
            "fact.spend > 5",
            "fact.spend == \"5\"",
            "attribute `fact.spend` is a number, but the check is for a text",
        ),
        (
            "fact.spend > 5",
            "fact.spent > 5",
            "rules.yaml:9:26: found the Fact `spent`, expected one of the Facts: recent_items, spend, user_country",
        ),
        ("fact.spend > 5", "exists(fact.recent_items)", "is no Fact of that name and type"),
    ] {
        let faults = faults(&rules("").replacen(before, after, 1));
        assert!(faults[0].to_string().contains(expected), "{after}: {}", faults[0]);
    }
}
