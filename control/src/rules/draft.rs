//! The whole content of one version, put together and checked.

use switchboard_shared::definition::Definition;

use super::{
    allocate::{Allocations, allocate},
    check::check,
    compile::compile,
    conditions::Conditions,
    documents::Documents,
    fault::RuleFault,
    set::{RuleSet, Unmentioned},
};

/// What a version stores, and what routers get of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// The objects.
    pub set: RuleSet,
    /// Who owns which Slots.
    pub allocations: Allocations,
    /// The compiled conditions, for the next change.
    pub conditions: Conditions,
    /// All of them compiled.
    pub definition: Definition,
}

impl Draft {
    /// What a version becomes with the documents on top, for the routers of `group`. Conditions that
    /// `conditions` has are not compiled again.
    ///
    /// # Errors
    /// Every fault that was found, sorted by place; never empty.
    pub fn of_change(
        before: &RuleSet,
        previous: &Allocations,
        conditions: &Conditions,
        documents: &Documents,
        unmentioned: Unmentioned,
        group: &str,
    ) -> Result<Self, Vec<RuleFault>> {
        let set = before.with(documents, unmentioned);
        let mut faults = check(&set, documents);
        if !faults.is_empty() {
            faults.sort();
            return Err(faults);
        }
        let allocations = allocate(&set, previous, documents)?;
        let conditions = Conditions::of(&set, documents, (before, conditions))?;
        let definition = compile(&set, &conditions, &allocations, group, documents)?;
        Ok(Self { set, allocations, conditions, definition })
    }

    /// What was stored, as it was. Conditions that `active` has too are not compiled again.
    ///
    /// # Errors
    /// A stored version that this build no longer takes.
    pub fn of_stored(
        set: RuleSet,
        allocations: Allocations,
        active: (&RuleSet, &Conditions),
        group: &str,
    ) -> Result<Self, Vec<RuleFault>> {
        let documents = Documents::default();
        let conditions = Conditions::of(&set, &documents, active)?;
        let definition = compile(&set, &conditions, &allocations, group, &documents)?;
        Ok(Self { set, allocations, conditions, definition })
    }
}
