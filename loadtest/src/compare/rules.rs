//! The router's rules for a workload: what the peers' configurations say, as a Definition. Pure.

use std::time::{SystemTime, UNIX_EPOCH};

use switchboard_shared::definition::{
    Arm, ArmShare, Attribute, Balance, Definition, Endpoint, Experiment, Fact, FactKind, FactsInto,
    Members, ModelVersion, Objective, Outcome, Rule, SampleBy, ShadowTarget, Shard, Source,
    Timeouts, ValueKind,
};
use switchboard_shared::slot::{Slot, SlotRange};
use switchboard_shared::snapshot::{BuildError, SecretKey, SnapshotVersion, build};

use super::workload::{HEAVY_SHARE, Job, Workload};

/// The group of a router with built-in settings.
pub const GROUP: &str = "default";

/// One Objective with an Experiment over all of its Slots, as the peers' configurations have it.
pub fn definition(workload: &Workload, job: Job, models: [&str; 2]) -> Definition {
    let [stable, heavy] = models;
    let arms = [("stable", stable), ("heavy", heavy)];
    Definition {
        group: GROUP.to_owned(),
        objectives: vec![objective(workload, job)],
        facts: if job == Job::Facts { facts() } else { Vec::new() },
        models: models_of(job),
        shards: arms.map(|(name, address)| shard(name, address)).to_vec(),
        ..Definition::default()
    }
}

/// Builds and signs a Definition, now.
///
/// # Errors
/// A mistake in it.
pub fn snapshot(
    definition: &Definition,
    version: SnapshotVersion,
    key: &SecretKey,
) -> Result<Vec<u8>, BuildError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let created = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    build(definition, version, created, key)
}

fn objective(workload: &Workload, job: Job) -> Objective {
    let user = match job {
        Job::Body => Source::Body("/user_id".to_owned()),
        Job::Header | Job::Facts | Job::Shadow | Job::Forward => {
            Source::Header("x-user-id".to_owned())
        }
    };
    Objective {
        token: workload.objective.to_owned(),
        context: vec![Attribute {
            name: "user_id".to_owned(),
            source: user,
            kind: ValueKind::Text,
            default: None,
        }],
        unit: (job == Job::Facts).then(|| "user_id".to_owned()),
        default_arm: "fallback".to_owned(),
        arms: vec![
            Arm { name: "fallback".to_owned(), ..arm("stable", Job::Header) },
            arm("stable", job),
            arm("heavy", job),
        ],
        rules: vec![Rule {
            name: "split".to_owned(),
            when: None,
            then: Outcome::Experiment(split()),
        }],
        idempotent: false,
        timeouts: Timeouts::default(),
        body_bytes_max: None,
        shadow: if job == Job::Shadow { vec![shadow()] } else { Vec::new() },
    }
}

fn split() -> Experiment {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of 0..=1 times 10 000"
    )]
    let heavy_slots = (HEAVY_SHARE * f64::from(Slot::COUNT)) as u16;
    let share = |arm: &str, first, last| ArmShare {
        arm: arm.to_owned(),
        slots: SlotRange::of(first, last).into_iter().collect(),
    };
    Experiment {
        unit: "user_id".to_owned(),
        salt: "comparison".to_owned(),
        layer: None,
        split: vec![
            share("heavy", 0, heavy_slots - 1),
            share("stable", heavy_slots, Slot::COUNT - 1),
        ],
    }
}

/// A tenth of the users, for a candidate that only exists in records.
fn shadow() -> ShadowTarget {
    ShadowTarget {
        model: "candidate@1".to_owned(),
        arm: None,
        sample: Slot::COUNT / 10,
        by: SampleBy::Unit,
        unit: Some("user_id".to_owned()),
        bytes_per_second_max: None,
        topic: None,
        captures_response: true,
        members: Members::All,
    }
}

/// Looked up by the user's name in keys that `cache.rs` fills.
fn facts() -> Vec<Fact> {
    let fact = |name: &str, kind| Fact {
        name: name.to_owned(),
        kind,
        key: format!("user:{{unit}}:{name}"),
        hash_field: None,
        default: None,
        fresh_for_ms: None,
    };
    vec![
        fact("country", FactKind::Text),
        fact("session_depth", FactKind::Number),
        fact("is_member", FactKind::Boolean),
    ]
}

fn arm(name: &str, job: Job) -> Arm {
    Arm {
        name: name.to_owned(),
        model: format!("{name}@1"),
        facts: if job == Job::Facts {
            facts().into_iter().map(|fact| fact.name).collect()
        } else {
            Vec::new()
        },
        facts_into: FactsInto::default(),
        timeouts: Timeouts::default(),
    }
}

/// Those that serve and, where traffic is shadowed, the candidate that only reads records.
fn models_of(job: Job) -> Vec<ModelVersion> {
    let mut models = vec![model("stable", "stable"), model("heavy", "heavy")];
    if job == Job::Shadow {
        models.push(model("candidate", "heavy"));
    }
    models
}

fn model(name: &str, shard: &str) -> ModelVersion {
    ModelVersion {
        name: name.to_owned(),
        version: "1".to_owned(),
        shard: shard.to_owned(),
        served_name: name.to_owned(),
        path: None,
    }
}

fn shard(name: &str, address: &str) -> Shard {
    Shard {
        name: name.to_owned(),
        endpoints: vec![Endpoint { address: address.to_owned(), weight: 1 }],
        balance: Balance::LeastInFlight,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_of_every_workload_make_a_snapshot() {
        let key = SecretKey::from_seed(&[7; 32]);
        for workload in Workload::all() {
            for job in [Job::Header, workload.job] {
                let definition = definition(&workload, job, ["127.0.0.1:1", "127.0.0.1:2"]);
                assert!(!snapshot(&definition, SnapshotVersion::FIRST, &key).unwrap().is_empty());
            }
        }
    }

    #[test]
    fn a_tenth_of_the_slots_is_the_heavy_models() {
        let slots = |arm: usize| split().split[arm].slots[0].slots().count();
        assert_eq!([slots(0), slots(1)], [1000, 9000]);
    }
}
