//! One segment file: what is in it, and reading it past the page cache.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File};
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use glommio::io::DmaFile;

use super::SpoolError;
use super::frame::Frames;
use crate::shadow::owned::{Counts, Kind};

const SUFFIX: &str = ".spool";

/// A segment with records that are not delivered.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) path: PathBuf,
    /// No record of it has a lower number.
    pub(super) first: u64,
    /// On disk.
    pub(super) bytes: u64,
    /// Records that are not settled.
    pub(super) left: Counts,
    /// All records below are settled.
    settled_below: u64,
    /// And these above.
    settled: HashSet<u64>,
}

/// What was found in a segment of an earlier process.
pub(super) struct Found {
    pub(super) segment: Segment,
    pub(super) next_sequence: u64,
    pub(super) torn_bytes: u64,
}

impl Segment {
    /// A new one.
    pub(super) fn new(path: PathBuf, first: u64) -> Self {
        let (left, settled) = (Counts::default(), HashSet::new());
        Self { path, first, bytes: 0, left, settled_below: first, settled }
    }

    /// Reads an old one. A torn end is told and stays where it is: nothing is written behind it.
    pub(super) async fn recover(path: &Path, settled_below: u64) -> Result<Found, SpoolError> {
        let bytes = read_blocks(path, u64::MAX).await?;
        let mut segment = Self::new(path.to_owned(), settled_below);
        segment.bytes = bytes.len() as u64;
        let (mut next_sequence, mut first) = (0, None);
        let mut frames = Frames::new(&bytes);
        for (record, _) in frames.by_ref() {
            first.get_or_insert(record.sequence);
            next_sequence = record.sequence + 1;
            if record.sequence >= settled_below {
                segment.left.add(record.kind);
            }
        }
        segment.first = first.unwrap_or_default();
        let (end, error) = frames.end();
        let torn_bytes = error.map_or(0, |_| bytes.len() as u64 - end as u64);
        Ok(Found { segment, next_sequence, torn_bytes })
    }

    /// Places of the oldest records that are not settled, at most about `bytes_max` bytes of them and at
    /// least one.
    pub(super) fn undelivered(&self, bytes: &[u8], bytes_max: usize) -> Vec<Range<usize>> {
        let mut sum = 0;
        Frames::new(bytes)
            .filter(|(record, _)| {
                let sequence = record.sequence;
                sequence >= self.settled_below && !self.settled.contains(&sequence)
            })
            .map(|(_, place)| place)
            .take_while(|place| {
                let is_first = sum == 0;
                sum += place.len();
                is_first || sum <= bytes_max
            })
            .collect()
    }

    /// A record is not read again; `false` if it is settled already.
    pub(super) fn settle(&mut self, sequence: u64, kind: Kind) -> bool {
        let is_new = sequence >= self.settled_below && self.settled.insert(sequence);
        if is_new {
            self.left.remove(kind);
        }
        is_new
    }

    /// The lowest record that may be unsettled; what is settled above it may be delivered again after a
    /// crash.
    pub(super) fn delivered_below(&self) -> u64 {
        let mut below = self.settled_below.max(self.first);
        while self.settled.contains(&below) {
            below += 1;
        }
        below
    }
}

/// The segment files of a folder, oldest first.
///
/// # Errors
/// The folder cannot be read.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>, SpoolError> {
    let failed = |error| SpoolError::new("read", folder, error);
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.to_str().is_some_and(|path| path.ends_with(SUFFIX)) {
            paths.push(path);
        }
    }
    // Names are numbers of one width.
    paths.sort();
    Ok(paths)
}

pub(super) fn path(folder: &Path, first: u64) -> PathBuf {
    folder.join(format!("{first:020}{SUFFIX}"))
}

pub(super) fn make_folder(folder: &Path) -> Result<(), SpoolError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| SpoolError::new("make", folder, error))
}

pub(super) fn remove(path: &Path) -> Result<(), SpoolError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(SpoolError::new("remove", path, error))
        }
        _ => Ok(()),
    }
}

/// Makes a new file's name last.
pub(super) fn sync_folder(folder: &Path) -> Result<(), SpoolError> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| SpoolError::new("sync", folder, error))
}

/// The first `bytes` bytes of a segment, or all that it has.
pub(super) async fn read_blocks(path: &Path, bytes: u64) -> Result<Vec<u8>, SpoolError> {
    let failed = |error| SpoolError::glommio("read", path, error);
    let file = DmaFile::open(path).await.map_err(failed)?;
    let size = file.file_size().await.map_err(failed)?.min(bytes);
    let mut read = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    while (read.len() as u64) < size {
        let place = read.len() as u64;
        let step = usize::try_from(size - place).unwrap_or(READ_BYTES).min(READ_BYTES);
        let piece = file.read_at(place, step).await.map_err(failed)?;
        if piece.is_empty() {
            break;
        }
        read.extend_from_slice(&piece);
    }
    file.close().await.map_err(failed)?;
    Ok(read)
}

/// One read: a whole number of blocks.
const READ_BYTES: usize = 512 * 1024;
