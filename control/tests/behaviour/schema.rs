//! The published JSON Schema and the reader say the same.

use std::{fs, path::Path};

use jsonschema::Validator;
use serde_json::Value;
use switchboard_control::rules::{FaultKind, RuleFault, SCHEMA, read};

use crate::rules::{GOOD, draft, file};

fn validator() -> Validator {
    let schema: Value = serde_json::from_str(SCHEMA).expect("the schema is JSON");
    jsonschema::meta::validate(&schema).expect("the schema is a schema");
    jsonschema::validator_for(&schema).expect("the schema compiles")
}

/// Documents as an editor with the schema sees them.
fn documents(text: &str) -> Vec<Value> {
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_multiple_with_options(text, options).expect("well-formed YAML")
}

/// All `*.yaml` under a folder.
fn yaml_files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(yaml_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
    files.sort();
    files
}

#[test]
fn the_examples_satisfy_schema_and_reader() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let validator = validator();
    let paths = yaml_files(&examples);
    assert!(paths.len() >= 3, "{paths:?}");
    let mut files = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).expect("a readable file");
        for document in documents(&text) {
            let faults: Vec<_> =
                validator.iter_errors(&document).map(|error| error.to_string()).collect();
            assert_eq!(faults, Vec::<String>::new(), "{}", path.display());
        }
        files.push(file(&text));
    }
    let documents = read(&files).expect("good rules");
    let draft = draft(&documents).expect("a good draft");
    let tokens: Vec<_> = draft.set.objectives.keys().map(String::as_str).collect();
    assert_eq!(tokens, ["ANSWER_SUPPORT_CHAT", "RECOMMEND_HOME_FEED", "SCORE_PAYMENT_RISK"]);
    assert!(draft.set.objectives.values().all(|objective| objective.idempotent));
}

/// Whether a fault is of a kind that a schema can see: not what needs two documents or CEL.
fn is_local(fault: &RuleFault) -> bool {
    match fault.kind {
        FaultKind::Type
        | FaultKind::Value
        | FaultKind::UnknownField
        | FaultKind::MissingField
        | FaultKind::Unsupported
        | FaultKind::Limit => true,
        FaultKind::Syntax
        | FaultKind::Duplicate
        | FaultKind::Dangling
        | FaultKind::Expression
        | FaultKind::Capacity
        | FaultKind::Immutable => false,
    }
}

#[test]
fn the_good_set_satisfies_the_schema() {
    let validator = validator();
    for document in documents(GOOD) {
        let faults: Vec<_> = validator.iter_errors(&document).map(|one| one.to_string()).collect();
        assert_eq!(faults, Vec::<String>::new(), "{document}");
    }
}

#[test]
fn what_the_reader_refuses_the_schema_refuses() {
    assert_both_refuse(&[
        ("kind: Objective", "kind: Objectiv"),
        ("kind: Objective\n", ""),
        ("token: RECOMMEND", "token: recommend"),
        ("token: RECOMMEND", "token: [RECOMMEND]"),
        ("default: stable\n", ""),
        ("header:X-User-Id", "cookie:x"),
        ("body:/context/country", "body:context"),
        ("body:/context/country", "body:/a~2"),
        ("type: number", "type: int"),
        ("default: false", "default: 0"),
        ("country: {", "in: {"),
        ("country: {", "Country: {"),
        ("model: ranker@1", "model: ranker"),
        ("model: ranker@1 ", "model: ranker@1, weight: 3 "),
        ("stable: { model: ranker@1 }", "Stable: { model: ranker@1 }"),
        ("facts: [user_country]", "facts: user_country"),
        ("first_byte: 5s", "first_byte: 5"),
        ("first_byte: 5s", "first_byte: 5 s"),
        ("first_byte: 5s", "first: 5s"),
        ("when: 'user_id in [\"u1\", \"u2\"]', ", "when: 5, "),
        (", arm: heavy }", " }"),
        ("name: trial", "title: trial"),
        ("    experiment:", "    arm: heavy\n    experiment:"),
        ("unit: user_id, ", ""),
        ("layer_share: 4000", "layer_share: 0"),
        ("layer_share: 4000", "layer_share: 10001"),
        ("layer: ranking, ", ""),
        ("stable: 9000", "stable: 90.5"),
        ("stable: 9000", "stable: -1"),
        ("stable: 9000", "stable: 10001"),
        ("idempotent: true", "idempotent: yes"),
        ("idempotent: true", "shadow: []"),
        ("idempotent: true", "shadow: [{ model: ranker@2 }]"),
        ("idempotent: true", "shadow: [{ model: ranker@2, sample: 0 }]"),
        ("idempotent: true", "shadow: [{ model: ranker@2, sample: 1, by: user }]"),
        ("idempotent: true", "shadow: [{ model: ranker@2, sample: 1, topic: \"..\" }]"),
        ("idempotent: true", "shadow: [{ model: ranker@2, sample: 1, keep: [country] }]"),
        ("idempotent: true", "shadow: [{ model: ranker@2, sample: 1, keep: [/a], drop: [/b] }]"),
        ("idempotent: true", "shadow: [{ model: ranker@2, sample: 1, max_bytes_per_second: 4 }]"),
        ("idempotent: true", "idempotant: true"),
        ("body_max: 4MiB", "body_max: 4MB"),
        ("body_max: 4MiB", "body_max: 4194304"),
        ("{ kind: Layer, name: ranking }", "{ kind: Layer }"),
        ("{ kind: Layer, name: ranking }", "{ kind: Layer, name: ranking, salt: \"\" }"),
        ("version: \"1\"", "version: 1"),
        ("version: \"1\"", "version: \"1@2\""),
        ("ready: /ready", "ready: ready"),
        ("ready: /ready", "ready: /ready?x"),
        ("ready: /ready", "golden: g.yaml"),
        ("served_name: big", "served_name: \"a b\""),
        ("path: /v2/big", "path: /v2/#big"),
        ("127.0.0.1:9001", "127.0.0.1"),
        ("weight: 2", "weight: 1001"),
        ("weight: 2", "weight: 0"),
        ("balance: least-in-flight", "balance: round-robin"),
        ("user:{unit}:country", "user:country"),
        ("user:{unit}:country", "user:{unit}:{unit}"),
        ("field: c", "field: \"\""),
        ("redis: {", "memcached: {"),
    ]);
}

