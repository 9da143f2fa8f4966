//! The experimental Model version: what it is called, and where it answers.

use switchboard_shared::address::{Address, AddressError};

use crate::rules::{Endpoint, RuleSet};

/// A Model version that gets replayed requests.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Candidate {
    /// `name@version`: what records and results call it.
    pub reference: String,
    /// What goes where a client named the Objective instead of a model.
    pub served_name: String,
    /// Replaces the request's path; `None`: as the client asked.
    pub path: Option<String>,
    /// Never empty.
    pub endpoints: Vec<Endpoint>,
}

/// Why there is no such candidate.
#[derive(Debug, thiserror::Error)]
pub enum CandidateError {
    /// Not `name@version`.
    #[error("{reference:?} is not of the form NAME@VERSION")]
    Reference {
        /// What was given.
        reference: String,
    },
    /// The registry has no such Model version.
    #[error("the registry has no Model {reference}; apply it first, or say --endpoint")]
    Unknown {
        /// What was asked for.
        reference: String,
    },
    /// Its Shard is not there: a registry that refuses such rules never says so.
    #[error("the registry has no Shard {shard} for Model {reference}")]
    NoShard {
        /// What was asked for.
        reference: String,
        /// What is missing.
        shard: String,
    },
    /// An endpoint that is none.
    #[error("{address:?} is no endpoint")]
    Endpoint {
        /// What was given.
        address: String,
        /// What is wrong with it.
        #[source]
        source: AddressError,
    },
}

impl Candidate {
    /// A Model version as the registry knows it, with its Shard's endpoints.
    ///
    /// # Errors
    /// `Reference`, `Unknown`, `NoShard`.
    pub fn in_rules(rules: &RuleSet, reference: &str) -> Result<Self, CandidateError> {
        name_of(reference)?;
        let model = rules
            .models
            .get(reference)
            .ok_or_else(|| CandidateError::Unknown { reference: reference.to_owned() })?;
        let shard = rules.shards.get(&model.shard).ok_or_else(|| CandidateError::NoShard {
            reference: reference.to_owned(),
            shard: model.shard.clone(),
        })?;
        Ok(Self {
            reference: reference.to_owned(),
            served_name: model.served_name.clone().unwrap_or_else(|| model.name.clone()),
            path: model.path.clone(),
            endpoints: shard.endpoints.clone(),
        })
    }

    /// A Model version at given addresses, all of the same weight.
    ///
    /// # Errors
    /// `Reference`, `Endpoint`.
    pub fn at(reference: &str, addresses: &[String]) -> Result<Self, CandidateError> {
        let name = name_of(reference)?;
        for address in addresses {
            Address::parse(address)
                .map_err(|source| CandidateError::Endpoint { address: address.clone(), source })?;
        }
        let endpoint = |address: &String| Endpoint { address: address.clone(), weight: 1 };
        Ok(Self {
            reference: reference.to_owned(),
            served_name: name.to_owned(),
            path: None,
            endpoints: addresses.iter().map(endpoint).collect(),
        })
    }
}

fn name_of(reference: &str) -> Result<&str, CandidateError> {
    match reference.split_once('@') {
        Some((name, version)) if !name.is_empty() && !version.is_empty() => Ok(name),
        Some(_) | None => Err(CandidateError::Reference { reference: reference.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{RuleFile, Unmentioned, read};

    fn rules() -> RuleSet {
        let text = r#"
kind: Model
name: digits
version: 2-rc
shard: trial
served_name: digits-v2
path: /v2/models/digits/infer
---
kind: Shard
name: trial
endpoints: [{ address: "127.0.0.1:1", weight: 3 }, { address: "unix:/run/model.sock" }]
"#;
        let file = RuleFile { name: "test".to_owned(), text: text.to_owned() };
        RuleSet::default().with(&read(&[file]).unwrap(), Unmentioned::Prune)
    }

    #[test]
    fn the_registry_tells_name_path_and_endpoints() {
        let candidate = Candidate::in_rules(&rules(), "digits@2-rc").unwrap();
        assert_eq!(candidate.served_name, "digits-v2");
        assert_eq!(candidate.path.as_deref(), Some("/v2/models/digits/infer"));
        let endpoints: Vec<_> =
            candidate.endpoints.iter().map(|one| (one.address.as_str(), one.weight)).collect();
        assert_eq!(endpoints, [("127.0.0.1:1", 3), ("unix:/run/model.sock", 1)]);
    }

    #[test]
    fn what_the_registry_does_not_have_is_refused() {
        let unknown = Candidate::in_rules(&rules(), "digits@3").unwrap_err();
        assert!(matches!(unknown, CandidateError::Unknown { .. }), "{unknown}");
        let mut rules = rules();
        rules.shards.clear();
        let no_shard = Candidate::in_rules(&rules, "digits@2-rc").unwrap_err();
        assert!(matches!(no_shard, CandidateError::NoShard { .. }), "{no_shard}");
    }

    #[test]
    fn a_wrong_reference_or_address_is_refused() {
        for reference in ["", "digits", "@1", "digits@"] {
            let error = Candidate::at(reference, &["127.0.0.1:1".to_owned()]).unwrap_err();
            assert!(matches!(error, CandidateError::Reference { .. }), "{error}");
        }
        let error = Candidate::at("digits@1", &["127.0.0.1".to_owned()]).unwrap_err();
        assert!(matches!(error, CandidateError::Endpoint { .. }), "{error}");
    }
}
