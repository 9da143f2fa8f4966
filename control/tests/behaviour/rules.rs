//! Every error of a rule file says file:line:column, what was found and what was expected.

use switchboard_control::rules::{
    Allocations, Conditions, Documents, Draft, FaultKind, RuleFault, RuleFile, RuleSet,
    Unmentioned, read,
};

/// A small good set, one document per object.
pub(crate) const GOOD: &str = r#"kind: Objective
token: RECOMMEND
context:
  user_id: { from: "header:X-User-Id", type: string }
  country: { from: "body:/context/country", type: string, default: "" }
  age: { from: "query:age", type: number }
  beta: { from: "header:x-beta", type: bool, default: false }
default: stable
arms:
  stable: { model: ranker@1 }
  heavy: { model: ranker@2, facts: [user_country], timeouts: { first_byte: 5s } }
rules:
  - { name: staff, when: 'user_id in ["u1", "u2"]', arm: heavy }
  - name: trial
    when: country == "DE" && age >= 18
    experiment: { unit: user_id, salt: trial-1, layer: ranking, layer_share: 4000, split: { stable: 9000, heavy: 1000 } }
idempotent: true
timeouts: { connect: 250ms, total: 2m }
body_max: 4MiB
---
{ kind: Layer, name: ranking }
---
{ kind: Model, name: ranker, version: "1", shard: light, validation: { ready: /ready } }
---
{ kind: Model, name: ranker, version: "2", shard: light, served_name: big, path: /v2/big }
---
kind: Shard
name: light
endpoints: [{ address: "127.0.0.1:9001", weight: 2 }, { address: "unix:/run/ranker.sock" }]
balance: least-in-flight
---
{ kind: Fact, name: user_country, type: string, redis: { key: "user:{unit}:country", field: c }, default: "" }
"#;

pub(crate) fn file(text: &str) -> RuleFile {
    RuleFile { name: "rules.yaml".to_owned(), text: text.to_owned() }
}

pub(crate) fn draft(documents: &Documents) -> Result<Draft, Vec<RuleFault>> {
    let (set, allocations) = (RuleSet::default(), Allocations::default());
    Draft::of_change(
        &set,
        &allocations,
        &Conditions::default(),
        documents,
        Unmentioned::Keep,
        "default",
    )
}

/// All faults of one file, read and drafted on an empty registry.
fn faults(text: &str) -> Vec<RuleFault> {
    match read(&[file(text)]) {
        Ok(documents) => draft(&documents).err().unwrap_or_default(),
        Err(faults) => faults,
    }
}

/// The faults of the good set with one text replaced.
fn faults_with(before: &str, after: &str) -> Vec<RuleFault> {
    assert!(GOOD.contains(before), "{before} is in the good set");
    faults(&GOOD.replacen(before, after, 1))
}

#[test]
fn the_good_set_is_good() {
    let documents = read(&[file(GOOD)]).expect("good rules");
    let draft = draft(&documents).expect("a good draft");
    let objective = &draft.definition.objectives[0];
    assert_eq!(objective.body_bytes_max, Some(4 << 20));
    assert_eq!(objective.timeouts.total_ms, Some(120_000));
    assert_eq!(draft.definition.layers[0].salt, "layer/ranking");
    assert_eq!(draft.definition.models[0].served_name, "ranker");
    assert_eq!(draft.definition.models[1].served_name, "big");
}

#[test]
fn the_order_of_documents_and_files_changes_nothing() {
    let documents: Vec<_> = GOOD.split("---\n").collect();
    let files: Vec<_> = documents.iter().rev().map(|text| file(text)).collect();
    let reversed = draft(&read(&files).expect("good rules")).expect("a good draft");
    let straight = draft(&read(&[file(GOOD)]).expect("good rules")).expect("a good draft");
    assert_eq!(reversed, straight);
}

