//! Rule files: from YAML text to a checked, allocated Definition.
//!
//! In reading order: [`yaml`] gives trees with positions, [`decode`] turns them into [`object`]s,
//! [`expression`] compiles each `when`; [`set`] puts them on top of what the registry holds,
//! [`check`] follows every reference, [`allocate`] decides who owns which Slots, [`conditions`] keeps what is
//! compiled, [`compile`] writes the Definition, and [`draft`] holds all of that. [`mod@write`] is the way back to YAML.
//!
//! Nothing here does I/O.

mod allocate;
mod check;
mod compile;
mod conditions;
mod decode;
mod documents;
mod draft;
mod expression;
mod fault;
mod object;
mod pattern;
mod read;
mod scalar;
mod set;
mod slots;
mod write;
mod yaml;

pub use self::{
    allocate::{Allocations, ExperimentKey, ExperimentSlots, LayerOwners},
    conditions::Conditions,
    documents::{Documents, FILE_BYTES_MAX, RuleFile, read},
    draft::Draft,
    fault::{FaultKind, Place, RuleFault},
    object::{
        Allocation, Arm, Attribute, Endpoint, Experiment, Fact, FactKind, FactsInto, FactsObject,
        Golden, Kind, LatencyLimits, Layer, LayerShare, LayerSlots, Model, Object, Objective,
        Outcome, RedisKey, Rule, SampleBy, Scalar, ShadowTarget, Shard, Timeouts, ValueKind,
    },
    set::{RuleSet, Unmentioned},
    slots::{SlotSet, SlotSetError},
    write::{WriteError, write},
};

/// The JSON Schema of one document of a rule file.
pub const SCHEMA: &str = include_str!("../schema/rules.schema.json");
