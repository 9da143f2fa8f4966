//! The topic of results.

use rdkafka::{
    error::{KafkaError, RDKafkaErrorCode},
    message::{Header, OwnedHeaders},
    producer::{FutureProducer, FutureRecord, Producer as _},
};

use super::{Cluster, ClusterError, Log};
use crate::shadow::{endpoints::backoff, limits::DRAIN_MAX, replay::jitter, result::RESULT_SCHEMA};

/// Writes results, each once all in-sync replicas have it.
#[derive(Clone)]
pub(in crate::shadow) struct Sink {
    producer: FutureProducer<Log>,
    topic: String,
}

/// The broker takes no message of this size, however often it is asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the broker takes no message of this size")]
pub(in crate::shadow) struct TooLarge;

impl Sink {
    pub(in crate::shadow) fn open(cluster: &Cluster, topic: String) -> Result<Self, ClusterError> {
        let mut settings = cluster.client();
        settings.set("enable.idempotence", "true").set("acks", "all");
        for (name, value) in
            [("compression.type", "zstd"), ("linger.ms", "5"), ("message.timeout.ms", "30000")]
        {
            if settings.get(name).is_none() {
                settings.set(name, value);
            }
        }
        let producer = settings.create_with_context(Log).map_err(ClusterError::Settings)?;
        Ok(Self { producer, topic })
    }

    /// Returns once the brokers have it, however long they are away. The key keeps one Unit's results in order.
    pub(in crate::shadow) async fn store(
        &self,
        key: Option<&[u8]>,
        value: &[u8],
    ) -> Result<(), TooLarge> {
        let mut failures = 0;
        loop {
            match self.send(key, value).await {
                Ok(()) => return Ok(()),
                Err(KafkaError::MessageProduction(
                    RDKafkaErrorCode::MessageSizeTooLarge | RDKafkaErrorCode::InvalidMessageSize,
                )) => return Err(TooLarge),
                Err(error) => {
                    tracing::warn!(%error, topic = self.topic, "cannot store a result yet")
                }
            }
            tokio::time::sleep(backoff(failures, jitter())).await;
            failures = failures.saturating_add(1);
        }
    }

    async fn send(&self, key: Option<&[u8]>, value: &[u8]) -> Result<(), KafkaError> {
        let schema = Header { key: "schema", value: Some(RESULT_SCHEMA) };
        let mut record = FutureRecord::to(&self.topic)
            .payload(value)
            .headers(OwnedHeaders::new().insert(schema));
        if let Some(key) = key {
            record = record.key(key);
        }
        match self.producer.send_result(record).map_err(|(error, _)| error)?.await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err((error, _))) => Err(error),
            Err(_) => Err(KafkaError::Canceled),
        }
    }

    /// Waits for what librdkafka still does; nothing that counts is under way when this is called.
    pub(in crate::shadow) async fn close(self) -> Result<(), ClusterError> {
        let flushed = tokio::task::spawn_blocking(move || {
            if let Err(error) = self.producer.flush(DRAIN_MAX) {
                tracing::warn!(%error, "results are left behind");
            }
        });
        flushed.await.map_err(ClusterError::Broken)
    }
}
