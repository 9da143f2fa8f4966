//! What survives a restart: the last good Snapshot, and the newest one ever activated.
//!
//! In `state_dir`: `snapshot-VERSION-DIGEST.bin` is a Snapshot file as it was pushed; `current` names
//! the one that is active. A Snapshot is written when it is prepared, so that a full disk refuses it
//! before a fleet flips; the Activation only replaces the one line of `current`. Each file is written
//! aside, synced and renamed, so that a crash leaves the old one or the new one.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use switchboard_shared::limits::SNAPSHOT_BYTES_MAX;
use switchboard_shared::snapshot::{
    Digest, Expectations, Snapshot, SnapshotError, SnapshotId, SnapshotVersion, TrustedKeys,
};

use crate::limits::CURRENT_FILE_BYTES_MAX;
use crate::log::{self, Chain};

mod current;

const CURRENT: &str = "current";
const LOCK: &str = "lock";
const PREFIX: &str = "snapshot-";
const SUFFIX: &str = ".bin";
/// Behind a file's name until it is whole.
const UNFINISHED: &str = ".unfinished";
/// Behind the name of a file that was refused and is kept to be looked at; one per name.
const REFUSED: &str = ".refused";

/// The folder, locked: one router per folder.
#[derive(Debug)]
pub struct State {
    folder: PathBuf,
    /// Held until the process ends.
    _lock: File,
}

/// What was found at start.
#[derive(Debug, Default)]
pub struct LastGood {
    /// To serve from, if there is one.
    pub snapshot: Option<Snapshot>,
    /// The newest one ever activated, whether its file is still good or not.
    pub newest: Option<SnapshotId>,
}

