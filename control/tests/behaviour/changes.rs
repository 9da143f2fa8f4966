//! Changes from outside: plan, apply, rollback, export, explain, gate, and concurrent callers.

use std::fs;

use serde_json::{Value, json};

use crate::stage::{Stage, StubModel, rules, texts};

#[test]
fn plan_tells_exactly_what_apply_then_does() {
    let (stage, model) = (Stage::serving(), StubModel::start(200));
    stage.activate(&rules(&model, 9000, 1000));
    fs::write(stage.path("next.yaml"), rules(&model, 8000, 2000)).expect("a writable folder");
    let plan = stage.json(&["plan", "-f", "next.yaml"]);
    assert_eq!(plan["base"], 1);
    let object = &plan["objects"][0];
    assert_eq!((&object["kind"], &object["name"]), (&json!("Objective"), &json!("RECOMMEND")));
    assert_eq!(
        object["fields"],
        json!([
            { "path": "rules[trial].experiment.split.heavy", "before": 1000, "after": 2000 },
            { "path": "rules[trial].experiment.split.stable", "before": 9000, "after": 8000 },
        ])
    );
    let moves = json!([{
        "from": "stable", "to": "heavy", "slots": 1000, "slot_ranges": ["9000-9999"], "percent": 10.0
    }]);
    let moved = plan["experiments"][0]["moves"].clone();
    let ranges = moved[0]["slot_ranges"].clone();
    let expected = {
        let mut expected = moves.clone();
        expected[0]["slot_ranges"] = ranges;
        expected
    };
    assert_eq!(moved, expected);
    assert_eq!(plan["experiments"][0]["exact"], true);

    let report = stage.json(&["apply", "-f", "next.yaml"]);
    assert_eq!(report["plan"], plan);
    // Nothing is left to do, and nothing makes no version.
    let plan = stage.run(&["plan", "-f", "next.yaml"]);
    assert_eq!(plan, "Nothing would change; version 2 is active.\n");
    assert_eq!(stage.json(&["apply", "-f", "next.yaml"])["ended"], "unchanged");
    assert_eq!(stage.json(&["versions"])["versions"].as_array().expect("a list").len(), 2);
}

#[test]
fn plan_shows_people_the_units_that_move() {
    let (stage, model) = (Stage::serving(), StubModel::start(200));
    stage.activate(&rules(&model, 9000, 1000));
    fs::write(stage.path("next.yaml"), rules(&model, 8000, 2000)).expect("a writable folder");
    let text = stage.run(&["plan", "-f", "next.yaml"]);
    let row = text.lines().find(|line| line.contains("stable")).map(str::to_owned);
    assert!(text.contains("rules[trial].experiment.split.stable: 9000 → 8000"), "{text}");
    assert!(text.contains("RECOMMEND  ~ trial     stable  heavy  1000   10 %"), "{text}{row:?}");
}

#[test]
fn a_rule_file_with_faults_stores_nothing() {
    let (stage, model) = (Stage::serving(), StubModel::start(200));
    let bad =
        rules(&model, 9000, 1000).replace("ranker@2 }", "ranker@3 }").replace("boss\"", "boss");
    let output = stage.apply(&bad);
    let (_, error) = texts(&output);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.starts_with("rules.yaml:7:"), "{error}");
    let dangling = rules(&model, 9000, 1000).replace("ranker@2 }", "ranker@3 }");
    let output = stage.apply(&dangling);
    let (_, error) = texts(&output);
    assert_eq!(output.status.code(), Some(2), "{error}");
    let expected = "rules.yaml:5:54: found the Model `ranker@3`, expected one of the Models: \
                    ranker@1, ranker@2";
    assert!(error.starts_with(expected), "{error}");
    assert!(error.ends_with("1 fault in the rules; nothing is stored\n"), "{error}");
    assert_eq!(stage.json(&["versions"])["versions"], json!([]));
    assert_eq!(model.asked(), Vec::<String>::new());
}

#[test]
fn an_endpoint_that_is_not_ready_keeps_a_version_from_leaving() {
    let mut stage = Stage::new();
    stage.start(&["--ready-within-ms", "600"], &[]);
    let model = StubModel::start(503);
    let output = stage.apply(&rules(&model, 9000, 1000));
    let (_, error) = texts(&output);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("503 Service Unavailable instead of 2xx"), "{error}");
    assert!(error.contains("Version 1 failed validation and goes nowhere"), "{error}");
    assert_eq!(stage.json(&["status"])["active"], Value::Null);
    let detail: Value = serde_json::from_slice(&stage.get("/v1/versions/1").1).expect("JSON");
    assert_eq!(detail["state"], "Failed");
    assert_eq!(detail["evidence"][0]["passed"], false);

    model.answers(204);
    assert_eq!(stage.activate(&rules(&model, 9000, 1000)), 2);
    assert!(model.asked().iter().all(|line| line == "GET /ready HTTP/1.1"), "{:?}", model.asked());

    // What is known to be ready is not asked again: it may be down while its rules change.
    let asked = model.asked().len();
    model.answers(503);
    assert_eq!(stage.activate(&rules(&model, 8000, 2000)), 3);
    assert_eq!(model.asked().len(), asked);
}

