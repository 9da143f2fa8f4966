//! Definitions that make no sense: the builder refuses each, naming the object and the Rule.

use switchboard_shared::{
    definition::{
        Arm, ArmShare, Attribute, Check, Definition, Endpoint, Experiment, Fact, FactKind,
        FactsConflict, FactsInto, FactsObject, FactsOwner, Layer, LayerShare, ModelVersion,
        Objective, Outcome, Rule, Shard, Source, Timeouts, Value, ValueKind,
    },
    limits,
    snapshot::{BuildError, check},
};

use crate::sample;

/// The chain of errors below "refused by the semantic check".
fn fault(definition: &Definition) -> String {
    let error = check(definition).expect_err("it must be refused");
    let BuildError::Check(error) = error else { unreachable!("not a semantic fault: {error}") };
    let mut text = error.to_string();
    let mut error: &dyn std::error::Error = &error;
    while let Some(source) = error.source() {
        text = format!("{text}: {source}");
        error = source;
    }
    text
}

/// Makes a good object bad.
type Change<T> = fn(&mut T);

fn refused(change: impl FnOnce(&mut Definition), expected: &str) {
    let mut definition = sample::definition();
    change(&mut definition);
    assert_eq!(fault(&definition), expected);
}

fn in_objective(change: impl FnOnce(&mut Objective), expected: &str) {
    let expected = format!("Objective RECOMMEND_HOME_FEED{expected}");
    refused(|definition| change(&mut definition.objectives[0]), &expected);
}

fn in_experiment(change: impl FnOnce(&mut Experiment), expected: &str) {
    let change = |objective: &mut Objective| {
        let Outcome::Experiment(experiment) = &mut objective.rules[2].then else {
            unreachable!("the third rule of the sample is an experiment");
        };
        change(experiment);
    };
    in_objective(change, &format!(", rule heavy-trial: {expected}"));
}

fn owned(text: &str) -> String {
    text.to_owned()
}

/// A second Objective whose only Rule is an Experiment of the same Layer.
fn with_neighbour(definition: &mut Definition, change: impl FnOnce(&mut Experiment)) {
    let mut other = definition.objectives[0].clone();
    other.token = owned("OTHER");
    other.rules.drain(..2);
    let Outcome::Experiment(experiment) = &mut other.rules[0].then else {
        unreachable!("the third rule of the sample is an experiment");
    };
    experiment.salt = owned("other");
    experiment.layer =
        Some(LayerShare { layer: owned("ranking"), slots: sample::slots(8_000, 9_999) });
    change(experiment);
    definition.objectives.push(other);
}

#[test]
fn the_sample_and_its_neighbour_are_good() {
    let mut definition = sample::definition();
    assert!(check(&definition).is_ok());
    with_neighbour(&mut definition, |_| ());
    check(&definition).expect("disjoint shares of one Layer");
    check(&Definition { group: owned("empty"), ..Definition::default() }).expect("nothing at all");
}

#[test]
fn a_bad_whole_is_refused() {
    let group = "Snapshot: the group is not of the form [A-Za-z0-9][A-Za-z0-9_.-]{0,63}";
    refused(|all| all.group = String::new(), group);
    refused(|all| all.group = owned("a\r\nb"), group);
    let never = |all: &mut Definition| {
        all.not_before_unix_ms = Some(2);
        all.expires_unix_ms = Some(1);
    };
    refused(never, "Snapshot: expires before it becomes valid");
}

#[test]
fn a_bad_objective_is_refused() {
    for token in ["", "lower", "A-B", "A\r\nX: y", &"A".repeat(65)] {
        let form = "its token is not of the form [A-Z][A-Z0-9_]{0,63}";
        let plain = token.bytes().all(|byte| byte.is_ascii_graphic()) && !token.is_empty();
        let name = if plain { owned(token) } else { format!("{token:?}") };
        refused(|all| all.objectives[0].token = owned(token), &format!("Objective {name}: {form}"));
    }
    refused(
        |all| all.objectives.push(all.objectives[0].clone()),
        "Objective RECOMMEND_HOME_FEED: defined twice",
    );
    in_objective(|one| one.default_arm = owned("none"), ": there is no arm `none`");
    in_objective(
        |one| one.timeouts.total_ms = Some(0),
        ": timeout total_ms is not within 1..=86400000 ms",
    );
}

