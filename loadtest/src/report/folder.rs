//! The folder that `--out` names: every form of the report, side by side.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::page::page;
use super::percentiles::write_hgrm;
use super::plots::plots;
use super::summary::Summary;
use crate::recorder::Tally;

/// A folder for reports.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Makes the folder where it is missing. Reports of a run before are overwritten.
    ///
    /// # Errors
    /// What the host says.
    pub fn create(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        Ok(Self(path.to_owned()))
    }

    /// Where the interval log belongs; it is written while the run goes on.
    pub fn log_path(&self) -> PathBuf {
        self.0.join("latency.hlog")
    }

    /// Writes what a finished run found.
    ///
    /// # Errors
    /// The disk is full, for instance.
    pub fn write(&self, summary: &Summary, tally: &Tally) -> io::Result<()> {
        self.file("report.json", |out| {
            serde_json::to_writer_pretty(&mut *out, summary)?;
            writeln!(out)
        })?;
        let mut histograms = vec![("latency.hgrm", &tally.latency)];
        if summary.mode == "open" {
            histograms.push(("service.hgrm", &tally.service));
        }
        if tally.events > 0 {
            histograms.push(("first_token.hgrm", &tally.first_token));
            histograms.push(("token_gap.hgrm", &tally.token_gap));
        }
        for (name, histogram) in histograms {
            self.file(name, |out| write_hgrm(histogram, out))?;
        }
        let plots = plots(summary, tally);
        for plot in &plots {
            self.file(&format!("{}.svg", plot.name), |out| writeln!(out, "{}", plot.svg))?;
        }
        self.file("report.html", |out| out.write_all(page(summary, &plots).as_bytes()))
    }

    fn file(
        &self,
        name: &str,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut out = BufWriter::new(File::create(self.0.join(name))?);
        write(&mut out)?;
        out.flush()
    }
}