#[test]
fn what_the_reader_refuses_of_a_validation_the_schema_refuses() {
    assert_both_refuse(&[
        ("ready: /ready", "golden: []"),
        ("ready: /ready", "golden: [{ body: x }]"),
        ("ready: /ready", "golden: [{ path: /a, status: 99 }]"),
        ("ready: /ready", "golden: [{ path: /a, expect: { outputs: 1 } }]"),
        ("ready: /ready", "golden: [{ path: /a, expect: { /outputs: [1] } }]"),
        ("ready: /ready", "golden: [{ path: /a, tolerance: -1 }]"),
        ("ready: /ready", "golden: [{ path: /a }], latency: { requests: 5 }"),
        ("ready: /ready", "golden: [{ path: /a }], latency: { p50_max: 5 }"),
        ("ready: /ready", "ready: /ready, latency: { p50_max: 5ms }"),
        ("ready: /ready", ""),
    ]);
}

/// The good set with one text replaced.
fn assert_both_refuse(changes: &[(&str, &str)]) {
    let validator = validator();
    for (before, after) in changes {
        assert!(GOOD.contains(before), "{before} is in the good set");
        let text = GOOD.replacen(before, after, 1);
        let faults = read(&[file(&text)]).expect_err(after);
        assert!(faults.iter().any(is_local), "{before} -> {after}: {faults:?}");
        let valid = documents(&text).iter().all(|document| validator.is_valid(document));
        assert!(!valid, "the schema takes {before} -> {after}");
    }
}

#[test]
fn what_the_reader_takes_the_schema_takes() {
    let validator = validator();
    for (before, after) in [
        ("header:X-User-Id", "query:user-id"),
        ("body:/context/country", "body:/a~1b/é/0"),
        ("default: \"\"", "default: \"10\""),
        ("stable: 9000", "stable: 0"),
        ("layer: ranking, layer_share: 4000, ", ""),
        ("layer_share: 4000", "layer_share: 10000"),
        (", timeouts: { first_byte: 5s }", ", timeouts: {}"),
        ("facts: [user_country]", "facts: []"),
        ("idempotent: true\n", ""),
        ("body_max: 4MiB", "body_max: 1024GiB"),
        ("{ kind: Layer, name: ranking }", "{ kind: Layer, name: ranking, salt: \"a b\" }"),
        ("version: \"1\"", "version: 1.0.0"),
        ("ready: /ready", "ready: /"),
        ("ready: /ready", "golden: [{ path: /a }]"),
        (
            "ready: /ready",
            "golden: [{ path: /a, body: \"{}\", expect: { \"\": 1, /b: x, /c: true } }]",
        ),
        ("ready: /ready", "golden: [{ path: /a, tolerance: 0.5 }], latency: { p99_max: 1s }"),
        ("served_name: big", "served_name: org/Big-7B:q4"),
        ("127.0.0.1:9001", "[::1]:9001"),
        ("127.0.0.1:9001", "model.internal:1"),
        (", weight: 2", ""),
        ("balance: least-in-flight\n", ""),
        (", field: c", ""),
    ] {
        assert!(GOOD.contains(before), "{before} is in the good set");
        let mut text = GOOD.replacen(before, after, 1);
        if after == "version: 1.0.0" {
            text = text.replacen("ranker@1", "ranker@1.0.0", 1);
        }
        let documents_read = read(&[file(&text)]).unwrap_or_else(|faults| panic!("{faults:?}"));
        draft(&documents_read).unwrap_or_else(|faults| panic!("{faults:?}"));
        for document in documents(&text) {
            let faults: Vec<_> =
                validator.iter_errors(&document).map(|error| error.to_string()).collect();
            assert_eq!(faults, Vec::<String>::new(), "{before} -> {after}");
        }
    }
}
