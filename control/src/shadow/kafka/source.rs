//! The topic of Shadow records, as a member of a consumer group.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicI64, Ordering},
};

use rdkafka::{
    ClientContext, Offset, Statistics, TopicPartitionList,
    config::RDKafkaLogLevel,
    consumer::{
        BaseConsumer, CommitMode, Consumer as _, ConsumerContext, Rebalance, StreamConsumer,
    },
    error::{KafkaError, KafkaResult, RDKafkaErrorCode},
    message::OwnedMessage,
};

use super::{Begin, Cluster, ClusterError, log};
use crate::shadow::{
    limits::{COMMIT_SPAN, METADATA_MAX},
    progress::Progress,
};

/// What to read.
#[derive(Clone, Debug)]
pub(in crate::shadow) struct SourceOptions {
    pub(in crate::shadow) topic: String,
    pub(in crate::shadow) group: String,
    pub(in crate::shadow) begin: Begin,
}

/// What comes of waiting.
pub(in crate::shadow) enum Arrival {
    /// The next record of some partition.
    Record(OwnedMessage),
    /// A partition has no more, for now.
    End(i32),
    /// It goes on when it can.
    Trouble(KafkaError),
}

/// A member of the group. Offsets are committed up to what was stored, each [`COMMIT_SPAN`] and when partitions go.
pub(in crate::shadow) struct Source {
    consumer: Arc<StreamConsumer<Watch>>,
    brokers: String,
    topic: String,
}

impl Source {
    /// Joins the group; partitions come when the brokers give them.
    pub(in crate::shadow) fn open(
        cluster: &Cluster,
        options: SourceOptions,
        progress: Arc<Mutex<Progress>>,
    ) -> Result<Self, ClusterError> {
        let SourceOptions { topic, group, begin } = options;
        let mut settings = cluster.client();
        let reset = match begin {
            Begin::Earliest => "earliest",
            Begin::Latest => "latest",
        };
        settings
            .set("group.id", group)
            .set("auto.offset.reset", reset)
            // Offsets are committed in the background, but only those that `store` was told.
            .set("enable.auto.commit", "true")
            .set("enable.auto.offset.store", "false")
            .set("auto.commit.interval.ms", COMMIT_SPAN.as_millis().to_string())
            .set("enable.partition.eof", "true")
            .set("statistics.interval.ms", "5000");
        // Not ours to insist on: a member that died is missed after 10 s, and at most 16 MiB per partition wait here.
        for (name, value) in
            [("session.timeout.ms", "10000"), ("queued.max.messages.kbytes", "16384")]
        {
            if settings.get(name).is_none() {
                settings.set(name, value);
            }
        }
        let watch = Watch { progress, lag: AtomicI64::new(0) };
        let consumer: StreamConsumer<Watch> =
            settings.create_with_context(watch).map_err(ClusterError::Settings)?;
        consumer
            .subscribe(&[&topic])
            .map_err(|source| ClusterError::Read { topic: topic.clone(), source })?;
        Ok(Self { consumer: Arc::new(consumer), brokers: cluster.brokers.clone(), topic })
    }

    /// Fails where no broker has the topic: for who reads to its end, and would wait for ever.
    pub(in crate::shadow) async fn check_topic(&self) -> Result<(), ClusterError> {
        let (consumer, topic) = (self.consumer.clone(), self.topic.clone());
        let asked = tokio::task::spawn_blocking(move || {
            consumer.fetch_metadata(Some(&topic), METADATA_MAX).map(|metadata| {
                metadata.topics().iter().any(|one| one.name() == topic && one.error().is_none())
            })
        });
        match asked.await.map_err(ClusterError::Broken)? {
            Ok(true) => Ok(()),
            Ok(false) => Err(ClusterError::NoTopic {
                brokers: self.brokers.clone(),
                topic: self.topic.clone(),
            }),
            Err(source) => Err(ClusterError::Metadata { topic: self.topic.clone(), source }),
        }
    }

