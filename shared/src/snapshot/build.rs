//! Builds a Definition into a signed Snapshot.

use std::collections::HashMap;

use rkyv::{rancor, util::AlignedVec};

use super::{
    archive::{self, ArchivedPayload, ArmIndex, AttributeIndex, Payload},
    check::{self, CheckError, Fault, Object, Part, Place},
    header::{HEADER_BYTES, Header, SnapshotVersion},
    keys::SecretKey,
    open::HASH_VERSION,
};
use crate::{
    definition::{
        Arm, Definition, Experiment, ModelVersion, Objective, Outcome, Rule, ShadowTarget, Source,
    },
    limits::{ATTRIBUTES_MAX, SNAPSHOT_BYTES_MAX, TESTS_MAX},
    predicate::{self, HOLDS, Test},
    slot::{SlotKey, SlotRange},
    text_table,
};

/// Why a Definition cannot be built. It is its author's fault, but for `Archive`.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// It says what makes no sense.
    #[error("refused by the semantic check")]
    Check(#[from] CheckError),
    /// The Snapshot would be larger than routers take.
    #[error("the Snapshot would have {bytes} bytes, more than {SNAPSHOT_BYTES_MAX}")]
    TooLarge {
        /// Header included.
        bytes: usize,
    },
    /// The archive could not be written.
    #[error("the archive could not be written")]
    Archive(#[source] rancor::Error),
}

/// Builds and signs. The same arguments give the same bytes.
///
/// # Errors
/// See [`BuildError`]; whatever this lets through, [`super::Snapshot::open`] does too.
pub fn build(
    definition: &Definition,
    version: SnapshotVersion,
    created_unix_ms: u64,
    key: &SecretKey,
) -> Result<Vec<u8>, BuildError> {
    let payload = checked_payload(definition)?;
    Ok(sign(&payload, version, created_unix_ms, key))
}

/// Puts a signed header before a payload, whatever it is. [`build`] checks before it signs; this is
/// for what tests [`super::Snapshot::open`] with payloads that no builder makes.
pub fn sign(
    payload: &[u8],
    version: SnapshotVersion,
    created_unix_ms: u64,
    key: &SecretKey,
) -> Vec<u8> {
    let header = Header::write(payload, version, created_unix_ms, key);
    [header.as_slice(), payload].concat()
}

/// Whether a Definition can be built, without signing it.
///
/// # Errors
/// Those of [`build`].
pub fn check(definition: &Definition) -> Result<(), BuildError> {
    checked_payload(definition).map(drop)
}

/// The bytes of the payload. Their digest is the content's, whatever the version.
fn checked_payload(definition: &Definition) -> Result<AlignedVec, BuildError> {
    let payload = compile(definition)?;
    let bytes = rkyv::to_bytes::<rancor::Error>(&payload).map_err(BuildError::Archive)?;
    if bytes.len() > SNAPSHOT_BYTES_MAX - HEADER_BYTES {
        return Err(BuildError::TooLarge { bytes: bytes.len() + HEADER_BYTES });
    }
    let archived =
        rkyv::access::<ArchivedPayload, rancor::Error>(&bytes).map_err(BuildError::Archive)?;
    check::check(archived)?;
    Ok(bytes)
}

/// Resolves every name to its index, every salt to its key, and every Predicate to its flat form.
/// What the result says is not checked yet.
///
/// # Errors
/// A name that nothing has, or a Predicate that does not compile.
pub fn compile(definition: &Definition) -> Result<Payload, CheckError> {
    let names = Names::of(definition);
    let objectives = definition
        .objectives
        .iter()
        .map(|objective| names.objective(objective))
        .collect::<Result<Vec<_>, _>>()?;
    let models =
        definition.models.iter().map(|model| names.model(model)).collect::<Result<Vec<_>, _>>()?;
    Ok(Payload {
        hash_version: HASH_VERSION,
        group: definition.group.clone(),
        not_before_unix_ms: definition.not_before_unix_ms,
        expires_unix_ms: definition.expires_unix_ms,
        tokens: text_table::build(objectives.iter().map(|one| one.token.as_str())),
        objectives,
        layers: definition
            .layers
            .iter()
            .map(|layer| archive::Layer {
                name: layer.name.clone(),
                salt: layer.salt.clone(),
                key: *SlotKey::derive(&layer.salt).as_bytes(),
            })
            .collect(),
        models,
        shards: definition
            .shards
            .iter()
            .map(|shard| archive::Shard {
                name: shard.name.clone(),
                endpoints: shard.endpoints.clone(),
                balance: shard.balance,
            })
            .collect(),
        facts: definition
            .facts
            .iter()
            .map(|fact| archive::Fact {
                name: fact.name.clone(),
                kind: fact.kind,
                key: fact.key.clone(),
                hash_field: fact.hash_field.clone(),
                default: fact.default.clone(),
                fresh_for_ms: fact.fresh_for_ms,
            })
            .collect(),
    })
}

/// What the Rules of one Objective become.
#[derive(Default)]
struct RuleParts {
    rules: Vec<archive::Rule>,
    tests: Vec<Test>,
    experiments: Vec<archive::Experiment>,
}

/// Where each named object is. Of two with one name either will do: the check refuses both.
struct Names<'a> {
    models: HashMap<String, usize>,
    shards: HashMap<&'a str, usize>,
    facts: HashMap<&'a str, usize>,
    layers: HashMap<&'a str, usize>,
}

