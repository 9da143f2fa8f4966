//! Every Rule that was tried and why: the same evaluator as `decide`, watched.

use serde::Serialize;

use super::{Decision, Observer, Step, walk};
use crate::{
    context::{Context, Value},
    predicate::Evaluated,
    slot::Slot,
    snapshot::{ArchivedObjective, ArchivedPayload, ArchivedRule, LayerIndex},
};

/// A Decision with all its steps. May allocate: not for the request path of other traffic.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The Objective's token.
    pub objective: String,
    /// The chosen Arm.
    pub arm: String,
    /// `name@version` of its Model version.
    pub model: String,
    /// The Rule that decided.
    pub rule: Option<String>,
    /// The deciding Slot.
    pub slot: Option<u16>,
    /// A [`super::Reason`]'s label.
    pub reason: &'static str,
    /// Whether an Experiment was skipped because the request carries no Unit.
    pub unit_missing: bool,
    /// In the order of trying, up to the one that decided.
    pub tried: Vec<RuleExplanation>,
}

/// One Rule that was tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RuleExplanation {
    /// Its name.
    pub rule: String,
    /// Whether its Predicate holds.
    pub held: bool,
    /// The tests that were evaluated, in order; a Predicate stops as soon as it is decided.
    pub tests: Vec<TestExplanation>,
    /// Where the Unit fell in the Layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<LayerExplanation>,
    /// Where the Unit fell in the Experiment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<u16>,
    /// How it ended.
    pub outcome: RuleOutcome,
}

/// One test that was evaluated.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TestExplanation {
    /// What was asked, such as `country in ["DE", "AT"]`.
    pub test: String,
    /// What the request carries; `None`: nothing.
    pub found: Option<FoundValue>,
    /// Whether it passed.
    pub passed: bool,
}

/// An attribute's value, as JSON writes it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum FoundValue {
    /// A text.
    Text(String),
    /// A number.
    Number(f64),
    /// A boolean.
    Boolean(bool),
}

/// Where a Unit fell in a Layer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LayerExplanation {
    /// Its name.
    pub layer: String,
    /// The Slot of the Layer's salt.
    pub slot: u16,
    /// Whether the Experiment owns it.
    pub inside: bool,
}

/// How a Rule that was tried ended.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleOutcome {
    /// Its Predicate does not hold.
    NotHeld,
    /// The request carries no Unit.
    NoUnit,
    /// The Unit's Slot of the Layer is not this Experiment's.
    OutsideLayer,
    /// Nobody owns the Unit's Slot.
    Unowned,
    /// It chose this Arm.
    Arm(String),
}

/// Decides as [`super::decide`] does, and tells how.
pub fn explain(
    payload: &ArchivedPayload,
    objective: &ArchivedObjective,
    context: &Context<'_>,
) -> (Decision, Explanation) {
    let mut recorder = Recorder { payload, objective, context, tried: Vec::new() };
    let decision = walk(payload, objective, context, &mut recorder);
    let arm = objective.arm(decision.arm);
    let explanation = Explanation {
        objective: objective.token.as_str().to_owned(),
        arm: arm.name.as_str().to_owned(),
        model: payload.model(arm).id.as_str().to_owned(),
        rule: decision.rule.map(|rule| objective.rule(rule).name.as_str().to_owned()),
        slot: decision.slot.map(Slot::get),
        reason: decision.reason.label(),
        unit_missing: decision.unit_missing,
        tried: recorder.tried,
    };
    (decision, explanation)
}

struct Recorder<'a, 'b> {
    payload: &'a ArchivedPayload,
    objective: &'a ArchivedObjective,
    context: &'b Context<'b>,
    tried: Vec<RuleExplanation>,
}

impl<'a> Observer<'a> for Recorder<'a, '_> {
    fn rule(&mut self, rule: &'a ArchivedRule) {
        self.tried.push(RuleExplanation {
            rule: rule.name.as_str().to_owned(),
            held: false,
            tests: Vec::new(),
            layer: None,
            slot: None,
            outcome: RuleOutcome::NotHeld,
        });
    }

    fn test(&mut self, Evaluated { test, passed }: Evaluated<'a>) {
        let attribute = test.attribute.to_native();
        let name = self.objective.context.get(attribute.get()).map_or("", |one| one.name.as_str());
        let found = self.context.get(attribute).map(FoundValue::from);
        if let Some(rule) = self.tried.last_mut() {
            rule.tests.push(TestExplanation {
                test: test.display(name).to_string(),
                found,
                passed,
            });
        }
    }

    fn layer(&mut self, layer: LayerIndex, slot: Slot) {
        let name = self.payload.layers.get(layer.get()).map_or("", |one| one.name.as_str());
        if let Some(rule) = self.tried.last_mut() {
            let layer = name.to_owned();
            rule.layer = Some(LayerExplanation { layer, slot: slot.get(), inside: true });
        }
    }

    fn slot(&mut self, slot: Slot) {
        if let Some(rule) = self.tried.last_mut() {
            rule.slot = Some(slot.get());
        }
    }

    fn step(&mut self, step: Step) {
        let outcome = match step {
            Step::NotHeld => RuleOutcome::NotHeld,
            Step::NoUnit => RuleOutcome::NoUnit,
            Step::OutsideLayer => RuleOutcome::OutsideLayer,
            Step::Unowned => RuleOutcome::Unowned,
            Step::Arm(arm, _) => RuleOutcome::Arm(self.objective.arm(arm).name.as_str().to_owned()),
        };
        if let Some(rule) = self.tried.last_mut() {
            if let Some(layer) = &mut rule.layer {
                layer.inside = outcome != RuleOutcome::OutsideLayer;
            }
            rule.held = outcome != RuleOutcome::NotHeld;
            rule.outcome = outcome;
        }
    }
}

impl From<Value<'_>> for FoundValue {
    fn from(value: Value<'_>) -> Self {
        match value {
            Value::Text(text) => Self::Text(text.to_owned()),
            Value::Number(number) => Self::Number(number),
            Value::Boolean(boolean) => Self::Boolean(boolean),
        }
    }
}
