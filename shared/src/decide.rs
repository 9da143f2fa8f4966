//! Chooses the Arm for one request.

mod explain;

pub use self::explain::{
    Explanation, FoundValue, LayerExplanation, RuleExplanation, RuleOutcome, TestExplanation,
    explain,
};
use crate::{
    context::Context,
    predicate::{self, Evaluated},
    slot::Slot,
    snapshot::{
        ArchivedExperiment, ArchivedObjective, ArchivedOutcome, ArchivedPayload, ArchivedRule,
        ArmIndex, LayerIndex, RuleIndex,
    },
};

/// Which Arm answers, and why.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Decision {
    /// Of the Objective that was asked about.
    pub arm: ArmIndex,
    /// The Rule that decided; `None`: none did.
    pub rule: Option<RuleIndex>,
    /// Where the Unit fell, if an Experiment decided.
    pub slot: Option<Slot>,
    /// Why this Arm.
    pub reason: Reason,
    /// Whether an Experiment was skipped because the request carries no Unit.
    pub unit_missing: bool,
}

/// Why an Arm answers. Closed: it is a metric label.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Reason {
    /// A Rule names it.
    Rule,
    /// It owns the Unit's Slot.
    Experiment,
    /// No Rule decided.
    Default,
    /// No Rule decided, and an Experiment was skipped for lack of a Unit.
    NoUnit,
    /// An authenticated caller asked for it; no Exposure.
    Forced,
    /// Fallout: no endpoint of the chosen Arm is up.
    ArmDown,
    /// Fallout: its Facts came after the deadline.
    FactsLate,
    /// Fallout: the cache could not be asked.
    FactsUnavailable,
    /// Fallout: the cache answered with an error.
    FactsFailed,
    /// Fallout: a required Fact is not in the cache.
    FactsMissing,
    /// Fallout: a Fact is not of its declared type, or cannot stand where it should go.
    FactsWrongType,
}

impl Reason {
    /// All of them, for metrics.
    pub const ALL: [Self; 11] = [
        Self::Rule,
        Self::Experiment,
        Self::Default,
        Self::NoUnit,
        Self::Forced,
        Self::ArmDown,
        Self::FactsLate,
        Self::FactsUnavailable,
        Self::FactsFailed,
        Self::FactsMissing,
        Self::FactsWrongType,
    ];

    /// A stable label.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::Experiment => "experiment",
            Self::Default => "default",
            Self::NoUnit => "no_unit",
            Self::Forced => "forced",
            Self::ArmDown => "arm_down",
            Self::FactsLate => "facts_late",
            Self::FactsUnavailable => "facts_unavailable",
            Self::FactsFailed => "facts_failed",
            Self::FactsMissing => "facts_missing",
            Self::FactsWrongType => "facts_wrong_type",
        }
    }

    /// Whether the request left its Arm for the default one.
    pub const fn is_fallout(self) -> bool {
        match self {
            Self::Rule | Self::Experiment | Self::Default | Self::NoUnit | Self::Forced => false,
            Self::ArmDown
            | Self::FactsLate
            | Self::FactsUnavailable
            | Self::FactsFailed
            | Self::FactsMissing
            | Self::FactsWrongType => true,
        }
    }
}

impl Decision {
    /// The same request on the Objective's default Arm. Rule and Slot stay, for the record.
    #[must_use]
    pub fn fall_out(self, objective: &ArchivedObjective, reason: Reason) -> Self {
        debug_assert!(reason.is_fallout(), "{reason:?} is no Fallout");
        Self { arm: objective.default_arm(), reason, ..self }
    }
}

/// Chooses the Arm for one request: the first Rule that decides wins, else the Objective's default.
///
/// Hot path: no allocation, lock, await or clock. At most `RULES_MAX` predicates and twice as many
/// keyed hashes. It cannot fail: every index was checked when the Snapshot was opened. `objective`
/// must be one of `payload`'s.
pub fn decide(
    payload: &ArchivedPayload,
    objective: &ArchivedObjective,
    context: &Context<'_>,
) -> Decision {
    walk(payload, objective, context, &mut Unobserved)
}