#[test]
fn a_bad_attribute_is_refused() {
    let changes: [(Change<Attribute>, &str); 9] = [
        (
            |one| one.source = Source::Header(owned("X-User")),
            "its source is not of the form a header field's name in lower case",
        ),
        (
            |one| one.source = Source::Header(owned("x\r\ny")),
            "its source is not of the form a header field's name in lower case",
        ),
        (
            |one| one.source = Source::Query(String::new()),
            "its source is not of the form 1 to 64 visible ASCII characters",
        ),
        (
            |one| one.source = Source::Body(owned("context/country")),
            "its source is not of the form a JSON Pointer such as /context/country",
        ),
        (
            |one| one.default = Some(Value::Number(1.0)),
            "its default is a number, but it is declared a text",
        ),
        (
            |one| one.default = Some(Value::Boolean(true)),
            "its default is a boolean, but it is declared a text",
        ),
        (
            |one| one.default = Some(Value::Text("x".repeat(8_193))),
            "its default is not finite, or longer than 8192 bytes",
        ),
        (
            |one| {
                one.kind = ValueKind::Number;
                one.default = Some(Value::Number(f64::NAN));
            },
            "its default is not finite, or longer than 8192 bytes",
        ),
        (
            |one| {
                one.kind = ValueKind::Number;
                one.default = Some(Value::Number(f64::INFINITY));
            },
            "its default is not finite, or longer than 8192 bytes",
        ),
    ];
    for (change, expected) in changes {
        // `age` of the sample, made a text that no other part asks for.
        let change = |one: &mut Objective| {
            one.rules.truncate(1);
            one.context[2] =
                Attribute { name: owned("extra"), ..sample::attribute("age", ValueKind::Text) };
            change(&mut one.context[2]);
        };
        in_objective(change, &format!(", attribute extra: {expected}"));
    }
    in_objective(
        |one| one.context.push(sample::attribute("Country", ValueKind::Text)),
        ", attribute Country: its name is not of the form [a-z][a-z0-9_]{0,63}",
    );
    in_objective(
        |one| one.context.push(sample::attribute("age", ValueKind::Text)),
        ", attribute age: defined twice",
    );
}

#[test]
fn a_bad_arm_is_refused() {
    let bad_name = |one: &mut Objective| {
        let arm = Arm { name: owned("Stable"), ..one.arms[0].clone() };
        one.arms.push(arm);
    };
    in_objective(bad_name, ", arm Stable: its name is not of the form [a-z0-9][a-z0-9_.-]{0,63}");
    in_objective(|one| one.arms.push(one.arms[1].clone()), ", arm heavy: defined twice");
    in_objective(
        |one| one.arms[1].model = owned("feed-ranker@3"),
        ", arm heavy: there is no Model version `feed-ranker@3`",
    );
    in_objective(
        |one| one.arms[1].facts.push(owned("mood")),
        ", arm heavy: there is no Fact `mood`",
    );
    in_objective(
        |one| one.arms[1].facts.push(owned("session_depth")),
        ", arm heavy: needs one Fact twice",
    );
    in_objective(
        |one| one.unit = None,
        ", arm stable: needs Facts, but its Objective names no unit to look them up for",
    );
    in_objective(|one| one.unit = Some(owned("who")), ": there is no attribute `who`");
    in_objective(
        |one| one.unit = Some(owned("beta")),
        ": its unit `beta` is a boolean; a unit is a text or a number",
    );
    let expected = ", arm heavy: where its Facts go is not of the form a JSON Pointer of at most 8 names, \
                    such as /parameters; the whole body only if it is shared";
    for (pointer, owner) in [
        ("", FactsOwner::Router),
        ("facts", FactsOwner::Shared),
        ("/a~2", FactsOwner::Shared),
        ("/1/2/3/4/5/6/7/8/9", FactsOwner::Shared),
    ] {
        let mut definition = sample::definition();
        definition.objectives[0].arms[1].facts_into = FactsInto::Body(FactsObject {
            pointer: owned(pointer),
            owner,
            as_text: false,
            conflict: FactsConflict::Replace,
        });
        let fault = fault(&definition);
        assert!(fault.ends_with(expected), "{fault}");
    }
    in_objective(
        |one| one.arms[0].facts.push(owned("user_country")),
        ", arm stable: is the default, but needs Fact `user_country`, which has no default",
    );
    in_objective(
        |one| one.arms[1].timeouts = Timeouts { connect_ms: Some(u32::MAX), ..Timeouts::default() },
        ", arm heavy: timeout connect_ms is not within 1..=86400000 ms",
    );
}

