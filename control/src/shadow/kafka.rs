//! Kafka at both ends: records come in, results go out. All of librdkafka is in this file and in `kafka/`.

mod properties;
mod results;
mod sink;
mod source;

use rdkafka::{
    ClientContext,
    config::{ClientConfig, RDKafkaLogLevel},
    error::KafkaError,
};

pub use self::{
    properties::{Properties, PropertiesError},
    results::read_results,
};
pub(super) use self::{
    sink::Sink,
    source::{Arrival, Source, SourceOptions},
};

/// Where the brokers are, and how to speak with them.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// `host:port`, separated by commas.
    pub brokers: String,
    /// librdkafka's own settings, such as for TLS and SASL.
    pub properties: Properties,
}

/// First value of a partition that no reader of the group has begun.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Begin {
    /// All that the topic still holds.
    Earliest,
    /// What is written from now on.
    Latest,
}

/// Why there is no connection to Kafka, or none any more.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// librdkafka refuses a setting.
    #[error("Kafka's client refuses its settings")]
    Settings(#[source] KafkaError),
    /// No broker says what the topic is.
    #[error("no broker tells about the topic {topic}")]
    Metadata {
        /// What was asked for.
        topic: String,
        /// Why not.
        #[source]
        source: KafkaError,
    },
    /// The brokers have no such topic.
    #[error("the brokers at {brokers} have no topic {topic}")]
    NoTopic {
        /// Who was asked.
        brokers: String,
        /// What for.
        topic: String,
    },
    /// Reading does not go on.
    #[error("cannot read the topic {topic}")]
    Read {
        /// Which.
        topic: String,
        /// Why not.
        #[source]
        source: KafkaError,
    },
    /// A thread of ours broke.
    #[error("a thread that talks to Kafka broke")]
    Broken(#[source] tokio::task::JoinError),
}

impl Cluster {
    /// The settings that every client shares; the caller's own come on top.
    fn client(&self) -> ClientConfig {
        let mut settings = ClientConfig::new();
        settings
            .set("bootstrap.servers", &self.brokers)
            .set("client.id", "switchboard-shadow-worker")
            // A broker that is back is found within seconds, not after the default of 5 minutes.
            .set("topic.metadata.refresh.interval.ms", "10000")
            .set("reconnect.backoff.max.ms", "5000");
        self.properties.apply(&mut settings);
        settings
    }
}

/// What librdkafka says goes to our log.
#[derive(Clone, Debug)]
struct Log;

impl ClientContext for Log {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::warn!(%error, reason, "kafka");
    }
}

fn log(level: RDKafkaLogLevel, facility: &str, message: &str) {
    match level {
        RDKafkaLogLevel::Emerg
        | RDKafkaLogLevel::Alert
        | RDKafkaLogLevel::Critical
        | RDKafkaLogLevel::Error => tracing::error!(facility, "kafka: {message}"),
        RDKafkaLogLevel::Warning => tracing::warn!(facility, "kafka: {message}"),
        RDKafkaLogLevel::Notice | RDKafkaLogLevel::Info => {
            tracing::info!(facility, "kafka: {message}");
        }
        RDKafkaLogLevel::Debug => tracing::debug!(facility, "kafka: {message}"),
    }
}
