use super::*;
use crate::samples;

fn snapshot(version: u64, token: &str) -> Snapshot {
    samples::snapshot(&samples::definition(&[token], &["127.0.0.1:9001"]), version)
}

fn load(state: &State) -> LastGood {
    state.load(&samples::trusted(), samples::GROUP)
}

/// A folder in which version 5 was activated, after version 4.
fn activated() -> (tempfile::TempDir, State, SnapshotId) {
    let folder = tempfile::tempdir().unwrap();
    let state = State::open(&folder.path().join("state")).unwrap();
    for version in [4, 5] {
        let snapshot = snapshot(version, "FEED");
        state.save(&snapshot).unwrap();
        state.commit(snapshot.id()).unwrap();
    }
    let id = snapshot(5, "FEED").id();
    state.keep_only(&[id]);
    (folder, state, id)
}

fn names(state: &State) -> Vec<String> {
    let entries = fs::read_dir(&state.folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_new_folder_has_nothing_and_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b");
    let state = State::open(&path).unwrap();
    let found = load(&state);
    assert!(found.snapshot.is_none() && found.newest.is_none());
    assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn what_was_activated_last_is_found_again() {
    let (_folder, state, id) = activated();
    let found = load(&state);
    assert_eq!(found.newest, Some(id));
    assert_eq!(found.snapshot.unwrap().id(), id);
    let name = format!("snapshot-5-{}.bin", id.digest);
    assert_eq!(names(&state), ["current", "lock", &name]);
}

#[test]
fn what_was_only_prepared_is_not_served_after_a_crash() {
    let (_folder, state, id) = activated();
    state.save(&snapshot(6, "FEED")).unwrap();
    assert_eq!(load(&state).snapshot.unwrap().id(), id);
    let fresh = tempfile::tempdir().unwrap();
    let state = State::open(fresh.path()).unwrap();
    state.save(&snapshot(6, "FEED")).unwrap();
    assert!(load(&state).snapshot.is_none());
}

#[test]
fn a_damaged_snapshot_is_put_aside_and_its_version_remembered() {
    let (_folder, state, id) = activated();
    let path = state.snapshot_path(id);
    let good = fs::read(&path).unwrap();
    for position in [0, 9, 15, 22, 40, 60, 100, 141, good.len() - 1] {
        let mut bad = good.clone();
        bad[position] ^= 1;
        fs::write(&path, bad).unwrap();
        let found = load(&state);
        assert!(found.snapshot.is_none(), "byte {position}");
        assert_eq!(found.newest, Some(id));
        assert!(!path.exists());
    }
    assert!(names(&state).contains(&format!("snapshot-5-{}.bin.refused", id.digest)));
    // A truncated one, an empty one, none.
    for length in [good.len() - 1, 20, 0] {
        fs::write(&path, &good[..length]).unwrap();
        assert!(load(&state).snapshot.is_none());
    }
    assert_eq!(load(&state).newest, Some(id));
}

#[test]
fn another_good_snapshot_in_its_place_is_not_served() {
    let (_folder, state, id) = activated();
    let other = snapshot(5, "OTHER");
    fs::write(state.snapshot_path(id), other.bytes()).unwrap();
    assert!(load(&state).snapshot.is_none());
    let older = snapshot(4, "FEED");
    fs::write(state.snapshot_path(id), older.bytes()).unwrap();
    assert!(load(&state).snapshot.is_none());
}

#[test]
fn a_damaged_current_line_falls_back_to_the_newest_good_snapshot() {
    let (_folder, state, id) = activated();
    state.save(&snapshot(3, "FEED")).unwrap();
    fs::write(state.folder.join(CURRENT), "1 5").unwrap();
    let found = load(&state);
    assert_eq!(found.newest, Some(id));
    assert_eq!(found.snapshot.unwrap().id(), id);
    assert!(names(&state).contains(&"current.refused".to_owned()));
}

#[test]
fn settings_that_refuse_the_snapshot_do_not_lose_it() {
    let (_folder, state, id) = activated();
    for (trusted, group) in
        [(TrustedKeys::default(), samples::GROUP), (samples::trusted(), "other-group")]
    {
        let found = state.load(&trusted, group);
        assert!(found.snapshot.is_none());
        assert_eq!(found.newest, Some(id));
    }
    assert_eq!(load(&state).snapshot.unwrap().id(), id);
}

#[test]
fn a_write_that_fails_changes_nothing() {
    let (_folder, state, id) = activated();
    // A folder in the way of the file that is written aside: works for root too.
    let mut aside = state.folder.join(CURRENT).into_os_string();
    aside.push(UNFINISHED);
    fs::create_dir(&aside).unwrap();
    let next = snapshot(6, "FEED");
    state.save(&next).unwrap();
    let error = state.commit(next.id()).unwrap_err();
    assert!(error.to_string().starts_with("cannot write "), "{error}");
    let found = load(&state);
    assert_eq!(found.newest, Some(id));
    assert_eq!(found.snapshot.unwrap().id(), id);
}

#[test]
fn one_router_has_the_folder() {
    let (folder, state, _) = activated();
    let path = folder.path().join("state");
    let error = State::open(&path).unwrap_err();
    assert_eq!(error.source.to_string(), "another router has this state folder");
    drop(state);
    assert!(State::open(&path).is_ok());
}
