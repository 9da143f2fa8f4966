//! How changes reach routers, good ones and bad ones.

use serde_json::Value;

use crate::stage::{Manner, Stage, StubModel, StubRouter, rules, texts, wait_for};

/// The row of one router in `status`.
fn router(stage: &Stage, name: &str) -> Option<Value> {
    let status = stage.json(&["status"]);
    let routers = status["routers"].as_array().expect("a list").clone();
    let socket = format!("/{name}.sock");
    routers
        .into_iter()
        .find(|one| one["socket"].as_str().is_some_and(|path| path.ends_with(&socket)))
}

/// Waits until a router stands so.
fn wait_for_standing(stage: &Stage, name: &str, standing: &str) -> Value {
    wait_for(&format!("{name} to be {standing}"), || {
        router(stage, name).filter(|router| router["standing"] == standing)
    })
}

#[test]
fn every_router_prepares_before_any_activates() {
    let (stage, model) = (Stage::serving(), StubModel::start(200));
    let routers: Vec<_> =
        ["a", "b", "c"].map(|name| StubRouter::start(&stage, name, Manner::Good)).into();
    for name in ["a", "b", "c"] {
        wait_for_standing(&stage, name, "no_target");
    }
    let version = stage.activate(&rules(&model, 9000, 1000));
    assert_eq!(version, 1);
    for router in &routers {
        assert_eq!(router.orders(), ["prepare 1", "activate 1"]);
        assert_eq!(router.version(), Some(1));
    }
    let row = wait_for_standing(&stage, "b", "current");
    assert_eq!(row["running"]["version"], 1);
    assert_eq!(row["slowest_swap_us"], 12);
}

#[test]
fn a_version_without_any_router_is_active_and_waits_for_them() {
    let (stage, model) = (Stage::serving(), StubModel::start(200));
    stage.activate(&rules(&model, 9000, 1000));
    stage.activate(&rules(&model, 8000, 2000));
    let late = StubRouter::start(&stage, "late", Manner::Good);
    wait_for_standing(&stage, "late", "current");
    assert_eq!(late.orders(), ["prepare 2", "activate 2"]);
}

#[test]
fn one_refusal_keeps_all_routers_on_what_they_run() {
    let (stage, model) = (Stage::serving(), StubModel::start(200));
    let good = StubRouter::start(&stage, "good", Manner::Good);
    let picky = StubRouter::start(&stage, "picky", Manner::Good);
    for name in ["good", "picky"] {
        wait_for_standing(&stage, name, "no_target");
    }
    stage.activate(&rules(&model, 9000, 1000));
    picky.behave(Manner::Refuses);
    let output = stage.apply(&rules(&model, 8000, 2000));
    let (_, error) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("router picky refused: semantic: not to my taste"), "{error}");
    assert_eq!((good.version(), picky.version()), (Some(1), Some(1)));
    assert!(!good.orders().contains(&"activate 2".to_owned()));

    let status = stage.json(&["status"]);
    assert_eq!(status["active"]["version"], 1);
    assert_eq!(status["last_failure"]["version"], 2);
    let row = router(&stage, "picky").expect("it is there");
    assert_eq!(row["refusal"]["version"], 2);
    assert_eq!(row["refusal"]["reason"], "semantic");

    // The next version supersedes it; the number of the failed one is not used again.
    picky.behave(Manner::Good);
    assert_eq!(stage.activate(&rules(&model, 8000, 2000)), 3);
    assert_eq!((good.version(), picky.version()), (Some(3), Some(3)));
}

#[test]
fn a_refused_version_is_pushed_once_per_life_of_a_router() {
    let (stage, model) = (Stage::serving(), StubModel::start(200));
    stage.activate(&rules(&model, 9000, 1000));
    let picky = StubRouter::start(&stage, "picky", Manner::Refuses);
    wait_for_standing(&stage, "picky", "refused");
    // Heartbeats come every 20 ms: fifty of them are fifty chances to loop.
    let uptime = |stage: &Stage| router(stage, "picky")?["uptime_ms"].as_u64();
    wait_for("a second of heartbeats", || uptime(&stage).filter(|uptime| *uptime > 1_000));
    assert_eq!(picky.orders(), ["prepare 1"]);

    // Another life gets one more try.
    drop(picky);
    wait_for("its socket to be gone", || router(&stage, "picky").is_none().then_some(()));
    let again = StubRouter::start(&stage, "picky", Manner::Refuses);
    wait_for_standing(&stage, "picky", "refused");
    wait_for("a second of heartbeats", || uptime(&stage).filter(|uptime| *uptime > 1_000));
    assert_eq!(again.orders(), ["prepare 1"]);

    // A newer version is another matter.
    again.behave(Manner::Good);
    stage.activate(&rules(&model, 8000, 2000));
    assert_eq!(again.orders(), ["prepare 1", "prepare 2", "activate 2"]);
}