/// Sees what [`walk`] does, step by step.
trait Observer<'a> {
    /// The next Rule is tried.
    fn rule(&mut self, _rule: &'a ArchivedRule) {}
    /// One of its tests was evaluated.
    fn test(&mut self, _test: Evaluated<'a>) {}
    /// Where the Unit falls in the Experiment's Layer.
    fn layer(&mut self, _layer: LayerIndex, _slot: Slot) {}
    /// Where the Unit falls in the Experiment.
    fn slot(&mut self, _slot: Slot) {}
    /// How the Rule ended.
    fn step(&mut self, _step: Step) {}
}

/// Costs nothing: the compiler removes every call.
struct Unobserved;

impl Observer<'_> for Unobserved {}

/// How one Rule ended.
#[derive(Clone, Copy)]
enum Step {
    /// Its Predicate does not hold.
    NotHeld,
    /// The request carries no Unit.
    NoUnit,
    /// The Unit is in another Experiment of the Layer, or in none.
    OutsideLayer,
    /// Nobody owns the Slot: this is how a ramp starts small.
    Unowned,
    /// This Arm answers.
    Arm(ArmIndex, Option<Slot>),
}

/// The one evaluator, for [`decide`] and [`explain`].
fn walk<'a>(
    payload: &'a ArchivedPayload,
    objective: &'a ArchivedObjective,
    context: &Context<'_>,
    observer: &mut impl Observer<'a>,
) -> Decision {
    let mut unit_missing = false;
    for (place, rule) in objective.rules.iter().enumerate() {
        observer.rule(rule);
        let step = try_rule(payload, objective, rule, context, observer);
        observer.step(step);
        match step {
            Step::Arm(arm, slot) => {
                let reason = if slot.is_some() { Reason::Experiment } else { Reason::Rule };
                return Decision { arm, rule: RuleIndex::new(place), slot, reason, unit_missing };
            }
            Step::NoUnit => unit_missing = true,
            Step::NotHeld | Step::OutsideLayer | Step::Unowned => {}
        }
    }
    Decision {
        arm: objective.default_arm(),
        rule: None,
        slot: None,
        reason: if unit_missing { Reason::NoUnit } else { Reason::Default },
        unit_missing,
    }
}

fn try_rule<'a>(
    payload: &ArchivedPayload,
    objective: &'a ArchivedObjective,
    rule: &ArchivedRule,
    context: &Context<'_>,
    observer: &mut impl Observer<'a>,
) -> Step {
    let when = rule.when.to_native();
    if !predicate::holds(&objective.tests, when, context, |test| observer.test(test)) {
        return Step::NotHeld;
    }
    match rule.then {
        ArchivedOutcome::Arm(arm) => Step::Arm(arm.to_native(), None),
        ArchivedOutcome::Experiment(experiment) => {
            let experiment = &objective.experiments[experiment.get()];
            try_experiment(payload, experiment, context, observer)
        }
    }
}

/// Two levels with independent salts: the Layer's decides whether the Unit is in this Experiment,
/// the Experiment's own decides on which Arm.
fn try_experiment<'a>(
    payload: &ArchivedPayload,
    experiment: &ArchivedExperiment,
    context: &Context<'_>,
    observer: &mut impl Observer<'a>,
) -> Step {
    // Else all requests that lack the Unit would share one Slot, and so one Arm.
    let Some(unit) = context.unit(experiment.unit.to_native()) else { return Step::NoUnit };
    if let Some(share) = experiment.layer.as_ref() {
        let slot = Slot::of(&payload.layers[share.layer.get()].key(), &unit);
        observer.layer(share.layer.to_native(), slot);
        if !share.contains(slot) {
            return Step::OutsideLayer;
        }
    }
    let slot = Slot::of(&experiment.key(), &unit);
    observer.slot(slot);
    experiment.arm_of(slot).map_or(Step::Unowned, |arm| Step::Arm(arm, Some(slot)))
}
