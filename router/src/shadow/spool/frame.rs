//! One record in a segment: its bytes, and how they are told from torn ones. Pure.
//!
//! Little-endian: `u32` magic, `u32` length of what follows the checksum, `u64` checksum (the first bytes of
//! BLAKE3 of everything behind it and the length), then `u64` sequence, `u64` unix milliseconds, `u8` kind,
//! `u8` whether there is a key, `u16` length of the topic, `u32` length of the key, topic, key, value. Each
//! write begins at a multiple of [`BLOCK_BYTES`] and is filled up with zeros, which are no magic.

use crate::limits::SPOOL_RECORD_BYTES_MAX;
use crate::shadow::owned::{Kind, Record};

/// What direct I/O writes in: every disk's block is this or a part of it.
pub const BLOCK_BYTES: usize = 4096;

const MAGIC: u32 = u32::from_le_bytes(*b"SWSR");
const PREFIX_BYTES: usize = 16;
const FIXED_BYTES: usize = 24;

/// Why bytes are no record.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum FrameError {
    /// Something else stands where a record should begin.
    #[error("no record begins here")]
    Magic,
    /// Cut off, or a length that no record has.
    #[error("the record is cut off")]
    Cut,
    /// Its bytes are not what was written.
    #[error("its checksum is wrong")]
    Checksum,
    /// Right by its checksum, but not of a form that this program knows.
    #[error("a record of an unknown form")]
    Form,
}

/// How many bytes a write of so many takes on disk.
pub(super) fn padded(bytes: usize) -> u64 {
    bytes.next_multiple_of(BLOCK_BYTES) as u64
}

/// Appends a record.
pub(super) fn write(record: &Record<'_>, to: &mut Vec<u8>) {
    let Record { sequence, kind, time_unix_ms, topic, key, value } = *record;
    let key_bytes = key.unwrap_or_default();
    let length = FIXED_BYTES + topic.len() + key_bytes.len() + value.len();
    let short = |length: usize| u16::try_from(length).unwrap_or(u16::MAX);
    let long = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    debug_assert!(length <= SPOOL_RECORD_BYTES_MAX, "the settings bound a record");
    to.extend_from_slice(&MAGIC.to_le_bytes());
    to.extend_from_slice(&long(length).to_le_bytes());
    let checksum = to.len();
    to.extend_from_slice(&[0; 8]);
    to.extend_from_slice(&sequence.to_le_bytes());
    to.extend_from_slice(&time_unix_ms.to_le_bytes());
    to.push(kind as u8);
    to.push(u8::from(key.is_some()));
    to.extend_from_slice(&short(topic.len()).to_le_bytes());
    to.extend_from_slice(&long(key_bytes.len()).to_le_bytes());
    for part in [topic.as_bytes(), key_bytes, value] {
        to.extend_from_slice(part);
    }
    let sum = sum(long(length), to.get(checksum + 8..).unwrap_or_default());
    if let Some(place) = to.get_mut(checksum..checksum + 8) {
        place.copy_from_slice(&sum);
    }
}

/// The record at the front of `bytes`, and how many bytes it takes. `None`: zeros, up to the next block.
///
/// # Errors
/// See [`FrameError`]. What is behind it cannot be trusted: where it ends is not known.
pub fn read(bytes: &[u8]) -> Result<Option<(Record<'_>, usize)>, FrameError> {
    let mut fields = Fields(bytes);
    let magic = fields.number::<4>().map(u32::from_le_bytes).unwrap_or_default();
    if magic == 0 {
        return Ok(None);
    }
    if magic != MAGIC {
        return Err(FrameError::Magic);
    }
    let length = u32::from_le_bytes(fields.number().ok_or(FrameError::Cut)?);
    let checksum: [u8; 8] = fields.number().ok_or(FrameError::Cut)?;
    let bytes_left = usize::try_from(length).unwrap_or(usize::MAX);
    if bytes_left > SPOOL_RECORD_BYTES_MAX {
        return Err(FrameError::Cut);
    }
    let body = fields.take(bytes_left).ok_or(FrameError::Cut)?;
    if sum(length, body) != checksum {
        return Err(FrameError::Checksum);
    }
    let record = parse(Fields(body)).ok_or(FrameError::Form)?;
    Ok(Some((record, PREFIX_BYTES + bytes_left)))
}

