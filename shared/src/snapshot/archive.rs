//! The archived form: what a router reads in place.
//!
//! Little-endian `rkyv` with 32-bit relative pointers. A change of any type here is a change of
//! [`super::FORMAT`]. Objects refer to each other by index types that cannot be mixed up; every
//! index is checked when the Snapshot is opened, so that reading cannot fail.

mod shadow;

use rkyv::{Archive, Serialize};

pub use self::shadow::{ArchivedShadowTarget, ShadowTarget};

use crate::{
    definition::{Balance, Endpoint, FactKind, FactsInto, Source, Timeouts, Value, ValueKind},
    predicate::Test,
    slot::{Slot, SlotKey},
    text_table::{self, Bucket},
};

/// Declares an index type, its archived form, and how both are read.
macro_rules! index_type {
    ($(#[$doc:meta])* $name:ident, $archived:ident, $number:ty) => {
        $(#[$doc])*
        #[derive(Archive, Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
        #[rkyv(derive(Clone, Copy, Debug, Eq, Hash, PartialEq))]
        pub struct $name(pub(crate) $number);

        impl $name {
            /// Its place in the table.
            pub const fn get(self) -> usize {
                self.0 as usize
            }

            /// `None` where the number is too large for the type.
            pub fn new(place: usize) -> Option<Self> {
                place.try_into().ok().map(Self)
            }
        }

        impl $archived {
            /// The same outside the archive.
            pub fn to_native(self) -> $name {
                $name(<$number>::from(self.0))
            }

            /// Its place in the table.
            pub fn get(self) -> usize {
                self.to_native().get()
            }
        }

        impl From<$archived> for $name {
            fn from(index: $archived) -> Self {
                index.to_native()
            }
        }
    };
}

index_type! {
    /// An Objective of the Snapshot.
    ObjectiveIndex, ArchivedObjectiveIndex, u32
}
index_type! {
    /// An Arm of its Objective.
    ArmIndex, ArchivedArmIndex, u8
}
index_type! {
    /// A Rule of its Objective, in the order of trying.
    RuleIndex, ArchivedRuleIndex, u8
}
index_type! {
    /// An Experiment of its Objective.
    ExperimentIndex, ArchivedExperimentIndex, u8
}
index_type! {
    /// An attribute of its Objective's Context.
    AttributeIndex, ArchivedAttributeIndex, u8
}
index_type! {
    /// A Model version of the Snapshot.
    ModelIndex, ArchivedModelIndex, u32
}
index_type! {
    /// A Shard of the Snapshot.
    ShardIndex, ArchivedShardIndex, u16
}
index_type! {
    /// A Fact of the Snapshot.
    FactIndex, ArchivedFactIndex, u16
}
index_type! {
    /// A Layer of the Snapshot.
    LayerIndex, ArchivedLayerIndex, u16
}

/// Everything that one Snapshot says.
#[derive(Archive, Serialize)]
pub struct Payload {
    /// How Units become Slots; 1 is the one of `docs/bucketing.md`.
    pub hash_version: u16,
    /// The routers it is meant for.
    pub group: String,
    /// Refused before this wall-clock time.
    pub not_before_unix_ms: Option<u64>,
    /// Refused after this wall-clock time.
    pub expires_unix_ms: Option<u64>,
    /// The business goals that clients may name.
    pub objectives: Vec<Objective>,
    /// Finds an Objective by its token; see [`crate::text_table`].
    pub tokens: Vec<Bucket>,
    /// Mutual exclusion among Experiments.
    pub layers: Vec<Layer>,
    /// What can answer.
    pub models: Vec<ModelVersion>,
    /// Where it answers.
    pub shards: Vec<Shard>,
    /// Values that can be looked up for a Unit.
    pub facts: Vec<Fact>,
}

/// An immutable business goal with its Context, Arms and Rules.
///
/// The order of the fields is the order in memory. What every decision reads comes first and lies
/// close together (the tests of all Rules in one list, a Rule in twelve bytes): a request to an
/// Objective that is in no cache pays for each line of memory that it touches.
#[derive(Archive, Serialize)]
pub struct Objective {
    /// `[A-Z][A-Z0-9_]{0,63}`.
    pub token: String,
    /// One bit for each attribute that has a default, the first in the lowest.
    pub defaults: u32,
    /// Answers where no Rule decides.
    pub default_arm: ArmIndex,
    /// Whether a request may be sent again after an endpoint may have begun it.
    pub idempotent: bool,
    /// Tried in order; the first that decides wins.
    pub rules: Vec<Rule>,
    /// The code of all Rules' Predicates.
    pub tests: Vec<Test>,
    /// The Experiments of all Rules.
    pub experiments: Vec<Experiment>,
    /// The typed attributes that Rules may ask for.
    pub context: Vec<Attribute>,
    /// What Facts are looked up for.
    pub unit: Option<AttributeIndex>,
    /// The attributes that are Facts, which are looked up before the Rules are tried.
    pub rule_facts: Vec<RuleFact>,
    /// All ways to answer.
    pub arms: Vec<Arm>,
    /// Overrides of the router's clocks.
    pub timeouts: Timeouts,
    /// Largest request body in bytes.
    pub body_bytes_max: Option<u64>,
    /// Candidates that get a sample of its requests.
    pub shadow: Vec<ShadowTarget>,
}

/// One typed attribute of the Context.
#[derive(Archive, Serialize)]
pub struct Attribute {
    /// As Rules write it.
    pub name: String,
    /// Where the request carries it.
    pub source: Source,
    /// Its type.
    pub kind: ValueKind,
    /// Used where the request does not carry it.
    pub default: Option<Value>,
}

/// A Fact that Rules ask for, and the attribute that it becomes.
#[derive(Archive, Serialize)]
pub struct RuleFact {
    /// The attribute of its Objective.
    pub attribute: AttributeIndex,
    /// The Fact.
    pub fact: FactIndex,
}

/// One way to answer an Objective.
#[derive(Archive, Serialize)]
pub struct Arm {
    /// Unique within its Objective.
    pub name: String,
    /// What answers.
    pub model: ModelIndex,
    /// What it needs to know.
    pub facts: Vec<FactIndex>,
    /// Where its model server gets it.
    pub facts_into: FactsInto,
    /// Overrides of the Objective's clocks.
    pub timeouts: Timeouts,
}

/// One step of an Objective's decision.
#[derive(Archive, Serialize)]
pub struct Rule {
    /// Unique within its Objective.
    pub name: String,
    /// Where its Predicate begins among the Objective's tests.
    pub when: u16,
    /// What happens then.
    pub then: Outcome,
}

/// What a Rule that holds leads to.
#[derive(Archive, Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[rkyv(derive(Clone, Copy, Debug, Eq, PartialEq))]
pub enum Outcome {
    /// This Arm, for everyone.
    Arm(ArmIndex),
    /// The Arm that owns the Unit's Slot.
    Experiment(ExperimentIndex),
}

/// A split of Slots among Arms.
#[derive(Archive, Serialize)]
pub struct Experiment {
    /// `SlotKey::derive(salt)`.
    pub key: [u8; 32],
    /// Seed of the Slot key.
    pub salt: String,
    /// What is bucketed.
    pub unit: AttributeIndex,
    /// Where it lives, if it excludes others.
    pub layer: Option<LayerShare>,
    /// Which Arm owns which Slots: ascending, disjoint.
    pub split: Vec<ArmSlots>,
}

/// Slots of an Experiment that one Arm owns.
#[derive(Archive, Serialize)]
pub struct ArmSlots {
    /// The lowest.
    pub first: u16,
    /// The highest.
    pub last: u16,
    /// The owner.
    pub arm: ArmIndex,
}

/// The Slots of a Layer that one Experiment owns.
#[derive(Archive, Serialize)]
pub struct LayerShare {
    /// The Layer.
    pub layer: LayerIndex,
    /// Ascending, disjoint.
    pub slots: Vec<Slots>,
}

/// Slots from `first` to `last`, both of them in it.
#[derive(Archive, Serialize)]
pub struct Slots {
    /// The lowest.
    pub first: u16,
    /// The highest.
    pub last: u16,
}

/// Experiments that share a salt and own disjoint Slots of it.
#[derive(Archive, Serialize)]
pub struct Layer {
    /// Unique name.
    pub name: String,
    /// Seed of the Slot key.
    pub salt: String,
    /// `SlotKey::derive(salt)`.
    pub key: [u8; 32],
}

/// A model at one version, and the Shard that serves it.
#[derive(Archive, Serialize)]
pub struct ModelVersion {
    /// `name@version`.
    pub id: String,
    /// Where it answers.
    pub shard: ShardIndex,
    /// Written into a JSON body's `model` member where the client named an Objective there.
    pub served_name: String,
    /// Replaces the request's path.
    pub path: Option<String>,
}

/// A serving cluster behind one virtual name.
#[derive(Archive, Serialize)]
pub struct Shard {
    /// Unique name.
    pub name: String,
    /// At least one.
    pub endpoints: Vec<Endpoint>,
    /// How an endpoint is chosen.
    pub balance: Balance,
}

/// A value that is looked up for a Unit in the cache tier.
#[derive(Archive, Serialize)]
pub struct Fact {
    /// Unique name.
    pub name: String,
    /// Its type.
    pub kind: FactKind,
    /// Key template with one `{unit}`.
    pub key: String,
    /// Field of a hash under that key.
    pub hash_field: Option<String>,
    /// Stands in where the cache has none; `None`: the Fact is required.
    pub default: Option<Value>,
    /// How old a value may be that a router kept; `None`: as its settings say.
    pub fresh_for_ms: Option<u32>,
}

impl ArchivedPayload {
    /// Finds an Objective by the bytes that a client sent. Hot path: one hash, no allocation.
    pub fn find(&self, token: &[u8]) -> Option<ObjectiveIndex> {
        let token_at = |place: usize| self.objectives.get(place).map(|one| one.token.as_str());
        ObjectiveIndex::new(text_table::find(&self.tokens, token, token_at)?)
    }

    /// The Objective at an index that [`ArchivedPayload::find`] gave.
    pub fn objective(&self, objective: ObjectiveIndex) -> Option<&ArchivedObjective> {
        self.objectives.get(objective.get())
    }

    /// The Model version of an Arm of this Snapshot.
    pub fn model(&self, arm: &ArchivedArm) -> &ArchivedModelVersion {
        &self.models[arm.model.get()]
    }

    /// The Shard of a Model version of this Snapshot.
    pub fn shard(&self, model: &ArchivedModelVersion) -> &ArchivedShard {
        &self.shards[model.shard.get()]
    }

    /// A Fact that an Arm or a Rule of this Snapshot needs.
    pub fn fact(&self, fact: FactIndex) -> &ArchivedFact {
        &self.facts[fact.get()]
    }

    /// The Facts of an Arm of this Snapshot.
    pub fn facts<'a>(
        &'a self,
        arm: &'a ArchivedArm,
    ) -> impl ExactSizeIterator<Item = (FactIndex, &'a ArchivedFact)> {
        arm.facts.iter().map(|fact| (fact.to_native(), &self.facts[fact.get()]))
    }
}

impl ArchivedObjective {
    /// The Arm at an index that a Decision about this Objective gave.
    pub fn arm(&self, arm: ArmIndex) -> &ArchivedArm {
        &self.arms[arm.get()]
    }

    /// The Rule at an index that a Decision about this Objective gave.
    pub fn rule(&self, rule: RuleIndex) -> &ArchivedRule {
        &self.rules[rule.get()]
    }

    /// The Experiment of a Rule of this Objective; `None`: its outcome is an Arm.
    pub fn experiment(&self, rule: &ArchivedRule) -> Option<&ArchivedExperiment> {
        match rule.then {
            ArchivedOutcome::Arm(_) => None,
            ArchivedOutcome::Experiment(experiment) => Some(&self.experiments[experiment.get()]),
        }
    }

    /// The Arm that answers where no Rule decides, and that every Fallout lands on.
    pub fn default_arm(&self) -> ArmIndex {
        self.default_arm.to_native()
    }

    /// The Arm of that name.
    pub fn arm_named(&self, name: &str) -> Option<ArmIndex> {
        ArmIndex::new(self.arms.iter().position(|arm| arm.name == name)?)
    }

    /// The attributes with their indices.
    pub fn attributes(&self) -> impl Iterator<Item = (AttributeIndex, &ArchivedAttribute)> {
        (0..).map(AttributeIndex).zip(self.context.iter())
    }
}

impl ArchivedExperiment {
    /// The key under which its Units fall into Slots.
    pub const fn key(&self) -> SlotKey {
        SlotKey::from_bytes(self.key)
    }

    /// The Arm that owns `slot`, if any does.
    pub fn arm_of(&self, slot: Slot) -> Option<ArmIndex> {
        let after = self.split.partition_point(|part| part.first.to_native() <= slot.get());
        let part = self.split.get(after.checked_sub(1)?)?;
        (slot.get() <= part.last.to_native()).then(|| part.arm.to_native())
    }
}

impl ArchivedLayerShare {
    /// Whether the Experiment owns this Slot of its Layer.
    pub fn contains(&self, slot: Slot) -> bool {
        let after = self.slots.partition_point(|part| part.first.to_native() <= slot.get());
        after
            .checked_sub(1)
            .and_then(|place| self.slots.get(place))
            .is_some_and(|part| slot.get() <= part.last.to_native())
    }
}

impl ArchivedLayer {
    /// The key under which its Units fall into Slots.
    pub const fn key(&self) -> SlotKey {
        SlotKey::from_bytes(self.key)
    }
}

impl ArchivedModelVersion {
    /// The part before `@`.
    pub fn name(&self) -> &str {
        self.id.split_once('@').map_or(&self.id, |(name, _)| name)
    }

    /// The part after `@`.
    pub fn version(&self) -> &str {
        self.id.split_once('@').map_or("", |(_, version)| version)
    }
}

impl ArchivedFact {
    /// The key template's parts before and after `{unit}`.
    pub fn key_parts(&self) -> (&str, &str) {
        self.key.split_once(super::syntax::UNIT_PLACE).unwrap_or((&self.key, ""))
    }
}
