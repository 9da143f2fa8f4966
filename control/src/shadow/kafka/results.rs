//! All results that a topic holds, from its beginning to its present end.

use std::collections::BTreeSet;

use rdkafka::{
    Message as _, Offset, TopicPartitionList,
    consumer::{Consumer as _, ConsumerContext, StreamConsumer},
    error::KafkaError,
};

use super::{Cluster, ClusterError, Log};
use crate::shadow::{
    limits::METADATA_MAX,
    result::{ResultError, ShadowResult},
};

impl ConsumerContext for Log {}

/// Gives every message of the topic to `each`; what is no result, too. No group is joined, and no offset is left behind.
///
/// # Errors
/// See [`ClusterError`].
pub async fn read_results(
    cluster: &Cluster,
    topic: &str,
    mut each: impl FnMut(Result<ShadowResult, ResultError>),
) -> Result<(), ClusterError> {
    let mut settings = cluster.client();
    settings
        .set("group.id", "switchboard-shadow-report") // named, since a consumer must have one, and never joined
        .set("auto.offset.reset", "earliest")
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true");
    let consumer: StreamConsumer<Log> =
        settings.create_with_context(Log).map_err(ClusterError::Settings)?;
    let failed = |source| ClusterError::Read { topic: topic.to_owned(), source };
    let metadata =
        tokio::task::block_in_place(|| consumer.fetch_metadata(Some(topic), METADATA_MAX));
    let metadata =
        metadata.map_err(|source| ClusterError::Metadata { topic: topic.to_owned(), source })?;
    let found = metadata.topics().iter().find(|one| one.name() == topic && one.error().is_none());
    let mut unread: BTreeSet<i32> = found
        .map(|found| {
            found.partitions().iter().map(rdkafka::metadata::MetadataPartition::id).collect()
        })
        .unwrap_or_default();
    if unread.is_empty() {
        return Err(ClusterError::NoTopic {
            brokers: cluster.brokers.clone(),
            topic: topic.to_owned(),
        });
    }
    let mut partitions = TopicPartitionList::new();
    for partition in &unread {
        partitions.add_partition_offset(topic, *partition, Offset::Beginning).map_err(failed)?;
    }
    consumer.assign(&partitions).map_err(failed)?;
    while !unread.is_empty() {
        match consumer.recv().await {
            Ok(message) if unread.contains(&message.partition()) => {
                each(ShadowResult::read(message.payload().unwrap_or_default()));
            }
            Ok(_) => {} // written after this partition's end was reached
            Err(KafkaError::PartitionEOF(partition)) => {
                unread.remove(&partition);
            }
            Err(error) => return Err(failed(error)),
        }
    }
    tokio::task::block_in_place(|| drop(consumer));
    Ok(())
}
