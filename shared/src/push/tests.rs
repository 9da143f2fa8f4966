use proptest::{collection::vec, option, prelude::*};

use super::*;
use crate::snapshot::{Digest, SnapshotVersion};

fn id(version: u64) -> SnapshotId {
    let version = SnapshotVersion::new(version).expect("not zero");
    SnapshotId { version, digest: Digest([9; 32]) }
}

fn one_of_each(snapshot: &[u8]) -> Vec<Frame<'_>> {
    vec![
        Frame::Hello(Hello {
            protocol: PROTOCOL,
            router: "host-1",
            group: "test",
            build: "0.1.0 abcdef",
            formats: vec![1, 2],
            running: Some(id(8)),
        }),
        Frame::Prepare(snapshot),
        Frame::Prepared(id(9)),
        Frame::Refused(Refused {
            step: Step::Prepare,
            version: Some(9),
            reason: "not_newer",
            detail: "version 9 is not newer than 10",
        }),
        Frame::Activate(id(9)),
        Frame::Active(Active { running: id(9), swaps: vec![Micros(3), Micros(41)] }),
        Frame::Stats(Stats {
            running: None,
            uptime_ms: 86_400_000,
            health: Health::Stale,
            counters: vec![Counter { name: "requests", value: u64::MAX }],
        }),
    ]
}

fn bytes_of(frame: &Frame<'_>) -> Vec<u8> {
    frame.to_bytes().expect("within all limits")
}

/// A frame around any kind and body.
fn framed(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 1).expect("short");
    [&length.to_le_bytes(), [kind].as_slice(), body].concat()
}

#[test]
fn what_is_written_is_read_and_exactly_used_up() {
    for frame in one_of_each(b"snapshot") {
        let bytes = bytes_of(&frame);
        assert_eq!(read_frame(&bytes), Ok(Some((frame.clone(), bytes.len()))));
        let more = [bytes.as_slice(), b"the next one"].concat();
        assert_eq!(read_frame(&more), Ok(Some((frame, bytes.len()))));
    }
}

/// CF-03: one frame in 1-byte writes.
#[test]
fn a_torn_frame_is_nothing_until_its_last_byte() {
    for frame in one_of_each(b"snapshot") {
        let bytes = bytes_of(&frame);
        for torn in 0..bytes.len() {
            assert_eq!(read_frame(&bytes[..torn]), Ok(None), "{frame:?} cut at {torn}");
        }
    }
}

/// CF-03: two frames in one write, and every other split.
#[test]
fn frames_come_out_whole_whatever_the_pieces() {
    let frames = one_of_each(b"a snapshot of some bytes");
    let stream: Vec<u8> = frames.iter().flat_map(bytes_of).collect();
    for piece_bytes in 1..=stream.len() {
        let mut reader = FrameReader::new();
        let mut seen = 0;
        for piece in stream.chunks(piece_bytes) {
            reader.push(piece);
            while let Some(frame) = reader.next_frame().expect("good frames") {
                assert_eq!(frame, frames[seen]);
                seen += 1;
            }
        }
        assert_eq!(seen, frames.len(), "pieces of {piece_bytes} bytes");
        assert!(!reader.is_within_frame());
    }
}

/// CF-03: lengths 0, 2³² − 1 (also -1), and one above the limit, before any body has come.
#[test]
fn a_bad_length_is_refused_before_its_body() {
    let length_max = FRAME_BYTES_MAX;
    for (length, expected) in [
        (0, FrameError::Empty),
        (u32::MAX, FrameError::TooLong { length: 0xffff_ffff, length_max }),
        (0x0400_0002, FrameError::TooLong { length: 0x0400_0002, length_max }),
    ] {
        assert_eq!(read_frame(&length.to_le_bytes()), Err(expected), "{length}");
    }
    assert_eq!(read_frame(&0x0400_0001_u32.to_le_bytes()), Ok(None), "the longest Prepare");

    let length = SMALL_FRAME_BYTES_MAX + 1;
    let head = u32::try_from(length).expect("small").to_le_bytes();
    for kind in [1, 3, 4, 5, 6, 7] {
        let expected = FrameError::TooLong { length, length_max: SMALL_FRAME_BYTES_MAX };
        assert_eq!(read_frame(&[head.as_slice(), &[kind]].concat()), Err(expected));
    }
    assert_eq!(read_frame(&[head.as_slice(), &[2]].concat()), Ok(None), "a Snapshot may be large");
}

#[test]
fn an_unknown_kind_is_refused_before_its_body() {
    for kind in [0, 8, 255] {
        let head = [9, 0, 0, 0, kind];
        assert_eq!(read_frame(&head), Err(FrameError::UnknownKind(kind)));
    }
}

#[test]
fn a_body_too_short_or_too_long_for_its_fields_is_refused() {
    for frame in one_of_each(b"snapshot") {
        let bytes = bytes_of(&frame);
        let (kind, body) = (bytes[4], &bytes[5..]);
        if matches!(frame, Frame::Prepare(_)) {
            continue; // any body is a Snapshot to be checked
        }
        for short in 0..body.len() {
            let error = read_frame(&framed(kind, &body[..short])).expect_err("cut");
            assert_eq!(error, FrameError::Short, "{frame:?} cut at {short}");
        }
        let long = [body, b"x"].concat();
        assert_eq!(read_frame(&framed(kind, &long)), Err(FrameError::Trailing { bytes: 1 }));
    }
}

