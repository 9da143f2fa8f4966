//! Which Experiment owns which Slots of a Layer, and which Arm owns which of an Experiment.
//!
//! Slots are never derived from weights again: each change starts from what was stored before and
//! moves as few Slots as `shared::allocation` can. Another salt is another Experiment and starts
//! anew.

use std::{collections::BTreeMap, fmt};

use switchboard_shared::{
    allocation::{Allocation as Owners, AllocationError, Weights},
    slot::SlotRange,
};

use super::{
    documents::Documents,
    fault::{FaultKind, RuleFault},
    object::{Allocation, Experiment, Kind, LayerSlots, Object},
    set::RuleSet,
    slots::SlotSet,
    yaml::shown,
};

/// Which Experiment: its Objective and Rule.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ExperimentKey {
    /// Token of the Objective.
    pub objective: String,
    /// Name of the Rule.
    pub rule: String,
}

/// `OBJECTIVE/rule`: its name among the owners of a Layer. Neither part holds a `/`.
impl fmt::Display for ExperimentKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.objective, self.rule)
    }
}

/// Which Arm owns which Slots.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ExperimentSlots {
    /// The Experiment's.
    pub salt: String,
    /// By Arm.
    pub arms: Owners,
}

/// Which Experiment owns which Slots of a Layer.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LayerOwners {
    /// The Layer's.
    pub salt: String,
    /// By [`ExperimentKey`], as text.
    pub experiments: Owners,
}

/// All Slot ownership of one version.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Allocations {
    /// Of every Experiment.
    pub experiments: BTreeMap<ExperimentKey, ExperimentSlots>,
    /// Of every Layer, by name.
    pub layers: BTreeMap<String, LayerOwners>,
}

impl Allocations {
    /// One document per Experiment: read again, they give the same ownership.
    #[must_use]
    pub fn documents(&self, set: &RuleSet) -> Vec<Allocation> {
        let document = |(key, slots): (&ExperimentKey, &ExperimentSlots)| {
            let layer = experiment_of(set, key)
                .and_then(|experiment| experiment.layer.as_ref())
                .and_then(|share| self.layers.get(&share.name))
                .map(|owners| LayerSlots {
                    salt: owners.salt.clone(),
                    slots: slot_set(owners.experiments.ranges(&key.to_string())),
                });
            let split = slots.arms.owners().map(|(arm, slots)| (arm.to_owned(), slot_set(slots)));
            Allocation {
                objective: key.objective.clone(),
                rule: key.rule.clone(),
                salt: slots.salt.clone(),
                layer,
                split: split.collect(),
            }
        };
        self.experiments.iter().map(document).collect()
    }
}

fn slot_set(ranges: &[SlotRange]) -> SlotSet {
    SlotSet::of_ranges(ranges.to_vec()).expect("an owner has each Slot once")
}

fn experiment_of<'a>(set: &'a RuleSet, key: &ExperimentKey) -> Option<&'a Experiment> {
    let objective = set.objectives.get(&key.objective)?;
    objective
        .experiments()
        .find(|(rule, _)| rule.name == key.rule)
        .map(|(_, experiment)| experiment)
}

/// Every Experiment of a set with its key.
fn experiments(set: &RuleSet) -> impl Iterator<Item = (ExperimentKey, &Experiment)> {
    set.objectives.values().flat_map(|objective| {
        objective.experiments().map(|(rule, experiment)| {
            let (objective, rule) = (objective.token.clone(), rule.name.clone());
            (ExperimentKey { objective, rule }, experiment)
        })
    })
}

/// How many Slots of each Layer each Experiment in it owns, by [`ExperimentKey`] as text.
fn shares(set: &RuleSet) -> BTreeMap<&str, Weights> {
    let mut shares: BTreeMap<&str, Weights> = BTreeMap::new();
    for (key, experiment) in experiments(set) {
        if let Some(share) = &experiment.layer {
            shares.entry(&share.name).or_default().insert(key.to_string(), share.share);
        }
    }
    shares
}