/// What is replaced in the good set, by what, and what is told then.
const FAULTS: &[(&str, &str, &str)] = &[
    (
        "kind: Objective",
        "kind: Objectiv",
        "1:7: found `Objectiv`, expected one of: Objective, Layer, Fact, Model, Shard, Allocation",
    ),
    (
        "kind: Objective\n",
        "",
        "1:1: found an object without `kind`, expected the field `kind`, one of: Objective, Layer, Fact, Model, Shard, Allocation",
    ),
    (
        "token: RECOMMEND",
        "token: recommend",
        "2:8: found `recommend`, expected a token of A-Z, 0-9 and _, a letter first, at most 64 characters",
    ),
    (
        "default: stable\n",
        "",
        "1:1: found an Objective without `default`, expected the field `default`",
    ),
    (
        "header:X-User-Id",
        "cookie:x",
        "4:20: found `cookie:x`, expected a source as header:NAME, query:NAME or body:/JSON/POINTER",
    ),
    ("type: number", "type: int", "6:35: found `int`, expected one of: string, number, bool"),
    (
        "default: false",
        "default: 0",
        "7:55: found the number 0, expected true or false, as the type says",
    ),
    (
        "default: stable",
        "default: stabel",
        "8:10: found the Arm `stabel`, expected one of the Arms: heavy, stable",
    ),
    (
        "model: ranker@1",
        "model: ranker@3",
        "10:20: found the Model `ranker@3`, expected one of the Models: ranker@1, ranker@2",
    ),
    (
        "model: ranker@1",
        "model: ranker",
        "10:20: found `ranker`, expected a Model version as name@version",
    ),
    (
        "facts: [user_country]",
        "facts: [user_contry]",
        "11:36: found the Fact `user_contry`, expected one of the Facts: user_country",
    ),
    (
        "facts: [user_country]",
        "facts: user_country",
        "11:36: found `user_country`, expected a list of Fact names",
    ),
    (
        "first_byte: 5s",
        "first_byte: 5",
        "11:76: found the number 5, expected a duration from 1ms to 24h, a whole number of ms, s, m or h, such as 250ms, in quotes",
    ),
    (
        "first_byte: 5s",
        "first_byte: 0s",
        "11:76: found `0s`, expected a duration from 1ms to 24h, a whole number of ms, s, m or h, such as 250ms",
    ),
    (
        "first_byte: 5s",
        "first: 5s",
        "11:64: found the field `first`, expected only fields of timeouts: body_idle, connect, first_byte, response_idle, total",
    ),
    (
        "user_id in",
        "user in",
        "13:27: found `user`, expected an attribute of the Objective's context: age, beta, country, user_id",
    ),
    (
        "arm: heavy }",
        "arm: heavier }",
        "13:58: found the Arm `heavier`, expected one of the Arms: heavy, stable",
    ),
    (
        "name: trial",
        "name: staff",
        "14:11: found a second Rule `staff`, expected another name in each Rule",
    ),
    (
        "age >= 18",
        "age >= '18'",
        "15:37: found the text literal \"18\", expected a number literal, as `age` is one",
    ),
    (
        "unit: user_id",
        "unit: user",
        "16:25: found the unit `user`, expected one of the attributes of the context: age, beta, country, user_id",
    ),
    (
        "unit: user_id",
        "unit: beta",
        "16:25: found the unit `beta`, which is a bool, expected a string or number attribute",
    ),
    (
        "salt: trial-1",
        "salt: layer/ranking",
        "16:40: found the salt `layer/ranking`, which is the Layer's too, expected another: else who is in the experiment decides the Arm",
    ),
    (
        "layer: ranking",
        "layer: rankings",
        "16:56: found the Layer `rankings`, expected one of the Layers: ranking",
    ),
    (
        "layer_share: 4000",
        "layer_share: 0",
        "16:78: found the number 0, expected a whole number from 1 to 10000",
    ),
    (
        "layer: ranking, ",
        "",
        "16:62: found `layer_share` alone, expected the field `layer` beside it",
    ),
    (
        "stable: 9000",
        "stable: 9001",
        "16:91: found weights that sum to 10001, expected 1 to 10000 in sum; what is left over falls through",
    ),
    (
        "stable: 9000",
        "stable: 90.5",
        "16:101: found the number 90.5, expected a whole number from 0 to 10000",
    ),
    (
        "stable: 9000",
        "stabel: 9000",
        "16:101: found the Arm `stabel`, expected one of the Arms: heavy, stable",
    ),
    ("idempotent: true", "idempotent: yes", "17:13: found `yes`, expected true or false"),
    (
        "body_max: 4MiB",
        "body_max: 4MB",
        "19:11: found `4MB`, expected a size from 1B to 1024GiB, a whole number of B, KiB, MiB or GiB, such as 4MiB",
    ),
    (
        "version: \"1\"",
        "version: 1",
        "23:39: found the number 1, expected a version of letters, digits, `_`, `.`, `+` and `-`, at most 64 characters, in quotes",
    ),
    (
        "shard: light, validation",
        "shard: dark, validation",
        "23:51: found the Shard `dark`, expected one of the Shards: light",
    ),
    (
        "validation: { ready: /ready }",
        "validation: { ready: /ready, golden: g.yaml }",
        "23:95: found `g.yaml`, expected a list of golden inferences",
    ),
    (
        "validation: { ready: /ready }",
        "validation: { ready: /ready, latency: { p99_max: 80ms } }",
        "23:70: found a mapping, expected `golden` beside `latency`: golden inferences are what is timed",
    ),
    (
        "validation: { ready: /ready }",
        "validation: { golden: [{ path: /infer, expect: { outputs: 7 } }] }",
        "23:107: found `outputs`, expected a JSON Pointer such as /outputs/0/data/0",
    ),
    (
        "validation: { ready: /ready }",
        "validation: { golden: [{ path: /infer }], latency: { requests: 10 } }",
        "23:109: found a mapping, expected at least one of p50_max, p95_max and p99_max",
    ),
    (
        "validation: { ready: /ready }",
        "validation: {}",
        "23:70: found a mapping, expected `ready`, `golden` or both",
    ),
    (
        "127.0.0.1:9001",
        "127.0.0.1",
        "29:24: found `127.0.0.1`, expected an address as host:port, [IPv6]:port or unix:/path (needs a port from 1 to 65535, as in host:8080)",
    ),
    (
        "weight: 2",
        "weight: 1001",
        "29:50: found the number 1001, expected a whole number from 1 to 1000",
    ),
    (
        "balance: least-in-flight",
        "balance: round-robin",
        "30:10: found `round-robin`, expected one of: least-in-flight",
    ),
    (
        "user:{unit}:country",
        "user:country",
        "32:63: found `user:country`, expected a key of visible ASCII with one {unit} and no other brace, such as user:{unit}:country",
    ),
    (
        "balance: least-in-flight",
        "name: light",
        "30:1: found the field `name` again, expected each field once",
    ),
];

