//! Who owns which Slots, and how ownership follows a change of weights. Frozen.
//!
//! One algorithm serves Layers (the owners are Experiments) and Experiments (the owners are Arms).
//! `docs/bucketing.md` tells it in full; `shared/vectors/allocations.json` holds golden values that
//! an independent Python implementation reproduces.
//!
//! An owner is a name, its weight the number of Slots it shall own. To go from one allocation to
//! new weights:
//!
//! 1. **Release.** Each owner whose weight shrank, or that is gone, gives up its *highest-numbered*
//!    Slots until its weight fits. All of these form the released pool.
//! 2. **Take.** Owners whose weight grew, in *bytewise order of their names*, each take the
//!    *lowest-numbered* Slots of the released pool, and when that is used up, the lowest-numbered
//!    Slots that nobody owned before step 1.
//! 3. What is left of the released pool is owned by nobody.
//!
//! A first allocation is the same, starting from nothing owned. It follows that
//!
//! - as few Slots as possible change hands: half the sum of the absolute differences of the weights,
//!   "nobody" counted as one more owner;
//! - an owner whose weight stays keeps exactly its Slots, and one that grows keeps all it had: a
//!   ramp up only adds Units;
//! - neither the order in which owners are written nor their number matters to anyone else.
//!
//! Which Slots an owner has depends on the allocations before, so they are stored, never derived
//! from weights again.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::slot::{Slot, SlotRange};

/// Weights by owner: how many Slots each shall own. At most `Slot::COUNT` together.
pub type Weights = BTreeMap<String, u16>;

/// Which owner has which Slots. An owner of none is not listed.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Allocation {
    owners: BTreeMap<String, Vec<SlotRange>>,
}

/// Why there is no such allocation.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum AllocationError {
    /// The weights do not fit.
    #[error("the weights add up to {sum}, more than {}", Slot::COUNT)]
    TooMuch {
        /// Of all weights.
        sum: u64,
    },
    /// One Slot with two owners.
    #[error("slot {slot} is owned by `{one}` and by `{other}`")]
    OwnedTwice {
        /// The lowest such Slot.
        slot: Slot,
        /// The first owner, by name.
        one: String,
        /// The second; the same where its ranges overlap.
        other: String,
    },
}

/// Slots that change hands from one owner to another; `None` is nobody.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Move {
    /// Who had them.
    pub from: Option<String>,
    /// Who gets them.
    pub to: Option<String>,
    /// How many; never zero.
    pub slots: u16,
}

impl Allocation {
    /// Nothing is owned.
    pub const EMPTY: Self = Self { owners: BTreeMap::new() };

