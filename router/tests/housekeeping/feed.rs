//! The snapshot feed over a real Unix socket: cases CF-01 to CF-04 as far as one router shows them.

use std::fs;
use std::sync::atomic::Ordering;

use switchboard_router::status::{Source, now_unix_ms};
use switchboard_shared::definition::Definition;
use switchboard_shared::push::{Frame, Health, Step};
use switchboard_shared::snapshot::{Header, SecretKey, SnapshotId, build};
use tempfile::TempDir;

use crate::controller::{Controller, Said};
use crate::router::Router;
use crate::samples;

fn definition() -> Definition {
    samples::definition(&["FEED"], &["127.0.0.1:9001"])
}

/// Version `version` of the same content.
fn file(version: u64) -> Vec<u8> {
    samples::file(&definition(), version)
}

/// What [`file`] of that version is called.
fn id(version: u64) -> SnapshotId {
    samples::snapshot(&definition(), version).id()
}

/// A router that runs version 8, and a controller of it.
fn running_8() -> (TempDir, Router, Controller) {
    let folder = tempfile::tempdir().unwrap();
    let router = Router::start(folder.path());
    let mut controller = Controller::connect(router.socket());
    controller.push(&file(8));
    (folder, router, controller)
}

/// The connection was closed, nothing changed, and the next connection works.
fn assert_closed_without_harm(router: &Router, mut bad: Controller) {
    assert_eq!(bad.answer(), Said::Gone);
    assert_eq!(router.version(), 8);
    let mut next = Controller::connect(router.socket());
    assert_eq!(next.running, Some(id(8)));
    assert_eq!(next.prepare(&file(9)), Said::Prepared(id(9)));
}

#[test]
fn hello_tells_who_and_what_runs() {
    let folder = tempfile::tempdir().unwrap();
    let router = Router::start(folder.path());
    let hello = Controller::connect_unheard(router.socket()).next();
    let (name, group) = ("host-1".to_owned(), samples::GROUP.to_owned());
    assert_eq!(hello, Said::Hello { router: name, group, running: None });
    let running = Controller::connect(router.socket()).push(&file(3));
    assert_eq!(Controller::connect(router.socket()).running, Some(running));
}

#[test]
fn a_pushed_snapshot_is_active_on_every_core() {
    let (_folder, router, mut controller) = running_8();
    assert_eq!(router.version(), 8);
    assert!(router.activation.swap_times().all(|swap| swap.is_some()));
    controller.push(&file(9));
    assert_eq!(router.version(), 9);
    assert_eq!(router.counted("switchboard_activations_total"), 2);
}

#[test]
fn preparing_changes_nothing() {
    let (_folder, router, mut controller) = running_8();
    assert_eq!(controller.prepare(&file(9)), Said::Prepared(id(9)));
    assert_eq!(router.version(), 8);
}

#[test]
fn a_version_never_goes_back() {
    let (_folder, router, mut controller) = running_8();
    assert_eq!(
        controller.prepare(&file(7)),
        Said::Refused { step: Step::Prepare, version: Some(7), reason: "not_newer".into() }
    );
    let other = samples::file(&samples::definition(&["OTHER"], &["127.0.0.1:9001"]), 8);
    assert_eq!(controller.refusal(&other), "same_version");
    assert_eq!(router.version(), 8);
    assert_eq!(router.counted("switchboard_snapshot_refusals_total{reason=\"not_newer\"}"), 1);
    assert_eq!(router.status.last_refusal().unwrap().reason, "same_version");
}

#[test]
fn the_same_snapshot_again_is_fine() {
    let (_folder, router, mut controller) = running_8();
    let again = controller.push(&file(8));
    assert_eq!(again, id(8));
    assert_eq!(router.counted("switchboard_activations_total"), 1);
    // Without PREPARE as well, and from another controller.
    let mut other = Controller::connect(router.socket());
    assert!(matches!(other.activate(again), Said::Active { .. }));
}

#[test]
fn a_restart_serves_from_disk_and_remembers_the_version() {
    let (folder, router, controller) = running_8();
    drop((router, controller));
    let router = Router::start(folder.path());
    assert_eq!(router.version(), 8);
    assert_eq!(router.status.running().unwrap().source, Source::Disk);
    let mut controller = Controller::connect(router.socket());
    assert_eq!(controller.running, Some(id(8)));
    assert_eq!(controller.refusal(&file(7)), "not_newer");
    controller.push(&file(8));
    assert_eq!(router.status.running().unwrap().source, Source::Push);
    controller.push(&file(9));
}

