//! The dated folder of results. Everything in it is written here; nothing is edited by hand.

mod readme;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::CompareError;
use super::machine::Machine;
use super::measure::Measurement;
use super::peer::Peer;
use super::workload::Workload;

/// A folder that is being filled.
#[derive(Debug)]
pub struct Results {
    folder: PathBuf,
}

/// Median and range of one number over the rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// The middle one; of an even number, the mean of the two in the middle.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// Of these values; all zero where there are none.
    pub fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (Some(min), Some(max)) = (sorted.first(), sorted.last()) else {
            return Self::default();
        };
        let (below, above) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Self { median: f64::midpoint(below, above), min: *min, max: *max }
    }
}

impl Results {
    /// Makes the folder `DATE-COMMIT-WORKLOAD`, with a number behind it where it exists already.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub fn create(
        parent: &Path,
        machine: &Machine,
        workload: &Workload,
    ) -> Result<Self, CompareError> {
        let day = machine.date.split('T').next().unwrap_or_default();
        let commit: String = machine.commit.chars().take(8).collect();
        let name = format!("{day}-{commit}-{}", workload.name);
        let mut folder = parent.join(&name);
        let mut count = 1;
        while folder.exists() {
            count += 1;
            folder = parent.join(format!("{name}-{count}"));
        }
        std::fs::create_dir_all(folder.join("raw")).map_err(CompareError::file(&folder))?;
        let results = Self { folder };
        results.write("machine.json", &serde_json::to_string_pretty(machine)?)?;
        Ok(results)
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the raw report of one measurement goes.
    pub fn raw(&self, name: &str) -> PathBuf {
        self.folder.join("raw").join(format!("{name}.json"))
    }

    /// Adds a line to `commands.txt`.
    ///
    /// # Errors
    /// A full disk.
    pub fn note(&self, command: &str) -> Result<(), CompareError> {
        let path = self.folder.join("commands.txt");
        let mut options = OpenOptions::new();
        let noted = options.create(true).append(true).open(&path);
        noted
            .and_then(|mut file: File| writeln!(file, "{command}"))
            .map_err(CompareError::file(&path))
    }

    /// Keeps a copy of a configuration.
    ///
    /// # Errors
    /// A full disk.
    pub fn keep(&self, file: &Path, name: &str) -> Result<(), CompareError> {
        std::fs::copy(file, self.folder.join(name)).map(drop).map_err(CompareError::file(file))
    }

    /// Writes the table, and tells where it is.
    ///
    /// # Errors
    /// A full disk.
    pub fn finish(
        &self,
        machine: &Machine,
        workload: &Workload,
        peers: &[Peer],
        measurements: &[Measurement],
    ) -> Result<(), CompareError> {
        let text = readme::render(machine, workload, peers, measurements);
        self.write("README.md", &text)?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{text}\nwritten to {}", self.folder.display())
            .map_err(CompareError::file("standard output"))
    }

    fn write(&self, name: &str, text: &str) -> Result<(), CompareError> {
        let path = self.folder.join(name);
        std::fs::write(&path, format!("{}\n", text.trim_end())).map_err(CompareError::file(&path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_median_and_range() {
        let spread = Spread { median: 2.0, min: 1.0, max: 9.0 };
        assert_eq!(Spread::of(&[9.0, 1.0, 2.0]), spread);
        assert_eq!(Spread::of(&[4.0, 1.0, 2.0, 3.0]).median, 2.5);
        assert_eq!(Spread::of(&[]), Spread::default());
    }
}
