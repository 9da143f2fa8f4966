//! The plain, owned form of everything that a Snapshot holds, before it is built.
//!
//! The control plane fills it from its registry; [`crate::snapshot`] builds it into the archived
//! form. Objects refer to each other by name here and by checked index there. Slot ownership is
//! already decided (see [`crate::allocation`]): a Definition never holds bare weights.

mod shadow;

use std::fmt;

use rkyv::{Archive, Serialize};

pub use self::shadow::{ArchivedMembers, ArchivedSampleBy, Members, SampleBy, ShadowTarget};
use crate::slot::SlotRange;

/// Everything that one Snapshot says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Definition {
    /// The routers it is meant for; a router of another group refuses it.
    pub group: String,
    /// Refused before this wall-clock time (unix milliseconds), skew tolerance apart.
    pub not_before_unix_ms: Option<u64>,
    /// Refused after this wall-clock time; a router that already serves it raises an alarm instead.
    pub expires_unix_ms: Option<u64>,
    /// The business goals that clients may name.
    pub objectives: Vec<Objective>,
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
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    /// `[A-Z][A-Z0-9_]{0,63}`.
    pub token: String,
    /// The typed attributes that Rules may ask for; at most `ATTRIBUTES_MAX`.
    pub context: Vec<Attribute>,
    /// Name of the attribute that Facts are looked up for: a text, or an integer number. `None`: no Arm and
    /// no Rule of the Objective may need a Fact.
    pub unit: Option<String>,
    /// Name of the Arm that answers where no Rule decides, and that every Fallout lands on.
    pub default_arm: String,
    /// All ways to answer, the default Arm among them.
    pub arms: Vec<Arm>,
    /// Tried in order; the first that decides wins.
    pub rules: Vec<Rule>,
    /// Whether a request may be sent again after an endpoint may have begun it (RFC 9110 §9.2.2).
    pub idempotent: bool,
    /// Overrides of the router's clocks.
    pub timeouts: Timeouts,
    /// Largest request body in bytes; `None`: the router's own limit.
    pub body_bytes_max: Option<u64>,
    /// Candidates that get a sample of its requests; at most `SHADOW_TARGETS_MAX`.
    pub shadow: Vec<ShadowTarget>,
}

/// One typed attribute of the Context.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// `[a-z][a-z0-9_]{0,63}`, as Rules write it; `fact.NAME` if it is the Fact of that name.
    pub name: String,
    /// Where the request carries it.
    pub source: Source,
    /// Its type; a request that carries another type gets 400.
    pub kind: ValueKind,
    /// Used where the request does not carry it.
    pub default: Option<Value>,
}

/// Where a request carries an attribute.
#[derive(Archive, Clone, Debug, Eq, PartialEq, Serialize)]
#[rkyv(derive(Debug, Eq, PartialEq))]
pub enum Source {
    /// A header field, named in lower case.
    Header(String),
    /// A query parameter.
    Query(String),
    /// A member of the JSON body, by JSON Pointer (RFC 6901), such as `/context/country`.
    Body(String),
    /// Not the request, but the cache tier: the Fact of this name. It is absent where the Fact is late,
    /// failed or missing without a default.
    Fact(String),
}

/// The type of an attribute.
#[derive(Archive, Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[rkyv(derive(Clone, Copy, Debug, Eq, PartialEq))]
pub enum ValueKind {
    /// UTF-8 text.
    Text,
    /// An IEEE 754 double, finite.
    Number,
    /// `true` or `false`.
    Boolean,
}

impl fmt::Display for ValueKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Text => "text",
            Self::Number => "number",
            Self::Boolean => "boolean",
        })
    }
}

impl ArchivedValueKind {
    /// The same outside the archive.
    pub const fn to_native(self) -> ValueKind {
        match self {
            Self::Text => ValueKind::Text,
            Self::Number => ValueKind::Number,
            Self::Boolean => ValueKind::Boolean,
        }
    }
}

/// An owned typed value.
#[derive(Archive, Clone, Debug, PartialEq, Serialize)]
#[rkyv(derive(Debug, PartialEq))]
pub enum Value {
    /// UTF-8 text.
    Text(String),
    /// An IEEE 754 double, finite.
    Number(f64),
    /// `true` or `false`.
    Boolean(bool),
}

impl Value {
    /// Its type.
    pub const fn kind(&self) -> ValueKind {
        match self {
            Self::Text(_) => ValueKind::Text,
            Self::Number(_) => ValueKind::Number,
            Self::Boolean(_) => ValueKind::Boolean,
        }
    }
}

/// One way to answer an Objective.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    /// Unique within its Objective; `[a-z0-9][a-z0-9_.-]{0,63}`.
    pub name: String,
    /// `name@version` of the Model version.
    pub model: String,
    /// Names of the Facts that this Arm needs; the default Arm must need none that is required.
    pub facts: Vec<String>,
    /// Where its model server gets them.
    pub facts_into: FactsInto,
    /// Overrides of the Objective's clocks.
    pub timeouts: Timeouts,
}