#[test]
fn a_lost_file_does_not_let_the_version_go_back() {
    let (folder, router, controller) = running_8();
    drop((router, controller));
    for entry in fs::read_dir(folder.path().join("state")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "bin") {
            fs::remove_file(path).unwrap();
        }
    }
    let router = Router::start(folder.path());
    assert_eq!(router.version(), 0);
    let mut controller = Controller::connect(router.socket());
    assert_eq!(controller.running, None);
    assert_eq!(controller.refusal(&file(7)), "not_newer");
    // The very one that was lost can be pushed again.
    controller.push(&file(8));
    assert_eq!(router.version(), 8);
}

#[test]
fn the_clock_decides_with_a_minute_of_tolerance() {
    let (_folder, router, mut controller) = running_8();
    let with = |not_before: Option<u64>, expires: Option<u64>| {
        let times =
            Definition { not_before_unix_ms: not_before, expires_unix_ms: expires, ..definition() };
        samples::file(&times, 9)
    };
    let now = now_unix_ms();
    assert_eq!(controller.refusal(&with(Some(now + 600_000), None)), "not_yet_valid");
    assert_eq!(controller.refusal(&with(None, Some(now - 600_000))), "expired");
    assert_eq!(router.version(), 8);
    controller.push(&with(Some(now + 30_000), Some(now + 600_000)));
}

#[test]
fn an_expired_snapshot_on_disk_serves_on_with_an_alarm() {
    let folder = tempfile::tempdir().unwrap();
    let router = Router::start(folder.path());
    // Expired, but within the tolerance while it is pushed: then the restart asks no clock.
    let expires = Definition { expires_unix_ms: Some(now_unix_ms() - 59_000), ..definition() };
    Controller::connect(router.socket()).push(&samples::file(&expires, 8));
    drop(router);
    let router = Router::start(folder.path());
    assert_eq!(router.version(), 8);
    let mut controller = Controller::connect(router.socket());
    assert!(matches!(controller.next(), Said::Stats { health: Health::Stale, .. }));
}

#[test]
fn a_snapshot_that_was_tampered_with_is_refused_for_the_right_reason() {
    let (_folder, router, mut controller) = running_8();
    let good = file(9);
    let flipped = |position: usize| {
        let mut bad = good.clone();
        bad[position] ^= 1;
        bad
    };
    for (position, reason) in [
        (0, "no_snapshot"),
        (8, "format"),
        (10, "flags"),
        (12, "signature"),
        (20, "signature"),
        (28, "unknown_key"),
        (36, "truncated"),
        (44, "signature"),
        (76, "signature"),
        (140, "digest"),
        (good.len() - 1, "digest"),
    ] {
        assert_eq!(controller.refusal(&flipped(position)), reason, "byte {position}");
    }
    assert_eq!(controller.refusal(&good[..good.len() - 1]), "truncated");
    assert_eq!(controller.refusal(&good[..100]), "truncated");
    assert_eq!(controller.refusal(&[]), "truncated");
    assert_eq!(controller.refusal(&[good.as_slice(), b"x"].concat()), "trailing");
    assert_eq!(router.version(), 8);
    assert_eq!(router.counted("switchboard_snapshot_refusals_total{reason=\"signature\"}"), 4);
    controller.push(&good);
}

#[test]
fn a_foreign_key_or_group_is_refused() {
    let (_folder, _router, mut controller) = running_8();
    let foreign = SecretKey::from_seed(&[9; 32]);
    let signed = build(&definition(), samples::version(9), 1, &foreign).unwrap();
    assert_eq!(controller.refusal(&signed), "unknown_key");
    let group = Definition { group: "others".into(), ..definition() };
    assert_eq!(controller.refusal(&samples::file(&group, 9)), "group");
}

#[test]
fn an_endpoint_without_an_address_refuses_the_snapshot() {
    let (_folder, router, mut controller) = running_8();
    let unknown = samples::definition(&["FEED"], &["no-such-host.invalid:80"]);
    assert_eq!(controller.refusal(&samples::file(&unknown, 9)), "unresolved_endpoint");
    assert_eq!(router.version(), 8);
}

#[test]
fn a_refused_snapshot_names_the_version_that_it_claims() {
    let (_folder, _router, mut controller) = running_8();
    let mut bad = file(4_711);
    assert_eq!(Header::claimed_version(&bad), Some(4_711));
    bad[150] ^= 1;
    let Said::Refused { version, .. } = controller.prepare(&bad) else { panic!("accepted") };
    assert_eq!(version, Some(4_711));
    let Said::Refused { version, .. } = controller.prepare(b"rubbish") else { panic!("accepted") };
    assert_eq!(version, None);
}