/// Allocates every Experiment and Layer of `set`, starting from `previous`. Allocation documents
/// take the place of what was before.
///
/// # Errors
/// An Allocation document that does not fit the set, or that claims what another one owns.
pub(super) fn allocate(
    set: &RuleSet,
    previous: &Allocations,
    documents: &Documents,
) -> Result<Allocations, Vec<RuleFault>> {
    let shares = shares(set);
    let previous = previous.clone();
    let mut claims = Claims { set, shares: &shares, documents, previous, faults: Vec::new() };
    claims.forget_the_gone();
    for object in documents.objects() {
        if let Object::Allocation(allocation) = object {
            claims.claim(allocation);
        }
    }
    claims.claim_layers();
    if !claims.faults.is_empty() {
        return Err(claims.faults);
    }
    let previous = claims.previous;

    let mut faults = Vec::new();
    let mut next = Allocations::default();
    let nothing = Owners::EMPTY;
    for (key, experiment) in experiments(set) {
        let before = previous.experiments.get(&key).filter(|slots| slots.salt == experiment.salt);
        let before = before.map_or(&nothing, |slots| &slots.arms);
        match reallocated(before, &experiment.split) {
            Ok(arms) => {
                let salt = experiment.salt.clone();
                next.experiments.insert(key, ExperimentSlots { salt, arms });
            }
            Err(error) => faults.push(too_much(documents, Kind::Objective, &key.objective, &error)),
        }
    }
    let nobody = Weights::new();
    for (name, layer) in &set.layers {
        let shares = shares.get(name.as_str()).unwrap_or(&nobody);
        let before = previous.layers.get(name).filter(|owners| owners.salt == layer.salt);
        let before = before.map_or(&nothing, |owners| &owners.experiments);
        match reallocated(before, shares) {
            Ok(experiments) => {
                let salt = layer.salt.clone();
                next.layers.insert(name.clone(), LayerOwners { salt, experiments });
            }
            Err(error) => faults.push(too_much(documents, Kind::Layer, name, &error)),
        }
    }
    if faults.is_empty() { Ok(next) } else { Err(faults) }
}

/// The same Slots where the weights are the same, which is most often.
fn reallocated(before: &Owners, weights: &Weights) -> Result<Owners, AllocationError> {
    let owned = before.owners().len();
    let wanted = weights.iter().filter(|(_, weight)| **weight > 0);
    let same = wanted.clone().count() == owned
        && wanted.into_iter().all(|(owner, weight)| before.weight(owner) == *weight);
    if same { Ok(before.clone()) } else { before.reallocate(weights) }
}

fn too_much(documents: &Documents, kind: Kind, name: &str, error: &AllocationError) -> RuleFault {
    let place = documents.place(kind, name, &[]);
    let expected = "Slots that fit".to_owned();
    RuleFault { place, kind: FaultKind::Capacity, found: error.to_string(), expected }
}

/// What Allocation documents claim, on top of what was before.
struct Claims<'a> {
    set: &'a RuleSet,
    shares: &'a BTreeMap<&'a str, Weights>,
    documents: &'a Documents,
    previous: Allocations,
    faults: Vec<RuleFault>,
}

