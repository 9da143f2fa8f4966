//! Signed payloads that no builder makes: refused by the check, and never a panic.
//!
//! A signer may be broken or stolen. What such a payload may do is be refused.

use proptest::prelude::*;
use switchboard_shared::{
    context::{Context, Value},
    decide::explain,
    limits::TESTS_MAX,
    predicate,
    snapshot::{
        Expectations, Snapshot, SnapshotError, SnapshotVersion,
        archive::{self, Outcome, Payload},
        compile, sign,
    },
    text_table::Bucket,
};

use crate::sample;

/// Signs whatever it is and opens it.
fn open(payload: &[u8]) -> Result<Snapshot, SnapshotError> {
    let file = sign(payload, SnapshotVersion::FIRST, 0, &sample::key());
    Snapshot::open(&file, &sample::trusted(), Expectations::of_group("test"))
}

fn archived(change: impl FnOnce(&mut Payload)) -> Vec<u8> {
    let mut payload = compile(&sample::definition()).expect("a good Definition");
    change(&mut payload);
    rkyv::to_bytes::<rkyv::rancor::Error>(&payload).expect("it can be archived").to_vec()
}

fn refused(change: impl FnOnce(&mut Payload), expected: &str) {
    let error = open(&archived(change)).map(drop).expect_err("it must be refused");
    assert_eq!(error.detail(), expected);
}

fn in_rule(rule: usize, change: impl FnOnce(&mut archive::Rule), expected: &str) {
    let name = ["staff", "old-apps", "heavy-trial"][rule];
    refused(
        |payload| change(&mut payload.objectives[0].rules[rule]),
        &format!(
            "refused by the semantic check: Objective RECOMMEND_HOME_FEED, rule {name}: {expected}"
        ),
    );
}

fn in_experiment(change: impl FnOnce(&mut archive::Experiment), expected: &str) {
    refused(
        |payload| change(&mut payload.objectives[0].experiments[0]),
        &format!(
            "refused by the semantic check: Objective RECOMMEND_HOME_FEED, rule heavy-trial: \
             {expected}"
        ),
    );
}

/// `staff` has test 0, `old-apps` 1 and 2, `heavy-trial` 3.
fn in_tests(change: impl FnOnce(&mut Vec<predicate::Test>), expected: &str) {
    refused(
        |payload| change(&mut payload.objectives[0].tests),
        &format!(
            "refused by the semantic check: Objective RECOMMEND_HOME_FEED: a condition cannot be \
             evaluated: {expected}"
        ),
    );
}

#[test]
fn an_index_beyond_its_table_is_refused() {
    const CHECK: &str = "refused by the semantic check";
    refused(
        |all| all.objectives[0].default_arm = archive::ArmIndex::new(2).expect("small"),
        &format!("{CHECK}: Objective RECOMMEND_HOME_FEED: its arm is not in the table"),
    );
    refused(
        |all| all.objectives[0].arms[0].model = archive::ModelIndex::new(2).expect("small"),
        &format!(
            "{CHECK}: Objective RECOMMEND_HOME_FEED, arm stable: its Model version is not in the table"
        ),
    );
    refused(
        |all| all.objectives[0].arms[1].facts[0] = archive::FactIndex::new(2).expect("small"),
        &format!("{CHECK}: Objective RECOMMEND_HOME_FEED, arm heavy: its Fact is not in the table"),
    );
    refused(
        |all| all.models[0].shard = archive::ShardIndex::new(1).expect("small"),
        &format!("{CHECK}: Model feed-ranker@1: its Shard is not in the table"),
    );
    in_rule(
        0,
        |rule| rule.then = Outcome::Arm(archive::ArmIndex::new(255).expect("small")),
        "its arm is not in the table",
    );
    in_rule(
        2,
        |rule| rule.then = Outcome::Experiment(archive::ExperimentIndex::new(1).expect("small")),
        "its experiment is not in the table",
    );
    in_experiment(
        |one| one.unit = archive::AttributeIndex::new(5).expect("small"),
        "its attribute is not in the table",
    );
    in_experiment(
        |one| one.split[0].arm = archive::ArmIndex::new(2).expect("small"),
        "its arm is not in the table",
    );
    in_experiment(
        |one| {
            one.layer.as_mut().expect("in a Layer").layer =
                archive::LayerIndex::new(1).expect("small");
        },
        "its Layer is not in the table",
    );
}

