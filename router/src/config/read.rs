//! From the bytes of `router.toml` to a [`Config`], and from a key back to its place in the file.

use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::{Config, Refusal};
use crate::args::Overridden;
use crate::limits::CONFIG_BYTES_MAX;

/// Why the settings were not taken. Nothing was bound.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be opened or read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// More than `CONFIG_BYTES_MAX`.
    #[error("{} is longer than {CONFIG_BYTES_MAX} bytes", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// Not UTF-8, no TOML, an unknown key, or a value that the key cannot hold.
    #[error("{place}: {message}")]
    Parse {
        /// Where.
        place: Place,
        /// What was found, and what was expected.
        message: String,
    },
    /// A value that is out of range or contradicts another one.
    #[error("{place}: {refusal}")]
    Refused {
        /// Where the value comes from.
        place: Place,
        /// What was found, and what was expected.
        refusal: Refusal,
    },
}

/// Where a setting comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Place {
    /// A file; line and column count from 1, columns in characters.
    File {
        /// As the user named it.
        path: PathBuf,
        /// Line of the value.
        line: usize,
        /// Column of the value.
        column: usize,
    },
    /// A flag, such as `--workers`.
    Flag(&'static str),
    /// The built-in default.
    Default,
}

impl fmt::Display for Place {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line, column } => {
                write!(to, "{}:{line}:{column}", path.display())
            }
            Self::Flag(name) => to.write_str(name),
            Self::Default => to.write_str("default"),
        }
    }
}

/// The text of one settings file.
pub(super) struct Source {
    path: PathBuf,
    text: String,
}

impl Source {
    pub(super) fn open(path: &Path) -> Result<Self, ConfigError> {
        let failed = |source| ConfigError::Read { path: path.into(), source };
        let mut bytes = Vec::new();
        let mut file = File::open(path).map_err(failed)?.take(CONFIG_BYTES_MAX + 1);
        let length = file.read_to_end(&mut bytes).map_err(failed)?;
        if length as u64 > CONFIG_BYTES_MAX {
            return Err(ConfigError::TooLong { path: path.into() });
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Self { path: path.into(), text }),
            Err(error) => {
                let valid = error.utf8_error().valid_up_to();
                let text = String::from_utf8_lossy(&error.as_bytes()[..valid]).into_owned();
                let place = Self { path: path.into(), text }.place(valid);
                let message = "found bytes that are not UTF-8".into();
                Err(ConfigError::Parse { place, message })
            }
        }
    }

    pub(super) fn open_if_exists(path: &Path) -> Result<Option<Self>, ConfigError> {
        match Self::open(path) {
            Ok(source) => Ok(Some(source)),
            Err(ConfigError::Read { source, .. }) if source.kind() == ErrorKind::NotFound => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn parse(&self) -> Result<Config, ConfigError> {
        toml::from_str(&self.text).map_err(|error| ConfigError::Parse {
            place: self.place(error.span().map_or(0, |span| span.start)),
            message: error.message().trim_end().replace('\n', "; "),
        })
    }

    /// Where the byte at `offset` is.
    fn place(&self, offset: usize) -> Place {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        Place::File {
            path: self.path.clone(),
            line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
            column: String::from_utf8_lossy(&before[line_start..]).chars().count() + 1,
        }
    }

    /// The value's bytes of a dotted key, if the file has it.
    fn span_of(&self, key: &str) -> Option<Range<usize>> {
        let document = DeTable::parse(&self.text).ok()?;
        let mut names = key.split('.').peekable();
        let mut table = document.get_ref();
        loop {
            let value = table.get(names.next()?)?;
            match (value.get_ref(), names.peek()) {
                (_, None) => return Some(value.span()),
                (DeValue::Table(inner), Some(_)) => table = inner,
                (_, Some(_)) => return None,
            }
        }
    }
}

/// Where the value of `key` comes from: a flag wins over the file, the file over the default.
pub(super) fn place(source: Option<&Source>, overridden: &[Overridden], key: &str) -> Place {
    if let Some(by) = overridden.iter().find(|by| by.key == key) {
        return Place::Flag(by.flag);
    }
    let found = source.and_then(|source| Some(source.place(source.span_of(key)?.start)));
    found.unwrap_or(Place::Default)
}