/// The state cannot be kept.
#[derive(Debug, thiserror::Error)]
#[error("cannot {step} {}", path.display())]
pub struct StateError {
    /// What was tried.
    pub step: &'static str,
    /// With which file or folder.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

/// Why the last good Snapshot cannot be served.
#[derive(Debug, thiserror::Error)]
enum LoadError {
    #[error("cannot read it")]
    Read(#[source] io::Error),
    #[error("it is not the one that was activated")]
    NotCurrent,
    #[error("it is refused")]
    Refused(#[source] SnapshotError),
}

impl State {
    /// Opens and locks the folder, which is created with mode 0700 if missing.
    ///
    /// # Errors
    /// No permission, no space, or another router has it.
    pub fn open(folder: &Path) -> Result<Self, StateError> {
        let failed = |step, path: &Path| {
            let path = path.to_owned();
            move |source| StateError { step, path, source }
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(failed("create state folder", folder))?;
        let path = folder.join(LOCK);
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed("open", &path))?;
        lock.try_lock()
            .map_err(|error| match error {
                TryLockError::WouldBlock => {
                    io::Error::new(ErrorKind::WouldBlock, "another router has this state folder")
                }
                TryLockError::Error(source) => source,
            })
            .map_err(failed("lock", &path))?;
        Ok(Self { folder: folder.to_owned(), _lock: lock })
    }

    /// Finds what to serve from. Everything is verified again; a damaged file is put aside, with a line
    /// in the log, and then there is nothing to serve.
    ///
    /// If only the line of `current` is damaged, the newest good Snapshot in the folder serves.
    #[must_use]
    pub fn load(&self, trusted: &TrustedKeys, group: &str) -> LastGood {
        match self.read_current() {
            Ok(None) => LastGood::default(),
            Ok(Some(id)) => {
                let path = self.snapshot_path(id);
                let snapshot = open_snapshot(&path, trusted, group, Some(id));
                let snapshot = snapshot.map_err(|error| refuse(&path, &error)).ok();
                LastGood { snapshot, newest: Some(id) }
            }
            Err(error) => {
                put_aside(&self.folder.join(CURRENT), &error);
                let snapshot = self.newest_good(trusted, group);
                LastGood { newest: snapshot.as_ref().map(Snapshot::id), snapshot }
            }
        }
    }

    /// Writes a Snapshot that was prepared. It is not the one to start from yet.
    ///
    /// # Errors
    /// No space, no permission: nothing has changed.
    pub fn save(&self, snapshot: &Snapshot) -> Result<(), StateError> {
        self.replace(&self.snapshot_path(snapshot.id()), snapshot.bytes())
    }

    /// Makes a saved Snapshot the one to start from, and the newest one ever activated.
    ///
    /// # Errors
    /// No space, no permission: the one before is still the one to start from.
    pub fn commit(&self, id: SnapshotId) -> Result<(), StateError> {
        self.replace(&self.folder.join(CURRENT), current::to_text(id).as_bytes())
    }

    /// Removes all saved Snapshots but these. What cannot be removed costs space, and is tried again.
    pub fn keep_only(&self, ids: &[SnapshotId]) {
        let kept: Vec<PathBuf> = ids.iter().map(|id| self.snapshot_path(*id)).collect();
        for path in self.snapshot_files().filter(|path| !kept.contains(path)) {
            if let Err(error) = fs::remove_file(&path) {
                let fields: [log::Field<'_>; 2] = [("file", &path.display()), ("error", &error)];
                log::warn("old snapshot not removed", &fields);
            }
        }
    }

    fn read_current(&self) -> Result<Option<SnapshotId>, current::CurrentError> {
        let mut text = Vec::new();
        match File::open(self.folder.join(CURRENT)) {
            Ok(file) => file.take(CURRENT_FILE_BYTES_MAX).read_to_end(&mut text)?,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        current::parse(&text).map(Some)
    }

    fn newest_good(&self, trusted: &TrustedKeys, group: &str) -> Option<Snapshot> {
        self.snapshot_files()
            .filter_map(|path| {
                open_snapshot(&path, trusted, group, None)
                    .map_err(|error| refuse(&path, &error))
                    .ok()
            })
            .max_by_key(Snapshot::version)
    }

    fn snapshot_files(&self) -> impl Iterator<Item = PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.starts_with(PREFIX) && (name.ends_with(SUFFIX) || name.ends_with(UNFINISHED))
        })
    }

    fn snapshot_path(&self, id: SnapshotId) -> PathBuf {
        self.folder.join(format!("{PREFIX}{}-{}{SUFFIX}", id.version, id.digest))
    }

    /// Replaces a file so that a crash leaves the old one or the new one, never a part.
    fn replace(&self, path: &Path, bytes: &[u8]) -> Result<(), StateError> {
        let mut aside = path.as_os_str().to_owned();
        aside.push(UNFINISHED);
        let aside = PathBuf::from(aside);
        let written = write_synced(&aside, bytes).and_then(|()| fs::rename(&aside, path));
        // The rename itself survives a crash only once its folder is synced.
        let written = written.and_then(|()| File::open(&self.folder)?.sync_all());
        written.map_err(|source| {
            // What stays is removed with the old Snapshots, or written over.
            let _stays: io::Result<()> = fs::remove_file(&aside);
            StateError { step: "write", path: path.to_owned(), source }
        })
    }
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file =
        OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Opens a saved Snapshot. The clock is not asked: one that has expired serves on, with an alarm.
fn open_snapshot(
    path: &Path,
    trusted: &TrustedKeys,
    group: &str,
    id: Option<SnapshotId>,
) -> Result<Snapshot, LoadError> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(LoadError::Read)?;
    file.take(SNAPSHOT_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(LoadError::Read)?;
    let snapshot = Snapshot::open(&bytes, trusted, Expectations::of_group(group))
        .map_err(LoadError::Refused)?;
    match id {
        Some(id) if id != snapshot.id() => Err(LoadError::NotCurrent),
        _ => Ok(snapshot),
    }
}

/// Puts a damaged Snapshot aside. One that other settings would take stays where it is, so that
/// mending `router.toml` brings it back without the control plane.
fn refuse(path: &Path, error: &LoadError) {
    match error {
        LoadError::Refused(SnapshotError::UnknownKey(_) | SnapshotError::Group { .. }) => {
            let fields: [log::Field<'_>; 2] = [("file", &path.display()), ("error", &Chain(error))];
            log::warn("last good snapshot is refused by these settings", &fields);
        }
        LoadError::Refused(_) | LoadError::NotCurrent | LoadError::Read(_) => {
            put_aside(path, error);
        }
    }
}

/// Renames a file that is not good, so that it can be looked at and is not read again.
fn put_aside(path: &Path, error: &dyn std::error::Error) {
    let mut aside = path.as_os_str().to_owned();
    aside.push(REFUSED);
    let renamed = match fs::rename(path, &aside) {
        Ok(()) => "kept as *.refused".to_owned(),
        Err(error) => format!("not put aside: {error}"),
    };
    let fields: [log::Field<'_>; 3] =
        [("file", &path.display()), ("error", &Chain(error)), ("file_now", &renamed)];
    log::warn("state file is not good", &fields);
}

#[cfg(test)]
mod tests;
