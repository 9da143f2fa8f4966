//! Records on disk: bounded, checksummed, in order, written past the page cache.
//!
//! A folder of segment files, named after the number of their first record. Each write is a whole number of
//! blocks and goes behind the last one, so that nothing that is on disk is ever written again: a crash can tear
//! the last write and nothing else. A start never writes into an old segment, and reads each up to the first
//! byte that is not right.

mod cursor;
pub mod dump;
pub mod frame;
mod segment;
mod writer;

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub use self::segment::files;
use self::segment::{Segment, read_blocks};
use self::writer::SegmentWriter;
use super::owned::{Counts, Kind, Record};
use crate::limits::{SEGMENT_BYTES_MAX, SPOOL_SYNC_EVERY};

/// The spool cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {step} {}", path.display())]
pub struct SpoolError {
    /// What was tried.
    pub step: &'static str,
    /// With which file or folder.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

impl SpoolError {
    pub(super) fn new(step: &'static str, path: &Path, source: io::Error) -> Self {
        Self { step, path: path.to_owned(), source }
    }

    fn glommio<T>(step: &'static str, path: &Path, error: glommio::GlommioError<T>) -> Self {
        Self::new(step, path, error.into())
    }
}

/// What a start found in the folder.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Recovered {
    /// Complete records that were not delivered.
    pub(super) records: Counts,
    /// Bytes behind the last complete record of a segment.
    pub(super) torn_bytes: u64,
}

/// The records on disk, oldest first.
pub(super) struct Spool {
    folder: PathBuf,
    bytes_max: u64,
    segments: VecDeque<Segment>,
    writer: Option<SegmentWriter>,
    /// Records that wait for the next write.
    pending: Vec<u8>,
    pending_counts: Counts,
    pending_first: u64,
    next_sequence: u64,
    synced: Instant,
}

/// What a step cost.
#[derive(Debug, Default)]
pub(super) struct Lost {
    /// Dropped with their segment, to make room.
    pub(super) full: Counts,
    /// Could not be written.
    pub(super) failed: Counts,
    /// Why not, of the last failure.
    pub(super) error: Option<SpoolError>,
}

/// Records to be delivered, in order.
pub(super) struct Batch {
    bytes: Vec<u8>,
    records: Vec<std::ops::Range<usize>>,
}

impl Batch {
    /// The records.
    pub(super) fn records(&self) -> impl Iterator<Item = Record<'_>> {
        self.records.iter().filter_map(|place| {
            let bytes = self.bytes.get(place.clone())?;
            frame::read(bytes).ok().flatten().map(|(record, _)| record)
        })
    }
}

impl Spool {
    /// Counts what is in the folder. It is made with the first record.
    pub(super) async fn open(
        folder: &Path,
        bytes_max: u64,
        now: Instant,
    ) -> Result<(Self, Recovered), SpoolError> {
        let cursor = cursor::read(folder)?;
        let mut spool = Self {
            folder: folder.to_owned(),
            bytes_max,
            segments: VecDeque::new(),
            writer: None,
            pending: Vec::new(),
            pending_counts: Counts::default(),
            pending_first: 0,
            next_sequence: cursor.next_sequence,
            synced: now,
        };
        let mut recovered = Recovered::default();
        let paths = if folder.exists() { files(folder)? } else { Vec::new() };
        for path in paths {
            let found = Segment::recover(&path, cursor.delivered_below).await?;
            recovered.torn_bytes += found.torn_bytes;
            spool.next_sequence = spool.next_sequence.max(found.next_sequence);
            if found.segment.left.sum() == 0 {
                segment::remove(&path)?;
                continue;
            }
            recovered.records.extend(found.segment.left);
            spool.segments.push_back(found.segment);
        }
        Ok((spool, recovered))
    }

    /// The number of the next record of this router, spooled or not.
    pub(super) fn take_sequence(&mut self) -> u64 {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        sequence
    }

