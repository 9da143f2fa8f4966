//! The whole content of one version, put together and checked.

use switchboard_shared::definition::Definition;

use super::{
    allocate::{Allocations, allocate},
    check::check,
    compile::compile,
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
    /// Both of them compiled.
    pub definition: Definition,
}

impl Draft {
    /// What `set` and `previous` become with the documents on top, for the routers of `group`.
    ///
    /// # Errors
    /// Every fault that was found, sorted by place; never empty.
    pub fn of_change(
        set: &RuleSet,
        previous: &Allocations,
        documents: &Documents,
        unmentioned: Unmentioned,
        group: &str,
    ) -> Result<Self, Vec<RuleFault>> {
        let set = set.with(documents, unmentioned);
        let mut faults = check(&set, documents);
        if !faults.is_empty() {
            faults.sort();
            return Err(faults);
        }
        let allocations = allocate(&set, previous, documents)?;
        let definition = compile(&set, &allocations, group, documents)?;
        Ok(Self { set, allocations, definition })
    }

    /// What was stored, as it was.
    ///
    /// # Errors
    /// A stored version that this build no longer takes.
    pub fn of_stored(
        set: RuleSet,
        allocations: Allocations,
        group: &str,
    ) -> Result<Self, Vec<RuleFault>> {
        let definition = compile(&set, &allocations, group, &Documents::default())?;
        Ok(Self { set, allocations, definition })
    }
}
