//! The segment that is being written: whole blocks, one behind the other, past the page cache.

use std::path::{Path, PathBuf};

use glommio::io::DmaFile;

use super::segment::{self, Segment};
use super::{SpoolError, frame};

pub(super) struct SegmentWriter {
    file: DmaFile,
    path: PathBuf,
    position: u64,
    is_synced: bool,
}

impl SegmentWriter {
    /// A new file for records from `first` on.
    pub(super) async fn create(folder: &Path, first: u64) -> Result<(Self, Segment), SpoolError> {
        segment::make_folder(folder)?;
        let path = segment::path(folder, first);
        let file = DmaFile::create(&path).await;
        let file = file.map_err(|error| SpoolError::glommio("make", &path, error))?;
        segment::sync_folder(folder)?;
        let segment = Segment::new(path.clone(), first);
        Ok((Self { file, path, position: 0, is_synced: true }, segment))
    }

    /// Where the next write goes.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Writes records, filled up with zeros to whole blocks.
    pub(super) async fn write(&mut self, records: &[u8]) -> Result<(), SpoolError> {
        let failed = |error| SpoolError::glommio("write", &self.path, error);
        let length = frame::padded(records.len());
        let mut buffer = self.file.alloc_dma_buffer(usize::try_from(length).unwrap_or_default());
        let bytes = buffer.as_bytes_mut();
        let (front, padding) = bytes.split_at_mut(records.len());
        front.copy_from_slice(records);
        padding.fill(0);
        let written = self.file.write_at(buffer, self.position).await.map_err(failed)?;
        if written as u64 != length {
            let error = std::io::Error::from(std::io::ErrorKind::WriteZero);
            return Err(SpoolError::new("write all of", &self.path, error));
        }
        self.position += length;
        self.is_synced = false;
        Ok(())
    }

    /// Until here it survives a loss of power. (A crash of the process loses nothing that was written.)
    pub(super) async fn sync(&mut self) -> Result<(), SpoolError> {
        if self.is_synced {
            return Ok(());
        }
        let synced = self.file.fdatasync().await;
        synced.map_err(|error| SpoolError::glommio("sync", &self.path, error))?;
        self.is_synced = true;
        Ok(())
    }

    pub(super) async fn close(mut self) -> Result<(), SpoolError> {
        self.sync().await?;
        let Self { file, path, .. } = self;
        file.close().await.map_err(|error| SpoolError::glommio("close", &path, error))
    }
}
