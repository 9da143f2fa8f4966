//! Every condition in its compiled form. Compiling is most of what a change costs, so what has not
//! changed is not compiled again.

use std::{collections::BTreeMap, sync::Arc};

use switchboard_shared::definition::Predicate;

use super::{
    documents::Documents,
    expression,
    fault::{FaultKind, RuleFault},
    object::{Kind, Objective},
    set::RuleSet,
};

/// The conditions of one Objective's Rules, in their order; `None`: the Rule always holds.
pub(crate) type ObjectiveConditions = Arc<[Option<Predicate>]>;

/// The conditions of every Objective of a set, by token.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conditions(BTreeMap<String, ObjectiveConditions>);

impl Conditions {
    /// Those of `set`: as the documents were read, as `before` has them for the Objectives that are
    /// the same in `before_set`, or compiled now.
    ///
    /// # Errors
    /// A stored condition that this build no longer takes.
    pub(super) fn of(
        set: &RuleSet,
        documents: &Documents,
        (before_set, before): (&RuleSet, &Self),
    ) -> Result<Self, Vec<RuleFault>> {
        let mut conditions = BTreeMap::new();
        let mut faults = Vec::new();
        for (token, objective) in &set.objectives {
            let same = before_set.objectives.get(token) == Some(objective);
            let known =
                documents.conditions(token).or_else(|| before.0.get(token).filter(|_| same));
            match known.cloned().map_or_else(|| compile(objective), Ok) {
                Ok(compiled) => drop(conditions.insert(token.clone(), compiled)),
                Err(found) => faults.extend(found.into_iter().map(|(rule, fault)| RuleFault {
                    place: documents.place(Kind::Objective, token, &["rules", &rule.to_string()]),
                    kind: FaultKind::Expression,
                    found: fault.found,
                    expected: fault.expected,
                })),
            }
        }
        if faults.is_empty() { Ok(Self(conditions)) } else { Err(faults) }
    }

    /// Those of one Objective; none where it is not in the set, or has no Rule.
    pub(super) fn of_objective(&self, token: &str) -> &[Option<Predicate>] {
        self.0.get(token).map_or(&[], |conditions| conditions)
    }
}

/// Compiles every condition of an Objective.
///
/// # Errors
/// Every fault, with the place of its Rule; never empty.
pub(super) fn compile(
    objective: &Objective,
) -> Result<ObjectiveConditions, Vec<(usize, expression::ExpressionFault)>> {
    let mut faults = Vec::new();
    let compiled = objective.rules.iter().enumerate().map(|(place, rule)| {
        let when = rule.when.as_ref()?;
        let compiled = expression::compile(when, &objective.context);
        compiled.map_err(|found| faults.extend(found.into_iter().map(|one| (place, one)))).ok()
    });
    let compiled: ObjectiveConditions = compiled.collect();
    if faults.is_empty() { Ok(compiled) } else { Err(faults) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{RuleFile, Unmentioned, read};

    const TWO: &str = "kind: Objective
token: ONE
context: { n: { from: \"query:n\", type: number } }
default: a
arms: { a: { model: m@1 } }
rules: [{ name: r, when: n > 1, arm: a }]
---
kind: Objective
token: TWO
context: { n: { from: \"query:n\", type: number } }
default: a
arms: { a: { model: m@1 } }
rules: [{ name: r, when: n > 2, arm: a }, { name: s, arm: a }]
";

    fn documents(text: &str) -> Documents {
        read(&[RuleFile { name: "r".to_owned(), text: text.to_owned() }]).expect("good rules")
    }

    #[test]
    fn what_has_not_changed_is_not_compiled_again() {
        let nothing = (&RuleSet::default(), &Conditions::default());
        let first = documents(TWO);
        let before_set = RuleSet::default().with(&first, Unmentioned::Keep);
        let before = Conditions::of(&before_set, &first, nothing).expect("good conditions");
        assert_eq!(before.of_objective("TWO").len(), 2);
        assert_eq!(before.of_objective("THREE"), []);

        let change = documents(&TWO.split("---\n").next().expect("one").replace("n > 1", "n > 7"));
        let set = before_set.with(&change, Unmentioned::Keep);
        let after = Conditions::of(&set, &change, (&before_set, &before)).expect("good conditions");
        assert!(Arc::ptr_eq(&after.0["TWO"], &before.0["TWO"]));
        assert_ne!(after.0["ONE"], before.0["ONE"]);
        // Stored conditions that nobody has compiled yet, and those of another set, are compiled.
        let empty = Documents::default();
        assert_eq!(Conditions::of(&set, &empty, nothing).expect("good"), after);
        assert_eq!(Conditions::of(&set, &empty, (&before_set, &before)).expect("good"), after);
    }
}