impl<'a> Names<'a> {
    fn of(definition: &'a Definition) -> Self {
        fn places<T>(names: impl Iterator<Item = T>) -> HashMap<T, usize>
        where
            T: Eq + std::hash::Hash,
        {
            names.enumerate().map(|(place, name)| (name, place)).collect()
        }
        Self {
            models: places(definition.models.iter().map(model_id)),
            shards: places(definition.shards.iter().map(|shard| shard.name.as_str())),
            facts: places(definition.facts.iter().map(|fact| fact.name.as_str())),
            layers: places(definition.layers.iter().map(|layer| layer.name.as_str())),
        }
    }

    fn model(&self, model: &ModelVersion) -> Result<archive::ModelVersion, CheckError> {
        let shard = found("Shard", &model.shard, self.shards.get(model.shard.as_str()).copied())
            .and_then(|place| fitting("Shards", archive::ShardIndex::new(place)))
            .map_err(|fault| fault.at(Place::of(Object::Model, &model_id(model))))?;
        Ok(archive::ModelVersion {
            id: model_id(model),
            shard,
            served_name: model.served_name.clone(),
            path: model.path.clone(),
        })
    }

    fn objective(&self, objective: &Objective) -> Result<archive::Objective, CheckError> {
        let whole = || Place::of(Object::Objective, &objective.token);
        let arms = objective
            .arms
            .iter()
            .map(|arm| self.arm(arm).map_err(|fault| fault.at(whole().part(Part::Arm, &arm.name))));
        let mut parts = RuleParts::default();
        for rule in &objective.rules {
            self.rule(objective, rule, &mut parts)
                .map_err(|fault| fault.at(whole().part(Part::Rule, &rule.name)))?;
        }
        let RuleParts { rules, tests, experiments } = parts;
        let with_default = objective.context.iter().take(ATTRIBUTES_MAX).rev();
        let defaults =
            with_default.fold(0, |bits, one| bits << 1 | u32::from(one.default.is_some()));
        Ok(archive::Objective {
            token: objective.token.clone(),
            defaults,
            default_arm: arm_index(objective, &objective.default_arm)
                .map_err(|fault| fault.at(whole()))?,
            idempotent: objective.idempotent,
            rules,
            tests,
            experiments,
            context: objective
                .context
                .iter()
                .map(|attribute| archive::Attribute {
                    name: attribute.name.clone(),
                    source: attribute.source.clone(),
                    kind: attribute.kind,
                    default: attribute.default.clone(),
                })
                .collect(),
            unit: unit(objective).map_err(|fault| fault.at(whole()))?,
            rule_facts: self.rule_facts(objective)?,
            arms: arms.collect::<Result<_, _>>()?,
            timeouts: objective.timeouts,
            body_bytes_max: objective.body_bytes_max,
            shadow: objective
                .shadow
                .iter()
                .map(|target| {
                    let at = || whole().part(Part::Shadow, &target.model);
                    self.shadow(objective, target).map_err(|fault| fault.at(at()))
                })
                .collect::<Result<_, _>>()?,
        })
    }

    fn shadow(
        &self,
        objective: &Objective,
        target: &ShadowTarget,
    ) -> Result<archive::ShadowTarget, Fault> {
        let model = found("Model version", &target.model, self.models.get(&target.model).copied())?;
        let arm = target.arm.as_ref().map(|arm| arm_index(objective, arm));
        let unit = target.unit.as_ref().map(|unit| attribute_index(objective, unit));
        Ok(archive::ShadowTarget {
            key: *SlotKey::derive_sample(&objective.token).as_bytes(),
            sample: target.sample,
            by: target.by,
            unit: unit.transpose()?,
            arm: arm.transpose()?,
            model: fitting("Model versions", archive::ModelIndex::new(model))?,
            captures_response: target.captures_response,
            bytes_per_second_max: target.bytes_per_second_max,
            topic: target.topic.clone(),
            members: target.members.clone(),
        })
    }

    fn fact(&self, name: &str) -> Result<archive::FactIndex, Fault> {
        let place = found("Fact", name, self.facts.get(name).copied())?;
        fitting("Facts", archive::FactIndex::new(place))
    }

