//! What a change would do: which objects differ, and how many Units move between which Arms. Pure.
//!
//! Within one pair of salts the numbers are exact: a Unit's Slot of the Layer and its Slot of the
//! Experiment are independent, so the Units that move are a whole number of 10 000 × 10 000 parts.
//! Under a new salt each Unit falls anew, and the numbers are what is expected.

mod difference;
mod moves;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use self::{
    difference::{FieldChange, ObjectChange},
    moves::{ExperimentChange, UnitMove},
};
use crate::{registry::Content, rules::Kind};

/// What happens to an object.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// It is new.
    Added,
    /// It says something else.
    Changed,
    /// It goes.
    Removed,
}

/// The difference between two versions' contents.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize, ToSchema)]
pub struct Plan {
    /// The version that the change starts from; `None`: an empty registry.
    pub base: Option<u64>,
    /// Objects that differ.
    pub objects: Vec<ObjectChange>,
    /// Experiments whose Slots change hands.
    pub experiments: Vec<ExperimentChange>,
}

impl Plan {
    /// From `before`, which is version `base`, to `after`.
    #[must_use]
    pub fn between(base: Option<u64>, before: &Content, after: &Content) -> Self {
        Self {
            base,
            objects: difference::objects(&before.set, &after.set),
            experiments: moves::experiments(before, after),
        }
    }

    /// Whether nothing would change.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.experiments.is_empty()
    }

    /// How many objects of a kind change.
    #[must_use]
    pub fn count(&self, kind: Kind) -> usize {
        self.objects.iter().filter(|change| change.kind == kind.word()).count()
    }
}

#[cfg(test)]
mod tests;
