//! `shadow:` in rule files: what it becomes, and what is wrong with it.

use switchboard_control::rules::{Kind, read, write};
use switchboard_shared::definition::{Members, SampleBy, ShadowTarget};

use crate::rules::{GOOD, draft, file};

fn with(objective: &str, arm: &str) -> String {
    GOOD.replacen("idempotent: true", &format!("shadow: {objective}"), 1).replacen(
        "stable: { model: ranker@1 }",
        &format!("stable: {{ model: ranker@1{arm} }}"),
        1,
    )
}

fn faults(objective: &str) -> Vec<String> {
    let faults = match read(&[file(&with(objective, ""))]) {
        Ok(documents) => draft(&documents).err().unwrap_or_default(),
        Err(faults) => faults,
    };
    faults.iter().map(ToString::to_string).collect()
}

#[test]
fn a_target_draws_by_what_the_experiments_bucket() {
    let text = with(
        "[{ model: ranker@2, sample: 1000, max_bytes_per_second: 4MiB, topic: t, capture_response: true, keep: [/a/b] }]",
        ", shadow: [{ model: ranker@2, sample: 5, by: random, unit: age }]",
    );
    let documents = read(&[file(&text)]).expect("good rules");
    let draft = draft(&documents).expect("a good draft");
    let whole = ShadowTarget {
        model: "ranker@2".into(),
        arm: None,
        sample: 1_000,
        by: SampleBy::Unit,
        unit: Some("user_id".into()),
        bytes_per_second_max: Some(4 << 20),
        topic: Some("t".into()),
        captures_response: true,
        members: Members::Keep(vec!["/a/b".into()]),
    };
    let of_arm = ShadowTarget {
        arm: Some("stable".into()),
        sample: 5,
        by: SampleBy::Random,
        unit: Some("age".into()),
        bytes_per_second_max: None,
        topic: None,
        captures_response: false,
        members: Members::All,
        ..whole.clone()
    };
    assert_eq!(draft.definition.objectives[0].shadow, [whole, of_arm]);
}

#[test]
fn what_export_writes_reads_back_as_the_same_targets() {
    let text = with(
        "[{ model: ranker@2, sample: 1000, max_bytes_per_second: 4MiB, topic: t, capture_response: true, keep: [/a/b] }]",
        ", shadow: [{ model: ranker@2, sample: 5, by: random, unit: age, drop: [/x] }]",
    );
    let documents = read(&[file(&text)]).expect("good rules");
    let written = write(documents.objects()).expect("YAML holds it");
    let again = read(&[file(&written)]).expect("what was written reads");
    let objective = |documents: &switchboard_control::rules::Documents| {
        documents.objects().find(|one| one.kind() == Kind::Objective).cloned()
    };
    assert_eq!(objective(&again), objective(&documents));
}

#[test]
fn a_bad_target_is_told_with_its_place() {
    let at = "rules.yaml:17:";
    for (shadow, expected) in [
        (
            "[{ model: ghost@1, sample: 1 }]",
            "19: found the Model `ghost@1`, expected one of the Models: ranker@1, ranker@2",
        ),
        (
            "[{ model: ranker@2, sample: 1, unit: ghost }]",
            "46: found the unit `ghost`, expected one of the attributes of the context: age, beta, country, user_id",
        ),
        (
            "[{ model: ranker@2, sample: 1, unit: beta }]",
            "46: found the unit `beta`, which is a bool, expected a string or number attribute",
        ),
        (
            "[{ model: ranker@2, sample: 1, keep: [/a], drop: [/b] }]",
            "52: found both `keep` and `drop`, expected one of `keep` and `drop`",
        ),
    ] {
        assert_eq!(faults(shadow), [format!("{at}{expected}")]);
    }
}

#[test]
fn a_sample_by_unit_needs_to_know_the_unit() {
    let text = with("[{ model: ranker@2, sample: 1 }]", "");
    let (before, after) = text.split_once("  - name: trial").expect("the experiment's rule");
    let (_, after) = after.split_once("shadow:").expect("the shadow targets");
    let without_experiment = format!("{before}shadow:{after}");
    // Nor may anything else need the Unit.
    let without_experiment = without_experiment.replacen(", facts: [user_country]", "", 1);
    let documents = read(&[file(&without_experiment)]).expect("good documents");
    let faults = draft(&documents).err().unwrap_or_default();
    let texts: Vec<_> = faults.iter().map(ToString::to_string).collect();
    let expected = "rules.yaml:14:10: found a sample by unit without the field `unit`, expected the \
                    field `unit`, or experiments that all bucket one attribute";
    assert_eq!(texts, [expected]);
}