    fn rule_facts(&self, objective: &Objective) -> Result<Vec<archive::RuleFact>, CheckError> {
        let facts = objective.context.iter().enumerate().filter_map(|(place, attribute)| {
            let Source::Fact(name) = &attribute.source else { return None };
            let rule_fact = self.fact(name).and_then(|fact| {
                let attribute = fitting("attributes", AttributeIndex::new(place))?;
                Ok(archive::RuleFact { attribute, fact })
            });
            let place = Place::of(Object::Objective, &objective.token);
            let place = place.part(Part::Attribute, &attribute.name);
            Some(rule_fact.map_err(|fault| fault.at(place)))
        });
        facts.collect()
    }

    fn arm(&self, arm: &Arm) -> Result<archive::Arm, Fault> {
        let model = found("Model version", &arm.model, self.models.get(&arm.model).copied())?;
        let facts = arm.facts.iter().map(|name| self.fact(name));
        Ok(archive::Arm {
            name: arm.name.clone(),
            model: fitting("Model versions", archive::ModelIndex::new(model))?,
            facts: facts.collect::<Result<_, _>>()?,
            facts_into: arm.facts_into.clone(),
            timeouts: arm.timeouts,
        })
    }

    fn rule(&self, objective: &Objective, rule: &Rule, parts: &mut RuleParts) -> Result<(), Fault> {
        let when = match &rule.when {
            None => HOLDS,
            Some(when) => {
                let code = predicate::compile(when, &objective.context).map_err(Fault::Compile)?;
                code.append_to(&mut parts.tests)
                    .ok_or(Fault::TooMany { what: "tests", count_max: TESTS_MAX })?
            }
        };
        let then = match &rule.then {
            Outcome::Arm(arm) => archive::Outcome::Arm(arm_index(objective, arm)?),
            Outcome::Experiment(experiment) => {
                let place = archive::ExperimentIndex::new(parts.experiments.len());
                parts.experiments.push(self.experiment(objective, experiment)?);
                archive::Outcome::Experiment(fitting("rules", place)?)
            }
        };
        parts.rules.push(archive::Rule { name: rule.name.clone(), when, then });
        Ok(())
    }

    fn experiment(
        &self,
        objective: &Objective,
        experiment: &Experiment,
    ) -> Result<archive::Experiment, Fault> {
        let unit = attribute_index(objective, &experiment.unit)?;
        let layer = match &experiment.layer {
            None => None,
            Some(share) => {
                let layer = self.layers.get(share.layer.as_str()).copied();
                let layer = found("Layer", &share.layer, layer)?;
                Some(archive::LayerShare {
                    layer: fitting("Layers", archive::LayerIndex::new(layer))?,
                    slots: ascending(&share.slots)
                        .map(|(first, last)| archive::Slots { first, last })
                        .collect(),
                })
            }
        };
        let mut split = Vec::new();
        for share in &experiment.split {
            let arm = arm_index(objective, &share.arm)?;
            let slots = ascending(&share.slots);
            split.extend(slots.map(|(first, last)| archive::ArmSlots { first, last, arm }));
        }
        split.sort_unstable_by_key(|part| part.first);
        Ok(archive::Experiment {
            unit,
            salt: experiment.salt.clone(),
            key: *SlotKey::derive(&experiment.salt).as_bytes(),
            layer,
            split,
        })
    }
}

fn unit(objective: &Objective) -> Result<Option<AttributeIndex>, Fault> {
    let Some(name) = &objective.unit else { return Ok(None) };
    let place = objective.context.iter().position(|one| one.name == *name);
    let place = found("attribute", name, place)?;
    fitting("attributes", AttributeIndex::new(place)).map(Some)
}

fn model_id(model: &ModelVersion) -> String {
    format!("{}@{}", model.name, model.version)
}

fn arm_index(objective: &Objective, name: &str) -> Result<ArmIndex, Fault> {
    let place = objective.arms.iter().position(|arm| arm.name == name);
    fitting("arms", ArmIndex::new(found("arm", name, place)?))
}

fn attribute_index(objective: &Objective, name: &str) -> Result<AttributeIndex, Fault> {
    let place = objective.context.iter().position(|one| one.name == name);
    fitting("attributes", AttributeIndex::new(found("attribute", name, place)?))
}

fn found(what: &'static str, name: &str, place: Option<usize>) -> Result<usize, Fault> {
    place.ok_or_else(|| Fault::Unknown { what, name: name.to_owned() })
}

/// An index that does not fit its type: far above the table's limit.
fn fitting<T>(what: &'static str, index: Option<T>) -> Result<T, Fault> {
    index.ok_or(Fault::TooMany { what, count_max: usize::from(u8::MAX) })
}

fn ascending(ranges: &[SlotRange]) -> impl Iterator<Item = (u16, u16)> {
    let mut ranges = ranges.to_vec();
    ranges.sort_unstable();
    ranges.into_iter().map(|range| (range.first().get(), range.last().get()))
}
