use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::activation::Activation;
use crate::counters::Counters;
use crate::net::clock;
use crate::samples;
use crate::state::State;
use crate::status::Status;

const MOMENT: Duration = Duration::from_millis(1);

fn stage() -> (TempDir, Stage) {
    let folder = tempfile::tempdir().unwrap();
    let stage = Stage::new(
        samples::trusted(),
        samples::GROUP.into(),
        State::open(folder.path()).unwrap(),
        Activation::new(1).0,
        Counters::new(1).feed().unwrap(),
        Status::new(),
    );
    (folder, stage)
}

fn greeted(stage: &Stage) -> (Controller, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    (Controller::greet(ours, "router", stage).unwrap(), theirs)
}

#[test]
fn a_frame_has_one_deadline_however_it_trickles() {
    let (_folder, mut stage) = stage();
    let (mut controller, mut peer) = greeted(&stage);
    let frame = Frame::Prepare(b"whatever it is").to_bytes().unwrap();
    let (begun, mut piece) = (clock::now(), [0; 64]);
    peer.write_all(&frame[..1]).unwrap();
    controller.read(&mut piece, begun, &mut stage).unwrap();
    assert_eq!(controller.due(), Some(begun + FRAME_PATIENCE));
    // One more byte just in time wins no time.
    peer.write_all(&frame[1..2]).unwrap();
    let late = begun + FRAME_PATIENCE - MOMENT;
    controller.read(&mut piece, late, &mut stage).unwrap();
    assert!(controller.check_due(late).is_ok());
    assert!(matches!(controller.check_due(begun + FRAME_PATIENCE), Err(End::Slow)));
    // The whole frame does, and a second one that begins in the same piece has its own deadline.
    peer.write_all(&[&frame[2..], &frame[..3]].concat()).unwrap();
    controller.read(&mut piece, late, &mut stage).unwrap();
    assert_eq!(controller.due(), Some(late + FRAME_PATIENCE));
    peer.write_all(&frame[3..]).unwrap();
    controller.read(&mut piece, late, &mut stage).unwrap();
    assert_eq!(controller.due(), None);
}

#[test]
fn a_controller_that_reads_nothing_is_given_up() {
    let (_folder, stage) = stage();
    let (mut controller, _peer) = greeted(&stage);
    let now = clock::now();
    let large = Frame::Refused(Refused {
        step: Step::Prepare,
        version: None,
        reason: "test",
        detail: &"x".repeat(4_000),
    });
    while controller.due().is_none() {
        controller.heartbeat(&large).unwrap();
        controller.write(now).unwrap();
    }
    // Nothing piles up for it meanwhile.
    let unsent = controller.unsent.len();
    controller.heartbeat(&large).unwrap();
    assert_eq!(controller.unsent.len(), unsent);
    assert!(controller.check_due(now + FRAME_PATIENCE - MOMENT).is_ok());
    assert!(matches!(controller.check_due(now + FRAME_PATIENCE), Err(End::Unread)));
}