fn parse(mut fields: Fields<'_>) -> Option<Record<'_>> {
    let sequence = u64::from_le_bytes(fields.number()?);
    let time_unix_ms = u64::from_le_bytes(fields.number()?);
    let [kind] = fields.number()?;
    let [has_key] = fields.number()?;
    let topic_bytes = u16::from_le_bytes(fields.number()?);
    let key_bytes = u32::from_le_bytes(fields.number()?);
    let topic = std::str::from_utf8(fields.take(usize::from(topic_bytes))?).ok()?;
    let key = fields.take(usize::try_from(key_bytes).ok()?)?;
    let key = match has_key {
        0 => None,
        1 => Some(key),
        _ => return None,
    };
    Some(Record {
        sequence,
        kind: Kind::of_number(kind)?,
        time_unix_ms,
        topic,
        key,
        value: fields.0,
    })
}

fn sum(length: u32, body: &[u8]) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&length.to_le_bytes());
    hasher.update(body);
    let mut sum = [0; 8];
    hasher.finalize_xof().fill(&mut sum);
    sum
}

struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }
}

/// Walks over the records of a segment's bytes, with the place of each.
pub struct Frames<'a> {
    bytes: &'a [u8],
    place: usize,
    error: Option<FrameError>,
}

impl<'a> Frames<'a> {
    /// From the first byte on.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, place: 0, error: None }
    }

    /// Where the records end, and why there if more follows.
    #[must_use]
    pub const fn end(&self) -> (usize, Option<FrameError>) {
        (self.place, self.error)
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = (Record<'a>, std::ops::Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        while self.error.is_none() {
            let rest = self.bytes.get(self.place..).filter(|rest| !rest.is_empty())?;
            match read(rest) {
                Ok(Some((record, bytes))) => {
                    let place = self.place..self.place + bytes;
                    self.place = place.end;
                    return Some((record, place));
                }
                Ok(None) => {
                    let padding = self.place.next_multiple_of(BLOCK_BYTES) - self.place;
                    // Zeros where a write would begin: nothing was written any more.
                    let padding = rest.get(..padding).filter(|padding| !padding.is_empty())?;
                    if padding.iter().any(|byte| *byte != 0) {
                        self.error = Some(FrameError::Magic);
                        return None;
                    }
                    self.place += padding.len();
                }
                Err(error) => {
                    self.error = Some(error);
                    return None;
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(sequence: u64, value: &[u8]) -> Record<'_> {
        let key = Some(&b"u7"[..]);
        Record { sequence, kind: Kind::Shadow, time_unix_ms: 5, topic: "t", key, value }
    }

    fn segment() -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&record(1, b"one"), &mut bytes);
        write(&Record { key: None, kind: Kind::Exposure, ..record(2, b"") }, &mut bytes);
        bytes.resize(BLOCK_BYTES, 0);
        write(&record(3, &[7; 5_000]), &mut bytes);
        bytes.resize(3 * BLOCK_BYTES, 0);
        bytes
    }

    fn sequences(bytes: &[u8]) -> (Vec<u64>, Option<FrameError>) {
        let mut frames = Frames::new(bytes);
        let sequences = frames.by_ref().map(|(record, _)| record.sequence).collect();
        (sequences, frames.end().1)
    }

    #[test]
    fn what_is_written_reads_back() {
        let bytes = segment();
        let records: Vec<_> = Frames::new(&bytes).map(|(record, _)| record).collect();
        assert_eq!(records[0], record(1, b"one"));
        assert_eq!(records[1], Record { key: None, kind: Kind::Exposure, ..record(2, b"") });
        assert_eq!(records[2], record(3, &[7; 5_000]));
        assert_eq!(sequences(&bytes), (vec![1, 2, 3], None));
    }

    #[test]
    fn a_cut_anywhere_costs_only_what_is_cut() {
        let bytes = segment();
        let ends: Vec<_> = Frames::new(&bytes).map(|(_, place)| place.end).collect();
        for cut in 0..bytes.len() {
            let whole = ends.iter().filter(|end| **end <= cut).count();
            let (found, _) = sequences(&bytes[..cut]);
            assert_eq!(found.len(), whole, "{cut}");
        }
    }

    #[test]
    fn a_changed_byte_of_a_record_is_noticed() {
        let bytes = segment();
        let ends: Vec<_> = Frames::new(&bytes).map(|(_, place)| place).collect();
        for place in ends[0].clone().chain(ends[1].clone()) {
            let mut torn = bytes.clone();
            torn[place] ^= 1;
            let (found, error) = sequences(&torn);
            assert!(found.len() < 2 && error.is_some(), "{place}: {found:?}");
        }
    }

    #[test]
    fn a_huge_length_reserves_nothing() {
        let mut bytes = segment();
        bytes[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(sequences(&bytes), (vec![], Some(FrameError::Cut)));
    }
}
