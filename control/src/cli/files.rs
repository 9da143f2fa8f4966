//! Rule files from disk.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use anyhow::Context as _;

use crate::{api::RulesFile, rules::FILE_BYTES_MAX};

/// Files of one change.
const FILES_MAX: usize = 10_000;
/// Folders within folders.
const DEPTH_MAX: usize = 16;

/// Reads files, the `*.yaml` and `*.yml` of folders and of the folders in them, and `-`.
pub(super) fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<RulesFile>> {
    let mut found = BTreeSet::new();
    let mut files = Vec::new();
    for path in paths {
        if path == Path::new("-") {
            files.push(RulesFile {
                name: "stdin".to_owned(),
                text: read_text(io::stdin(), "stdin")?,
            });
        } else if path.is_dir() {
            let before = found.len();
            walk(path, DEPTH_MAX, &mut found)?;
            anyhow::ensure!(found.len() > before, "{} holds no *.yaml file", path.display());
        } else {
            found.insert(path.clone());
        }
    }
    for path in found {
        let name = path.display().to_string();
        let file = fs::File::open(&path).with_context(|| format!("cannot open {name}"))?;
        files.push(RulesFile { text: read_text(file, &name)?, name });
    }
    Ok(files)
}

fn walk(folder: &Path, depth: usize, found: &mut BTreeSet<PathBuf>) -> anyhow::Result<()> {
    anyhow::ensure!(depth > 0, "{} lies more than {DEPTH_MAX} folders deep", folder.display());
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot read {}", folder.display()))?;
        let (path, name) = (entry.path(), entry.file_name());
        let hidden = name.to_string_lossy().starts_with('.');
        let yaml = path.extension().is_some_and(|kind| kind == "yaml" || kind == "yml");
        if hidden {
            continue;
        }
        if path.is_dir() {
            walk(&path, depth - 1, found)?;
        } else if yaml {
            found.insert(path);
        }
        anyhow::ensure!(found.len() <= FILES_MAX, "more than {FILES_MAX} rule files");
    }
    Ok(())
}

fn read_text(file: impl io::Read, name: &str) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(FILE_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    file.take(limit).read_to_end(&mut bytes).with_context(|| format!("cannot read {name}"))?;
    anyhow::ensure!(bytes.len() <= FILE_BYTES_MAX, "{name} has more than {FILE_BYTES_MAX} bytes");
    String::from_utf8(bytes).with_context(|| format!("{name} is not UTF-8"))
}