/// One step of an Objective's decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Unique within its Objective.
    pub name: String,
    /// Must hold for the outcome to be taken; `None`: always.
    pub when: Option<Predicate>,
    /// What happens then.
    pub then: Outcome,
}

/// What a Rule that holds leads to.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// This Arm, for everyone.
    Arm(String),
    /// The Arm that owns the Unit's Slot; a Slot that nobody owns falls through to the next Rule.
    Experiment(Experiment),
}

/// A split of Slots among Arms. It is named by its Rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Name of the attribute that is bucketed; a text, or an integer number.
    pub unit: String,
    /// Seed of the Slot key; another salt re-shuffles every Unit.
    pub salt: String,
    /// Where it lives, if it excludes others.
    pub layer: Option<LayerShare>,
    /// Which Arm owns which Slots; disjoint.
    pub split: Vec<ArmShare>,
}

/// The Slots of a Layer that one Experiment owns.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LayerShare {
    /// Name of the Layer.
    pub layer: String,
    /// Slots of the Layer's own salt.
    pub slots: Vec<SlotRange>,
}

/// The Slots of an Experiment that one Arm owns.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ArmShare {
    /// Name of the Arm.
    pub arm: String,
    /// Slots of the Experiment's own salt.
    pub slots: Vec<SlotRange>,
}

/// Experiments that share a salt and own disjoint Slots of it: no Unit is in two of them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Layer {
    /// Unique name.
    pub name: String,
    /// Seed of the Layer's Slot key.
    pub salt: String,
}

/// A model at one version, and the Shard that serves it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ModelVersion {
    /// `[a-z0-9][a-z0-9_.-]{0,63}`.
    pub name: String,
    /// Version text without `@`.
    pub version: String,
    /// Name of the Shard.
    pub shard: String,
    /// Written into a JSON body's `model` member where the client named an Objective there.
    pub served_name: String,
    /// Replaces the request's path (its query stays); `None`: the client's own path.
    pub path: Option<String>,
}

/// A serving cluster behind one virtual name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Shard {
    /// `[a-z0-9][a-z0-9_.-]{0,63}`.
    pub name: String,
    /// At least one.
    pub endpoints: Vec<Endpoint>,
    /// How an endpoint is chosen.
    pub balance: Balance,
}

/// One address of a Shard.
#[derive(Archive, Clone, Debug, Eq, PartialEq, Serialize)]
#[rkyv(derive(Debug, Eq, PartialEq))]
pub struct Endpoint {
    /// `host:port`, `[IPv6]:port` or `unix:/path`; see [`crate::address::Address`].
    pub address: String,
    /// Relative share of requests, `1..=1000`.
    pub weight: u16,
}

/// How a Shard's endpoint is chosen.
#[derive(Archive, Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[rkyv(derive(Clone, Copy, Debug, Eq, PartialEq))]
pub enum Balance {
    /// The less loaded of two drawn by weight (Mitzenmacher, "The Power of Two Choices", 2001).
    LeastInFlight,
}

/// A value that is looked up for a Unit in the cache tier.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// `[a-z][a-z0-9_]{0,63}`.
    pub name: String,
    /// Its type.
    pub kind: FactKind,
    /// Key template, such as `user:{unit}:country`.
    pub key: String,
    /// Field of a hash under that key; `None`: the key holds the value itself.
    pub hash_field: Option<String>,
    /// Stands in where the cache has none; `None`: the Fact is required. That of a JSON Fact is a text
    /// that holds one JSON value.
    pub default: Option<Value>,
    /// How old a value may be that a router kept, 1 to `TIMEOUT_MS_MAX`; `None`: as the router's settings say.
    pub fresh_for_ms: Option<u32>,
}

/// The type of a Fact.
#[derive(Archive, Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[rkyv(derive(Clone, Copy, Debug, Eq, PartialEq))]
pub enum FactKind {
    /// UTF-8 text.
    Text,
    /// An IEEE 754 double, finite.
    Number,
    /// `true` or `false`.
    Boolean,
    /// Any one JSON value; no Rule can ask for it.
    Json,
}

impl FactKind {
    /// The type of its values; that of a JSON Fact is the text that holds it.
    pub const fn value_kind(self) -> ValueKind {
        match self {
            Self::Text | Self::Json => ValueKind::Text,
            Self::Number => ValueKind::Number,
            Self::Boolean => ValueKind::Boolean,
        }
    }
}

impl From<ValueKind> for FactKind {
    fn from(kind: ValueKind) -> Self {
        match kind {
            ValueKind::Text => Self::Text,
            ValueKind::Number => Self::Number,
            ValueKind::Boolean => Self::Boolean,
        }
    }
}