#[test]
fn slots_that_are_none_or_out_of_order_are_refused() {
    in_experiment(|one| one.split[1].last = 10_000, "slots 5000..=10000 are not within 0..=9999");
    in_experiment(|one| one.split[1].last = u16::MAX, "slots 5000..=65535 are not within 0..=9999");
    in_experiment(
        |one| (one.split[0].first, one.split[0].last) = (2, 1),
        "slots 2..=1 are not within 0..=9999",
    );
    in_experiment(|one| one.split.reverse(), "slot 0 is owned twice");
    in_experiment(
        |one| one.layer.as_mut().expect("in a Layer").slots[0].last = 10_000,
        "slots 0..=10000 are not within 0..=9999",
    );
}

#[test]
fn a_key_of_another_salt_is_refused() {
    in_experiment(|one| one.key[31] ^= 1, "its slot key is not derived from its salt");
    refused(
        |all| all.layers[0].key = [0; 32],
        "refused by the semantic check: Layer ranking: its slot key is not derived from its salt",
    );
}

#[test]
fn predicate_code_that_might_not_end_is_refused() {
    let jump = |test, target| format!("jumps from test {test} to {target}, which is not forward");
    in_tests(|tests| tests[0].on_true = 0, &jump(0, 0));
    in_tests(|tests| tests[2].on_false = 1, &jump(2, 1));
    in_tests(|tests| tests[2].on_true = 4, &jump(2, 4));
    in_tests(|tests| tests[3].on_true = 0xfffd, &jump(3, 0xfffd));
    in_rule(
        1,
        |rule| rule.when = 4,
        "a condition cannot be evaluated: begins at test 4, which is not there",
    );
    in_tests(
        |tests| {
            let one = predicate::Test { on_true: 0xffff, on_false: 0xfffe, ..tests[0].clone() };
            *tests = vec![one; TESTS_MAX + 1];
        },
        "there are more than 16384 tests",
    );
}

#[test]
fn a_test_that_does_not_fit_its_attribute_is_refused() {
    use predicate::{Check, TextSet};
    use switchboard_shared::definition::Comparison;

    let with = |check: Check, expected: &str| in_tests(|tests| tests[0].check = check, expected);
    let wrong_type = "test 0 does not fit its attribute, which is a text";
    with(Check::Boolean(true), wrong_type);
    with(Check::Number(Comparison::Less, 1.0), wrong_type);
    let operand = "test 0 compares with what no test may";
    let set = |texts: &[&str]| TextSet::new(texts.iter().map(|&text| text.to_owned()).collect());
    with(Check::TextIn(set(&[])), operand);
    with(Check::TextIn(set(&["a", "a"])), operand);
    with(Check::TextIn(TextSet { table: Vec::new(), ..set(&["a"]) }), operand);
    with(Check::TextIn(TextSet { table: set(&["b"]).table, ..set(&["a"]) }), operand);
    with(Check::Text(Comparison::Less, "x".repeat(8_193)), operand);
    for numbers in [vec![1.0, 0.0], vec![0.0, -0.0], vec![f64::NAN], vec![0.0, f64::INFINITY]] {
        in_tests(
            |tests| tests[2].check = Check::NumberIn(numbers),
            "test 2 compares with what no test may",
        );
    }
    in_tests(
        |tests| tests[0].attribute = archive::AttributeIndex::new(5).expect("small"),
        "test 0 asks for an attribute that is not there",
    );
}

#[test]
fn an_experiment_that_is_no_rules_or_two_rules_is_refused() {
    use archive::{ArmIndex, ExperimentIndex};

    let arm = Outcome::Arm(ArmIndex::new(0).expect("small"));
    refused(
        |all| all.objectives[0].rules[2].then = arm,
        "refused by the semantic check: Objective RECOMMEND_HOME_FEED: has experiments that are \
         no rule's",
    );
    let experiment = Outcome::Experiment(ExperimentIndex::new(0).expect("small"));
    refused(
        |all| all.objectives[0].rules[1].then = experiment,
        "refused by the semantic check: Objective RECOMMEND_HOME_FEED, rule heavy-trial: its salt \
         `heavy-trial` is used by Objective RECOMMEND_HOME_FEED, rule old-apps too; every salt \
         decides one thing only",
    );
}

