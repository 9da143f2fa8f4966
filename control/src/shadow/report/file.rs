//! The report as a page on disk.

use std::{fs, io, path::PathBuf};

use super::{Report, page};

/// A page that is written again and again; a reader sees the old one or the new one, never a part.
#[derive(Debug)]
pub struct ReportFile {
    path: PathBuf,
}

impl ReportFile {
    /// Written to `path`, by way of a file beside it.
    #[must_use]
    pub const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Writes it. A disk that is full costs the page, and nothing else.
    pub fn write(&self, report: &Report) {
        if let Err(error) = self.try_write(report) {
            tracing::warn!(file = %self.path.display(), %error, "cannot write the report");
        }
    }

    /// Writes it.
    ///
    /// # Errors
    /// As the file system says.
    pub fn try_write(&self, report: &Report) -> io::Result<()> {
        let mut beside = self.path.clone().into_os_string();
        beside.push(".new");
        fs::write(&beside, page(report))?;
        fs::rename(&beside, &self.path)
    }
}
