//! `kill -9` at every step: no version is used twice, and what was decided stays decided.

use serde_json::{Value, json};

use crate::stage::{Manner, Stage, StubModel, StubRouter, rules, wait_for};

/// Applies a second version to a control plane that crashes at `point`, restarts it, and gives the
/// state of that version then.
fn state_after_crash_at(point: &str, stage: &mut Stage, model: &StubModel) -> Value {
    stage.activate(&rules(model, 9000, 1000));
    stage.start(&[], &[("SWITCHBOARD_CONTROL_CRASH_AT", point)]);
    wait_for("the router", || {
        let status = stage.json(&["status"]);
        (status["routers"][0]["standing"] == "current").then_some(())
    });
    let output = stage.apply(&rules(model, 8000, 2000));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    stage.wait_for_end();
    stage.start(&[], &[]);
    let (_, body) = stage.get("/v1/versions/2");
    serde_json::from_slice::<Value>(&body).expect("JSON")["state"].clone()
}

#[test]
fn before_the_decision_a_crash_fails_the_version_and_routers_run_on() {
    for point in ["assigned", "validating", "validated", "prepared"] {
        let (mut stage, model) = (Stage::serving(), StubModel::start(200));
        let router = StubRouter::start(&stage, "a", Manner::Good);
        assert_eq!(state_after_crash_at(point, &mut stage, &model), "Failed", "{point}");
        let status = stage.json(&["status"]);
        assert_eq!(status["active"]["version"], 1, "{point}");
        assert_eq!(router.version(), Some(1), "{point}");
        let reason = status["last_failure"]["reason"].as_str().expect("a reason").to_owned();
        assert!(reason.starts_with("the control plane stopped while it was"), "{reason}");
        // The number is spent.
        assert_eq!(stage.activate(&rules(&model, 8000, 2000)), 3, "{point}");
        wait_for("the router to follow", || (router.version() == Some(3)).then_some(()));
    }
}

#[test]
fn after_the_decision_a_crash_is_finished_at_the_next_start() {
    for point in ["activating", "activated"] {
        let (mut stage, model) = (Stage::serving(), StubModel::start(200));
        let router = StubRouter::start(&stage, "a", Manner::Good);
        assert_eq!(state_after_crash_at(point, &mut stage, &model), "Active", "{point}");
        assert_eq!(stage.json(&["status"])["active"]["version"], 2, "{point}");
        wait_for("the router to follow", || (router.version() == Some(2)).then_some(()));
        assert_eq!(stage.activate(&rules(&model, 7000, 3000)), 3, "{point}");
    }
}

#[test]
fn a_restart_keeps_everything() {
    let (mut stage, model) = (Stage::serving(), StubModel::start(200));
    stage.activate(&rules(&model, 9000, 1000));
    stage.activate(&rules(&model, 8000, 2000));
    let before = (stage.run(&["export"]), stage.json(&["versions"]));
    stage.start(&[], &[]);
    assert_eq!((stage.run(&["export"]), stage.json(&["versions"])), before);
    let explain = stage.json(&["explain", "--objective", "RECOMMEND", "--unit", "u7"]);
    assert_eq!(explain["reason"], "experiment");
    assert_eq!(stage.json(&["rollback"])["version"], json!(3));
}

#[test]
fn another_signing_key_takes_over_with_the_next_version() {
    let (mut stage, model) = (Stage::serving(), StubModel::start(200));
    stage.activate(&rules(&model, 9000, 1000));
    stage.kill();
    for name in ["signing.key", "signing.key.pub"] {
        std::fs::remove_file(stage.path(name)).expect("it is there");
    }
    stage.run(&["keygen", "--secret", "signing.key"]);
    stage.start(&[], &[]);
    let explain = stage.json(&["explain", "--objective", "RECOMMEND", "--unit", "u7"]);
    assert_eq!(explain["reason"], "experiment");
    let router = StubRouter::start(&stage, "a", Manner::Mute);
    stage.activate(&rules(&model, 8000, 2000));
    router.behave(Manner::Good);
    wait_for("the router to follow", || (router.version() == Some(2)).then_some(()));
}