#[test]
fn only_what_was_prepared_last_here_can_be_activated() {
    let (_folder, router, mut controller) = running_8();
    let not_prepared = |said| {
        matches!(said, Said::Refused { step: Step::Activate, version: Some(9), reason }
            if reason == "not_prepared")
    };
    assert!(not_prepared(controller.activate(id(9))));
    controller.prepare(&file(9));
    controller.prepare(&file(10));
    assert!(not_prepared(controller.activate(id(9))));
    // What is still prepared can be.
    assert!(matches!(controller.activate(id(10)), Said::Active { .. }));
    assert_eq!(router.version(), 10);
}

#[test]
fn one_byte_at_a_time_is_a_frame_too() {
    let (_folder, router, mut controller) = running_8();
    let frame = Frame::Prepare(&file(9)).to_bytes().unwrap();
    for byte in &frame {
        controller.send(&[*byte]);
    }
    assert_eq!(controller.answer(), Said::Prepared(id(9)));
    for byte in &Frame::Activate(id(9)).to_bytes().unwrap() {
        controller.send(&[*byte]);
    }
    assert!(matches!(controller.answer(), Said::Active { .. }));
    assert_eq!(router.version(), 9);
}

#[test]
fn two_frames_in_one_write_are_two_frames() {
    let (_folder, router, mut controller) = running_8();
    let mut bytes = Frame::Prepare(&file(9)).to_bytes().unwrap();
    Frame::Activate(id(9)).write(&mut bytes).unwrap();
    Frame::Prepare(&file(10)).write(&mut bytes).unwrap();
    controller.send(&bytes);
    assert_eq!(controller.answer(), Said::Prepared(id(9)));
    assert!(matches!(controller.answer(), Said::Active { .. }));
    assert_eq!(controller.answer(), Said::Prepared(id(10)));
    assert_eq!(router.version(), 9);
}

#[test]
fn a_bad_frame_closes_its_connection_and_changes_nothing() {
    let (_folder, router, _controller) = running_8();
    let long = (64 * 1024 * 1024 + 2_u32).to_le_bytes();
    let bad: [&[u8]; 7] = [
        &[0, 0, 0, 0],                         // no kind
        &[0xff, 0xff, 0xff, 0xff],             // 2³² − 1
        &long,                                 // above the limit, before the kind has come
        &[1, 0, 0, 0, 99],                     // an unknown kind
        &[3, 0, 0, 0, 5, 1, 2],                // ACTIVATE, too short
        &[0xff, 0xff, 0xff, 0x00, 5],          // ACTIVATE, too long
        b"GET / HTTP/1.1\r\nHost: router\r\n", // another protocol
    ];
    for (count, bytes) in (1..).zip(bad) {
        let mut controller = Controller::connect(router.socket());
        controller.send(bytes);
        assert_closed_without_harm(&router, controller);
        assert_eq!(router.counted("switchboard_frames_refused_total"), count, "{bytes:?}");
    }
}

#[test]
fn a_torn_frame_changes_nothing() {
    let (_folder, router, _controller) = running_8();
    let frame = Frame::Prepare(&file(9)).to_bytes().unwrap();
    for length in [1, 4, 5, frame.len() / 2, frame.len() - 1] {
        let mut controller = Controller::connect(router.socket());
        controller.send(&frame[..length]);
        drop(controller);
    }
    let mut next = Controller::connect(router.socket());
    assert_eq!(next.prepare(&file(9)), Said::Prepared(id(9)));
    assert_eq!(router.version(), 8);
    assert_eq!(router.counted("switchboard_frames_refused_total"), 5);
}

#[test]
fn a_frame_that_only_a_router_sends_closes_the_connection() {
    let (_folder, router, mut controller) = running_8();
    controller.send(&Frame::Prepared(id(9)).to_bytes().unwrap());
    assert_closed_without_harm(&router, controller);
}

#[test]
fn two_controllers_may_push_and_the_version_decides() {
    let (_folder, router, mut first) = running_8();
    let mut second = Controller::connect(router.socket());
    assert!(matches!(second.prepare(&file(9)), Said::Prepared(_)));
    first.push(&file(10));
    // It was prepared against a Snapshot that no longer runs, and is older by now.
    let refused = second.activate(id(9));
    assert!(matches!(refused, Said::Refused { step: Step::Activate, .. }), "{refused:?}");
    assert_eq!(second.refusal(&file(9)), "not_newer");
    second.push(&file(11));
    assert_eq!(router.version(), 11);
}

