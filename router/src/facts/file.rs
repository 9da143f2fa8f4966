//! Facts from a file of JSON lines, for demos and laptops: the same keys, values and rules as in Redis.
//!
//! `{"key": "user:u1:country", "value": "DE"}`, with a `"field"` for a hash's. A text stands for itself, any other
//! value for its JSON text. The last of several lines of one key holds.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use switchboard_shared::limits::FACT_BYTES_MAX;
use switchboard_shared::snapshot::{ArchivedFact, syntax::UNIT_PLACE};

use crate::limits::FACTS_FILE_BYTES_MAX;

/// What a file held when it was read.
#[derive(Debug, Default, Eq, PartialEq)]
pub struct Table {
    values: HashMap<Box<[u8]>, Box<[u8]>>,
}

/// Why a file of Facts is not taken. What was read before serves on.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be opened or read.
    #[error("cannot read the file of Facts")]
    Read(#[from] std::io::Error),
    /// More than `FACTS_FILE_BYTES_MAX`.
    #[error("the file of Facts is longer than {FACTS_FILE_BYTES_MAX} bytes")]
    TooLong,
    /// A line that is none.
    #[error("line {line} of the file of Facts")]
    Line {
        /// From 1.
        line: usize,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// A value above `FACT_BYTES_MAX`.
    #[error("line {line} of the file of Facts: the value is longer than {FACT_BYTES_MAX} bytes")]
    Value {
        /// From 1.
        line: usize,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    key: String,
    field: Option<String>,
    value: Value,
}

impl Table {
    /// Reads a file. Blank lines and lines that begin with `#` are nothing.
    ///
    /// # Errors
    /// See [`FileError`].
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let file = std::fs::File::open(path)?;
        if file.metadata()?.len() > FACTS_FILE_BYTES_MAX {
            return Err(FileError::TooLong);
        }
        Self::of_lines(BufReader::new(file.take(FACTS_FILE_BYTES_MAX)))
    }

    fn of_lines(lines: impl BufRead) -> Result<Self, FileError> {
        let mut table = Self::default();
        for (line, text) in (1..).zip(lines.lines()) {
            let text = text?;
            if text.trim().is_empty() || text.starts_with('#') {
                continue;
            }
            let failed = |source| FileError::Line { line, source };
            let Line { key, field, value } = serde_json::from_str(&text).map_err(failed)?;
            let value = match value {
                Value::String(text) => text,
                other => other.to_string(),
            };
            if value.len() > FACT_BYTES_MAX {
                return Err(FileError::Value { line });
            }
            let key = [key.as_bytes(), SEPARATOR, field.unwrap_or_default().as_bytes()].concat();
            table.values.insert(key.into(), value.into_bytes().into());
        }
        Ok(table)
    }

    /// The value of a Fact for a Unit. `key` is space that is reused from Fact to Fact.
    pub fn find(&self, fact: &ArchivedFact, unit: &str, key: &mut Vec<u8>) -> Option<&[u8]> {
        let (before, after) = fact.key.split_once(UNIT_PLACE).unwrap_or((&fact.key, ""));
        key.clear();
        let field = fact.hash_field.as_ref().map_or("", |field| field.as_str());
        for part in [before, unit, after] {
            key.extend_from_slice(part.as_bytes());
        }
        key.extend_from_slice(SEPARATOR);
        key.extend_from_slice(field.as_bytes());
        self.values.get(key.as_slice()).map(|value| &**value)
    }

    /// How many values it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

/// Between key and field. No field has it (visible ASCII), so no key can be taken for a key with a field.
const SEPARATOR: &[u8] = b"\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stands_for_what_redis_would_hold() {
        let text = "# facts\n\n{\"key\":\"user:u1\",\"value\":\"D\\u0045\"}\n\
                    {\"key\":\"s\",\"field\":\"depth\",\"value\":7.50}\n\
                    {\"key\":\"list\",\"value\":[1, {\"a\":2}]}\n{\"key\":\"s\",\"value\":true}\n";
        let table = Table::of_lines(text.as_bytes()).unwrap();
        let get = |key: &[u8]| table.values.get(key).map(|value| &**value);
        assert_eq!(get(b"user:u1\n"), Some(&b"DE"[..]));
        assert_eq!(get(b"s\ndepth"), Some(&b"7.5"[..]));
        assert_eq!(get(b"list\n"), Some(&b"[1,{\"a\":2}]"[..]));
        assert_eq!(get(b"s\n"), Some(&b"true"[..]));
        assert_eq!(table.len(), 4);
    }

    #[test]
    fn a_bad_line_is_told_by_its_number() {
        for text in
            ["{\"key\":\"a\",\"value\":1}\n{\"key\":1}", "\n{\"key\":\"a\"}", "\n[]", "\n{\"k\":1}"]
        {
            let error = Table::of_lines(text.as_bytes()).unwrap_err();
            assert!(matches!(error, FileError::Line { line: 2, .. }), "{text}: {error:?}");
        }
    }
}
