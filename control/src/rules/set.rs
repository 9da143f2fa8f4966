//! All objects of one version: what the registry holds, with a change on top.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    documents::Documents,
    object::{Arm, Fact, Layer, Model, Object, Objective, Shard},
};

/// Objects by name; Models by `name@version`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleSet {
    /// By token.
    pub objectives: BTreeMap<String, Objective>,
    /// By name.
    pub layers: BTreeMap<String, Layer>,
    /// By name.
    pub facts: BTreeMap<String, Fact>,
    /// By `name@version`.
    pub models: BTreeMap<String, Model>,
    /// By name.
    pub shards: BTreeMap<String, Shard>,
}

/// What happens to objects that the files do not mention.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unmentioned {
    /// They stay as they are.
    Keep,
    /// They go: the files are the whole truth.
    Prune,
}

impl RuleSet {
    /// This set with the documents' objects added or replaced.
    #[must_use]
    pub fn with(&self, documents: &Documents, unmentioned: Unmentioned) -> Self {
        let mut set = match unmentioned {
            Unmentioned::Keep => self.clone(),
            Unmentioned::Prune => Self::default(),
        };
        for object in documents.objects() {
            set.insert(object.clone());
        }
        set
    }

    /// Adds or replaces one object. An Allocation is no part of the set: see
    /// [`crate::rules::allocate`].
    pub fn insert(&mut self, object: Object) {
        let name = object.name();
        match object {
            Object::Objective(objective) => drop(self.objectives.insert(name, objective)),
            Object::Layer(layer) => drop(self.layers.insert(name, layer)),
            Object::Fact(fact) => drop(self.facts.insert(name, fact)),
            Object::Model(model) => drop(self.models.insert(name, model)),
            Object::Shard(shard) => drop(self.shards.insert(name, shard)),
            Object::Allocation(_) => {}
        }
    }

    /// Names of all Facts that an Arm needs: its own, and its Model's.
    #[must_use]
    pub fn facts_of<'a>(&'a self, arm: &'a Arm) -> BTreeSet<&'a str> {
        let models = self.models.get(&arm.model).into_iter().flat_map(|model| &model.facts);
        arm.facts.iter().chain(models).map(String::as_str).collect()
    }

    /// What decides: Objectives, Layers and Facts.
    pub fn selection(&self) -> impl Iterator<Item = Object> {
        let objectives = self.objectives.values().cloned().map(Object::Objective);
        let layers = self.layers.values().cloned().map(Object::Layer);
        let facts = self.facts.values().cloned().map(Object::Fact);
        objectives.chain(layers).chain(facts)
    }

    /// What answers, and where: Models and Shards.
    pub fn placement(&self) -> impl Iterator<Item = Object> {
        let models = self.models.values().cloned().map(Object::Model);
        models.chain(self.shards.values().cloned().map(Object::Shard))
    }
}
