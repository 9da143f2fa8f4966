//! A router's workers with a Snapshot in them, without its housekeeping.

use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::{Duration, Instant};

use switchboard_router::activation::{Activation, Publisher};
use switchboard_router::active::{Active, HostNames};
use switchboard_router::config::{Config, Listen, Workers};
use switchboard_router::cores::CorePlan;
use switchboard_router::counters::{Counters, ShadowCounters, WorkerCounters};
use switchboard_router::shadow::Shadow;
use switchboard_router::upstream::survey::EndpointState;
use switchboard_router::worker;
use switchboard_shared::definition::{
    Arm, Attribute, Balance, Check, Comparison, Definition, Endpoint, Fact, FactKind, FactsInto,
    Members, ModelVersion, Objective, Outcome, Predicate, Rule, SampleBy, ShadowTarget, Shard,
    Source, Timeouts, Value, ValueKind,
};
use switchboard_shared::snapshot::{
    Expectations, SecretKey, Snapshot, SnapshotVersion, TrustedKeys, build,
};

pub(crate) struct Router {
    pub(crate) address: SocketAddr,
    counters: Arc<Counters>,
    publisher: Publisher,
    workers: Option<worker::Workers>,
    shadow: Option<Shadow>,
}

impl Router {
    pub(crate) fn start(definition: &Definition) -> Self {
        Self::with(definition, |_| ())
    }

    pub(crate) fn with(definition: &Definition, change: impl FnOnce(&mut Config)) -> Self {
        let mut router = Self::without_snapshot(change);
        router.publish(definition, 1);
        router
    }

    pub(crate) fn without_snapshot(change: impl FnOnce(&mut Config)) -> Self {
        let mut config =
            Config { listen: vec![Listen::Tcp(([127, 0, 0, 1], 0).into())], ..Config::default() };
        config.cores.workers = Workers::Count(NonZeroU16::MIN);
        config.cores.pin = false;
        config.shadow.enabled = false; // tests of copies set it, and a state folder
        change(&mut config);
        let config = Arc::new(config);
        let plan = CorePlan::for_host(&config.cores).unwrap();
        let (publisher, activation) = Activation::new(plan.workers.len());
        let counters = Counters::new(plan.workers.len());
        let housekeeping = plan.housekeeping;
        let mut shadow = Shadow::start(&config, housekeeping, plan.workers.len(), &counters);
        let workers = worker::start(&plan, &config, &activation, &counters, &mut shadow).unwrap();
        let Listen::Tcp(address) = workers.addresses[0] else { panic!("not TCP") };
        Self { address, counters, publisher, workers: Some(workers), shadow: Some(shadow) }
    }

    pub(crate) fn publish(&mut self, definition: &Definition, version: u64) {
        let key = SecretKey::from_seed(&[7; 32]);
        let version = SnapshotVersion::new(version).unwrap();
        let file = build(definition, version, 0, &key).expect("a good Definition");
        let trusted = TrustedKeys::new([key.public()]).unwrap();
        let snapshot = Snapshot::open(&file, &trusted, Expectations::of_group("test")).unwrap();
        let before = self.publisher.activation().published();
        let workers = self.workers.as_ref().map_or(1, worker::Workers::count);
        let active =
            Active::prepare(snapshot, &HostNames::new(), workers, before.as_ref()).unwrap();
        self.publisher.publish(active);
        self.publisher.wait(Duration::from_secs(30)).expect("the worker swaps");
    }

    pub(crate) fn counted(&self, value: impl Fn(&WorkerCounters) -> u64) -> u64 {
        self.counters.sum(value)
    }

    pub(crate) fn of_shadow(&self, value: impl Fn(&ShadowCounters) -> u64) -> u64 {
        self.counters.of_shadow(value)
    }

    /// How the worker finds its endpoints.
    pub(crate) fn endpoint_states(&self) -> Vec<EndpointState> {
        let survey = &self.workers.as_ref().expect("it runs").survey;
        let answers = survey.ask(Instant::now() + Duration::from_secs(30));
        let answers = answers.iter().map(|answer| answer.as_ref().expect("the worker answers"));
        answers.flat_map(|answer| answer.endpoints.iter().cloned()).collect()
    }