#[test]
fn an_endpoint_that_becomes_ready_in_time_is_waited_for() {
    let (stage, model) = (Stage::serving(), StubModel::start(503));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            crate::stage::wait_for("two questions", || (model.asked().len() >= 2).then_some(()));
            model.answers(200);
        });
        assert_eq!(stage.activate(&rules(&model, 9000, 1000)), 1);
    });
}

#[test]
fn a_rollback_is_a_new_version_with_exactly_the_slots_of_then() {
    let (stage, model) = (Stage::serving(), StubModel::start(200));
    stage.activate(&rules(&model, 9000, 1000));
    stage.activate(&rules(&model, 5000, 5000));
    stage.activate(&rules(&model, 9000, 1000));
    // The way there and back has left other Slots than at first, with the same weights.
    let first = stage.run(&["export", "1"]);
    assert_eq!(stage.run(&["export", "3"]), first, "shrinking gives back what growing took");

    let report = stage.json(&["rollback"]);
    assert_eq!((&report["ended"], &report["version"]), (&json!("active"), &json!(4)));
    assert_eq!(stage.run(&["export", "4"]), stage.run(&["export", "2"]));
    let report = stage.json(&["rollback", "1"]);
    assert_eq!(report["version"], 5);
    assert_eq!(stage.run(&["export"]), first);
    let digest = |version: u64| {
        let (_, body) = stage.get(&format!("/v1/versions/{version}"));
        let detail: Value = serde_json::from_slice(&body).expect("JSON");
        (detail["digest"].clone(), detail["state"].clone(), detail["selection"].clone())
    };
    assert_eq!(digest(5).0, digest(1).0);
    assert_eq!(digest(5).2, digest(1).2);
    assert_eq!(digest(4).1, "RolledBack");

    assert_eq!(stage.json(&["rollback", "1"])["ended"], "unchanged");
    let output = stage.command(&["rollback", "99"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(texts(&output).1.contains("there is no version 99"), "{output:?}");
}

#[test]
fn there_is_nothing_to_roll_back_to_at_first() {
    let (stage, model) = (Stage::serving(), StubModel::start(200));
    let (_, error) = texts(&stage.command(&["rollback"]));
    assert!(error.contains("no version is active yet"), "{error}");
    stage.activate(&rules(&model, 9000, 1000));
    let (_, error) = texts(&stage.command(&["rollback"]));
    assert!(error.contains("no version before 1 was active with other content"), "{error}");
}

#[test]
fn an_export_on_an_empty_registry_gives_the_same_snapshot() {
    let (stage, model) = (Stage::serving(), StubModel::start(200));
    for (stable, heavy) in [(9000, 1000), (5000, 5000), (7000, 2500)] {
        stage.activate(&rules(&model, stable, heavy));
    }
    let export = stage.run(&["export"]);
    let other = Stage::serving();
    assert_eq!(other.activate(&export), 1);
    assert_eq!(other.run(&["export"]), export);
    let digest = |stage: &Stage| stage.json(&["status"])["active"]["digest"].clone();
    assert_eq!(digest(&other), digest(&stage));
}

#[test]
fn placement_and_selection_have_their_own_versions() {
    let (stage, model) = (Stage::serving(), StubModel::start(200));
    stage.activate(&rules(&model, 9000, 1000));
    stage.activate(&rules(&model, 8000, 2000));
    stage.activate(&rules(&model, 8000, 2000).replace("\" }]", "\", weight: 7 }]"));
    let list = stage.json(&["versions"]);
    let numbers: Vec<_> = list["versions"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| (one["version"].as_u64(), one["selection"].as_u64(), one["placement"].as_u64()))
        .collect();
    let expected = [(3, 2, 2), (2, 2, 1), (1, 1, 1)].map(|(a, b, c)| (Some(a), Some(b), Some(c)));
    assert_eq!(numbers, expected);
}

#[test]
fn what_files_do_not_mention_stays_unless_it_is_pruned() {
    let (stage, model) = (Stage::serving(), StubModel::start(200));
    let rules = rules(&model, 9000, 1000);
    stage.activate(&rules);
    stage.activate("{ kind: Layer, name: spare }\n");
    assert!(stage.run(&["export"]).contains("name: spare"));
    fs::write(stage.path("all.yaml"), &rules).expect("a writable folder");
    let plan = stage.json(&["plan", "--prune", "-f", "all.yaml"]);
    assert_eq!(plan["objects"][0]["change"], "removed");
    stage.run(&["apply", "--prune", "-f", "all.yaml"]);
    assert!(!stage.run(&["export"]).contains("name: spare"));

    fs::write(stage.path("empty.yaml"), "# nothing\n").expect("a writable folder");
    let output = stage.command(&["apply", "--prune", "-f", "empty.yaml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(texts(&output).1.contains("pruning would remove everything"), "{output:?}");
}

#[test]
fn a_token_that_was_given_up_is_never_reused() {
    let (stage, model) = (Stage::serving(), StubModel::start(200));
    let first = rules(&model, 9000, 1000);
    let second = first.replace("token: RECOMMEND", "token: OTHER").replace("trial-1", "trial-2");
    stage.activate(&first);
    fs::write(stage.path("second.yaml"), &second).expect("a writable folder");
    stage.run(&["apply", "--prune", "-f", "second.yaml"]);
    let output = stage.apply(&first);
    let (_, error) = texts(&output);
    assert_eq!(output.status.code(), Some(2), "{error}");
    let expected = "rules.yaml:2:8: found the token `RECOMMEND`, which version 2 gave up, expected \
                    another one: a token names one business goal for ever";
    assert!(error.starts_with(expected), "{error}");
    // Going back is no reuse.
    stage.run(&["rollback"]);
    stage.activate(&first.replace("9000", "9001").replace("1000", "999"));
}

#[test]
fn concurrent_changes_take_turns_and_none_is_lost() {
    let (stage, model) = (Stage::serving(), StubModel::start(200));
    stage.activate(&rules(&model, 9000, 1000));
    for number in 0..8 {
        let layer = format!("{{ kind: Layer, name: layer-{number} }}\n");
        fs::write(stage.path(&format!("{number}.yaml")), layer).expect("a writable folder");
    }
    let mut versions: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|number| {
                let stage = &stage;
                scope.spawn(move || {
                    let report = stage.json(&["apply", "-f", &format!("{number}.yaml")]);
                    assert_eq!(report["ended"], "active", "{report}");
                    report["version"].as_u64().expect("a version")
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    versions.sort_unstable();
    assert_eq!(versions, (2..=9).collect::<Vec<_>>());
    let export = stage.run(&["export"]);
    assert!((0..8).all(|number| export.contains(&format!("name: layer-{number}\n"))), "{export}");
}

#[test]
fn explain_tells_every_rule_that_was_tried() {
    let (stage, model) = (Stage::serving(), StubModel::start(200));
    stage.activate(&rules(&model, 9000, 1000));
    let answer = stage.json(&["explain", "--objective", "RECOMMEND", "--unit", "u7"]);
    assert_eq!(answer["tried"][0]["rule"], "staff");
    assert_eq!(answer["tried"][0]["outcome"], "not_held");
    assert_eq!(answer["tried"][0]["tests"][0]["found"], "u7");
    assert_eq!(answer["reason"], "experiment");
    let text = stage.run(&["explain", "--objective", "RECOMMEND", "--attr", "user_id=boss"]);
    assert!(text.starts_with("RECOMMEND → Arm heavy, Model ranker@2, reason rule\n"), "{text}");
    assert!(text.contains("1. staff: decides: Arm heavy"), "{text}");
    let text = stage.run(&["explain", "--objective", "RECOMMEND"]);
    assert!(text.contains("the request carries no Unit"), "{text}");
    for (arguments, expected) in [
        (["--objective", "NOTHING", "--unit", "u"], "there is no Objective `NOTHING`"),
        (["--objective", "RECOMMEND", "--attr", "x=y"], "`x` is no attribute of the Objective"),
    ] {
        let output = stage.command(&[&["explain"][..], &arguments[..]].concat());
        assert_eq!(output.status.code(), Some(1));
        assert!(texts(&output).1.contains(expected), "{output:?}");
    }
}

#[test]
fn every_change_is_in_the_audit_log() {
    let (stage, model) = (Stage::serving(), StubModel::start(200));
    stage.activate(&rules(&model, 9000, 1000));
    let (_, body) = stage.get("/v1/audit");
    let audit: Value = serde_json::from_slice(&body).expect("JSON");
    let actions: Vec<_> = audit["entries"]
        .as_array()
        .expect("a list")
        .iter()
        .rev()
        .map(|entry| entry["action"].as_str().expect("a text"))
        .collect();
    assert_eq!(actions, ["apply", "Validating", "Validated", "Activating", "Active"]);
    let last = &audit["entries"][0];
    assert_eq!(last["before"], Value::Null);
    assert_eq!(last["after"], stage.json(&["status"])["active"]["digest"]);
    assert!(last["actor"].as_str().expect("a text").contains('@'), "{last}");
}
