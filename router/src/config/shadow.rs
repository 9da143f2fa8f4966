//! `[shadow]` and `[kafka]`: what is copied at most, and where it goes.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::units;
use crate::limits::ENVELOPE_BYTES_MAX;

/// Copies of requests, and Exposures.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShadowSettings {
    /// Whether there is a shadow core.
    pub enabled: bool,
    /// Which Exposures are recorded.
    pub exposures: ExposureMode,
    /// Topic of the shadow records whose target names none.
    pub topic: String,
    /// Topic of the Exposures.
    pub exposure_topic: String,
    /// A request with a larger body is not copied.
    #[serde(with = "units::size")]
    pub request_bytes_max: usize,
    /// Of an answer's body no more is copied.
    #[serde(with = "units::size")]
    pub response_bytes_max: usize,
    /// Copies that one worker may have in the making and in its ring.
    #[serde(with = "units::size")]
    pub buffer_bytes_max: usize,
    /// The spool's files; beyond, the oldest is dropped.
    #[serde(with = "units::size")]
    pub spool_bytes_max: u64,
}

/// Which Exposures are recorded.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ExposureMode {
    /// None.
    Off,
    /// Each Unit once an hour for each Arm that it meets.
    Hourly,
    /// One per request.
    All,
}

/// Where records go.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct KafkaSettings {
    /// Brokers to begin with; empty: the spool alone keeps the records.
    pub brokers: Vec<String>,
    /// Of batches.
    pub compression: Compression,
    /// How long a record waits for others of its batch.
    #[serde(with = "units::duration")]
    pub linger: Duration,
    /// Of one batch.
    #[serde(with = "units::size")]
    pub batch_bytes_max: usize,
    /// Records that wait for the brokers in memory.
    #[serde(with = "units::size")]
    pub queue_bytes_max: usize,
    /// After this a record that no broker confirmed goes to the spool.
    #[serde(with = "units::duration")]
    pub message_timeout: Duration,
    /// Handed to librdkafka as they are; they win over the settings above.
    pub properties: BTreeMap<String, String>,
}

/// How batches are compressed.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// Not at all.
    None,
    /// Small, and slower than the others.
    Gzip,
    /// Quick.
    Lz4,
    /// Quick.
    Snappy,
    /// Small and quick.
    Zstd,
}

impl Compression {
    /// librdkafka's word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Lz4 => "lz4",
            Self::Snappy => "snappy",
            Self::Zstd => "zstd",
        }
    }
}

impl ShadowSettings {
    /// Largest record: both bodies and the envelope.
    #[must_use]
    pub fn record_bytes_max(&self) -> usize {
        self.request_bytes_max + self.response_bytes_max + ENVELOPE_BYTES_MAX
    }
}

impl Default for ShadowSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            exposures: ExposureMode::Off,
            topic: "switchboard.shadow".into(),
            exposure_topic: "switchboard.exposures".into(),
            // With the envelope's room these stay below the 1 MiB that brokers take by default.
            request_bytes_max: 512 * 1024,
            response_bytes_max: 256 * 1024,
            buffer_bytes_max: 16 * 1024 * 1024,
            spool_bytes_max: 1024 * 1024 * 1024,
        }
    }
}

impl Default for KafkaSettings {
    fn default() -> Self {
        Self {
            brokers: Vec::new(),
            compression: Compression::Zstd,
            linger: Duration::from_millis(20),
            batch_bytes_max: 1024 * 1024,
            queue_bytes_max: 32 * 1024 * 1024,
            message_timeout: Duration::from_secs(5),
            properties: BTreeMap::new(),
        }
    }
}