#[test]
fn fields_without_meaning_are_refused() {
    let id_bytes = &bytes_of(&Frame::Prepared(id(1)))[5..];
    let zero = [0; 40];
    let hello_of = |name: &[u8]| [&[1, 0], name, &[0; 7]].concat();
    for (kind, body, expected) in [
        (3, zero.to_vec(), FrameError::Value),
        (5, zero.to_vec(), FrameError::Value),
        (4, [&[3], zero.as_slice()].concat(), FrameError::Value),
        (7, vec![2], FrameError::Value),
        (7, [&[0; 9], [3].as_slice()].concat(), FrameError::Value),
        (1, hello_of(&[2, 0, 0xff, 0xfe]), FrameError::Text),
        (1, hello_of(&[2, 0, b'a', b'\n']), FrameError::Text),
        (1, hello_of(&[65, 0]), FrameError::Text),
        (
            6,
            [id_bytes, &[1, 4]].concat(),
            FrameError::TooMany { count: 1_025, count_max: CORES_MAX },
        ),
    ] {
        assert_eq!(read_frame(&framed(kind, &body)), Err(expected), "{kind} {body:?}");
    }
}

#[test]
fn a_report_is_cut_and_cleaned_rather_than_lost() {
    let detail = format!("line\r\n\u{1b}[31m{}", "ä".repeat(FRAME_TEXT_BYTES_MAX));
    let bytes = bytes_of(&Frame::Refused(Refused {
        step: Step::Activate,
        version: None,
        reason: "semantic",
        detail: &detail,
    }));
    let Ok(Some((Frame::Refused(refused), _))) = read_frame(&bytes) else { panic!("a Refused") };
    assert!(refused.detail.starts_with("line   [31mää"));
    assert_eq!(refused.detail.len(), FRAME_TEXT_BYTES_MAX - 1, "no half of the last character");
    assert_eq!(refused.version, None);
}

#[test]
fn what_the_other_side_would_refuse_is_not_written() {
    let mut out = b"before".to_vec();
    let too_large = vec![0; SNAPSHOT_BYTES_MAX + 1];
    let counters = vec![Counter { name: "n", value: 0 }; COUNTERS_MAX + 1];
    let health = Health::Good;
    for frame in [
        Frame::Prepare(&too_large),
        Frame::Stats(Stats { running: None, uptime_ms: 0, health, counters }),
    ] {
        assert!(frame.write(&mut out).is_err());
        assert_eq!(out, b"before");
    }
}

#[test]
fn the_largest_heartbeat_and_the_largest_snapshot_fit() {
    let name = "n".repeat(COUNTER_NAME_BYTES_MAX);
    let counters = vec![Counter { name: &name, value: 0 }; COUNTERS_MAX];
    let stats = Stats { running: Some(id(1)), uptime_ms: 0, health: Health::Good, counters };
    let bytes = bytes_of(&Frame::Stats(stats.clone()));
    assert_eq!(read_frame(&bytes), Ok(Some((Frame::Stats(stats), bytes.len()))));

    let snapshot = vec![7; SNAPSHOT_BYTES_MAX];
    let bytes = bytes_of(&Frame::Prepare(&snapshot));
    assert_eq!(read_frame(&bytes), Ok(Some((Frame::Prepare(&snapshot), bytes.len()))));
}

proptest! {
    #[test]
    fn any_bytes_are_a_frame_an_error_or_not_enough(bytes in vec(any::<u8>(), 0..400)) {
        if let Ok(Some((frame, length))) = read_frame(&bytes) {
            prop_assert!(length <= bytes.len());
            prop_assert_eq!(bytes_of(&frame), &bytes[..length]);
        }
    }

    #[test]
    fn any_body_of_a_known_kind_is_read_back_as_written(
        kind in 1..=7_u8,
        body in vec(prop_oneof![Just(0_u8), Just(1), any::<u8>()], 0..120),
    ) {
        let bytes = framed(kind, &body);
        if let Ok(read) = read_frame(&bytes) {
            let (frame, length) = read.expect("the frame is whole");
            prop_assert_eq!(length, bytes.len());
            prop_assert_eq!(bytes_of(&frame), bytes);
        }
    }

    #[test]
    fn any_heartbeat_survives(
        version in option::of(1..u64::MAX),
        uptime_ms: u64,
        counters in vec(("[a-z_]{0,20}", any::<u64>()), 0..40),
    ) {
        let counters: Vec<_> =
            counters.iter().map(|(name, value)| Counter { name, value: *value }).collect();
        let health = Health::Draining;
        let stats = Stats { running: version.map(id), uptime_ms, health, counters };
        let bytes = bytes_of(&Frame::Stats(stats.clone()));
        prop_assert_eq!(read_frame(&bytes), Ok(Some((Frame::Stats(stats), bytes.len()))));
    }
}
