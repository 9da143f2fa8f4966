//! The objects that rule files hold, in the canonical form that the registry stores.
//!
//! Maps are sorted by name, so that re-ordering a file changes no digest; durations are whole
//! milliseconds and sizes whole bytes. `None` means "not written": defaults that another object
//! decides are filled in by [`crate::rules::compile`].

mod placement;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub use self::placement::{Endpoint, Golden, LatencyLimits, Model, Shard};
use super::slots::SlotSet;

/// Which kind of object a document holds.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub enum Kind {
    /// A business goal with its Context, Arms and Rules.
    Objective,
    /// Mutual exclusion among Experiments.
    Layer,
    /// A looked-up value.
    Fact,
    /// A Model version.
    Model,
    /// A serving cluster.
    Shard,
    /// Explicit Slot ownership of one Experiment, as `export` prints it.
    Allocation,
}

impl Kind {
    /// Each kind that a document may have, in the order that `export` prints them.
    pub const ALL: [Self; 6] =
        [Self::Objective, Self::Layer, Self::Fact, Self::Model, Self::Shard, Self::Allocation];

    /// The word in a document's `kind` field.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Objective => "Objective",
            Self::Layer => "Layer",
            Self::Fact => "Fact",
            Self::Model => "Model",
            Self::Shard => "Shard",
            Self::Allocation => "Allocation",
        }
    }

    /// Reads the word in a document's `kind` field.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.word())
    }
}

/// One document's content.
#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    /// See [`Kind::Objective`].
    Objective(Objective),
    /// See [`Kind::Layer`].
    Layer(Layer),
    /// See [`Kind::Fact`].
    Fact(Fact),
    /// See [`Kind::Model`].
    Model(Model),
    /// See [`Kind::Shard`].
    Shard(Shard),
    /// See [`Kind::Allocation`].
    Allocation(Allocation),
}

impl Object {
    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Objective(_) => Kind::Objective,
            Self::Layer(_) => Kind::Layer,
            Self::Fact(_) => Kind::Fact,
            Self::Model(_) => Kind::Model,
            Self::Shard(_) => Kind::Shard,
            Self::Allocation(_) => Kind::Allocation,
        }
    }

    /// What it is called, unique within its kind: `feed-ranker@2` for a Model version.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Objective(objective) => objective.token.clone(),
            Self::Layer(layer) => layer.name.clone(),
            Self::Fact(fact) => fact.name.clone(),
            Self::Model(model) => model.reference(),
            Self::Shard(shard) => shard.name.clone(),
            Self::Allocation(allocation) => format!("{}/{}", allocation.objective, allocation.rule),
        }
    }
}

/// A business goal that clients may name.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Objective {
    /// `[A-Z][A-Z0-9_]{0,63}`.
    pub token: String,
    /// Typed attributes by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub context: BTreeMap<String, Attribute>,
    /// Name of the attribute that Facts are looked up for; `None`: what all its Experiments bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Name of the default Arm.
    pub default: String,
    /// Arms by name.
    pub arms: BTreeMap<String, Arm>,
    /// Tried in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// Whether a request may be sent again after an endpoint may have begun it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub idempotent: bool,
    /// Overrides of the router's clocks.
    #[serde(default, skip_serializing_if = "Timeouts::is_empty")]
    pub timeouts: Timeouts,
    /// Largest request body in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_bytes_max: Option<u64>,
    /// Candidates that get a sample of its requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shadow: Vec<ShadowTarget>,
}

impl Objective {
    /// Its Experiments, in the order of its Rules.
    pub fn experiments(&self) -> impl Iterator<Item = (&Rule, &Experiment)> {
        self.rules.iter().filter_map(|rule| match &rule.then {
            Outcome::Experiment(experiment) => Some((rule, experiment)),
            Outcome::Arm(_) => None,
        })
    }

    /// Its shadow targets, and the Arm that each is written at.
    pub fn shadow_targets(&self) -> impl Iterator<Item = (Option<&String>, &ShadowTarget)> {
        let of_arm = |(name, arm)| {
            let arm: &Arm = arm;
            arm.shadow.iter().map(move |target| (Some(name), target))
        };
        self.shadow.iter().map(|target| (None, target)).chain(self.arms.iter().flat_map(of_arm))
    }

    /// The attribute that a shadow target draws by: its own, else the Objective's.
    #[must_use]
    pub fn shadow_unit<'a>(&'a self, target: &'a ShadowTarget) -> Option<&'a str> {
        target.unit.as_deref().or_else(|| self.unit())
    }

    /// The attribute that Facts are looked up for and that shadow targets draw by: as written, else what all its Experiments bucket.
    #[must_use]
    pub fn unit(&self) -> Option<&str> {
        if let Some(unit) = &self.unit {
            return Some(unit);
        }
        let mut units = self.experiments().map(|(_, experiment)| experiment.unit.as_str());
        let first = units.next()?;
        units.all(|unit| unit == first).then_some(first)
    }
}

/// One typed attribute of the Context.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Attribute {
    /// `header:NAME` (lower case), `query:NAME` or `body:/JSON/POINTER`.
    pub from: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: ValueKind,
    /// Used where the request does not carry it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Scalar>,
}

/// The type of an attribute.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ValueKind {
    /// UTF-8 text.
    String,
    /// A finite IEEE 754 double.
    Number,
    /// `true` or `false`.
    Bool,
}

impl ValueKind {
    /// The word in a `type` field.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Number => "number",
            Self::Bool => "bool",
        }
    }
}