impl ArchivedFactKind {
    /// The same outside the archive.
    pub const fn to_native(self) -> FactKind {
        match self {
            Self::Text => FactKind::Text,
            Self::Number => FactKind::Number,
            Self::Boolean => FactKind::Boolean,
            Self::Json => FactKind::Json,
        }
    }
}

/// Where an Arm's model server gets the Facts.
#[derive(Archive, Clone, Debug, Eq, PartialEq, Serialize)]
#[rkyv(derive(Debug, Eq, PartialEq))]
pub enum FactsInto {
    /// As one header field each, `x-switchboard-fact-NAME`, with `-` for each `_` of the name.
    Headers,
    /// As members of an object in the JSON body.
    Body(FactsObject),
}

/// An object in a JSON body whose members are the Facts.
#[derive(Archive, Clone, Debug, Eq, PartialEq, Serialize)]
#[rkyv(derive(Debug, Eq, PartialEq))]
pub struct FactsObject {
    /// Where it is, by JSON Pointer (RFC 6901) through objects only; what is missing on the way is made.
    pub pointer: String,
    /// Whose it is.
    pub owner: FactsOwner,
    /// Whether numbers and booleans are written as texts, as OpenAI's `metadata` wants them.
    pub as_text: bool,
    /// What becomes of a client's own member in a Fact's place.
    pub conflict: FactsConflict,
}

/// Whose the object is that the Facts are members of.
#[derive(Archive, Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[rkyv(derive(Clone, Copy, Debug, Eq, PartialEq))]
pub enum FactsOwner {
    /// The router's alone: a client's member of that name as a whole is in its place.
    Router,
    /// The client's too: its other members stay.
    Shared,
}

/// What becomes of a client's own member in a Fact's place. There are never two.
#[derive(Archive, Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[rkyv(derive(Clone, Copy, Debug, Eq, PartialEq))]
pub enum FactsConflict {
    /// The Facts take its place.
    Replace,
    /// The request is answered with 400.
    Refuse,
}

impl Default for FactsInto {
    /// The member `facts` of the body, whatever the client wrote there.
    fn default() -> Self {
        Self::Body(FactsObject {
            pointer: "/facts".to_owned(),
            owner: FactsOwner::Router,
            as_text: false,
            conflict: FactsConflict::Replace,
        })
    }
}

/// Separate clocks in milliseconds; `None`: the next outer setting holds.
#[derive(Archive, Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[rkyv(derive(Clone, Copy, Debug, Eq, PartialEq))]
pub struct Timeouts {
    /// Longest gap between two pieces of the request body.
    pub body_idle_ms: Option<u32>,
    /// Connecting to one endpoint.
    pub connect_ms: Option<u32>,
    /// From the request's last byte to the response's first.
    pub first_byte_ms: Option<u32>,
    /// Longest gap between two pieces of the response.
    pub response_idle_ms: Option<u32>,
    /// From the head to the response's last byte.
    pub total_ms: Option<u32>,
}

/// What a Rule asks of the Context.
///
/// A test of an attribute that the request lacks is unknown, and a Rule holds only where its
/// Predicate is certainly true (Kleene's three-valued logic): neither `country == "DE"` nor
/// `country != "DE"` holds without a country. Only `Exists` can tell.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// Each one holds.
    All(Vec<Predicate>),
    /// At least one holds.
    Any(Vec<Predicate>),
    /// It does not hold.
    Not(Box<Predicate>),
    /// One attribute passes one check.
    Test {
        /// Name of the attribute.
        attribute: String,
        /// The check.
        check: Check,
    },
}

/// One check of one attribute. Types must agree with the attribute's.
#[derive(Clone, Debug, PartialEq)]
pub enum Check {
    /// The request carries it, or it has a default.
    Exists,
    /// It stands in this relation to the value; text compares bytewise.
    Is(Comparison, Value),
    /// It equals one of these.
    In(Vec<Value>),
    /// It starts with this text.
    Prefix(String),
    /// It is a semantic version in this range (`semver::VersionReq` syntax); an attribute that is
    /// no version is unknown.
    Semver(String),
}

/// An order relation.
#[derive(Archive, Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[rkyv(derive(Clone, Copy, Debug, Eq, PartialEq))]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    /// The relation that holds exactly where this one does not; text, numbers and booleans that a
    /// Context can hold are totally ordered.
    pub const fn negated(self) -> Self {
        match self {
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::Less => Self::GreaterOrEqual,
            Self::LessOrEqual => Self::Greater,
            Self::Greater => Self::LessOrEqual,
            Self::GreaterOrEqual => Self::Less,
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        })
    }
}

impl ArchivedComparison {
    /// The same outside the archive.
    pub const fn to_native(self) -> Comparison {
        match self {
            Self::Equal => Comparison::Equal,
            Self::NotEqual => Comparison::NotEqual,
            Self::Less => Comparison::Less,
            Self::LessOrEqual => Comparison::LessOrEqual,
            Self::Greater => Comparison::Greater,
            Self::GreaterOrEqual => Comparison::GreaterOrEqual,
        }
    }
}
