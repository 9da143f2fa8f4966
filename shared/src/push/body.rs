//! The fields of a frame's body.

use super::FrameError;
use crate::snapshot::{Digest, SnapshotId, SnapshotVersion};

/// What is left of a body.
pub(super) struct Body<'a>(pub(super) &'a [u8]);

impl<'a> Body<'a> {
    pub(super) fn u8(&mut self) -> Result<u8, FrameError> {
        self.array().map(u8::from_le_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, FrameError> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, FrameError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, FrameError> {
        self.array().map(u64::from_le_bytes)
    }

    /// Version, then digest.
    pub(super) fn id(&mut self) -> Result<SnapshotId, FrameError> {
        let version = SnapshotVersion::new(self.u64()?).ok_or(FrameError::Value)?;
        Ok(SnapshotId { version, digest: Digest(self.array()?) })
    }

    /// A byte that tells whether an id follows.
    pub(super) fn running(&mut self) -> Result<Option<SnapshotId>, FrameError> {
        match self.u8()? {
            0 => Ok(None),
            1 => self.id().map(Some),
            _ => Err(FrameError::Value),
        }
    }

    /// A `u16` length and as many bytes of UTF-8.
    pub(super) fn text(&mut self, bytes_max: usize) -> Result<&'a str, FrameError> {
        let length = usize::from(self.u16()?);
        if length > bytes_max {
            return Err(FrameError::Text);
        }
        let (text, rest) = self.0.split_at_checked(length).ok_or(FrameError::Short)?;
        self.0 = rest;
        let text = std::str::from_utf8(text).map_err(|_| FrameError::Text)?;
        if text.chars().any(char::is_control) { Err(FrameError::Text) } else { Ok(text) }
    }

    /// A `u16` count and as many items. Memory grows with what is there, not with what is claimed.
    pub(super) fn list<T>(
        &mut self,
        count_max: usize,
        item: impl Fn(&mut Self) -> Result<T, FrameError>,
    ) -> Result<Vec<T>, FrameError> {
        let count = usize::from(self.u16()?);
        if count > count_max {
            return Err(FrameError::TooMany { count, count_max });
        }
        (0..count).map(|_| item(self)).collect()
    }

    pub(super) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    pub(super) fn end(self) -> Result<(), FrameError> {
        match self.0.len() {
            0 => Ok(()),
            bytes => Err(FrameError::Trailing { bytes }),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        let (field, rest) = self.0.split_first_chunk().ok_or(FrameError::Short)?;
        self.0 = rest;
        Ok(*field)
    }
}

/// Appends fields.
pub(super) struct Writer<'a>(pub(super) &'a mut Vec<u8>);

impl Writer<'_> {
    pub(super) fn u8(&mut self, number: u8) {
        self.0.push(number);
    }

    pub(super) fn u16(&mut self, number: u16) {
        self.bytes(&number.to_le_bytes());
    }

    pub(super) fn u32(&mut self, number: u32) {
        self.bytes(&number.to_le_bytes());
    }

    pub(super) fn u64(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn id(&mut self, id: SnapshotId) {
        self.u64(id.version.get());
        self.bytes(&id.digest.0);
    }

    pub(super) fn running(&mut self, running: Option<SnapshotId>) {
        self.u8(u8::from(running.is_some()));
        if let Some(id) = running {
            self.id(id);
        }
    }

    /// Cut at a character's boundary; control characters become spaces.
    pub(super) fn text(&mut self, text: &str, bytes_max: usize) {
        let length_at = self.0.len();
        self.u16(0);
        let start = self.0.len();
        let mut utf8 = [0; 4];
        for character in text.chars() {
            let character = if character.is_control() { ' ' } else { character };
            if self.0.len() - start + character.len_utf8() > bytes_max {
                break;
            }
            self.bytes(character.encode_utf8(&mut utf8).as_bytes());
        }
        let length = u16::try_from(self.0.len() - start).unwrap_or(u16::MAX);
        debug_assert!(bytes_max <= usize::from(u16::MAX), "every limit fits the length field");
        self.0[length_at..start].copy_from_slice(&length.to_le_bytes());
    }

    pub(super) fn list<T>(
        &mut self,
        items: &[T],
        count_max: usize,
        mut item: impl FnMut(&mut Self, &T),
    ) -> Result<(), FrameError> {
        let count = items.len();
        let Some(short) = u16::try_from(count).ok().filter(|_| count <= count_max) else {
            return Err(FrameError::TooMany { count, count_max });
        };
        self.u16(short);
        items.iter().for_each(|one| item(self, one));
        Ok(())
    }
}
