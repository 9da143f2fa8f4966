//! A Kafka topic of Shadow records, from its beginning to its present end. All of librdkafka is in this file.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rdkafka::config::ClientConfig;
use rdkafka::consumer::base_consumer::PartitionQueue;
use rdkafka::consumer::{BaseConsumer, Consumer as _, DefaultConsumerContext};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Message as _};
use rdkafka::{Offset, TopicPartitionList};
use switchboard_shared::properties::{PropertyError, properties};

use super::record::{Form, Line, Refusal};
use crate::limits::{TOPIC_ANSWER_MAX, TOPIC_LOOK};

/// Where the records are.
#[derive(Clone, Debug, clap::Args)]
pub struct TopicArguments {
    /// Read the records from this Kafka topic instead of a file
    #[arg(long, value_name = "TOPIC", requires = "kafka")]
    topic: Option<String>,
    /// Kafka's brokers, separated by commas
    #[arg(long, value_name = "HOST:PORT", requires = "topic")]
    kafka: Option<String>,
    /// File with librdkafka's settings, name=value on each line: TLS, SASL
    #[arg(long, value_name = "FILE", requires = "topic")]
    kafka_properties: Option<PathBuf>,
}

/// Why a topic cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TopicError {
    /// The file with its settings.
    #[error("cannot read {path}")]
    Properties {
        /// Which.
        path: PathBuf,
        /// What the host says.
        #[source]
        source: std::io::Error,
    },
    /// A line of that file.
    #[error("{path}")]
    Property {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: PropertyError,
    },
    /// librdkafka refuses a setting.
    #[error("Kafka's client refuses its settings")]
    Settings(#[source] KafkaError),
    /// No broker answers, or reading does not go on.
    #[error("cannot read the topic {topic}")]
    Read {
        /// Which.
        topic: String,
        /// Why not.
        #[source]
        source: KafkaError,
    },
    /// The brokers have no such topic.
    #[error("the brokers have no topic {0}")]
    NoTopic(String),
}

/// What is left of a topic. Partitions are merged by the records' times, so that they come in the order in which
/// requests came, as far as each partition has it.
pub struct Topic {
    name: String,
    consumer: Arc<BaseConsumer>,
    partitions: Vec<Partition>,
}

struct Partition {
    id: i32,
    queue: PartitionQueue<DefaultConsumerContext>,
    /// At most one from its own queue; several where they came before it was split off.
    next: VecDeque<Result<Line, Refusal>>,
    is_over: bool,
}

impl TopicArguments {
    /// The topic, if one was asked for.
    ///
    /// # Errors
    /// See [`TopicError`].
    pub fn open(&self) -> Result<Option<Topic>, TopicError> {
        let (Some(name), Some(brokers)) = (&self.topic, &self.kafka) else { return Ok(None) };
        let mut settings = ClientConfig::new();
        settings
            .set("client.id", "switchboard-loadtest")
            .set("queued.max.messages.kbytes", "16384");
        if let Some(path) = &self.kafka_properties {
            apply(path, &mut settings)?;
        }
        settings
            .set("bootstrap.servers", brokers)
            .set("group.id", "switchboard-loadtest-replay") // a consumer must name one; it is never joined
            .set("enable.auto.commit", "false")
            .set("enable.partition.eof", "true");
        Topic::open(name, &settings).map(Some)
    }
}

fn apply(path: &Path, settings: &mut ClientConfig) -> Result<(), TopicError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| TopicError::Properties { path: path.to_owned(), source })?;
    for property in properties(&text) {
        let (_, name, value) =
            property.map_err(|source| TopicError::Property { path: path.to_owned(), source })?;
        settings.set(name, value);
    }
    Ok(())
}

