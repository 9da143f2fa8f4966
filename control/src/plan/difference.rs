//! Which objects differ, and in which fields.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::Change;
use crate::rules::{Kind, RuleSet};

/// One object that differs.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
pub struct ObjectChange {
    /// Its kind, as rule files write it.
    pub kind: String,
    /// Its name; `name@version` of a Model.
    pub name: String,
    /// What happens to it.
    pub change: Change,
    /// Which fields differ, where it is changed.
    pub fields: Vec<FieldChange>,
}

/// One field that differs.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
pub struct FieldChange {
    /// Such as `rules[heavy-trial].experiment.split.heavy`.
    pub path: String,
    /// `None`: it was not there.
    pub before: Option<Value>,
    /// `None`: it is gone.
    pub after: Option<Value>,
}

pub(super) fn objects(before: &RuleSet, after: &RuleSet) -> Vec<ObjectChange> {
    let mut changes = Vec::new();
    compare(Kind::Objective, &before.objectives, &after.objectives, &mut changes);
    compare(Kind::Layer, &before.layers, &after.layers, &mut changes);
    compare(Kind::Fact, &before.facts, &after.facts, &mut changes);
    compare(Kind::Model, &before.models, &after.models, &mut changes);
    compare(Kind::Shard, &before.shards, &after.shards, &mut changes);
    changes
}

fn compare<T: Serialize + PartialEq>(
    kind: Kind,
    before: &BTreeMap<String, T>,
    after: &BTreeMap<String, T>,
    changes: &mut Vec<ObjectChange>,
) {
    let mut add = |name: &str, change, fields| {
        changes.push(ObjectChange {
            kind: kind.word().to_owned(),
            name: name.to_owned(),
            change,
            fields,
        });
    };
    for (name, old) in before {
        match after.get(name) {
            Some(new) if new == old => {}
            Some(new) => add(name, Change::Changed, fields(&json(old), &json(new))),
            None => add(name, Change::Removed, Vec::new()),
        }
    }
    for name in after.keys().filter(|name| !before.contains_key(*name)) {
        add(name, Change::Added, Vec::new());
    }
}

fn json<T: Serialize>(object: &T) -> Value {
    serde_json::to_value(object).expect("objects have text keys only, so JSON can hold them")
}

fn fields(before: &Value, after: &Value) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    walk("", Some(before), Some(after), &mut changes);
    changes
}

fn walk(path: &str, before: Option<&Value>, after: Option<&Value>, changes: &mut Vec<FieldChange>) {
    if before == after {
        return;
    }
    match (before, after) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let gone = old.keys().filter(|name| !new.contains_key(*name));
            for name in new.keys().chain(gone) {
                let dot = if path.is_empty() { "" } else { "." };
                walk(&format!("{path}{dot}{name}"), old.get(name), new.get(name), changes);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new)))
            if named(old).is_some() && named(new).is_some() =>
        {
            walk_named(path, old, new, changes);
        }
        _ => changes.push(FieldChange {
            path: path.to_owned(),
            before: before.cloned(),
            after: after.cloned(),
        }),
    }
}

/// Lists of named things, such as Rules: a new one in the middle is one change. Their order counts.
fn walk_named(path: &str, old: &[Value], new: &[Value], changes: &mut Vec<FieldChange>) {
    let (old_names, new_names) = (named(old).unwrap_or_default(), named(new).unwrap_or_default());
    let find = |items: &'_ [Value], names: &[&str], name: &str| {
        names.iter().position(|other| *other == name).and_then(|at| items.get(at).cloned())
    };
    let gone = old_names.iter().filter(|name| !new_names.contains(name));
    for name in new_names.iter().chain(gone) {
        let (before, after) = (find(old, &old_names, name), find(new, &new_names, name));
        walk(&format!("{path}[{name}]"), before.as_ref(), after.as_ref(), changes);
    }
    let kept = |names: &[&str], others: &[&str]| -> Vec<Value> {
        let kept = names.iter().filter(|name| others.contains(name));
        kept.map(|name| Value::from(*name)).collect()
    };
    let (before, after) = (kept(&old_names, &new_names), kept(&new_names, &old_names));
    if before != after {
        changes.push(FieldChange {
            path: format!("{path} (order)"),
            before: Some(Value::Array(before)),
            after: Some(Value::Array(after)),
        });
    }
}

/// The names of a list of things that have one: `name` of a Rule, `address` of an endpoint.
fn named(items: &[Value]) -> Option<Vec<&str>> {
    items.iter().map(name_of).collect()
}

fn name_of(item: &Value) -> Option<&str> {
    item.get("name").or_else(|| item.get("address")).and_then(Value::as_str)
}