#[test]
fn a_bad_rule_is_refused() {
    in_objective(
        |one| one.rules[0].name = owned("staff only"),
        ", rule \"staff only\": its name is not of the form [A-Za-z0-9][A-Za-z0-9_.-]{0,63}",
    );
    in_objective(|one| one.rules[1].name = owned("staff"), ", rule staff: defined twice");
    in_objective(
        |one| one.rules[0].then = Outcome::Arm(owned("light")),
        ", rule staff: there is no arm `light`",
    );
    in_objective(
        |one| one.rules[0].when = Some(sample::test("usr", Check::Exists)),
        ", rule staff: its condition cannot be compiled: the context has no attribute `usr`",
    );
}

#[test]
fn a_bad_experiment_is_refused() {
    in_experiment(|one| one.unit = owned("user"), "there is no attribute `user`");
    in_experiment(
        |one| one.unit = owned("beta"),
        "its unit `beta` is a boolean; a unit is a text or a number",
    );
    in_experiment(|one| one.salt = String::new(), "its salt is not of the form 1 to 8192 bytes");
    in_experiment(|one| one.split[1].arm = owned("light"), "there is no arm `light`");
    // EX-03: no two Arms share a Slot, so no split sums to more than all of them.
    in_experiment(
        |one| one.split[1].slots = sample::slots(4_499, 9_999),
        "slot 4499 is owned twice",
    );
    in_experiment(
        |one| one.split.push(ArmShare { arm: owned("heavy"), slots: sample::slots(5_000, 5_000) }),
        "slot 5000 is owned twice",
    );
    in_experiment(
        |one| one.layer = Some(LayerShare { layer: owned("other"), slots: sample::slots(0, 1) }),
        "there is no Layer `other`",
    );
    in_experiment(
        |one| one.layer.as_mut().expect("in a Layer").slots.extend(sample::slots(7_999, 8_000)),
        "slot 7999 is owned twice",
    );
}

/// EX-01: one salt for two decisions would correlate them.
#[test]
fn a_salt_that_decides_two_things_is_refused() {
    in_experiment(
        |one| one.salt = owned("ranking-2026"),
        "its salt `ranking-2026` is used by Layer ranking too; every salt decides one thing only",
    );
    let twice = |one: &mut Objective| {
        let mut second = one.rules[2].clone();
        second.name = owned("second-trial");
        let Outcome::Experiment(experiment) = &mut second.then else {
            unreachable!("an experiment")
        };
        experiment.layer = None;
        one.rules.push(second);
    };
    in_objective(
        twice,
        ", rule second-trial: its salt `heavy-trial` is used by Objective RECOMMEND_HOME_FEED, \
         rule heavy-trial too; every salt decides one thing only",
    );
    refused(
        |all| all.layers.push(Layer { name: owned("second"), salt: owned("ranking-2026") }),
        "Layer second: its salt `ranking-2026` is used by Layer ranking too; every salt decides \
         one thing only",
    );
}

