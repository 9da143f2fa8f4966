//! Every reference of a set leads somewhere, and nothing owns more Slots than there are.

use std::collections::BTreeMap;

use switchboard_shared::slot::Slot;

use super::{
    documents::Documents,
    fault::{FaultKind, RuleFault},
    object::{Experiment, Kind, Objective, Outcome, SampleBy, ShadowTarget, ValueKind},
    set::RuleSet,
    yaml::shown,
};

/// Longest list of names in an error: more would not be read.
const NAMES_SHOWN_MAX: usize = 12;

/// Every fault of a set; `documents` tells where its new objects were written.
pub(crate) fn check(set: &RuleSet, documents: &Documents) -> Vec<RuleFault> {
    let mut checker = Checker { set, documents, faults: Vec::new() };
    for (name, model) in &set.models {
        if !set.shards.contains_key(&model.shard) {
            let found = format!("the Shard `{}`", model.shard);
            let expected = existing("Shards", set.shards.keys());
            checker.fault(Kind::Model, name, &["shard"], FaultKind::Dangling, found, expected);
        }
        for fact in model.facts.iter().filter(|fact| !set.facts.contains_key(*fact)) {
            let found = format!("the Fact `{fact}`");
            let expected = existing("Facts", set.facts.keys());
            checker.fault(Kind::Model, name, &["facts"], FaultKind::Dangling, found, expected);
        }
    }
    for objective in set.objectives.values() {
        checker.objective(objective);
    }
    checker.layers();
    checker.faults
}

struct Checker<'a> {
    set: &'a RuleSet,
    documents: &'a Documents,
    faults: Vec<RuleFault>,
}

