//! One good Definition with a bit of everything, and the keys that sign it.

use switchboard_shared::{
    context::{self, Context},
    definition::{
        Arm, ArmShare, Attribute, Balance, Check, Comparison, Definition, Endpoint, Experiment,
        Fact, FactKind, FactsInto, Layer, LayerShare, Members, ModelVersion, Objective, Outcome,
        Predicate, Rule, SampleBy, ShadowTarget, Shard, Source, Timeouts, Value, ValueKind,
    },
    slot::SlotRange,
    snapshot::{
        ArchivedObjective, Expectations, SecretKey, Snapshot, SnapshotVersion, TrustedKeys, build,
    },
};

/// Signs in tests only.
pub(crate) fn key() -> SecretKey {
    SecretKey::from_seed(&[7; 32])
}

/// Trusts [`key`].
pub(crate) fn trusted() -> TrustedKeys {
    TrustedKeys::new([key().public()]).expect("one good key")
}

/// Builds, signs and opens.
pub(crate) fn open(definition: &Definition) -> Snapshot {
    let file = build(definition, SnapshotVersion::FIRST, 1_000, &key()).expect("a good Definition");
    Snapshot::open(&file, &trusted(), Expectations::of_group(&definition.group))
        .expect("what was built opens")
}

/// Sets an attribute by name, through the same check as a request's.
pub(crate) fn set<'a>(
    context: &mut Context<'a>,
    objective: &ArchivedObjective,
    name: &str,
    value: context::Value<'a>,
) {
    let (index, attribute) =
        objective.attributes().find(|(_, one)| one.name == name).expect("a declared attribute");
    context.set(index, attribute.accept(value).expect("a value of its type"));
}

/// Slots `first..=last`.
pub(crate) fn slots(first: u16, last: u16) -> Vec<SlotRange> {
    vec![SlotRange::of(first, last).expect("a range")]
}

/// An attribute that a header carries.
pub(crate) fn attribute(name: &str, kind: ValueKind) -> Attribute {
    let source = Source::Header(format!("x-{}", name.replace('_', "-")));
    Attribute { name: name.to_owned(), source, kind, default: None }
}

/// One check of one attribute.
pub(crate) fn test(attribute: &str, check: Check) -> Predicate {
    Predicate::Test { attribute: attribute.to_owned(), check }
}

fn texts(texts: &[&str]) -> Vec<Value> {
    texts.iter().map(|text| Value::Text((*text).to_owned())).collect()
}

fn arm(name: &str, model: &str, facts: &[&str]) -> Arm {
    Arm {
        name: name.to_owned(),
        model: model.to_owned(),
        facts: facts.iter().map(|fact| (*fact).to_owned()).collect(),
        facts_into: FactsInto::default(),
        timeouts: Timeouts { first_byte_ms: Some(800), ..Timeouts::default() },
    }
}

fn model(name: &str, version: &str) -> ModelVersion {
    ModelVersion {
        name: name.to_owned(),
        version: version.to_owned(),
        shard: "ranker".to_owned(),
        served_name: format!("{name}:{version}"),
        path: Some("/v2/models/feed/infer".to_owned()),
    }
}

/// One Objective, three Rules, a Layer, two Model versions, a Shard, two Facts.
pub(crate) fn definition() -> Definition {
    Definition {
        group: "test".to_owned(),
        not_before_unix_ms: None,
        expires_unix_ms: None,
        objectives: vec![objective()],
        layers: vec![Layer { name: "ranking".to_owned(), salt: "ranking-2026".to_owned() }],
        models: vec![model("feed-ranker", "1"), model("feed-ranker", "2")],
        shards: vec![Shard {
            name: "ranker".to_owned(),
            endpoints: vec![
                Endpoint { address: "127.0.0.1:9001".to_owned(), weight: 3 },
                Endpoint { address: "unix:/run/ranker.sock".to_owned(), weight: 1 },
            ],
            balance: Balance::LeastInFlight,
        }],
        facts: vec![
            Fact {
                name: "user_country".to_owned(),
                kind: FactKind::Text,
                key: "user:{unit}:country".to_owned(),
                hash_field: None,
                default: None,
                fresh_for_ms: None,
            },
            Fact {
                name: "session_depth".to_owned(),
                kind: FactKind::Number,
                key: "session:{unit}".to_owned(),
                hash_field: Some("depth".to_owned()),
                default: Some(Value::Number(0.0)),
                fresh_for_ms: Some(5_000),
            },
        ],
    }
}

fn objective() -> Objective {
    let country = Attribute {
        source: Source::Body("/context/country".to_owned()),
        default: Some(Value::Text(String::new())),
        ..attribute("country", ValueKind::Text)
    };
    Objective {
        token: "RECOMMEND_HOME_FEED".to_owned(),
        context: vec![
            attribute("user_id", ValueKind::Text),
            country,
            attribute("age", ValueKind::Number),
            attribute("beta", ValueKind::Boolean),
            attribute("app_version", ValueKind::Text),
        ],
        unit: Some("user_id".to_owned()),
        default_arm: "stable".to_owned(),
        arms: vec![
            arm("stable", "feed-ranker@1", &["session_depth"]),
            arm("heavy", "feed-ranker@2", &["user_country", "session_depth"]),
        ],
        rules: vec![
            Rule {
                name: "staff".to_owned(),
                when: Some(test("user_id", Check::In(texts(&["u2", "u1"])))),
                then: Outcome::Arm("heavy".to_owned()),
            },
            Rule {
                name: "old-apps".to_owned(),
                when: Some(Predicate::All(vec![
                    test("app_version", Check::Semver("<2.0.0".to_owned())),
                    Predicate::Not(Box::new(test(
                        "age",
                        Check::Is(Comparison::Less, Value::Number(18.0)),
                    ))),
                ])),
                then: Outcome::Arm("stable".to_owned()),
            },
            Rule {
                name: "heavy-trial".to_owned(),
                when: Some(test("country", Check::In(texts(&["DE", "AT"])))),
                then: Outcome::Experiment(Experiment {
                    unit: "user_id".to_owned(),
                    salt: "heavy-trial".to_owned(),
                    layer: Some(LayerShare { layer: "ranking".to_owned(), slots: slots(0, 7_999) }),
                    split: vec![
                        ArmShare { arm: "stable".to_owned(), slots: slots(0, 4_499) },
                        ArmShare { arm: "heavy".to_owned(), slots: slots(5_000, 9_499) },
                    ],
                }),
            },
        ],
        idempotent: true,
        timeouts: Timeouts { total_ms: Some(5_000), ..Timeouts::default() },
        body_bytes_max: Some(1 << 20),
        shadow: vec![ShadowTarget {
            model: "feed-ranker@2".to_owned(),
            arm: Some("stable".to_owned()),
            sample: 1_000,
            by: SampleBy::Unit,
            unit: Some("user_id".to_owned()),
            bytes_per_second_max: Some(4 << 20),
            topic: Some("shadow.feed".to_owned()),
            captures_response: true,
            members: Members::Drop(vec!["/context/country".to_owned()]),
        }],
    }
}