#[test]
fn the_fifth_controller_is_turned_away_and_comes_in_when_one_leaves() {
    let (_folder, router, first) = running_8();
    let others: Vec<_> = (0..3).map(|_| Controller::connect(router.socket())).collect();
    assert_eq!(Controller::connect_unheard(router.socket()).next(), Said::Gone);
    drop(first);
    let mut late = Said::Gone;
    while late == Said::Gone {
        late = Controller::connect_unheard(router.socket()).next();
    }
    assert!(matches!(late, Said::Hello { .. }));
    drop(others);
}

#[test]
fn what_cannot_be_saved_is_refused_before_it_is_active() {
    let (folder, router, mut controller) = running_8();
    let state = folder.path().join("state");
    // A folder where the file is written first: it fails for root as well, like a full disk.
    let name = |id: SnapshotId| format!("snapshot-{}-{}.bin.unfinished", id.version, id.digest);
    let obstacle = state.join(name(id(9)));
    fs::create_dir(&obstacle).unwrap();
    assert_eq!(controller.refusal(&file(9)), "state_not_saved");
    fs::remove_dir(&obstacle).unwrap();

    let obstacle = state.join("current.unfinished");
    fs::create_dir(&obstacle).unwrap();
    controller.prepare(&file(9));
    let refused = controller.activate(id(9));
    let reason = "state_not_saved".into();
    assert_eq!(refused, Said::Refused { step: Step::Activate, version: Some(9), reason });
    assert_eq!(router.version(), 8);

    fs::remove_dir(&obstacle).unwrap();
    controller.push(&file(9));
    assert_eq!(router.version(), 9);
}

#[test]
fn what_was_given_up_leaves_the_disk() {
    let (folder, router, mut controller) = running_8();
    let saved = || {
        let entries = fs::read_dir(folder.path().join("state")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("snapshot-")).count()
    };
    assert_eq!(saved(), 1);
    controller.prepare(&file(9));
    assert_eq!(saved(), 2);
    controller.push(&file(10));
    drop(controller);
    // The next connection is served after the last one was buried.
    let next = Controller::connect(router.socket());
    assert_eq!(next.running, Some(id(10)));
    assert_eq!(saved(), 1);
}

#[test]
fn a_core_that_does_not_swap_is_reported_and_asked_again() {
    let (_folder, router, mut controller) = running_8();
    router.holds_back.store(true, Ordering::Relaxed);
    controller.prepare(&file(9));
    let refused = controller.activate(id(9));
    let reason = "core_not_swapped".into();
    assert_eq!(refused, Said::Refused { step: Step::Activate, version: Some(9), reason });
    router.holds_back.store(false, Ordering::Relaxed);
    assert!(matches!(controller.activate(id(9)), Said::Active { .. }));
    assert_eq!(router.version(), 9);
}

#[test]
fn heartbeats_come_by_themselves_with_every_counter() {
    let (_folder, router, mut controller) = running_8();
    let Said::Stats { running, health, counters } = controller.next() else { panic!("no stats") };
    assert_eq!((running, health), (Some(id(8)), Health::Good));
    let value = |name: &str| counters.iter().find(|(counter, _)| counter == name).unwrap().1;
    assert_eq!(value("switchboard_activations_total"), 1);
    assert_eq!(value("switchboard_requests_total"), 0);
    assert_eq!(value("switchboard_responses_total{class=\"2xx\"}"), 0);
    router.status.drain();
    let drained = std::iter::repeat_with(|| controller.next())
        .find(|said| !matches!(said, Said::Stats { health: Health::Good, .. }));
    assert!(matches!(drained, Some(Said::Stats { health: Health::Draining, .. })));
}

#[test]
fn two_hundred_activations_in_a_row_leave_one_file_and_one_snapshot() {
    let (folder, router, mut controller) = running_8();
    let first = std::sync::Arc::downgrade(&router.activation.published().unwrap());
    for version in 9..209 {
        controller.push(&file(version));
    }
    assert_eq!(router.version(), 208);
    assert!(first.upgrade().is_none());
    // The next connection is greeted after the feed has tidied up.
    assert_eq!(Controller::connect(router.socket()).running, Some(id(208)));
    assert_eq!(fs::read_dir(folder.path().join("state")).unwrap().count(), 3);
}