#[test]
fn each_fault_tells_where_what_and_what_instead() {
    for (before, after, expected) in FAULTS {
        let faults = faults_with(before, after);
        let told: Vec<_> = faults.iter().map(ToString::to_string).collect();
        assert_eq!(told, [format!("rules.yaml:{expected}")], "{before} -> {after}");
    }
}

#[test]
fn what_this_build_does_not_serve_is_refused_and_not_ignored() {
    let half_closed = GOOD.replacen("idempotent: true", "half_close: true", 1);
    let faults = faults(&half_closed);
    assert_eq!(faults[0].kind, FaultKind::Unsupported);
    let expected = "rules.yaml:17:1: found the field `half_close`, expected it left out: \
                    half-closed clients are not supported by this build";
    assert_eq!(faults[0].to_string(), expected);
}

#[test]
fn a_default_arm_with_a_required_fact_is_refused() {
    let text = GOOD
        .replacen(
            "stable: { model: ranker@1 }",
            "stable: { model: ranker@1, facts: [user_country] }",
            1,
        )
        .replacen(", default: \"\" }\n", " }\n", 2);
    let faults = faults(&text);
    let expected = "rules.yaml:10:37: found the default Arm with the Fact `user_country`, which \
                    has no default, expected only Facts that have a default: every Fallout lands \
                    here";
    assert_eq!(faults[0].to_string(), expected);
}

