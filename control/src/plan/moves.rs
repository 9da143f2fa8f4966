//! How many Units move between which Arms.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use switchboard_shared::{allocation::Allocation as Owners, slot::Slot};
use utoipa::ToSchema;

use super::Change;
use crate::{
    registry::Content,
    rules::{ExperimentKey, Outcome, Rule, SlotSet},
};

/// One Experiment whose Units do not all stay where they are.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
pub struct ExperimentChange {
    /// Token of the Objective.
    pub objective: String,
    /// Name of the Rule.
    pub rule: String,
    /// What happens to it.
    pub change: Change,
    /// Whether the numbers are exact, or what is expected under a new salt.
    pub exact: bool,
    /// Whether its condition or unit changes too: then it meets other requests than before, and the
    /// numbers hold for those that it meets before and after.
    pub audience_changed: bool,
    /// Who moves; Units that stay are not listed.
    pub moves: Vec<UnitMove>,
}

/// Units that move from one Arm to another.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
pub struct UnitMove {
    /// `None`: the Units fall through to the next Rule.
    pub from: Option<String>,
    /// `None`: the Units fall through to the next Rule.
    pub to: Option<String>,
    /// How many Slots of the Experiment's own salt, where these alone tell who moves.
    pub slots: Option<u16>,
    /// Which they are, such as `["8000-8999"]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slot_ranges: Vec<String>,
    /// The share of all Units that the Experiment could meet, in percent.
    pub percent: f64,
}

/// Parts of all Units: one Slot of a Layer times one Slot of an Experiment.
const PARTS: u64 = Slot::COUNT as u64 * Slot::COUNT as u64;

pub(super) fn experiments(before: &Content, after: &Content) -> Vec<ExperimentChange> {
    let keys: BTreeSet<&ExperimentKey> =
        before.allocations.experiments.keys().chain(after.allocations.experiments.keys()).collect();
    keys.into_iter().filter_map(|key| experiment(key, before, after)).collect()
}

fn experiment(key: &ExperimentKey, before: &Content, after: &Content) -> Option<ExperimentChange> {
    let (old, new) = (Side::of(key, before), Side::of(key, after));
    let same_salts = match (&old, &new) {
        (Some(old), Some(new)) => old.salts() == new.salts(),
        // All of them come from, or go to, falling through: nothing has to be matched.
        (None, _) | (_, None) => true,
    };
    let audience_changed = match (&old, &new) {
        (Some(old), Some(new)) => old.audience() != new.audience(),
        (None, _) | (_, None) => false,
    };
    let change = match (&old, &new) {
        (None, _) => Change::Added,
        (_, None) => Change::Removed,
        (Some(_), Some(_)) => Change::Changed,
    };
    let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
    // Most experiments of most changes: nothing to count.
    if change == Change::Changed && same_salts && old.owners() == new.owners() && !audience_changed
    {
        return None;
    }
    let moves = if same_salts { exact(&old, &new) } else { expected(&old, &new) };
    (!moves.is_empty() || audience_changed).then(|| ExperimentChange {
        objective: key.objective.clone(),
        rule: key.rule.clone(),
        change,
        exact: same_salts,
        audience_changed,
        moves,
    })
}

/// An Experiment in one version.
#[derive(Default)]
struct Side<'a> {
    rule: Option<&'a Rule>,
    salt: &'a str,
    arms: Owners,
    /// Salt and own Slots of the Layer; `None`: every Unit.
    layer: Option<(&'a str, BTreeSet<Slot>)>,
}

impl<'a> Side<'a> {
    fn of(key: &ExperimentKey, content: &'a Content) -> Option<Self> {
        let slots = content.allocations.experiments.get(key)?;
        let objective = content.set.objectives.get(&key.objective)?;
        let (rule, experiment) = objective.experiments().find(|(rule, _)| rule.name == key.rule)?;
        let layer = experiment.layer.as_ref().and_then(|share| {
            let owners = content.allocations.layers.get(&share.name)?;
            let ranges = owners.experiments.ranges(&key.to_string());
            let slots = ranges.iter().flat_map(|range| range.slots()).collect();
            Some((owners.salt.as_str(), slots))
        });
        Some(Self { rule: Some(rule), salt: &slots.salt, arms: slots.arms.clone(), layer })
    }

    /// What decides where a Unit falls.
    fn salts(&self) -> (&str, Option<&str>) {
        (self.salt, self.layer.as_ref().map(|(salt, _)| *salt))
    }

