//! The way of a change: `Assigned → Validating → Validated → Activating → Active`. Pure.
//!
//! Each arrow is one transaction. Up to `Validated` nothing that a client could notice has
//! happened: routers may hold the Snapshot ready, none evaluates it. `Activating` is the decision
//! itself, so from there a change only goes forward.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where a change is.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize, ToSchema)]
pub enum State {
    /// Checked, allocated and stored under its version.
    Assigned,
    /// Built and signed; the gate asks the model servers.
    Validating,
    /// The gate has passed; routers are asked to hold it ready.
    Validated,
    /// Decided; routers are told to evaluate it.
    Activating,
    /// It is what routers evaluate, or did until the next one.
    Active,
    /// It never became active.
    Failed,
    /// It was active, and a rollback took its place.
    RolledBack,
}

impl State {
    /// All of them, in the order of a change's way.
    pub const ALL: [Self; 7] = [
        Self::Assigned,
        Self::Validating,
        Self::Validated,
        Self::Activating,
        Self::Active,
        Self::Failed,
        Self::RolledBack,
    ];

    /// Whether a change may go from here to `next`.
    #[must_use]
    pub const fn may_become(self, next: Self) -> bool {
        matches!(
            (self, next),
            (Self::Assigned, Self::Validating | Self::Failed)
                | (Self::Validating, Self::Validated | Self::Failed)
                | (Self::Validated, Self::Activating | Self::Failed)
                | (Self::Activating, Self::Active)
                | (Self::Active, Self::RolledBack)
        )
    }

    /// What a restart does with a change that it finds here.
    #[must_use]
    pub const fn after_crash(self) -> AfterCrash {
        match self {
            Self::Assigned | Self::Validating | Self::Validated => AfterCrash::Fail,
            Self::Activating => AfterCrash::Finish,
            Self::Active | Self::Failed | Self::RolledBack => AfterCrash::Leave,
        }
    }

    /// Its name, as the registry stores it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Assigned => "Assigned",
            Self::Validating => "Validating",
            Self::Validated => "Validated",
            Self::Activating => "Activating",
            Self::Active => "Active",
            Self::Failed => "Failed",
            Self::RolledBack => "RolledBack",
        }
    }

    /// Reads a name that the registry stored.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }
}

impl fmt::Display for State {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.word())
    }
}

/// What a restart does with a change.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AfterCrash {
    /// No router evaluates it: it becomes `Failed`, and its author applies again.
    Fail,
    /// A router may evaluate it already: it becomes `Active`.
    Finish,
    /// It is at an end.
    Leave,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_no_router_evaluates_can_fail() {
        for state in State::ALL {
            let can_fail = state.may_become(State::Failed);
            assert_eq!(can_fail, state.after_crash() == AfterCrash::Fail, "{state}");
        }
    }

    #[test]
    fn every_way_ends_and_none_goes_back() {
        for (place, state) in State::ALL.iter().enumerate() {
            for earlier in &State::ALL[..=place] {
                assert!(!state.may_become(*earlier), "{state} -> {earlier}");
            }
        }
        assert!(State::ALL.iter().all(|next| !State::Failed.may_become(*next)));
        assert!(State::ALL.iter().all(|next| !State::RolledBack.may_become(*next)));
    }

    #[test]
    fn activation_is_reached_only_through_validation() {
        let before = |next: State| State::ALL.into_iter().filter(move |one| one.may_become(next));
        assert_eq!(before(State::Active).collect::<Vec<_>>(), [State::Activating]);
        assert_eq!(before(State::Activating).collect::<Vec<_>>(), [State::Validated]);
        assert_eq!(before(State::Validated).collect::<Vec<_>>(), [State::Validating]);
    }

    #[test]
    fn each_word_is_read_back() {
        for state in State::ALL {
            assert_eq!(State::of_word(state.word()), Some(state));
        }
        assert_eq!(State::of_word("active"), None);
    }
}