#[test]
fn experiments_of_one_layer_own_disjoint_slots_of_one_kind_of_unit() {
    refused(
        |all| {
            with_neighbour(all, |one| {
                one.layer.as_mut().expect("in a Layer").slots = sample::slots(7_999, 9_999);
            });
        },
        "Objective OTHER, rule heavy-trial: slot 7999 of Layer ranking is owned by Objective \
         RECOMMEND_HOME_FEED, rule heavy-trial too",
    );
    refused(
        |all| with_neighbour(all, |one| one.unit = owned("app_version")),
        "Objective OTHER, rule heavy-trial: buckets `app_version`, but Objective \
         RECOMMEND_HOME_FEED, rule heavy-trial of the same Layer ranking buckets `user_id`",
    );
}

#[test]
fn a_bad_layer_is_refused() {
    refused(
        |all| all.layers.push(Layer { name: owned("a b"), salt: owned("x") }),
        "Layer \"a b\": its name is not of the form [A-Za-z0-9][A-Za-z0-9_.-]{0,63}",
    );
    refused(
        |all| all.layers.push(Layer { name: owned("ranking"), salt: owned("x") }),
        "Layer ranking: defined twice",
    );
    refused(
        |all| all.layers[0].salt = String::new(),
        "Layer ranking: its salt is not of the form 1 to 8192 bytes",
    );
}

#[test]
fn a_bad_model_is_refused() {
    let changes: [(Change<ModelVersion>, &str); 8] = [
        (|one| one.shard = owned("gone"), "feed-ranker@1: there is no Shard `gone`"),
        (
            |one| one.served_name = String::new(),
            "feed-ranker@1: its served name is not of the form 1 to 256 visible ASCII characters without quotes and backslashes",
        ),
        (
            |one| one.served_name = owned("a\"b"),
            "feed-ranker@1: its served name is not of the form 1 to 256 visible ASCII characters without quotes and backslashes",
        ),
        (
            |one| one.path = Some(owned("v2")),
            "feed-ranker@1: its path is not of the form `/` and visible ASCII characters without `?` and `#`",
        ),
        (
            |one| one.path = Some(owned("/a b HTTP/1.1\r\nX: y")),
            "feed-ranker@1: its path is not of the form `/` and visible ASCII characters without `?` and `#`",
        ),
        (
            |one| one.version = owned("1@2"),
            "unused@1@2: its version is not of the form [A-Za-z0-9][A-Za-z0-9_.+-]{0,63}",
        ),
        (
            |one| one.version = String::new(),
            "unused@: its version is not of the form [A-Za-z0-9][A-Za-z0-9_.+-]{0,63}",
        ),
        (
            |one| one.name = owned("Un"),
            "Un@1: its name is not of the form [a-z0-9][a-z0-9_.-]{0,63}",
        ),
    ];
    for (change, expected) in changes {
        let unused = !expected.starts_with("feed-ranker@1");
        let change = |all: &mut Definition| {
            if unused {
                // The other ones stay, as Arms refer to them.
                let model = ModelVersion { name: owned("unused"), ..all.models[0].clone() };
                all.models.push(model);
            }
            let place = if unused { 2 } else { 0 };
            change(&mut all.models[place]);
        };
        refused(change, &format!("Model {expected}"));
    }
    refused(|all| all.models.push(all.models[0].clone()), "Model feed-ranker@1: defined twice");
}

#[test]
fn a_bad_shard_is_refused() {
    let endpoint = |address: &str, weight| Endpoint { address: owned(address), weight };
    let with = |endpoints: Vec<Endpoint>, expected: &str| {
        refused(|all| all.shards[0].endpoints = endpoints, &format!("Shard ranker: {expected}"));
    };
    with(Vec::new(), "has no endpoint");
    with(
        vec![endpoint("::1", 1)],
        "endpoint `::1` is no address: an IPv6 address stands in brackets, as in [::1]:8080",
    );
    with(
        vec![endpoint("host", 1)],
        "endpoint `host` is no address: needs a port from 1 to 65535, as in host:8080",
    );
    with(
        vec![endpoint("a\n:1", 1)],
        "endpoint `a\\n:1` is no address: no host name: letters, digits, `-`, `_` and `.`, at most 253 bytes, labels up to 63",
    );
    with(vec![endpoint("a:1", 0)], "endpoint `a:1`: its weight is not within 1..=1000");
    with(vec![endpoint("a:1", 1_001)], "endpoint `a:1`: its weight is not within 1..=1000");
    with(vec![endpoint("a:1", 1), endpoint("a:1", 2)], "endpoint `a:1` is listed twice");
    let many = (1..=1_025).map(|port| endpoint(&format!("a:{port}"), 1)).collect();
    with(many, "more than 1024 endpoints");
    refused(
        |all| all.shards.push(Shard { name: owned("Upper"), ..all.shards[0].clone() }),
        "Shard Upper: its name is not of the form [a-z0-9][a-z0-9_.-]{0,63}",
    );
    refused(|all| all.shards.push(all.shards[0].clone()), "Shard ranker: defined twice");
}

