//! librdkafka's settings from a file, as far as they are not our own to set.

use rdkafka::config::ClientConfig;
use switchboard_shared::properties::{PropertyError, properties};

/// Settings of our own, on which it depends that no record is lost or left out.
const RESERVED: [&str; 12] = [
    "acks",
    "auto.offset.reset",
    "bootstrap.servers",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "enable.idempotence",
    "enable.partition.eof",
    "group.id",
    "max.poll.interval.ms",
    "metadata.broker.list",
    "request.required.acks",
    "statistics.interval.ms",
];

/// Checked lines of a properties file.
#[derive(Clone, Default, PartialEq)]
pub struct Properties {
    all: Vec<(String, String)>,
}

/// Values may be secrets.
impl std::fmt::Debug for Properties {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_set().entries(self.all.iter().map(|(name, _)| name)).finish()
    }
}

/// Why a text is no properties file.
#[derive(Debug, thiserror::Error)]
pub enum PropertiesError {
    /// Something else than `name=value`.
    #[error(transparent)]
    Syntax(#[from] PropertyError),
    /// A setting that is not to be changed.
    #[error("line {line}: {name} is this program's own to set")]
    Reserved {
        /// Counted from 1.
        line: usize,
        /// Which.
        name: String,
    },
}

impl Properties {
    /// Reads lines of `name=value`; empty lines and lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// See [`PropertiesError`]. Whether librdkafka knows the name, it says itself.
    pub fn read(text: &str) -> Result<Self, PropertiesError> {
        let mut all = Vec::new();
        for property in properties(text) {
            let (line, name, value) = property?;
            if RESERVED.contains(&name) {
                return Err(PropertiesError::Reserved { line, name: name.to_owned() });
            }
            all.push((name.to_owned(), value.to_owned()));
        }
        Ok(Self { all })
    }

    pub(super) fn apply(&self, settings: &mut ClientConfig) {
        for (name, value) in &self.all {
            settings.set(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_may_hold_equals_signs_and_are_never_shown() {
        let read =
            Properties::read("# broker\n\n sasl.password = a=b \nsecurity.protocol=sasl_ssl")
                .unwrap();
        let mut settings = ClientConfig::new();
        read.apply(&mut settings);
        assert_eq!(settings.get("sasl.password"), Some("a=b"));
        assert_eq!(settings.get("security.protocol"), Some("sasl_ssl"));
        assert_eq!(format!("{read:?}"), r#"{"sasl.password", "security.protocol"}"#);
    }

    #[test]
    fn what_the_guarantees_hang_on_cannot_be_changed() {
        let error = Properties::read("linger.ms=1\nenable.auto.commit=true").unwrap_err();
        assert_eq!(error.to_string(), "line 2: enable.auto.commit is this program's own to set");
        for text in ["x", "=1"] {
            assert_eq!(
                Properties::read(text).unwrap_err().to_string(),
                "line 1 is not of the form name=value"
            );
        }
    }
}