#[test]
fn a_router_that_comes_back_older_catches_up() {
    let (stage, model) = (Stage::serving(), StubModel::start(200));
    let first = StubRouter::start(&stage, "a", Manner::Good);
    wait_for_standing(&stage, "a", "no_target");
    stage.activate(&rules(&model, 9000, 1000));
    let then = first.runs();
    drop(first);
    wait_for("its socket to be gone", || router(&stage, "a").is_none().then_some(()));
    stage.activate(&rules(&model, 8000, 2000));
    let again = StubRouter::running(&stage, "a", "default", Manner::Good, then);
    wait_for_standing(&stage, "a", "current");
    assert_eq!(again.orders(), ["prepare 2", "activate 2"]);
}

#[test]
fn a_router_that_runs_the_active_version_is_told_nothing() {
    let (mut stage, model) = (Stage::serving(), StubModel::start(200));
    let router = StubRouter::start(&stage, "a", Manner::Good);
    wait_for_standing(&stage, "a", "no_target");
    stage.activate(&rules(&model, 9000, 1000));
    stage.start(&[], &[]);
    wait_for_standing(&stage, "a", "current");
    assert_eq!(router.orders(), ["prepare 1", "activate 1"]);
}

#[test]
fn bad_routers_are_shown_and_hold_nobody_up() {
    let mut stage = Stage::new();
    stage.start(&["--router-answer-ms", "300"], &[]);
    let model = StubModel::start(200);
    let good = StubRouter::start(&stage, "good", Manner::Good);
    let _mute = StubRouter::start(&stage, "mute", Manner::Mute);
    let _garbage = StubRouter::start(&stage, "garbage", Manner::Garbage);
    let _hangs = StubRouter::start(&stage, "hangs", Manner::Hangs);
    let _lies = StubRouter::start(&stage, "lies", Manner::Lies);
    let _tears = StubRouter::start(&stage, "tears", Manner::Tears);
    let error_of = |name: &str, expected: &str| {
        wait_for(&format!("{name}: {expected}"), || {
            let row = router(&stage, name)?;
            row["error"].as_str().filter(|error| error.contains(expected)).map(str::to_owned)
        })
    };
    for name in ["good", "hangs", "lies", "tears"] {
        wait_for_standing(&stage, name, "no_target");
    }
    error_of("mute", "did not say who it is within");
    error_of("garbage", "garbage");

    stage.activate(&rules(&model, 9000, 1000));
    assert_eq!(good.version(), Some(1));
    error_of("hangs", "did not answer within 300ms");
    error_of("lies", "answered for version 2, not for 1");
    error_of("tears", "closed the connection within a frame");
    stage.activate(&rules(&model, 8000, 2000));
    assert_eq!(good.version(), Some(2));
}

#[test]
fn a_router_of_another_group_is_shown_and_left_alone() {
    let (stage, model) = (Stage::serving(), StubModel::start(200));
    let foreign = StubRouter::running(&stage, "foreign", "canary", Manner::Good, None);
    let row = wait_for_standing(&stage, "foreign", "foreign_group");
    assert_eq!(row["group"], "canary");
    stage.activate(&rules(&model, 9000, 1000));
    assert_eq!(foreign.orders(), Vec::<String>::new());
}

#[test]
fn a_router_ahead_of_a_lost_registry_is_shown_and_the_numbering_can_go_on() {
    let (mut stage, model) = (Stage::serving(), StubModel::start(200));
    let ahead = StubRouter::start(&stage, "ahead", Manner::Good);
    wait_for_standing(&stage, "ahead", "no_target");
    stage.activate(&rules(&model, 9000, 1000));
    stage.activate(&rules(&model, 8000, 2000));
    stage.kill();
    for name in ["registry.db", "registry.db-wal", "registry.db-shm"] {
        drop(std::fs::remove_file(stage.path(name)));
    }
    stage.start(&["--first-version", "100"], &[]);
    wait_for_standing(&stage, "ahead", "no_target");
    assert_eq!(stage.activate(&rules(&model, 9000, 1000)), 100);
    assert_eq!(ahead.version(), Some(100));
}
