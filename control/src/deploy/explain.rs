//! Why a request of this kind gets this Arm: the routers' own evaluator, watched.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use switchboard_shared::{
    context::{Context, ContextError},
    decide::{Explanation, explain},
};
use utoipa::ToSchema;

use super::Deployer;
use crate::rules::Outcome;

/// What to ask.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Token of the Objective.
    pub objective: String,
    /// Stands in every attribute that an Experiment of the Objective buckets.
    #[serde(default)]
    pub unit: Option<String>,
    /// Attributes as a header would carry them, by name.
    #[serde(default)]
    pub attributes: BTreeMap<String, String>,
}

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// Nothing was ever active.
    #[error("no version is active yet")]
    NothingActive,
    /// Not in the active version.
    #[error("there is no Objective `{token}`")]
    NoObjective {
        /// What was asked for.
        token: String,
    },
    /// Not in the Objective's context.
    #[error("`{name}` is no attribute of the Objective; there are: {known}")]
    NoAttribute {
        /// What was given.
        name: String,
        /// What could be.
        known: String,
    },
    /// Of another type.
    #[error("the attribute `{name}` {source}")]
    BadAttribute {
        /// Which one.
        name: String,
        /// What is wrong with it.
        #[source]
        source: ContextError,
    },
}

impl Deployer {
    /// Every Rule that is tried, and why each one decides or does not.
    ///
    /// # Errors
    /// See [`ExplainError`].
    pub fn explain(&self, question: &Question) -> Result<Explanation, ExplainError> {
        let active = self.active().ok_or(ExplainError::NothingActive)?;
        let token = &question.objective;
        let no_objective = || ExplainError::NoObjective { token: token.clone() };
        let objective = active.snapshot.objective(token.as_bytes()).ok_or_else(no_objective)?;
        let rules = active.content.set.objectives.get(token).ok_or_else(no_objective)?;

        let units: BTreeSet<&str> = rules
            .rules
            .iter()
            .filter_map(|rule| match &rule.then {
                Outcome::Experiment(experiment) => Some(experiment.unit.as_str()),
                Outcome::Arm(_) => None,
            })
            .chain(rules.unit())
            .collect();
        let mut given: BTreeMap<&str, &str> = BTreeMap::new();
        if let Some(unit) = &question.unit {
            given.extend(units.into_iter().map(|name| (name, unit.as_str())));
        }
        let attributes = question.attributes.iter();
        given.extend(attributes.map(|(name, value)| (name.as_str(), value.as_str())));

        let mut context = Context::with_defaults(objective);
        for (name, value) in given {
            let attribute = objective.attributes().find(|(_, one)| one.name == name);
            let Some((place, attribute)) = attribute else {
                let known: Vec<_> =
                    objective.attributes().map(|(_, one)| one.name.as_str()).collect();
                return Err(ExplainError::NoAttribute {
                    name: name.to_owned(),
                    known: known.join(", "),
                });
            };
            let value = attribute
                .parse_text(value)
                .map_err(|source| ExplainError::BadAttribute { name: name.to_owned(), source })?;
            context.set(place, value);
        }
        Ok(explain(active.snapshot.payload(), objective, &context).1)
    }
}