    /// Waits for the next thing to happen; may be dropped while it waits. While partitions are paused this keeps the
    /// membership alive.
    pub(in crate::shadow) async fn next(&self) -> Arrival {
        match self.consumer.recv().await {
            Ok(message) => Arrival::Record(message.detach()),
            Err(KafkaError::PartitionEOF(partition)) => Arrival::End(partition),
            Err(error) => Arrival::Trouble(error),
        }
    }

    /// The group's next reader of this partition may begin at `offset`. A partition that has gone meanwhile is not ours
    /// to tell about: its new reader replays what was under way.
    pub(in crate::shadow) fn store(&self, partition: i32, offset: i64) {
        let mut offsets = TopicPartitionList::new();
        let added = offsets.add_partition_offset(&self.topic, partition, Offset::Offset(offset));
        if let Err(error) = added.and_then(|()| self.consumer.store_offsets(&offsets)) {
            tracing::info!(partition, offset, %error, "not stored: the partition went to another worker");
        }
    }

    /// No record comes before [`Self::resume`].
    pub(in crate::shadow) fn pause(&self) {
        let paused = self.consumer.assignment().and_then(|ours| self.consumer.pause(&ours));
        if let Err(error) = paused {
            tracing::warn!(%error, "cannot pause");
        }
    }

    /// Records come again.
    pub(in crate::shadow) fn resume(&self) {
        let resumed = self.consumer.assignment().and_then(|ours| self.consumer.resume(&ours));
        if let Err(error) = resumed {
            tracing::warn!(%error, "cannot resume");
        }
    }

    /// Records that lie in our partitions and are not finished; some seconds old.
    pub(in crate::shadow) fn lag(&self) -> i64 {
        self.consumer.context().lag.load(Ordering::Relaxed)
    }

    /// Commits what was stored, and leaves the group.
    pub(in crate::shadow) async fn close(self) -> Result<(), ClusterError> {
        let closed = tokio::task::spawn_blocking(move || {
            match self.consumer.commit_consumer_state(CommitMode::Sync) {
                Ok(()) | Err(KafkaError::ConsumerCommit(RDKafkaErrorCode::NoOffset)) => {}
                Err(error) => tracing::warn!(%error, "offsets are not committed; records repeat"),
            }
            drop(self.consumer); // leaves the group
        });
        closed.await.map_err(ClusterError::Broken)
    }
}

/// Keeps [`Progress`] to the partitions that are ours.
struct Watch {
    progress: Arc<Mutex<Progress>>,
    lag: AtomicI64,
}

impl ClientContext for Watch {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::warn!(%error, reason, "kafka");
    }

    fn stats(&self, statistics: Statistics) {
        let partitions = statistics.topics.values().flat_map(|topic| topic.partitions.values());
        let lag = partitions.map(|one| one.consumer_lag_stored.max(one.consumer_lag).max(0)).sum();
        self.lag.store(lag, Ordering::Relaxed);
    }
}

impl ConsumerContext for Watch {
    fn pre_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        match rebalance {
            Rebalance::Assign(partitions) => {
                progress.assigned();
                for one in partitions.elements() {
                    progress.assign(one.partition());
                }
                tracing::info!(partitions = partitions.count(), "given partitions");
            }
            Rebalance::Revoke(partitions) => {
                for one in partitions.elements() {
                    progress.revoke(one.partition());
                }
                tracing::info!(partitions = partitions.count(), "gave partitions back");
            }
            Rebalance::Error(error) => tracing::warn!(%error, "cannot share partitions out"),
        }
    }

    /// What was paused before it went to and fro is still paused, and no one else would think of resuming it.
    fn post_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Assign(partitions) = rebalance
            && let Err(error) = consumer.resume(partitions)
        {
            tracing::warn!(%error, "cannot resume partitions that are new");
        }
    }

    fn commit_callback(&self, result: KafkaResult<()>, _: &TopicPartitionList) {
        match result {
            Ok(()) | Err(KafkaError::ConsumerCommit(RDKafkaErrorCode::NoOffset)) => {}
            Err(error) => tracing::warn!(%error, "offsets are not committed yet"),
        }
    }
}