impl Claims<'_> {
    /// Who is no longer in a Layer owns nothing that a document could collide with.
    fn forget_the_gone(&mut self) {
        for (name, owners) in &mut self.previous.layers {
            let shares = self.shares.get(name.as_str());
            let still_in = |owner: &str| shares.is_some_and(|shares| shares.contains_key(owner));
            let kept = owners.experiments.owners().filter(|(owner, _)| still_in(owner));
            owners.experiments =
                Owners::from_ranges(kept).expect("some of disjoint owners are disjoint");
        }
    }

    fn claim(&mut self, allocation: &Allocation) {
        let (objective, rule) = (allocation.objective.clone(), allocation.rule.clone());
        let key = ExperimentKey { objective, rule };
        let Some(experiment) = experiment_of(self.set, &key) else {
            let found = format!("the experiment `{key}`");
            let expected = "an Objective with an experiment in a Rule of that name".to_owned();
            return self.fault(&key, &["rule"], FaultKind::Dangling, found, expected);
        };
        if experiment.salt != allocation.salt {
            let found = format!("the salt `{}`", shown(&allocation.salt));
            let expected = format!("the experiment's: `{}`", shown(&experiment.salt));
            return self.fault(&key, &["salt"], FaultKind::Value, found, expected);
        }
        let owners = allocation.split.iter().map(|(arm, slots)| (arm.as_str(), slots.ranges()));
        let arms = Owners::from_ranges(owners).expect("decoding refused a Slot in two Arms");
        for arm in experiment.split.keys().chain(allocation.split.keys()) {
            let wanted = experiment.split.get(arm).copied().unwrap_or(0);
            if arms.weight(arm) != wanted {
                let found = format!("{} Slots for the Arm `{arm}`", arms.weight(arm));
                let expected = format!("{wanted}, as the experiment's split says");
                return self.fault(&key, &["split", arm], FaultKind::Value, found, expected);
            }
        }
        if allocation.layer.is_some() && experiment.layer.is_none() {
            let found = "Slots of a Layer".to_owned();
            let expected = "none: the experiment is in no Layer".to_owned();
            return self.fault(&key, &["layer"], FaultKind::Value, found, expected);
        }
        let salt = allocation.salt.clone();
        self.previous.experiments.insert(key, ExperimentSlots { salt, arms });
    }

    fn claim_layers(&mut self) {
        let mut layers: BTreeMap<&str, Vec<(ExperimentKey, &LayerSlots)>> = BTreeMap::new();
        let documents = self.documents;
        for object in documents.objects() {
            let Object::Allocation(allocation) = object else { continue };
            let (objective, rule) = (allocation.objective.clone(), allocation.rule.clone());
            let key = ExperimentKey { objective, rule };
            let share = experiment_of(self.set, &key).and_then(|one| one.layer.as_ref());
            if let (Some(slots), Some(share)) = (&allocation.layer, share)
                && self.layer_fits(&key, slots, &share.name, share.share)
            {
                layers.entry(&share.name).or_default().push((key, slots));
            }
        }
        for (name, claims) in layers {
            self.claim_layer(name, &claims);
        }
    }

    fn layer_fits(
        &mut self,
        key: &ExperimentKey,
        slots: &LayerSlots,
        name: &str,
        share: u16,
    ) -> bool {
        let Some(layer) = self.set.layers.get(name) else { return false };
        if slots.salt != layer.salt {
            let found = format!("the Layer's salt `{}`", shown(&slots.salt));
            let expected = format!("`{}`, as the Layer `{name}` says", shown(&layer.salt));
            self.fault(key, &["layer", "salt"], FaultKind::Value, found, expected);
            return false;
        }
        if slots.slots.len() != share {
            let found = format!("{} Slots of the Layer `{name}`", slots.slots.len());
            let expected = format!("{share}, as the experiment's layer_share says");
            self.fault(key, &["layer", "slots"], FaultKind::Value, found, expected);
            return false;
        }
        true
    }

    fn claim_layer(&mut self, name: &str, claims: &[(ExperimentKey, &LayerSlots)]) {
        let Some(layer) = self.set.layers.get(name) else { return };
        let before = self.previous.layers.get(name).filter(|owners| owners.salt == layer.salt);
        let before = before.map_or(Owners::EMPTY, |owners| owners.experiments.clone());
        let claimed: Vec<(String, &[SlotRange])> =
            claims.iter().map(|(key, slots)| (key.to_string(), slots.slots.ranges())).collect();
        let kept = before
            .owners()
            .filter(|(owner, _)| claimed.iter().all(|(claimer, _)| claimer != owner));
        let all = kept.chain(claimed.iter().map(|(owner, ranges)| (owner.as_str(), *ranges)));
        match Owners::from_ranges(all) {
            Ok(experiments) => {
                let owners = LayerOwners { salt: layer.salt.clone(), experiments };
                self.previous.layers.insert(name.to_owned(), owners);
            }
            Err(error) => {
                let Some((key, _)) = claims.last() else { return };
                let expected = "each Slot of a Layer with one owner".to_owned();
                let found = error.to_string();
                self.fault(key, &["layer", "slots"], FaultKind::Value, found, expected);
            }
        }
    }

    fn fault(
        &mut self,
        key: &ExperimentKey,
        path: &[&str],
        kind: FaultKind,
        found: String,
        expected: String,
    ) {
        let place = self.documents.place(Kind::Allocation, &key.to_string(), path);
        self.faults.push(RuleFault { place, kind, found, expected });
    }
}

#[cfg(test)]
mod tests;
