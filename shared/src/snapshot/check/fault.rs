//! What the semantic check finds, told so that the author can find it too.

use std::fmt;

use crate::{
    address::AddressError,
    definition::ValueKind,
    limits::{ENDPOINT_WEIGHT_MAX, TEXT_BYTES_MAX, TIMEOUT_MS_MAX},
    predicate::{CompileError, PredicateFault},
    slot::Slot,
};

/// A fault and where it is.
#[derive(Debug, thiserror::Error)]
#[error("{place}")]
pub struct CheckError {
    /// The object, and the part of it.
    pub place: Box<Place>,
    /// What is wrong there.
    #[source]
    pub fault: Box<Fault>,
}

/// An object of the Snapshot, and the part of it that is meant.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Place {
    /// What it is.
    pub object: Object,
    /// Its name or token; empty for the Snapshot as a whole.
    pub name: String,
    /// The part of an Objective, and its name.
    pub part: Option<(Part, String)>,
}

/// What an object is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Object {
    /// All of it.
    Snapshot,
    /// Named by its token.
    Objective,
    /// Named.
    Layer,
    /// Named `name@version`.
    Model,
    /// Named.
    Shard,
    /// Named.
    Fact,
}

/// What a part of an Objective is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Part {
    /// Of its context.
    Attribute,
    /// Of its Arms.
    Arm,
    /// Of its Rules.
    Rule,
    /// Of its shadow targets, named by the candidate.
    Shadow,
}

impl Place {
    /// The object as a whole.
    pub(in crate::snapshot) fn of(object: Object, name: &str) -> Self {
        Self { object, name: name.to_owned(), part: None }
    }

    /// One part of it.
    pub(in crate::snapshot) fn part(self, part: Part, name: &str) -> Self {
        Self { part: Some((part, name.to_owned())), ..self }
    }
}

/// `Objective RECOMMEND_HOME_FEED, rule heavy-trial`
impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.object {
            Object::Snapshot => "Snapshot",
            Object::Objective => "Objective",
            Object::Layer => "Layer",
            Object::Model => "Model",
            Object::Shard => "Shard",
            Object::Fact => "Fact",
        })?;
        if self.object != Object::Snapshot {
            write!(formatter, " {}", Printable(&self.name))?;
        }
        let Some((part, name)) = &self.part else { return Ok(()) };
        let part = match part {
            Part::Attribute => "attribute",
            Part::Arm => "arm",
            Part::Rule => "rule",
            Part::Shadow => "shadow target",
        };
        write!(formatter, ", {part} {}", Printable(name))
    }
}

/// A name that may be hostile: no control characters into logs and terminals.
struct Printable<'a>(&'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = !self.0.is_empty() && self.0.bytes().all(|byte| byte.is_ascii_graphic());
        if plain { formatter.write_str(self.0) } else { write!(formatter, "{:?}", self.0) }
    }
}

