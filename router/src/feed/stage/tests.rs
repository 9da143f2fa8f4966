use std::cell::Cell;

use super::*;
use crate::counters::Counters;
use crate::samples;
use crate::status::NotReady;

thread_local! {
    static HAS_NETWORK: Cell<bool> = const { Cell::new(false) };
}

/// Knows every name once there is a network.
fn resolver(names: BTreeSet<(String, u16)>, _: Duration) -> HostNames {
    let address = |(name, port)| ((name, port), ([192, 0, 2, 1], port).into());
    names.into_iter().filter(|_| HAS_NETWORK.get()).map(address).collect()
}

fn stage(folder: &std::path::Path) -> Stage {
    let mut stage = Stage::new(
        samples::trusted(),
        samples::GROUP.into(),
        State::open(folder).unwrap(),
        Activation::new(0).0,
        Counters::new(0).feed().unwrap(),
        Status::new(),
    );
    stage.resolver = resolver;
    stage
}

#[test]
fn a_network_that_comes_after_the_router_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = samples::file(&samples::definition(&["FEED"], &["model.test:80"]), 3);
    {
        HAS_NETWORK.set(true);
        let mut stage = stage(folder.path());
        let mut prepared = Some(stage.prepare(&file).unwrap());
        let id = prepared.as_ref().unwrap().id();
        assert_eq!(stage.activate(&mut prepared, id).unwrap().running, id);
    }
    HAS_NETWORK.set(false);
    let mut stage = stage(folder.path());
    stage.start();
    assert_eq!(stage.status.ready(), Err(NotReady::NoSnapshot));
    assert_eq!(stage.newest().unwrap().version, samples::version(3));

    HAS_NETWORK.set(true);
    let begun = clock::now();
    stage.beat(begun);
    assert_eq!(stage.status.ready(), Err(NotReady::NoSnapshot), "not due yet");
    stage.beat(begun + START_AGAIN);
    assert_eq!(stage.status.ready(), Ok(()));
    assert_eq!(stage.running().unwrap().source, Source::Disk);
}

#[test]
fn what_was_pushed_meanwhile_is_not_replaced_from_disk() {
    let folder = tempfile::tempdir().unwrap();
    let named = samples::file(&samples::definition(&["FEED"], &["model.test:80"]), 3);
    let numbered = samples::file(&samples::definition(&["FEED"], &["192.0.2.1:80"]), 4);
    let push = |stage: &mut Stage, file: &[u8]| {
        let mut prepared = Some(stage.prepare(file).unwrap());
        let id = prepared.as_ref().unwrap().id();
        stage.activate(&mut prepared, id).unwrap();
    };
    {
        HAS_NETWORK.set(true);
        push(&mut stage(folder.path()), &named);
    }
    HAS_NETWORK.set(false);
    let mut stage = stage(folder.path());
    stage.start();
    push(&mut stage, &numbered);
    HAS_NETWORK.set(true);
    stage.beat(clock::now() + START_AGAIN);
    let running = stage.running().unwrap();
    assert_eq!((running.id.version.get(), running.source), (4, Source::Push));
}
