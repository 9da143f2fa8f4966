//! `trusted_keys`: whose Snapshots this router accepts.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use switchboard_shared::snapshot::{KeyError, PublicKey, TrustedKeys};

use crate::limits::TRUSTED_KEY_FILE_BYTES_MAX;

/// Why the trusted keys were not taken.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// A key in the settings themselves.
    #[error("trusted_keys, entry {entry}")]
    Entry {
        /// Its place in the list, from 1.
        entry: usize,
        /// What is wrong with it.
        #[source]
        source: KeyError,
    },
    /// A key in a file.
    #[error("{}:{line}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong with it.
        #[source]
        source: KeyError,
    },
    /// A file that cannot be read as text.
    #[error("cannot read trusted key file {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file without a key.
    #[error("no key in {}", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// Each is good, but not all of them together.
    #[error("trusted_keys")]
    Together(#[source] KeyError),
}

/// What a key in the settings begins with; a path that does can be written `./switchboard-…`.
const KEY_WORD: &str = "switchboard-";

/// Reads each entry of `trusted_keys`: a key as `keygen` prints it, or a file with one per line, where
/// empty lines and lines that begin with `#` are skipped.
///
/// # Errors
/// See [`TrustError`]: any key that is not good refuses all of them.
pub fn load(entries: &[String]) -> Result<TrustedKeys, TrustError> {
    let mut keys = Vec::new();
    for (place, entry) in entries.iter().enumerate() {
        if entry.starts_with(KEY_WORD) {
            let failed = |source| TrustError::Entry { entry: place + 1, source };
            keys.push(entry.parse::<PublicKey>().map_err(failed)?);
        } else {
            read_file(Path::new(entry), &mut keys)?;
        }
    }
    TrustedKeys::new(keys).map_err(TrustError::Together)
}

fn read_file(path: &Path, keys: &mut Vec<PublicKey>) -> Result<(), TrustError> {
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(TRUSTED_KEY_FILE_BYTES_MAX).read_to_string(&mut text))
        .map_err(|source| TrustError::Read { path: path.into(), source })?;
    let before = keys.len();
    for (place, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let failed = |source| TrustError::Line { path: path.into(), line: place + 1, source };
        keys.push(line.parse().map_err(failed)?);
    }
    if keys.len() == before { Err(TrustError::Empty { path: path.into() }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::log::Chain;
    use crate::samples;

    fn other_key() -> String {
        switchboard_shared::snapshot::SecretKey::from_seed(&[8; 32]).public().to_string()
    }

    fn refusal(entries: &[&str]) -> String {
        let entries: Vec<String> = entries.iter().map(|entry| (*entry).to_owned()).collect();
        Chain(&load(&entries).unwrap_err()).to_string()
    }

    #[test]
    fn keys_come_from_entries_and_from_files() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("trusted.pub");
        fs::write(&file, format!("# production\n\n{}\n", samples::key().public())).unwrap();
        let keys = load(&[file.display().to_string(), other_key()]).unwrap();
        assert_eq!(keys.ids().count(), 2);
        assert!(keys.get(samples::key().public().id()).is_some());
    }

    #[test]
    fn one_bad_key_refuses_all_and_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("trusted.pub");
        let path = file.display().to_string();
        fs::write(&file, format!("# one\n{}\nrubbish\n", other_key())).unwrap();
        assert!(refusal(&[&path]).starts_with(&format!("{path}:3: expected one line")));
        fs::write(&file, samples::key().to_line()).unwrap();
        assert!(refusal(&[&path]).contains(":1: this is a SECRET key"));
        fs::write(&file, "# none yet\n").unwrap();
        assert_eq!(refusal(&[&path]), format!("no key in {path}"));
        fs::write(&file, [0xff]).unwrap();
        assert!(refusal(&[&path]).starts_with("cannot read trusted key file"));
        let short = "switchboard-public-1 00";
        assert!(
            refusal(&[&other_key(), short]).starts_with("trusted_keys, entry 2: expected 64 hex")
        );
    }

    #[test]
    fn a_key_that_is_trusted_twice_is_refused() {
        let refusal = refusal(&[&other_key(), &other_key()]);
        assert!(refusal.starts_with("trusted_keys: key "), "{refusal}");
        assert!(refusal.ends_with(" is trusted twice"), "{refusal}");
    }
}