#[test]
fn all_faults_of_all_files_are_told_in_order() {
    let one = file(&GOOD.replacen("token: RECOMMEND", "token: 5", 1).replacen("4MiB", "4", 1));
    let two = RuleFile { name: "a.yaml".to_owned(), text: "kind: Shard\nnam: x\n".to_owned() };
    let three = RuleFile { name: "b.yaml".to_owned(), text: "a: [".to_owned() };
    let faults = read(&[one, two, three]).expect_err("five faults");
    let places: Vec<_> = faults.iter().map(|fault| fault.place.to_string()).collect();
    assert_eq!(
        places,
        [
            "a.yaml:1:1",
            "a.yaml:1:1",
            "a.yaml:2:1",
            "b.yaml:1:4",
            "rules.yaml:2:8",
            "rules.yaml:19:11"
        ]
    );
}

#[test]
fn an_overfull_layer_names_the_remaining_room() {
    let second = r#"---
kind: Objective
token: SECOND
context: { user_id: { from: "header:x-user-id", type: string } }
default: only
arms: { only: { model: ranker@1 } }
rules:
  - name: trial
    experiment: { unit: user_id, salt: second-1, layer: ranking, layer_share: 6001, split: { only: 10000 } }
"#;
    let faults = faults(&format!("{GOOD}{second}"));
    assert_eq!(faults[0].kind, FaultKind::Capacity);
    let expected = "rules.yaml:41:79: found a share of 6001 in the Layer `ranking`, expected at \
                    most 6000: the other experiments own 4000 Slots of 10000";
    assert_eq!(faults[0].to_string(), expected);
}

#[test]
fn the_same_object_twice_is_refused_with_both_places() {
    let twice = format!("{GOOD}---\n{{ kind: Layer, name: ranking }}\n");
    let faults = faults(&twice);
    let expected = "rules.yaml:34:1: found a second Layer `ranking`, expected one; the first is \
                    at rules.yaml:21:1";
    assert_eq!(faults[0].to_string(), expected);
    // Two versions of one Model are two objects.
    assert_eq!(faults.len(), 1);
}

#[test]
fn what_only_the_registry_holds_is_named_when_a_change_breaks_it() {
    let before = draft(&read(&[file(GOOD)]).expect("good rules")).expect("a good draft");
    let shard = "kind: Shard\nname: other\nendpoints: [{ address: \"h:1\" }]\n";
    let documents = read(&[file(&format!(
        "{shard}---\n{}",
        GOOD.split("---\n").next().expect("the Objective")
    ))])
    .expect("good rules");
    let change = Draft::of_change(
        &before.set,
        &before.allocations,
        &before.conditions,
        &documents,
        Unmentioned::Prune,
        "default",
    );
    let told: Vec<_> = change.expect_err("dangling").iter().map(ToString::to_string).collect();
    assert_eq!(
        told[0],
        "rules.yaml:14:20: found the Model `ranker@1`, expected one of the Models, but there is none"
    );

    let layer = read(&[file("kind: Layer\nname: ranking\nsalt: trial-1\n")]).expect("good rules");
    let change = Draft::of_change(
        &before.set,
        &before.allocations,
        &before.conditions,
        &layer,
        Unmentioned::Keep,
        "default",
    );
    let told = change.expect_err("the salts collide")[0].to_string();
    assert!(told.starts_with("registry: Objective RECOMMEND: found the salt `trial-1`"), "{told}");
}

#[test]
fn files_above_the_limit_are_refused_unread() {
    let big = RuleFile { name: "big.yaml".to_owned(), text: "#".repeat((16 << 20) + 1) };
    let faults = read(&[big]).expect_err("too big");
    let expected = "big.yaml: found more rules, expected at most 16777216 bytes in all files \
                    together";
    assert_eq!(faults[0].to_string(), expected);
}
