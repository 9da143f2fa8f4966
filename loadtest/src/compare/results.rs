//! The dated folder of results. Everything in it is written here; nothing is edited by hand.

mod index;
mod page;
mod plots;

use std::cell::RefCell;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::CompareError;
use super::alone::Alone;
use super::machine::Machine;
use super::measure::{Phase, Seen};
use super::outcome::Summary;
use super::peer::Peer;
use super::target::Target;
use super::workload::Workload;

/// Everything that a run found out: `summary.json`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[expect(missing_docs, reason = "the names say it; what they do not say is said")]
pub struct Findings {
    pub machine: Machine,
    pub rounds: usize,
    /// Fewer rounds than a published result has, or a debug build.
    pub quick: bool,
    pub seconds: u64,
    pub workloads: Vec<Summary>,
    pub alone: Alone,
    pub targets: Vec<Target>,
}

/// A folder that is being filled.
#[derive(Debug)]
pub struct Results {
    parent: PathBuf,
    folder: PathBuf,
    /// Paths of this machine, and what stands for them in a result.
    hidden: RefCell<Vec<(String, &'static str)>>,
}

/// One line of `raw/WORKLOAD.jsonl`.
#[derive(Serialize)]
struct Raw<'a> {
    workload: &'a str,
    peer: &'a str,
    phase: Phase,
    /// From 1.
    round: usize,
    /// What the model servers saw.
    seen_by_models: Seen,
    /// What `run --json -` printed.
    report: serde_json::Value,
}

impl Results {
    /// Makes the folder `NAME`, with a number behind it where it exists already.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub fn create(parent: &Path, name: &str, machine: &Machine) -> Result<Self, CompareError> {
        let mut folder = parent.join(name);
        let mut count = 1;
        while folder.exists() {
            count += 1;
            folder = parent.join(format!("{name}-{count}"));
        }
        for part in ["raw", "configurations", "plots"] {
            std::fs::create_dir_all(folder.join(part)).map_err(CompareError::file(&folder))?;
        }
        let results = Self { parent: parent.to_owned(), folder, hidden: RefCell::default() };
        if let Ok(here) = std::env::current_dir() {
            results.hide(&here, ".");
        }
        results.write("machine.json", &serde_json::to_string_pretty(machine)?)?;
        Ok(results)
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// From now on, `name` stands in a result where this path would.
    pub fn hide(&self, path: &Path, name: &'static str) {
        self.hidden.borrow_mut().push((path.display().to_string(), name));
    }

    /// Adds a line to `commands.txt`.
    ///
    /// # Errors
    /// A full disk.
    pub fn note(&self, command: &str) -> Result<(), CompareError> {
        self.append("commands.txt", command)
    }

    /// Keeps a text file, such as a configuration as it was run.
    ///
    /// # Errors
    /// A full disk.
    pub fn keep(&self, file: &Path, name: &str) -> Result<(), CompareError> {
        let text = std::fs::read_to_string(file).map_err(CompareError::file(file))?;
        self.write(&format!("configurations/{name}"), &text)
    }

    /// Keeps what `run` reported of one measurement.
    ///
    /// # Errors
    /// It is no JSON, or the disk is full.
    pub fn raw(
        &self,
        workload: &Workload,
        (peer, phase, round): (Peer, Phase, usize),
        seen_by_models: Seen,
        report: &[u8],
    ) -> Result<(), CompareError> {
        let line = Raw {
            workload: workload.name,
            peer: peer.name(),
            phase,
            round: round + 1,
            seen_by_models,
            report: serde_json::from_slice(report)?,
        };
        self.append(&format!("raw/{}.jsonl", workload.name), &serde_json::to_string(&line)?)
    }

    /// Writes a file, with this machine's paths hidden.
    ///
    /// # Errors
    /// A full disk.
    pub fn write(&self, name: &str, text: &str) -> Result<(), CompareError> {
        let path = self.folder.join(name);
        let text = format!("{}\n", self.without_paths(text).trim_end());
        std::fs::write(&path, text).map_err(CompareError::file(&path))
    }

    /// Writes summary, page and index.
    ///
    /// # Errors
    /// A full disk.
    pub fn finish(&self, findings: &Findings) -> Result<(), CompareError> {
        self.write("summary.json", &serde_json::to_string_pretty(findings)?)?;
        for plot in findings.workloads.iter().flat_map(plots::of) {
            self.write(&plot.file, &plot.svg)?;
        }
        self.write("README.md", &page::render(findings))?;
        index::write(&self.parent)
    }

    fn append(&self, name: &str, line: &str) -> Result<(), CompareError> {
        let path = self.folder.join(name);
        let opened = OpenOptions::new().create(true).append(true).open(&path);
        let line = self.without_paths(line);
        opened.and_then(|mut file| writeln!(file, "{line}")).map_err(CompareError::file(&path))
    }

    fn without_paths(&self, text: &str) -> String {
        // The newest first: a temporary folder may be inside of this one.
        self.hidden
            .borrow()
            .iter()
            .rev()
            .fold(text.to_owned(), |text, (path, name)| text.replace(path.as_str(), name))
    }
}

/// The targets as a table.
pub fn targets_table(targets: &[Target]) -> String {
    page::targets_table(targets)
}
