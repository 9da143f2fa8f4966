//! Gives a router its rules as a control plane does: a signed Snapshot over its Unix socket.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use switchboard_shared::definition::{
    Arm, ArmShare, Attribute, Balance, Definition, Endpoint, Experiment, ModelVersion, Objective,
    Outcome, Rule, Shard, Source, Timeouts, ValueKind,
};
use switchboard_shared::push::{Frame, FrameError, FrameReader};
use switchboard_shared::slot::{Slot, SlotRange};
use switchboard_shared::snapshot::{BuildError, SecretKey, SnapshotVersion, build};

use super::workload::Workload;

/// Why the router did not take the rules.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// A mistake of ours.
    #[error("the rules make no Snapshot")]
    Build(#[from] BuildError),
    /// The socket broke.
    #[error("cannot speak to the router")]
    Socket(#[from] io::Error),
    /// Another protocol.
    #[error("the router does not speak our frames")]
    Frame(#[from] FrameError),
    /// The router's own word.
    #[error("the router refuses the rules: {reason}: {detail}")]
    Refused {
        /// Stable label.
        reason: String,
        /// For people.
        detail: String,
    },
}

/// How long a router may take to answer one frame.
const PATIENCE: Duration = Duration::from_secs(10);

/// Pushes the workload's rules and waits until every core of the router evaluates them.
///
/// # Errors
/// The router's own refusal, for instance.
pub fn push(
    socket: &Path,
    key: &SecretKey,
    workload: &Workload,
    [stable, heavy]: [&str; 2],
    group: &str,
) -> Result<(), PushError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let created = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    let definition = definition(workload, [stable, heavy], group);
    let Some(version) = SnapshotVersion::new(1) else { return Ok(()) };
    let snapshot = build(&definition, version, created, key)?;

    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(&Frame::Prepare(&snapshot).to_bytes()?)?;
    let mut reader = FrameReader::new();
    let mut piece = vec![0; 64 * 1024];
    loop {
        let length = stream.read(&mut piece)?;
        if length == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        reader.push(&piece[..length]);
        while let Some(frame) = reader.next_frame()? {
            match frame {
                Frame::Prepared(id) => stream.write_all(&Frame::Activate(id).to_bytes()?)?,
                Frame::Active(_) => return Ok(()),
                Frame::Refused(refused) => {
                    return Err(PushError::Refused {
                        reason: refused.reason.to_owned(),
                        detail: refused.detail.to_owned(),
                    });
                }
                Frame::Hello(_) | Frame::Stats(_) | Frame::Prepare(_) | Frame::Activate(_) => {}
            }
        }
    }
}

/// One Objective with an Experiment over all of its Slots, as the peers' configurations have it.
fn definition(workload: &Workload, [stable, heavy]: [&str; 2], group: &str) -> Definition {
    let arms = [("stable", stable), ("heavy", heavy)];
    let model = |name: &str| ModelVersion {
        name: name.to_owned(),
        version: "1".to_owned(),
        shard: name.to_owned(),
        served_name: name.to_owned(),
        path: None,
    };
    let shard = |(name, address): (&str, &str)| Shard {
        name: name.to_owned(),
        endpoints: vec![Endpoint { address: address.to_owned(), weight: 1 }],
        balance: Balance::LeastInFlight,
    };
    let arm = |name: &str| Arm {
        name: name.to_owned(),
        model: format!("{name}@1"),
        facts: Vec::new(),
        timeouts: Timeouts::default(),
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of 0..=1 times 10 000"
    )]
    let heavy_slots = (workload.heavy_share * f64::from(Slot::COUNT)) as u16;
    let share = |arm: &str, first, last| ArmShare {
        arm: arm.to_owned(),
        slots: SlotRange::of(first, last).into_iter().collect(),
    };
    let experiment = Experiment {
        unit: "user_id".to_owned(),
        salt: "comparison".to_owned(),
        layer: None,
        split: vec![
            share("heavy", 0, heavy_slots - 1),
            share("stable", heavy_slots, Slot::COUNT - 1),
        ],
    };
    Definition {
        group: group.to_owned(),
        objectives: vec![Objective {
            token: workload.objective.to_owned(),
            context: vec![Attribute {
                name: "user_id".to_owned(),
                source: Source::Header("x-user-id".to_owned()),
                kind: ValueKind::Text,
                default: None,
            }],
            default_arm: "stable".to_owned(),
            arms: arms.map(|(name, _)| arm(name)).to_vec(),
            rules: vec![Rule {
                name: "split".to_owned(),
                when: None,
                then: Outcome::Experiment(experiment),
            }],
            idempotent: true,
            timeouts: Timeouts::default(),
            body_bytes_max: None,
        }],
        models: arms.map(|(name, _)| model(name)).to_vec(),
        shards: arms.map(shard).to_vec(),
        ..Definition::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_of_the_comparison_make_a_snapshot() {
        let workload = Workload::small_json_by_header();
        let definition = definition(&workload, ["127.0.0.1:1", "127.0.0.1:2"], "default");
        let key = SecretKey::from_seed(&[7; 32]);
        let version = SnapshotVersion::new(1).unwrap();
        assert!(!build(&definition, version, 1, &key).unwrap().is_empty());
        let Outcome::Experiment(experiment) = &definition.objectives[0].rules[0].then else {
            panic!("the rule splits");
        };
        let slots = |arm: usize| experiment.split[arm].slots[0].slots().count();
        assert_eq!([slots(0), slots(1)], [1000, 9000]);
    }
}