    /// The allocation that a Definition or a registry has stored. Ranges may come in any order.
    ///
    /// # Errors
    /// [`AllocationError::OwnedTwice`].
    pub fn from_ranges<'a>(
        ranges: impl IntoIterator<Item = (&'a str, &'a [SlotRange])>,
    ) -> Result<Self, AllocationError> {
        let mut map = OwnerMap::new();
        let mut names: Vec<&str> = Vec::new();
        for (name, ranges) in ranges {
            let owner = names.iter().position(|other| *other == name).unwrap_or(names.len());
            if owner == names.len() {
                names.push(name);
            }
            for slot in ranges.iter().flat_map(|range| range.slots()) {
                if let Some(other) = map.set(slot, Some(owner)) {
                    let mut pair = [names[other].to_owned(), name.to_owned()];
                    pair.sort();
                    let [one, other] = pair;
                    return Err(AllocationError::OwnedTwice { slot, one, other });
                }
            }
        }
        Ok(map.into_allocation(&names))
    }

    /// The allocation of these weights that moves the fewest Slots; see the module's text.
    ///
    /// # Errors
    /// [`AllocationError::TooMuch`].
    pub fn reallocate(&self, weights: &Weights) -> Result<Self, AllocationError> {
        let sum = weights.values().map(|weight| u64::from(*weight)).sum();
        if sum > u64::from(Slot::COUNT) {
            return Err(AllocationError::TooMuch { sum });
        }
        // Sorted, as both are `BTreeMap`s: growers take in this order.
        let mut names: Vec<&str> =
            self.owners.keys().chain(weights.keys()).map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();

        let mut map = OwnerMap::of(self, &names);
        let mut available = Vec::new();
        for name in &names {
            let goal = usize::from(weights.get(*name).copied().unwrap_or(0));
            let owned: Vec<Slot> = self.slots(name).collect();
            available.extend(owned.iter().skip(goal));
        }
        available.sort_unstable();
        available.extend(map.unowned()); // lowest first, after all that was released
        for slot in &available {
            map.set(*slot, None);
        }

        let mut available = available.into_iter();
        for (owner, name) in names.iter().enumerate() {
            let goal = usize::from(weights.get(*name).copied().unwrap_or(0));
            let missing = goal.saturating_sub(usize::from(self.weight(name)));
            for slot in available.by_ref().take(missing) {
                map.set(slot, Some(owner));
            }
        }
        Ok(map.into_allocation(&names))
    }

    /// The owners, in the order of their names, with their Slots: ascending, disjoint, and no two
    /// ranges adjacent.
    pub fn owners(&self) -> impl ExactSizeIterator<Item = (&str, &[SlotRange])> {
        self.owners.iter().map(|(name, ranges)| (name.as_str(), ranges.as_slice()))
    }

    /// The ranges of one owner; none where it owns nothing.
    pub fn ranges(&self, owner: &str) -> &[SlotRange] {
        self.owners.get(owner).map_or(&[], Vec::as_slice)
    }

    /// How many Slots one owner has.
    pub fn weight(&self, owner: &str) -> u16 {
        self.ranges(owner).iter().map(|range| range.len()).sum()
    }

    /// Who owns a Slot.
    pub fn owner_of(&self, slot: Slot) -> Option<&str> {
        let owns = |ranges: &[SlotRange]| ranges.iter().any(|range| range.contains(slot));
        self.owners().find(|(_, ranges)| owns(ranges)).map(|(name, _)| name)
    }

    fn slots(&self, owner: &str) -> impl Iterator<Item = Slot> {
        self.ranges(owner).iter().flat_map(|range| range.slots())
    }
}

/// What changes hands between two allocations, in the order of `from`, then `to`.
pub fn moves(before: &Allocation, after: &Allocation) -> Vec<Move> {
    let mut names: Vec<&str> =
        before.owners.keys().chain(after.owners.keys()).map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();

    let (before, after) = (OwnerMap::of(before, &names), OwnerMap::of(after, &names));
    let mut counts: BTreeMap<(Option<usize>, Option<usize>), u16> = BTreeMap::new();
    for slot in Slot::all() {
        let (from, to) = (before.get(slot), after.get(slot));
        if from != to {
            *counts.entry((from, to)).or_default() += 1;
        }
    }
    let name = |owner: usize| names[owner].to_owned();
    counts
        .into_iter()
        .map(|((from, to), slots)| Move { from: from.map(name), to: to.map(name), slots })
        .collect()
}

/// The owner of every Slot, as a place in a list of names.
struct OwnerMap(Vec<Option<usize>>);

impl OwnerMap {
    fn new() -> Self {
        Self(vec![None; usize::from(Slot::COUNT)])
    }

    fn of(allocation: &Allocation, names: &[&str]) -> Self {
        let mut map = Self::new();
        for (owner, name) in names.iter().enumerate() {
            for slot in allocation.slots(name) {
                map.set(slot, Some(owner));
            }
        }
        map
    }

    fn get(&self, slot: Slot) -> Option<usize> {
        self.0[usize::from(slot.get())]
    }

    /// Returns who had it before.
    fn set(&mut self, slot: Slot, owner: Option<usize>) -> Option<usize> {
        std::mem::replace(&mut self.0[usize::from(slot.get())], owner)
    }

    fn unowned(&self) -> impl Iterator<Item = Slot> {
        Slot::all().filter(|slot| self.get(*slot).is_none())
    }

    /// Joins neighbours with one owner into ranges.
    fn into_allocation(self, names: &[&str]) -> Allocation {
        let mut owners: BTreeMap<String, Vec<SlotRange>> = BTreeMap::new();
        let slots: Vec<(Slot, Option<usize>)> =
            Slot::all().map(|slot| (slot, self.get(slot))).collect();
        for run in slots.chunk_by(|(_, one), (_, other)| one == other) {
            let [(first, Some(owner)), ..] = run else { continue };
            let last = run.last().map_or(*first, |(last, _)| *last);
            if let Some(range) = SlotRange::new(*first, last) {
                owners.entry(names[*owner].to_owned()).or_default().push(range);
            }
        }
        Allocation { owners }
    }
}
