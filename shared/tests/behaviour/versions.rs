//! Versions and times. (CF-01)

use switchboard_shared::{
    definition::Definition,
    snapshot::{Expectations, Snapshot, SnapshotError, SnapshotId, SnapshotVersion, build},
};

use crate::sample;

const NOW: u64 = 1_800_000_000_000;
/// What clocks may differ.
const SKEW: u64 = 60_000;

fn file(version: u64, definition: &Definition) -> Vec<u8> {
    let version = SnapshotVersion::new(version).expect("not zero");
    build(definition, version, NOW, &sample::key()).expect("a good Definition")
}

fn open(
    file: &[u8],
    newest: Option<SnapshotId>,
    now_unix_ms: Option<u64>,
) -> Result<Snapshot, SnapshotError> {
    let expected = Expectations { newest, now_unix_ms, ..Expectations::of_group("test") };
    Snapshot::open(file, &sample::trusted(), expected)
}

fn id(version: u64, definition: &Definition) -> SnapshotId {
    open(&file(version, definition), None, None).expect("good").id()
}

/// CF-01: a validly signed 7 after 8, and 8 after a restart that had seen 9.
#[test]
fn a_version_never_goes_back() {
    let definition = sample::definition();
    for (offered, newest) in [(7, 8), (8, 9), (1, u64::MAX)] {
        let error = open(&file(offered, &definition), Some(id(newest, &definition)), None)
            .map(drop)
            .expect_err("older");
        assert_eq!(error.reason(), "not_newer");
        assert_eq!(error.to_string(), format!("version {offered} is not newer than {newest}"));
    }
    let newer = open(&file(9, &definition), Some(id(8, &definition)), None).expect("newer");
    assert!(!newer.is_newest_already());
}

/// CF-01: version 8 twice is fine with the same bytes, and only so.
#[test]
fn the_running_version_again_is_fine_with_the_same_content_only() {
    let definition = sample::definition();
    let newest = Some(id(8, &definition));
    assert!(open(&file(8, &definition), newest, None).expect("the same").is_newest_already());

    let mut other = definition;
    other.objectives[0].idempotent = false;
    let error = open(&file(8, &other), newest, None).map(drop).expect_err("another content");
    assert_eq!(error.reason(), "same_version");
}

/// A rollback is a new version with older content.
#[test]
fn older_content_under_a_new_version_is_accepted() {
    let definition = sample::definition();
    let old = id(3, &definition);
    let mut newer = definition.clone();
    newer.objectives[0].idempotent = false;
    let rollback = open(&file(5, &definition), Some(id(4, &newer)), None).expect("newer");
    assert_eq!(rollback.digest(), old.digest);
}

/// CF-01: `not_before` 30 s ahead, `expires` in the past, and clocks that are wrong by years.
#[test]
fn times_are_checked_with_the_tolerated_skew() {
    let mut definition = sample::definition();
    definition.not_before_unix_ms = Some(NOW + 30_000);
    definition.expires_unix_ms = Some(NOW + 3_600_000);
    let file = file(1, &definition);
    for (now, expected) in [
        (0, Some("not_yet_valid")),
        (NOW - 3_600_000, Some("not_yet_valid")),
        (NOW + 30_000 - SKEW - 1, Some("not_yet_valid")),
        (NOW + 30_000 - SKEW, None),
        (NOW, None),
        (NOW + 3_600_000, None),
        (NOW + 3_600_000 + SKEW, None),
        (NOW + 3_600_000 + SKEW + 1, Some("expired")),
        (NOW + 31_536_000_000, Some("expired")),
        (u64::MAX, Some("expired")),
    ] {
        let opened = open(&file, None, Some(now));
        assert_eq!(opened.err().map(|error| error.reason()), expected, "{now}");
    }
}

/// CF-01: an expired Snapshot on disk serves on, and tells.
#[test]
fn the_last_good_one_opens_after_it_has_expired() {
    let mut definition = sample::definition();
    definition.expires_unix_ms = Some(NOW);
    let snapshot = open(&file(1, &definition), None, None).expect("nobody asked for the time");
    assert!(!snapshot.is_expired(0));
    assert!(!snapshot.is_expired(NOW + SKEW));
    assert!(snapshot.is_expired(NOW + SKEW + 1));
    assert!(snapshot.is_expired(u64::MAX));
    let forever = open(&file(1, &sample::definition()), None, None).expect("good");
    assert!(!forever.is_expired(u64::MAX));
}

#[test]
fn times_at_the_end_of_the_scale_do_not_overflow() {
    let mut definition = sample::definition();
    definition.not_before_unix_ms = Some(u64::MAX);
    definition.expires_unix_ms = Some(u64::MAX);
    let file = file(1, &definition);
    assert!(open(&file, None, Some(u64::MAX)).is_ok());
    assert_eq!(open(&file, None, Some(0)).map(drop).expect_err("early").reason(), "not_yet_valid");
}