    /// Who owns what.
    const fn owners(&self) -> (&Owners, Option<&BTreeSet<Slot>>) {
        match &self.layer {
            Some((_, slots)) => (&self.arms, Some(slots)),
            None => (&self.arms, None),
        }
    }

    /// What decides which requests it meets.
    fn audience(&self) -> Option<(Option<&str>, &str)> {
        let rule = self.rule?;
        let Outcome::Experiment(experiment) = &rule.then else { return None };
        Some((rule.when.as_deref(), &experiment.unit))
    }

    fn owns_of_layer(&self, slot: Slot) -> bool {
        self.layer.as_ref().is_none_or(|(_, slots)| slots.contains(&slot))
    }

    /// The Arm of every Slot of its own salt.
    fn arm_of_slots(&self) -> Vec<Option<&str>> {
        let mut arms = vec![None; usize::from(Slot::COUNT)];
        for (arm, ranges) in self.arms.owners() {
            for slot in ranges.iter().flat_map(|range| range.slots()) {
                if let Some(place) = arms.get_mut(usize::from(slot.get())) {
                    *place = Some(arm);
                }
            }
        }
        arms
    }
}

type Way<'a> = (Option<&'a str>, Option<&'a str>);

/// Each Unit keeps its Slots, so who moves is counted.
fn exact(old: &Side<'_>, new: &Side<'_>) -> Vec<UnitMove> {
    let (mut both, mut left, mut joined) = (0_u64, 0_u64, 0_u64);
    for slot in Slot::all() {
        match (
            old.rule.is_some() && old.owns_of_layer(slot),
            new.rule.is_some() && new.owns_of_layer(slot),
        ) {
            (true, true) => both += 1,
            (true, false) => left += 1,
            (false, true) => joined += 1,
            (false, false) => {}
        }
    }
    let (old_arms, new_arms) = (old.arm_of_slots(), new.arm_of_slots());
    let mut parts: BTreeMap<Way<'_>, u64> = BTreeMap::new();
    let mut slots: BTreeMap<Way<'_>, Vec<Slot>> = BTreeMap::new();
    for (slot, (from, to)) in Slot::all().zip(old_arms.into_iter().zip(new_arms)) {
        for (way, count) in [((from, to), both), ((from, None), left), ((None, to), joined)] {
            if way.0 != way.1 && count > 0 {
                *parts.entry(way).or_default() += count;
                slots.entry(way).or_default().push(slot);
            }
        }
    }
    // One way through the Layer only: then the Experiment's own Slots tell who moves.
    let one_way = [both, left, joined].iter().filter(|count| **count > 0).count() == 1;
    let moves = parts.into_iter().map(|(way, count)| {
        let set: SlotSet = slots.remove(&way).unwrap_or_default().into_iter().collect();
        UnitMove {
            from: way.0.map(str::to_owned),
            to: way.1.map(str::to_owned),
            slots: one_way.then(|| set.len()),
            slot_ranges: if one_way { set.texts().collect() } else { Vec::new() },
            percent: percent(count),
        }
    });
    moves.collect()
}

/// Each Unit falls anew and independently: shares multiply.
fn expected(old: &Side<'_>, new: &Side<'_>) -> Vec<UnitMove> {
    let shares = |side: &'_ Side<'_>| -> Vec<(Option<String>, u64)> {
        let of_layer =
            side.layer.as_ref().map_or(u64::from(Slot::COUNT), |(_, slots)| slots.len() as u64);
        let owned = side
            .arms
            .owners()
            .map(|(arm, _)| (Some(arm.to_owned()), u64::from(side.arms.weight(arm)) * of_layer));
        let mut shares: Vec<_> = owned.collect();
        let nobody = PARTS - shares.iter().map(|(_, parts)| parts).sum::<u64>();
        shares.push((None, nobody));
        shares
    };
    let mut moves = Vec::new();
    for (from, old_parts) in shares(old) {
        for (to, new_parts) in shares(new) {
            if from != to && old_parts > 0 && new_parts > 0 {
                moves.push(UnitMove {
                    from: from.clone(),
                    to,
                    slots: None,
                    slot_ranges: Vec::new(),
                    percent: percent(old_parts) * percent(new_parts) / 100.0,
                });
            }
        }
    }
    moves
}

#[expect(clippy::cast_precision_loss, reason = "at most 10^8")]
fn percent(parts: u64) -> f64 {
    parts as f64 * 100.0 / PARTS as f64
}