impl Topic {
    fn open(name: &str, settings: &ClientConfig) -> Result<Self, TopicError> {
        let consumer: BaseConsumer = settings.create().map_err(TopicError::Settings)?;
        let consumer = Arc::new(consumer);
        let failed = |source| TopicError::Read { topic: name.to_owned(), source };
        let metadata = consumer.fetch_metadata(Some(name), TOPIC_ANSWER_MAX).map_err(failed)?;
        let found =
            metadata.topics().iter().find(|one| one.name() == name && one.error().is_none());
        let ids: Vec<i32> = found
            .map(|topic| topic.partitions().iter().map(|one| one.id()).collect())
            .unwrap_or_default();
        if ids.is_empty() {
            return Err(TopicError::NoTopic(name.to_owned()));
        }
        let mut assigned = TopicPartitionList::new();
        for id in &ids {
            assigned.add_partition_offset(name, *id, Offset::Beginning).map_err(failed)?;
        }
        consumer.assign(&assigned).map_err(failed)?;
        let partitions = ids
            .into_iter()
            .map(|id| {
                let queue = consumer.split_partition_queue(name, id)?;
                Some(Partition { id, queue, next: VecDeque::new(), is_over: false })
            })
            .collect::<Option<_>>()
            .ok_or_else(|| TopicError::NoTopic(name.to_owned()))?;
        Ok(Self { name: name.to_owned(), consumer, partitions })
    }

    /// The earliest record that was not read, or why a message is none that can be sent; `None` at the topic's end.
    ///
    /// # Errors
    /// Brokers that do not come back are waited for; what else librdkafka reports ends the reading.
    pub fn next(&mut self, form: &Form) -> Result<Option<Result<Line, Refusal>>, TopicError> {
        while let Some(position) =
            self.partitions.iter().position(|one| one.next.is_empty() && !one.is_over)
        {
            self.look(position, form)
                .map_err(|source| TopicError::Read { topic: self.name.clone(), source })?;
        }
        let earliest =
            self.partitions.iter_mut().filter(|one| !one.next.is_empty()).min_by_key(|one| {
                one.next.front().and_then(|read| Some(read.as_ref().ok()?.time_unix_us))
            });
        Ok(earliest.and_then(|one| one.next.pop_front()))
    }

    /// Waits a while for a partition's next message, and takes what came before the partitions were split.
    fn look(&mut self, position: usize, form: &Form) -> Result<(), KafkaError> {
        let early = self.consumer.poll(Duration::ZERO);
        let early = early.map(|event| event.map(|one| (one.partition(), read(&one, form))));
        match early {
            Some(Ok((id, read))) => {
                let partition = self.partitions.iter_mut().find(|one| one.id == id);
                if let Some(partition) = partition {
                    partition.next.push_back(read);
                }
            }
            Some(Err(error)) => self.note(&error)?,
            None => {}
        }
        let Some(partition) = self.partitions.get_mut(position) else { return Ok(()) };
        if !partition.next.is_empty() {
            return Ok(());
        }
        let event = partition.queue.poll(TOPIC_LOOK).map(|event| event.map(|one| read(&one, form)));
        match event {
            Some(Ok(read)) => partition.next.push_back(read),
            Some(Err(error)) => self.note(&error)?,
            None => {}
        }
        Ok(())
    }

    fn note(&mut self, error: &KafkaError) -> Result<(), KafkaError> {
        match error {
            KafkaError::PartitionEOF(id) => {
                let ended = self.partitions.iter_mut().find(|one| one.id == *id);
                if let Some(partition) = ended {
                    partition.is_over = true;
                }
                Ok(())
            }
            // librdkafka goes on by itself when brokers are back.
            KafkaError::MessageConsumption(code) if is_passing(*code) => Ok(()),
            error => Err(error.clone()),
        }
    }
}

fn read(message: &BorrowedMessage<'_>, form: &Form) -> Result<Line, Refusal> {
    form.read_message(message.payload().unwrap_or_default())
}

/// Troubles that librdkafka reports and gets over.
fn is_passing(code: rdkafka::types::RDKafkaErrorCode) -> bool {
    use rdkafka::types::RDKafkaErrorCode as Code;
    matches!(
        code,
        Code::BrokerTransportFailure
            | Code::AllBrokersDown
            | Code::Resolve
            | Code::OperationTimedOut
    )
}
