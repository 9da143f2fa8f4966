//! Small good Snapshots for tests, and the key that signs them.

use switchboard_shared::definition::{
    Arm, ArmShare, Attribute, Balance, Definition, Endpoint, Experiment, FactsInto, ModelVersion,
    Objective, Outcome, Rule, Shard, Source, Timeouts, ValueKind,
};
use switchboard_shared::slot::SlotRange;
use switchboard_shared::snapshot::{
    Expectations, SecretKey, Snapshot, SnapshotVersion, TrustedKeys, build,
};

pub(crate) const GROUP: &str = "test";

/// Signs in tests only.
pub(crate) fn key() -> SecretKey {
    SecretKey::from_seed(&[7; 32])
}

/// Trusts [`key`].
pub(crate) fn trusted() -> TrustedKeys {
    TrustedKeys::new([key().public()]).expect("one good key")
}

/// One Shard with these endpoints, two Model versions, and an Objective of each token. It has the Arms
/// `stable` and `heavy`, an experiment named `trial` and a Rule named `rest`.
pub(crate) fn definition(tokens: &[&str], endpoints: &[&str]) -> Definition {
    Definition {
        group: GROUP.into(),
        objectives: tokens.iter().map(|token| objective(token)).collect(),
        models: vec![model("1"), model("2")],
        shards: vec![Shard {
            name: "ranker".into(),
            endpoints: endpoints
                .iter()
                .map(|address| Endpoint { address: (*address).into(), weight: 1 })
                .collect(),
            balance: Balance::LeastInFlight,
        }],
        ..Definition::default()
    }
}

/// The signed file of a Definition.
pub(crate) fn file(definition: &Definition, version: u64) -> Vec<u8> {
    build(definition, self::version(version), 1_800_000_000_000, &key()).expect("a good Definition")
}

/// The opened Snapshot of a Definition.
pub(crate) fn snapshot(definition: &Definition, version: u64) -> Snapshot {
    let file = file(definition, version);
    Snapshot::open(&file, &trusted(), Expectations::of_group(GROUP)).expect("a good Snapshot")
}

pub(crate) fn version(version: u64) -> SnapshotVersion {
    SnapshotVersion::new(version).expect("not zero")
}

fn model(version: &str) -> ModelVersion {
    ModelVersion {
        name: "ranker".into(),
        version: version.into(),
        shard: "ranker".into(),
        served_name: "ranker".into(),
        path: None,
    }
}

fn objective(token: &str) -> Objective {
    let arm = |name: &str, model: &str| Arm {
        name: name.into(),
        model: model.into(),
        facts: Vec::new(),
        facts_into: FactsInto::default(),
        timeouts: Timeouts::default(),
    };
    let share = |arm: &str, first, last| ArmShare {
        arm: arm.into(),
        slots: vec![SlotRange::of(first, last).expect("a range")],
    };
    Objective {
        token: token.into(),
        context: vec![Attribute {
            name: "user_id".into(),
            source: Source::Header("x-user-id".into()),
            kind: ValueKind::Text,
            default: None,
        }],
        unit: None,
        default_arm: "stable".into(),
        arms: vec![arm("stable", "ranker@1"), arm("heavy", "ranker@2")],
        rules: vec![
            Rule {
                name: "trial".into(),
                when: None,
                then: Outcome::Experiment(Experiment {
                    unit: "user_id".into(),
                    salt: "trial-salt".into(),
                    layer: None,
                    split: vec![share("stable", 0, 4_499), share("heavy", 4_500, 4_999)],
                }),
            },
            Rule { name: "rest".into(), when: None, then: Outcome::Arm("stable".into()) },
        ],
        idempotent: false,
        timeouts: Timeouts::default(),
        body_bytes_max: None,
        shadow: Vec::new(),
    }
}