impl Checker<'_> {
    fn fault(
        &mut self,
        kind: Kind,
        name: &str,
        path: &[&str],
        fault: FaultKind,
        found: String,
        expected: String,
    ) {
        let place = self.documents.place(kind, name, path);
        self.faults.push(RuleFault { place, kind: fault, found, expected });
    }

    fn objective(&mut self, objective: &Objective) {
        let token = &objective.token;
        for (name, arm) in &objective.arms {
            if !self.set.models.contains_key(&arm.model) {
                let found = format!("the Model `{}`", arm.model);
                let expected = existing("Models", self.set.models.keys());
                let path = ["arms", name, "model"];
                self.fault(Kind::Objective, token, &path, FaultKind::Dangling, found, expected);
            }
            for fact in arm.facts.iter().filter(|fact| !self.set.facts.contains_key(*fact)) {
                let found = format!("the Fact `{fact}`");
                let expected = existing("Facts", self.set.facts.keys());
                let path = ["arms", name, "facts"];
                self.fault(Kind::Objective, token, &path, FaultKind::Dangling, found, expected);
            }
        }
        self.facts_unit(objective);
        for (number, target) in objective.shadow.iter().enumerate() {
            self.shadow(objective, target, &["shadow", &number.to_string()]);
        }
        for (name, arm) in &objective.arms {
            for (number, target) in arm.shadow.iter().enumerate() {
                self.shadow(objective, target, &["arms", name, "shadow", &number.to_string()]);
            }
        }
        self.default_arm(objective);
        for (number, rule) in objective.rules.iter().enumerate() {
            let number = number.to_string();
            match &rule.then {
                Outcome::Arm(arm) => self.arm(objective, arm, &["rules", &number, "arm"]),
                Outcome::Experiment(experiment) => self.experiment(objective, &number, experiment),
            }
        }
    }

    /// Facts are looked up for an attribute that can be bucketed.
    fn facts_unit(&mut self, objective: &Objective) {
        let token = &objective.token;
        if let Some(unit) = &objective.unit {
            return self.unit(objective, unit, &["unit"]);
        }
        let set = self.set;
        let needy = objective.arms.iter().find(|(_, arm)| !set.facts_of(arm).is_empty());
        if let Some((name, _)) = needy
            && objective.unit().is_none()
        {
            let found = format!("the Arm `{name}`, which needs Facts");
            let expected =
                "the field `unit`: the attribute that Facts are looked up for".to_owned();
            let path = ["arms", name];
            self.fault(Kind::Objective, token, &path, FaultKind::MissingField, found, expected);
        }
    }

    fn shadow(&mut self, objective: &Objective, target: &ShadowTarget, at: &[&str]) {
        let token = &objective.token;
        if !self.set.models.contains_key(&target.model) {
            let found = format!("the Model `{}`", target.model);
            let expected = existing("Models", self.set.models.keys());
            let path = [at, &["model"]].concat();
            self.fault(Kind::Objective, token, &path, FaultKind::Dangling, found, expected);
        }
        match objective.shadow_unit(target) {
            Some(unit) => self.unit(objective, unit, &[at, &["unit"]].concat()),
            None if target.by == SampleBy::Random => {}
            None => {
                let found = "a sample by unit without the field `unit`".to_owned();
                let expected =
                    "the field `unit`, or experiments that all bucket one attribute".to_owned();
                self.fault(Kind::Objective, token, at, FaultKind::MissingField, found, expected);
            }
        }
    }

    /// Only texts and integers can be bucketed or drawn.
    fn unit(&mut self, objective: &Objective, unit: &str, path: &[&str]) {
        let token = &objective.token;
        match objective.context.get(unit).map(|attribute| attribute.kind) {
            Some(ValueKind::String | ValueKind::Number) => {}
            Some(ValueKind::Bool) => {
                let found = format!("the unit `{unit}`, which is a bool");
                let expected = "a string or number attribute".to_owned();
                self.fault(Kind::Objective, token, path, FaultKind::Type, found, expected);
            }
            None => {
                let found = format!("the unit `{unit}`");
                let expected = existing("attributes of the context", objective.context.keys());
                self.fault(Kind::Objective, token, path, FaultKind::Dangling, found, expected);
            }
        }
    }

    /// Every Fallout lands on the default Arm, so it must never fall out itself.
    fn default_arm(&mut self, objective: &Objective) {
        self.arm(objective, &objective.default, &["default"]);
        let Some(arm) = objective.arms.get(&objective.default) else { return };
        let facts = self.set.facts_of(arm);
        let required = facts
            .iter()
            .find(|fact| self.set.facts.get(**fact).is_some_and(|fact| fact.default.is_none()));
        if let Some(fact) = required {
            let found = format!("the default Arm with the Fact `{fact}`, which has no default");
            let expected = "only Facts that have a default: every Fallout lands here".to_owned();
            let path = ["arms", objective.default.as_str(), "facts"];
            let token = &objective.token;
            self.fault(Kind::Objective, token, &path, FaultKind::Value, found, expected);
        }
    }

    fn arm(&mut self, objective: &Objective, arm: &str, path: &[&str]) {
        if !objective.arms.contains_key(arm) {
            let found = format!("the Arm `{arm}`");
            let expected = existing("Arms", objective.arms.keys());
            let token = &objective.token;
            self.fault(Kind::Objective, token, path, FaultKind::Dangling, found, expected);
        }
    }

    fn experiment(&mut self, objective: &Objective, number: &str, experiment: &Experiment) {
        let token = &objective.token;
        let at = ["rules", number, "experiment"];
        self.unit(objective, &experiment.unit, &[&at[..], &["unit"]].concat());
        for arm in experiment.split.keys() {
            self.arm(objective, arm, &[&at[..], &["split", arm]].concat());
        }
        let Some(share) = &experiment.layer else { return };
        match self.set.layers.get(&share.name) {
            None => {
                let found = format!("the Layer `{}`", share.name);
                let expected = existing("Layers", self.set.layers.keys());
                let path = [&at[..], &["layer"]].concat();
                self.fault(Kind::Objective, token, &path, FaultKind::Dangling, found, expected);
            }
            Some(layer) if layer.salt == experiment.salt => {
                let found = format!("the salt `{}`, which is the Layer's too", shown(&layer.salt));
                let expected = "another: else who is in the experiment decides the Arm".to_owned();
                let path = [&at[..], &["salt"]].concat();
                self.fault(Kind::Objective, token, &path, FaultKind::Value, found, expected);
            }
            Some(_) => {}
        }
    }

    /// The experiments of a Layer together own at most all of its Slots; in the order of Objectives
    /// and Rules, those that no longer fit are at fault.
    fn layers(&mut self) {
        let mut room: BTreeMap<&str, u16> =
            self.set.layers.keys().map(|name| (name.as_str(), Slot::COUNT)).collect();
        let set = self.set;
        for (token, objective) in &set.objectives {
            for (number, rule) in objective.rules.iter().enumerate() {
                let Outcome::Experiment(experiment) = &rule.then else { continue };
                let Some(share) = &experiment.layer else { continue };
                let Some(left) = room.get_mut(share.name.as_str()) else { continue };
                if let Some(less) = left.checked_sub(share.share) {
                    *left = less;
                    continue;
                }
                let left = *left;
                let found = format!("a share of {} in the Layer `{}`", share.share, share.name);
                let expected =
                    format!("at most {left}: the other experiments own {} Slots of 10000", {
                        Slot::COUNT - left
                    });
                let number = number.to_string();
                // Where `layer_share` is not written, this gives the experiment.
                let path = ["rules", &number, "experiment", "layer_share"];
                self.fault(Kind::Objective, token, &path, FaultKind::Capacity, found, expected);
            }
        }
    }
}

pub(super) fn existing<'a>(what: &str, names: impl ExactSizeIterator<Item = &'a String>) -> String {
    let count = names.len();
    if count == 0 {
        return format!("one of the {what}, but there is none");
    }
    let mut shown: Vec<_> = names.take(NAMES_SHOWN_MAX).map(String::as_str).collect();
    if count > NAMES_SHOWN_MAX {
        shown.push("…");
    }
    format!("one of the {what}: {}", shown.join(", "))
}