/// What is wrong.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// A table above its limit.
    #[error("more than {count_max} {what}")]
    TooMany {
        /// What is counted.
        what: &'static str,
        /// The limit.
        count_max: usize,
    },
    /// A name that is none.
    #[error("{what} is not of the form {expected}")]
    Syntax {
        /// What is named.
        what: &'static str,
        /// The form.
        expected: &'static str,
    },
    /// Two of a kind with one name.
    #[error("defined twice")]
    Twice,
    /// A name that nothing has.
    #[error("there is no {what} `{name}`")]
    Unknown {
        /// What was looked for.
        what: &'static str,
        /// By which name.
        name: String,
    },
    /// An index beyond its table; the builder makes none.
    #[error("its {what} is not in the table")]
    Index {
        /// What was looked for.
        what: &'static str,
    },
    /// The bits that tell which attributes have defaults do not; the builder makes none such.
    #[error("does not know which of its attributes have defaults")]
    Defaults,
    /// Experiments that no Rule has; the builder makes none.
    #[error("has experiments that are no rule's")]
    Experiments,
    /// The table that finds Objectives does not; the builder makes none such.
    #[error("the token table does not find every Objective")]
    TokenTable,
    /// `not_before` after `expires`.
    #[error("expires before it becomes valid")]
    NeverValid,
    /// A default of another type.
    #[error("its default is a {found}, but it is declared a {declared}")]
    DefaultType {
        /// What it is declared.
        declared: ValueKind,
        /// What the default is.
        found: ValueKind,
    },
    /// A default that no request could carry.
    #[error("its default is not finite, or longer than {TEXT_BYTES_MAX} bytes")]
    DefaultValue,
    /// A JSON Fact's default that is none.
    #[error("its default is not one JSON value")]
    DefaultNoJson,
    /// Facts are looked up for a Unit.
    #[error("needs Facts, but its Objective names no unit to look them up for")]
    FactsWithoutUnit,
    /// An attribute that is a Fact of another type, or has what only a request's attribute has.
    #[error("is no Fact of that name and type; Rules can ask for texts, numbers and booleans")]
    AttributeNoFact,
    /// The table of attributes that are Facts does not tell which are; the builder makes none such.
    #[error("does not know which of its attributes are Facts")]
    RuleFacts,
    /// The default Arm may need nothing that can be missing: all Fallout lands there.
    #[error("is the default, but needs Fact `{0}`, which has no default")]
    DefaultArmNeedsFact(String),
    /// One Fact twice in one Arm.
    #[error("needs one Fact twice")]
    FactTwice,
    /// A Predicate that does not compile.
    #[error("its condition cannot be compiled")]
    Compile(#[source] CompileError),
    /// Predicate code that the evaluator cannot run; the builder makes none.
    #[error("a condition cannot be evaluated")]
    Predicate(#[source] PredicateFault),
    /// Only texts and integers are bucketed.
    #[error("its unit `{unit}` is a boolean; a unit is a text or a number")]
    UnitType {
        /// The attribute.
        unit: String,
    },
    /// Beyond `Slot::COUNT`, or reversed; a Definition cannot say so.
    #[error("slots {first}..={last} are not within 0..={}", Slot::LAST)]
    SlotRange {
        /// The lower end.
        first: u16,
        /// The upper end.
        last: u16,
    },
    /// A Slot with two owners, or a list out of order.
    #[error("slot {slot} is owned twice")]
    SlotTwice {
        /// The first such Slot.
        slot: u16,
    },
    /// Two Experiments of one Layer own one Slot.
    #[error("slot {slot} of Layer {layer} is owned by {other} too")]
    LayerSlotTwice {
        /// The first such Slot.
        slot: u16,
        /// The Layer.
        layer: String,
        /// The other owner.
        other: Box<Place>,
    },
    /// Exclusion only means something for one kind of Unit.
    #[error("buckets `{unit}`, but {other} of the same Layer {layer} buckets `{other_unit}`")]
    LayerUnit {
        /// The Layer.
        layer: String,
        /// What this Experiment buckets.
        unit: String,
        /// The other Experiment.
        other: Box<Place>,
        /// What the other one buckets.
        other_unit: String,
    },
    /// One salt for two purposes correlates them.
    #[error("its salt `{salt}` is used by {other} too; every salt decides one thing only")]
    SaltTwice {
        /// The salt.
        salt: String,
        /// The other user.
        other: Box<Place>,
    },
    /// A sample of nothing, or of more than there is.
    #[error("its sample is not within 1..={}", Slot::COUNT)]
    Sample,
    /// Units are drawn, but nothing says what the Unit is.
    #[error("samples by unit, but names no attribute that is the unit")]
    SampleWithoutUnit,
    /// A cap that lets nothing through.
    #[error("its bytes per second are 0")]
    BytesPerSecond,
    /// A key that is not the Objective's; the builder makes none.
    #[error("its sample key is not derived from the Objective's token")]
    SampleKey,
    /// A key of another salt; the builder makes none.
    #[error("its slot key is not derived from its salt")]
    SlotKey,
    /// A Shard without endpoints.
    #[error("has no endpoint")]
    NoEndpoints,
    /// An address that is none.
    #[error("endpoint `{}` is no address", address.escape_debug())]
    Address {
        /// The text.
        address: String,
        /// What is wrong with it.
        source: AddressError,
    },
    /// One address twice in one Shard.
    #[error("endpoint `{0}` is listed twice")]
    AddressTwice(String),
    /// A weight outside its range.
    #[error("endpoint `{address}`: its weight is not within 1..={ENDPOINT_WEIGHT_MAX}")]
    Weight {
        /// The endpoint.
        address: String,
    },
    /// A clock that is off, or never comes.
    #[error("timeout {clock} is not within 1..={TIMEOUT_MS_MAX} ms")]
    Timeout {
        /// Which one.
        clock: &'static str,
    },
}

impl Fault {
    pub(in crate::snapshot) fn at(self, place: Place) -> CheckError {
        CheckError { place: Box::new(place), fault: Box::new(self) }
    }
}