    /// Whether no record is in it.
    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.segments.is_empty()
    }

    /// Records that are in it.
    pub(super) fn records(&self) -> u64 {
        self.pending_counts.sum() + self.segments.iter().map(|one| one.left.sum()).sum::<u64>()
    }

    /// Bytes on disk.
    pub(super) fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    /// Appends a record; it is written by the next [`Spool::flush`]. Sequences must ascend.
    pub(super) fn append(&mut self, record: &Record<'_>) {
        if self.pending.is_empty() {
            self.pending_first = record.sequence;
        }
        frame::write(record, &mut self.pending);
        self.pending_counts.add(record.kind);
    }

    /// Whether so much waits that it should be written at once.
    pub(super) fn is_due(&self) -> bool {
        self.pending.len() >= crate::limits::SPOOL_WRITE_BYTES
    }

    /// Writes what waits. What cannot be written is lost and told: memory is bounded, and the disk is full
    /// or broken.
    pub(super) async fn flush(&mut self, now: Instant) -> Lost {
        let mut lost = Lost::default();
        if !self.pending.is_empty() {
            if let Err(error) = self.write().await {
                lost.failed = self.pending_counts;
                lost.error = Some(error);
                self.abandon_writer();
            }
            self.pending.clear();
            self.pending_counts = Counts::default();
        }
        while self.bytes() > self.bytes_max && self.segments.len() > 1 {
            match self.drop_oldest() {
                Ok(counts) => lost.full.extend(counts),
                Err(error) => {
                    lost.error = Some(error);
                    break;
                }
            }
        }
        if now.saturating_duration_since(self.synced) >= SPOOL_SYNC_EVERY {
            self.synced = now;
            if let Some(writer) = &mut self.writer
                && let Err(error) = writer.sync().await
            {
                lost.error = Some(error);
            }
        }
        lost
    }

    async fn write(&mut self) -> Result<(), SpoolError> {
        let length = frame::padded(self.pending.len());
        let has_room = |writer: &SegmentWriter| writer.position() + length <= SEGMENT_BYTES_MAX;
        if !self.writer.as_ref().is_some_and(has_room) {
            if let Some(writer) = self.writer.take() {
                writer.close().await?;
            }
            let (writer, segment) = SegmentWriter::create(&self.folder, self.pending_first).await?;
            self.writer = Some(writer);
            self.segments.push_back(segment);
        }
        let (Some(writer), Some(segment)) = (&mut self.writer, self.segments.back_mut()) else {
            return Ok(()); // both were made just now
        };
        writer.write(&self.pending).await?;
        segment.bytes = writer.position();
        segment.left.extend(self.pending_counts);
        Ok(())
    }

    /// Whatever of the last write is on disk, nothing is written behind it.
    fn abandon_writer(&mut self) {
        if self.writer.take().is_some()
            && let Some(segment) = self.segments.pop_back_if(|segment| segment.left.sum() == 0)
        {
            let _stays_empty = segment::remove(&segment.path);
        }
    }

    fn drop_oldest(&mut self) -> Result<Counts, SpoolError> {
        let Some(segment) = self.segments.pop_front() else { return Ok(Counts::default()) };
        segment::remove(&segment.path)?;
        Ok(segment.left)
    }

    /// The oldest records that are not settled, at most about `bytes_max` bytes of them. Only what is on
    /// disk already.
    pub(super) async fn read(&mut self, bytes_max: usize) -> Result<Option<Batch>, SpoolError> {
        loop {
            let is_written = self.writer.is_some() && self.segments.len() == 1;
            let Some(segment) = self.segments.front_mut() else { return Ok(None) };
            if segment.left.sum() > 0 {
                let bytes = read_blocks(&segment.path, segment.bytes).await?;
                let records = segment.undelivered(&bytes, bytes_max);
                if !records.is_empty() {
                    return Ok(Some(Batch { bytes, records }));
                }
                // Counted, but not readable any more: the disk lost it.
                segment.left = Counts::default();
            }
            if is_written {
                // The writer's own segment: what comes next goes into a new one.
                if let Some(writer) = self.writer.take() {
                    writer.close().await?;
                }
            }
            let _empty = self.drop_oldest()?;
        }
    }

    /// A record was delivered, or given up: it is not read again. `false` if it was dropped meanwhile, and
    /// counted as that.
    pub(super) fn settle(&mut self, sequence: u64, kind: Kind) -> bool {
        let mut segments = self.segments.iter_mut().rev();
        let segment = segments.find(|segment| segment.first <= sequence);
        segment.is_some_and(|segment| segment.settle(sequence, kind))
    }

    /// Writes down how far delivery came, and removes what is delivered as a whole.
    pub(super) async fn save_cursor(&mut self) -> Result<(), SpoolError> {
        while let Some(segment) = self.segments.front()
            && segment.left.sum() == 0
        {
            if self.segments.len() == 1
                && let Some(writer) = self.writer.take()
            {
                writer.close().await?;
            }
            let _empty = self.drop_oldest()?;
        }
        if !self.folder.exists() {
            return Ok(()); // no record was ever spooled
        }
        let delivered_below =
            self.segments.front().map_or(self.next_sequence, Segment::delivered_below);
        cursor::write(
            &self.folder,
            cursor::Cursor { delivered_below, next_sequence: self.next_sequence },
        )
    }

    /// Writes what waits and syncs.
    pub(super) async fn close(mut self, now: Instant) -> Lost {
        let mut lost = self.flush(now).await;
        if let Some(writer) = self.writer.take()
            && let Err(error) = writer.close().await
        {
            lost.error = Some(error);
        }
        if let Err(error) = self.save_cursor().await {
            lost.error = Some(error);
        }
        lost
    }
}