    /// Waits until a counter has this value.
    pub(crate) fn wait_for(&self, wanted: u64, value: impl Fn(&WorkerCounters) -> u64) {
        for _ in 0..3000 {
            if self.counted(&value) == wanted {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("counted {} instead of {wanted}", self.counted(&value));
    }

    pub(crate) fn drain(&mut self, max: Duration) {
        if let Some(workers) = self.workers.take() {
            workers.drain(max);
        }
        if let Some(shadow) = self.shadow.take() {
            shadow.flush();
        }
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        self.drain(Duration::ZERO);
    }
}

/// `FEED` is answered by `stable`, `CHAT` alike; a user called `heavy` gets `heavy`; `COUNTRY` reads its
/// body's `/context/country`. Each Arm has its own Shard.
pub(crate) fn definition(stable: &[SocketAddr], heavy: &[SocketAddr]) -> Definition {
    Definition {
        group: "test".into(),
        objectives: vec![
            objective("FEED", user(), is("user", "heavy")),
            objective("CHAT", user(), is("user", "heavy")),
            objective("COUNTRY", country(), is("country", "DE")),
            Objective { idempotent: true, ..objective("SAFE", user(), is("user", "heavy")) },
        ],
        models: vec![model("1", "stable", "light"), model("2", "heavy", "big-one")],
        shards: vec![shard("stable", stable), shard("heavy", heavy)],
        ..Definition::default()
    }
}

/// `FEED` answers everyone by `heavy`, which needs `country` (text) and `depth` (number, default 0).
pub(crate) fn with_facts(stable: SocketAddr, heavy: SocketAddr, into: FactsInto) -> Definition {
    let fact = |name: &str, kind, default| Fact {
        name: name.into(),
        kind,
        key: format!("{name}:{{unit}}"),
        hash_field: (name == "depth").then(|| "d".into()),
        default,
        fresh_for_ms: None,
    };
    let mut definition = definition(&[stable], &[heavy]);
    definition.facts = vec![
        fact("country", FactKind::Text, None),
        fact("depth", FactKind::Number, Some(Value::Number(0.0))),
    ];
    for objective in &mut definition.objectives {
        objective.unit = (objective.token != "COUNTRY").then(|| "user".into());
    }
    let feed = &mut definition.objectives[0];
    feed.rules[0].when = None;
    feed.arms[1].facts = vec!["country".into(), "depth".into()];
    feed.arms[1].facts_into = into;
    definition
}

fn objective(token: &str, attribute: Attribute, when: Predicate) -> Objective {
    let arm = |name: &str, version: &str| Arm {
        name: name.into(),
        model: format!("ranker@{version}"),
        facts: Vec::new(),
        facts_into: FactsInto::default(),
        timeouts: Timeouts::default(),
    };
    Objective {
        token: token.into(),
        context: vec![attribute],
        unit: None,
        default_arm: "stable".into(),
        arms: vec![arm("stable", "1"), arm("heavy", "2")],
        rules: vec![Rule {
            name: "to-heavy".into(),
            when: Some(when),
            then: Outcome::Arm("heavy".into()),
        }],
        idempotent: false,
        timeouts: Timeouts::default(),
        body_bytes_max: None,
        shadow: Vec::new(),
    }
}

fn user() -> Attribute {
    Attribute {
        name: "user".into(),
        source: Source::Header("x-user-id".into()),
        kind: ValueKind::Text,
        default: None,
    }
}

fn country() -> Attribute {
    Attribute {
        name: "country".into(),
        source: Source::Body("/context/country".into()),
        kind: ValueKind::Text,
        default: None,
    }
}

fn is(attribute: &str, value: &str) -> Predicate {
    let check = Check::Is(Comparison::Equal, Value::Text(value.into()));
    Predicate::Test { attribute: attribute.into(), check }
}

fn model(version: &str, shard: &str, served_name: &str) -> ModelVersion {
    ModelVersion {
        name: "ranker".into(),
        version: version.into(),
        shard: shard.into(),
        served_name: served_name.into(),
        path: None,
    }
}

fn shard(name: &str, endpoints: &[SocketAddr]) -> Shard {
    let endpoint = |address: &SocketAddr| Endpoint { address: address.to_string(), weight: 1 };
    Shard {
        name: name.into(),
        endpoints: endpoints.iter().map(endpoint).collect(),
        balance: Balance::LeastInFlight,
    }
}

/// A shadow target that draws all requests that have a Unit, with their answers.
pub(crate) fn everything(model: &str) -> ShadowTarget {
    ShadowTarget {
        model: model.into(),
        arm: None,
        sample: 10_000,
        by: SampleBy::Unit,
        unit: Some("user".into()),
        bytes_per_second_max: None,
        topic: None,
        captures_response: true,
        members: Members::All,
    }
}