#[test]
fn a_bad_fact_is_refused() {
    let changes: [(Change<Fact>, &str); 7] = [
        (
            |one| one.key = owned("user"),
            "its key is not of the form visible ASCII characters with one `{unit}` and no other brace",
        ),
        (
            |one| one.key = owned("{unit}\r\nSET x"),
            "its key is not of the form visible ASCII characters with one `{unit}` and no other brace",
        ),
        (
            |one| one.hash_field = Some(String::new()),
            "its hash field is not of the form 1 to 512 visible ASCII characters",
        ),
        (
            |one| one.default = Some(Value::Boolean(true)),
            "its default is a boolean, but it is declared a text",
        ),
        (
            |one| {
                one.kind = FactKind::Json;
                one.default = Some(Value::Text(owned("[1,")));
            },
            "its default is not one JSON value",
        ),
        (
            |one| one.fresh_for_ms = Some(0),
            "how long it is fresh is not of the form 1 ms to one day",
        ),
        (
            |one| one.fresh_for_ms = Some(86_400_001),
            "how long it is fresh is not of the form 1 ms to one day",
        ),
    ];
    for (change, expected) in changes {
        refused(|all| change(&mut all.facts[0]), &format!("Fact user_country: {expected}"));
    }
    refused(|all| all.facts.push(all.facts[0].clone()), "Fact user_country: defined twice");
    refused(
        |all| all.facts.push(Fact { name: owned("user-country"), ..all.facts[0].clone() }),
        "Fact user-country: its name is not of the form [a-z][a-z0-9_]{0,63}",
    );
}

#[test]
fn each_table_is_bounded() {
    let attribute = |number: usize| sample::attribute(&format!("a{number}"), ValueKind::Text);
    in_objective(
        |one| one.context.extend((0..limits::ATTRIBUTES_MAX).map(attribute)),
        ": more than 32 attributes",
    );
    in_objective(
        |one| {
            let arm = one.arms[1].clone();
            let named = |number: usize| Arm { name: format!("arm-{number}"), ..arm.clone() };
            one.arms.extend((0..limits::ARMS_MAX).map(named));
        },
        ": more than 64 arms",
    );
    in_objective(
        |one| {
            let rule = one.rules[0].clone();
            let named = |number: usize| Rule { name: format!("rule-{number}"), ..rule.clone() };
            one.rules.extend((0..limits::RULES_MAX).map(named));
        },
        ": more than 64 rules",
    );
    refused(
        |all| {
            let fact = all.facts[1].clone();
            let named = |number: usize| Fact { name: format!("fact_{number}"), ..fact.clone() };
            all.facts.extend((0..=limits::FACTS_PER_ARM_MAX).map(named));
            all.objectives[0].arms[1].facts =
                (0..=limits::FACTS_PER_ARM_MAX).map(|number| format!("fact_{number}")).collect();
        },
        "Objective RECOMMEND_HOME_FEED, arm heavy: more than 32 facts",
    );
    refused(
        |all| {
            let named = |number| Layer { name: format!("l{number}"), salt: format!("s{number}") };
            all.layers.extend((0..limits::LAYERS_MAX).map(named));
        },
        "Snapshot: more than 10000 Layers",
    );
}
