//! The Kafka producer, as the shadow core drives it: never blocking, every record accounted for.
//!
//! librdkafka's own threads do the network; this thread hands records over, and picks up what became of them.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use rdkafka::ClientContext;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, Message as _, OwnedHeaders};
use rdkafka::producer::{
    BaseProducer, BaseRecord, DeliveryResult, Producer as _, ProducerContext, PurgeConfig,
};

use super::owned::{Kind, OwnedRecord, Record};
use crate::config::KafkaSettings;
use crate::limits::KAFKA_EVENTS_PER_TURN;
use crate::log;

/// Header of a message that tells what is in it.
const SCHEMA: &str = "schema";

/// The settings are not taken by librdkafka, or it is out of threads.
#[derive(Debug, thiserror::Error)]
#[error("cannot set up the Kafka producer")]
pub struct KafkaSetupError(#[source] KafkaError);

/// What became of a record that was sent.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The brokers have it.
    Delivered { sequence: u64, kind: Kind },
    /// They do not take it, and will not later.
    Refused { sequence: u64, kind: Kind },
    /// They could not be reached; it is here again.
    Failed(OwnedRecord),
}

/// Why a record was not taken over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SendError {
    /// The queue is full.
    Full,
    /// No broker would ever take it: too large, or no such topic.
    Refused,
}

pub(super) struct Kafka {
    producer: BaseProducer<Reports>,
    outcomes: Receiver<Outcome>,
    outstanding: u64,
}

impl Kafka {
    /// Sets a producer up; brokers need not be there.
    pub(super) fn new(
        settings: &KafkaSettings,
        record_bytes_max: usize,
    ) -> Result<Self, KafkaSetupError> {
        let mut config = ClientConfig::new();
        let queue_kib = settings.queue_bytes_max.div_ceil(1024).max(1);
        config
            .set("bootstrap.servers", settings.brokers.join(","))
            .set("client.id", "switchboard-router")
            .set("enable.idempotence", "true")
            .set("acks", "all")
            .set("compression.type", settings.compression.word())
            .set("linger.ms", settings.linger.as_millis().to_string())
            .set("batch.size", settings.batch_bytes_max.to_string())
            .set("message.max.bytes", record_bytes_max.to_string())
            .set("message.timeout.ms", settings.message_timeout.as_millis().to_string())
            .set("queue.buffering.max.kbytes", queue_kib.to_string())
            .set("queue.buffering.max.messages", "0")
            // Java's partitioner, so that other producers put the same Unit into the same partition.
            .set("partitioner", "murmur2_random")
            .set_log_level(RDKafkaLogLevel::Warning);
        // Last: what an operator writes wins, TLS and SASL above all.
        for (name, value) in &settings.properties {
            config.set(name, value);
        }
        let (sender, outcomes) = channel();
        let producer = config.create_with_context(Reports(sender)).map_err(KafkaSetupError)?;
        Ok(Self { producer, outcomes, outstanding: 0 })
    }

    /// How many records were taken over and not told about yet.
    pub(super) fn outstanding(&self) -> u64 {
        self.outstanding
    }

    /// Hands a record over; it is copied.
    pub(super) fn send(&mut self, record: &Record<'_>) -> Result<(), SendError> {
        let header = Header { key: SCHEMA, value: Some(record.kind.schema()) };
        let mut message: BaseRecord<'_, [u8], [u8], Tag> =
            BaseRecord::with_opaque_to(record.topic, tag(record))
                .payload(record.value)
                .headers(OwnedHeaders::new().insert(header))
                .timestamp(i64::try_from(record.time_unix_ms).unwrap_or(i64::MAX));
        message.key = record.key;
        match self.producer.send(message) {
            Ok(()) => {
                self.outstanding += 1;
                Ok(())
            }
            Err((error, _)) => Err(match error.rdkafka_error_code() {
                Some(RDKafkaErrorCode::QueueFull) => SendError::Full,
                _ => SendError::Refused,
            }),
        }
    }

    /// Picks up what became of records. Never waits.
    pub(super) fn poll(&mut self) -> impl Iterator<Item = Outcome> + '_ {
        for _ in 0..KAFKA_EVENTS_PER_TURN {
            self.producer.poll(Duration::ZERO);
        }
        std::iter::from_fn(|| {
            let outcome = self.outcomes.try_recv().ok()?;
            self.outstanding = self.outstanding.saturating_sub(1);
            Some(outcome)
        })
    }

    /// Ends the wait for everything that is outstanding: it is told as failed. What was on its way may have
    /// arrived all the same.
    pub(super) fn purge(&self) {
        self.producer.purge(PurgeConfig::default().queue().inflight());
    }
}

/// What librdkafka gives back with a record: twice its sequence, plus one for an Exposure.
type Tag = usize;

fn tag(record: &Record<'_>) -> Tag {
    let sequence = usize::try_from(record.sequence).unwrap_or(usize::MAX >> 1);
    sequence << 1 | usize::from(record.kind == Kind::Exposure)
}

fn parts(tag: Tag) -> (u64, Kind) {
    ((tag >> 1) as u64, if tag & 1 == 1 { Kind::Exposure } else { Kind::Shadow })
}

/// Sends what librdkafka tells, in [`Kafka::poll`], to its reader.
struct Reports(Sender<Outcome>);

impl ClientContext for Reports {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        if level as i32 <= RDKafkaLogLevel::Error as i32 {
            log::warn("kafka", &[("facility", &facility), ("message", &message)]);
        }
    }

    /// The accounts show it: failures, the spool's growth.
    fn error(&self, _error: KafkaError, _reason: &str) {}
}

impl ProducerContext for Reports {
    type DeliveryOpaque = Tag;

    fn delivery(&self, result: &DeliveryResult<'_>, tag: Tag) {
        let (sequence, kind) = parts(tag);
        let (error, message) = match result {
            Ok(message) => (None, message),
            Err((error, message)) => (Some(error), message),
        };
        let outcome = match error.map(KafkaError::rdkafka_error_code) {
            None => Outcome::Delivered { sequence, kind },
            Some(Some(code)) if is_final(code) => Outcome::Refused { sequence, kind },
            Some(_) => Outcome::Failed(OwnedRecord::from(Record {
                sequence,
                kind,
                time_unix_ms: message
                    .timestamp()
                    .to_millis()
                    .and_then(|time| u64::try_from(time).ok())
                    .unwrap_or_default(),
                topic: message.topic(),
                key: message.key(),
                value: message.payload().unwrap_or_default(),
            })),
        };
        // Its reader lives as long as the producer.
        let _unread = self.0.send(outcome);
    }
}

/// Whether sending the same record again must end the same way.
fn is_final(code: RDKafkaErrorCode) -> bool {
    matches!(
        code,
        RDKafkaErrorCode::MessageSizeTooLarge
            | RDKafkaErrorCode::InvalidMessageSize
            | RDKafkaErrorCode::InvalidRecord
            | RDKafkaErrorCode::InvalidTopic
            | RDKafkaErrorCode::UnknownTopic
            | RDKafkaErrorCode::UnknownTopicOrPartition
            | RDKafkaErrorCode::UnknownPartition
            | RDKafkaErrorCode::PolicyViolation
            | RDKafkaErrorCode::TopicAuthorizationFailed
    )
}
