//! Records go to brokers: librdkafka's mock cluster, whose brokers go away when the test says so.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::message::{Headers as _, Message as _};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use switchboard_router::counters::ShadowLoss;
use switchboard_router::shadow::owned::Kind;
use switchboard_shared::definition::Definition;
use switchboard_shared::shadow_record::ShadowRecord;

use crate::client::{Client, post};
use crate::router::{Router, definition, everything};
use crate::upstream::Upstream;

const TOPIC: &str = "switchboard.shadow";

type Cluster = MockCluster<'static, DefaultProducerContext>;

fn cluster() -> Cluster {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic(TOPIC, 4, 1).unwrap();
    cluster
}

fn shadowed(upstream: &Upstream) -> Definition {
    let mut definition = definition(&[upstream.address], &[upstream.address]);
    definition.objectives[0].shadow = vec![everything("ranker@2")];
    definition
}

fn start(folder: &std::path::Path, cluster: &Cluster, upstream: &Upstream) -> Router {
    Router::with(&shadowed(upstream), |config| {
        config.shadow.enabled = true;
        config.state_dir = folder.to_owned();
        config.kafka.brokers = vec![cluster.bootstrap_servers()];
        config.kafka.message_timeout = Duration::from_secs(1);
        // The mock cluster's port is closed while a broker is down; the test need not wait for long pauses.
        config.kafka.properties.insert("reconnect.backoff.max.ms".into(), "200".into());
    })
}

/// Asks `count` times, for five users in turn; bodies count from `first`.
fn ask(router: &Router, first: usize, count: usize) {
    let mut client = Client::connect(router.address);
    for number in first..first + count {
        let user = format!("x-user-id: u{}\r\n", number % 5);
        client.send(post("FEED", &user, &number.to_string()));
        assert_eq!(client.answer().status, 200);
    }
}

/// What a consumer of its own reads: key and value, until there are `count` different records.
fn consume(cluster: &Cluster, count: usize) -> Vec<(String, Vec<u8>)> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", cluster.bootstrap_servers())
        .set("group.id", "test")
        .set("auto.offset.reset", "earliest")
        .create()
        .unwrap();
    consumer.subscribe(&[TOPIC]).unwrap();
    let (mut messages, mut ids) = (Vec::new(), HashSet::new());
    // Only so that a hanging consumer fails the test instead of the whole run.
    for _ in 0..600 {
        if ids.len() == count {
            return messages;
        }
        let Some(Ok(message)) = consumer.poll(Duration::from_millis(100)) else { continue };
        let value = message.payload().unwrap().to_vec();
        let schema = message.headers().unwrap().get(0);
        assert_eq!((schema.key, schema.value), ("schema", Some(&b"switchboard.shadow/1"[..])));
        ids.insert(ShadowRecord::read(&value).unwrap().envelope.id);
        messages.push((String::from_utf8(message.key().unwrap().to_vec()).unwrap(), value));
    }
    panic!("{} of {count} records arrived", ids.len());
}

fn number(value: &[u8]) -> usize {
    let record = ShadowRecord::read(value).unwrap();
    assert_eq!(record.request_body, record.response_body, "the model server echoes");
    std::str::from_utf8(record.request_body).unwrap().parse().unwrap()
}

fn wait_until(router: &Router, what: &str, holds: impl Fn(&Router) -> bool) {
    for _ in 0..6000 {
        if holds(router) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let told = ["shadow_delivered", "spool_records", "kafka_direct"];
    let values = [
        delivered(router),
        router.of_shadow(|shadow| shadow.spool_records.get()),
        router.of_shadow(|shadow| shadow.kafka_direct.get()),
    ];
    panic!("{what} never came: {told:?} are {values:?}");
}

fn delivered(router: &Router) -> u64 {
    router.of_shadow(|shadow| shadow.shadow_delivered.get(Kind::Shadow))
}

#[test]
fn what_is_drawn_is_delivered_byte_for_byte_with_the_unit_as_key() {
    let (folder, cluster, echo) = (tempfile::tempdir().unwrap(), cluster(), Upstream::echoing(""));
    let mut router = start(folder.path(), &cluster, &echo);
    ask(&router, 0, 200);
    router.drain(Duration::from_secs(30));
    assert_eq!((delivered(&router), router.counted(|one| one.shadow_sampled.get())), (200, 200));
    assert_eq!(router.of_shadow(|shadow| shadow.spool_records.get()), 0);
    let mut numbers = Vec::new();
    for (key, value) in consume(&cluster, 200) {
        let number = number(&value);
        assert_eq!(key, format!("u{}", number % 5));
        numbers.push(number);
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (0..200).collect::<Vec<_>>());
}

#[test]
fn brokers_that_go_away_cost_no_record_and_no_order() {
    let (folder, cluster, echo) = (tempfile::tempdir().unwrap(), cluster(), Upstream::echoing(""));
    let mut router = start(folder.path(), &cluster, &echo);
    ask(&router, 0, 100);
    wait_until(&router, "delivery", |router| delivered(router) == 100);
    cluster.broker_down(1).unwrap();
    ask(&router, 100, 200);
    wait_until(&router, "the spool", |router| {
        router.of_shadow(|shadow| shadow.spool_records.get()) == 200
    });
    ask(&router, 300, 50);
    cluster.broker_up(1).unwrap();
    ask(&router, 350, 50);
    wait_until(&router, "everything", |router| delivered(router) == 400);
    wait_until(&router, "the direct way", |router| {
        router.of_shadow(|shadow| shadow.kafka_direct.get()) == 1
    });
    ask(&router, 400, 10);
    router.drain(Duration::from_secs(30));
    assert_eq!(delivered(&router), 410);
    for why in [ShadowLoss::SpoolFull, ShadowLoss::SpoolFailed, ShadowLoss::KafkaRefused] {
        assert_eq!(router.of_shadow(|shadow| shadow.shadow_dropped.get(why)), 0, "{why:?}");
    }
    let (mut seen, mut last) = (HashSet::new(), HashMap::new());
    for (key, value) in consume(&cluster, 410) {
        // What was on its way when the broker went may come again: with the same id, behind itself.
        let (number, id) = (number(&value), ShadowRecord::read(&value).unwrap().envelope.id);
        if seen.insert(id) {
            let before = last.insert(key.clone(), number);
            assert!(before.is_none_or(|before| before < number), "{key}: {before:?}, {number}");
        }
    }
    assert_eq!(seen.len(), 410);
}

#[test]
fn without_brokers_a_stop_leaves_everything_to_the_next_start() {
    let (folder, cluster, echo) = (tempfile::tempdir().unwrap(), cluster(), Upstream::echoing(""));
    cluster.broker_down(1).unwrap();
    let mut router = start(folder.path(), &cluster, &echo);
    ask(&router, 0, 100);
    router.drain(Duration::from_secs(30));
    assert_eq!(router.of_shadow(|shadow| shadow.spool_records.get()), 100);
    cluster.broker_up(1).unwrap();
    let mut router = start(folder.path(), &cluster, &echo);
    wait_until(&router, "everything", |router| delivered(router) == 100);
    router.drain(Duration::from_secs(30));
    let numbers: HashSet<usize> =
        consume(&cluster, 100).iter().map(|(_, value)| number(value)).collect();
    assert_eq!(numbers, (0..100).collect::<HashSet<_>>());
}