/// A typed value as JSON and YAML write it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Scalar {
    /// `true` or `false`.
    Bool(bool),
    /// A finite number.
    Number(f64),
    /// Text.
    String(String),
}

impl Scalar {
    /// Its type.
    #[must_use]
    pub const fn kind(&self) -> ValueKind {
        match self {
            Self::Bool(_) => ValueKind::Bool,
            Self::Number(_) => ValueKind::Number,
            Self::String(_) => ValueKind::String,
        }
    }
}

/// One way to answer.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Arm {
    /// `name@version` of a Model.
    pub model: String,
    /// Names of Facts.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub facts: BTreeSet<String>,
    /// Where its model server gets them; `None`: where the Model says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts_into: Option<FactsInto>,
    /// Overrides of the Objective's clocks.
    #[serde(default, skip_serializing_if = "Timeouts::is_empty")]
    pub timeouts: Timeouts,
    /// Candidates that get a sample of the requests that are decided for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shadow: Vec<ShadowTarget>,
}

/// A candidate that gets a sample of the requests, as records.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ShadowTarget {
    /// `name@version` of a Model.
    pub model: String,
    /// How many of 10 000.
    pub sample: u16,
    /// What is drawn.
    #[serde(default)]
    pub by: SampleBy,
    /// The attribute that is drawn; `None`: the one that all experiments of the Objective bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Bytes of records per second and router.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_second_max: Option<u64>,
    /// Kafka topic; `None`: the router's own setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Whether the answer's body is copied, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub capture_response: bool,
    /// The only members of JSON bodies that are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<String>,
    /// Members of JSON bodies that are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drop: Vec<String>,
}

/// What is drawn.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SampleBy {
    /// Units.
    #[default]
    Unit,
    /// Requests.
    Random,
}

impl SampleBy {
    /// The word in a `by` field.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Unit => "unit",
            Self::Random => "random",
        }
    }
}

/// One step of the decision.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Rule {
    /// Unique within its Objective.
    pub name: String,
    /// A condition in CEL; `None`: always holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// What happens where it holds.
    #[serde(flatten)]
    pub then: Outcome,
}

/// What a Rule leads to.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The named Arm.
    Arm(String),
    /// A split among Arms.
    Experiment(Experiment),
}

/// A split of Slots among Arms.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Name of the bucketed attribute.
    pub unit: String,
    /// Seed of the Slots.
    pub salt: String,
    /// Where it lives, if it excludes others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<LayerShare>,
    /// Slots out of 10 000 by Arm; what is left over falls through.
    pub split: BTreeMap<String, u16>,
}

/// An Experiment's part of its Layer.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LayerShare {
    /// Name of the Layer.
    pub name: String,
    /// How many of the Layer's 10 000 Slots the Experiment owns.
    pub share: u16,
}

/// Experiments that exclude each other.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Layer {
    /// Unique name.
    pub name: String,
    /// Seed of its Slots; `layer/NAME` where the file does not say.
    pub salt: String,
}

/// A looked-up value.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Fact {
    /// Unique name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: FactKind,
    /// Where the cache tier keeps it.
    pub redis: RedisKey,
    /// Stands in where the cache has none; `None`: required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Scalar>,
    /// How old a value may be that a router kept; `None`: as the router's settings say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh_for: Option<u32>,
}

/// The type of a Fact.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FactKind {
    /// UTF-8 text.
    String,
    /// A finite IEEE 754 double.
    Number,
    /// `true` or `false`.
    Bool,
    /// Any JSON value; its default is a text that holds one.
    Json,
}

impl FactKind {
    /// The word in a `type` field.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Number => "number",
            Self::Bool => "bool",
            Self::Json => "json",
        }
    }
}

/// Where a model server gets Facts.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FactsInto {
    /// One header field each.
    Headers,
    /// Members of an object in the JSON body.
    Body(FactsObject),
}

/// An object in a JSON body whose members are Facts.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FactsObject {
    /// JSON Pointer to it.
    pub pointer: String,
    /// Whether the client's other members of it stay.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub merge: bool,
    /// Whether numbers and booleans are written as texts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub as_text: bool,
    /// Whether a client's own member in a Fact's place is answered with 400, and not replaced.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refuse: bool,
}

/// Where the cache tier keeps a Fact.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RedisKey {
    /// Key template that contains `{unit}`.
    pub key: String,
    /// Field of a hash under that key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

/// Clocks in whole milliseconds.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Timeouts {
    /// Longest gap between two pieces of the request body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_idle: Option<u32>,
    /// Connecting to one endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect: Option<u32>,
    /// From the request's last byte to the response's first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte: Option<u32>,
    /// Longest gap between two pieces of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_idle: Option<u32>,
    /// From the head to the response's last byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u32>,
}

impl Timeouts {
    /// Whether no clock is overridden.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Explicit Slot ownership of one Experiment.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Allocation {
    /// Token of the Objective.
    pub objective: String,
    /// Name of the Rule.
    pub rule: String,
    /// The Experiment's salt; another salt makes the Slots meaningless.
    pub salt: String,
    /// Its Slots of the Layer, if it lives in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<LayerSlots>,
    /// Slots by Arm.
    pub split: BTreeMap<String, SlotSet>,
}

/// The Slots of a Layer that one Experiment owns.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LayerSlots {
    /// The Layer's salt.
    pub salt: String,
    /// Slots of that salt.
    pub slots: SlotSet,
}