#[test]
fn bits_that_tell_of_other_defaults_are_refused() {
    for bits in [0, 0b11, 1 << 31 | 0b10] {
        refused(
            |all| all.objectives[0].defaults = bits,
            "refused by the semantic check: Objective RECOMMEND_HOME_FEED: does not know which of \
             its attributes have defaults",
        );
    }
}

#[test]
fn a_token_table_that_misses_a_token_or_never_ends_is_refused() {
    const TABLE: &str =
        "refused by the semantic check: Snapshot: the token table does not find every Objective";
    let empty = || Bucket { tag: 0, text: Bucket::EMPTY };
    let changes: [fn(&mut Vec<Bucket>); 5] = [
        Vec::clear,
        |table| table.iter_mut().for_each(|bucket| bucket.text = Bucket::EMPTY),
        |table| table.iter_mut().for_each(|bucket| bucket.text = 1),
        |table| table.iter_mut().for_each(|bucket| bucket.tag ^= 1),
        |table| table.truncate(1),
    ];
    for change in changes {
        refused(|all| change(&mut all.tokens), TABLE);
    }
    refused(|all| all.tokens = (0..3).map(|_| empty()).collect(), TABLE);
    refused(|all| all.tokens = (0..1 << 16).map(|_| empty()).collect(), TABLE);
}

#[test]
fn another_way_of_hashing_is_refused() {
    for version in [0, 2, u16::MAX] {
        refused(
            |all| all.hash_version = version,
            &format!("hash version {version} is not known here"),
        );
    }
}

#[test]
fn a_default_arm_that_needs_what_may_be_missing_is_refused() {
    refused(
        |all| all.facts[1].default = None,
        "refused by the semantic check: Objective RECOMMEND_HOME_FEED, arm stable: is the \
         default, but needs Fact `session_depth`, which has no default",
    );
}

/// Whatever opens is asked everything that a router would ask.
fn use_up(snapshot: &Snapshot) {
    for objective in snapshot.payload().objectives.iter() {
        let found = snapshot.find(objective.token.as_bytes()).expect("the check looked for it");
        assert_eq!(
            snapshot.payload().objective(found).map(|one| &one.token),
            Some(&objective.token)
        );
        for user in ["u1", "user-7", "2.0.0-rc.1"] {
            let mut context = Context::with_defaults(objective);
            for (index, attribute) in objective.attributes() {
                for value in [Value::Text(user), Value::Number(17.0), Value::Boolean(true)] {
                    if let Ok(value) = attribute.accept(value) {
                        context.set(index, value);
                    }
                }
            }
            let (decision, explanation) = explain(snapshot.payload(), objective, &context);
            let arm = objective.arm(decision.arm);
            assert_eq!(arm.name, explanation.arm.as_str());
            let _ = snapshot.payload().shard(snapshot.payload().model(arm)).endpoints.len();
            assert_eq!(snapshot.payload().facts(arm).count(), arm.facts.len());
        }
    }
    for token in [&b""[..], b"A", b"RECOMMEND_HOME_FEED", &[0xff; 100]] {
        let _ = snapshot.find(token);
    }
}

#[test]
fn a_good_payload_survives_all_that_the_next_tests_do() {
    use_up(&open(&archived(|_| ())).expect("untouched"));
}

/// The whole space of single flipped bytes: each is refused or harmless.
#[test]
fn any_flipped_byte_of_the_payload_is_refused_or_harmless() {
    let payload = archived(|_| ());
    let mut opened = 0;
    for place in 0..payload.len() {
        for bits in [0x01, 0x80, 0xff] {
            let mut flipped = payload.clone();
            flipped[place] ^= bits;
            if let Ok(snapshot) = open(&flipped) {
                use_up(&snapshot);
                opened += 1;
            }
        }
    }
    // Else the loop would have shown nothing about what opens.
    assert!(opened > 100, "{opened}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn random_changes_are_refused_or_harmless(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in proptest::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        let mut payload = archived(|_| ());
        for (place, byte) in changes {
            let place = place.index(payload.len());
            payload[place] = byte;
        }
        if let Some(cut) = cut {
            payload.drain(..cut.index(payload.len()));
        }
        if let Ok(snapshot) = open(&payload) {
            use_up(&snapshot);
        }
    }

    #[test]
    fn random_bytes_are_no_snapshot(bytes in proptest::collection::vec(any::<u8>(), 0..2_000)) {
        prop_assert!(open(&bytes).is_err());
    }
}
