//! Facts, who needs them, and where a model server gets them.

use std::collections::BTreeSet;

use switchboard_shared::{
    limits::{FACTS_PER_ARM_MAX, FACTS_POINTER_DEPTH_MAX},
    snapshot::syntax,
};

use super::{duration, scalar, transposed};
use crate::rules::{
    fault::FaultKind,
    object::{Fact, FactKind, FactsInto, FactsObject, RedisKey, Scalar, ValueKind},
    pattern::Pattern,
    read::{Fields, Reader, Shape},
    yaml::{Node, Value},
};

const FACT: Shape = Shape {
    what: "a Fact",
    known: &["kind", "name", "type", "redis", "default", "fresh_for"],
    unsupported: &[],
};

const REDIS: Shape =
    Shape { what: "a Fact's redis section", known: &["key", "field"], unsupported: &[] };

const INTO: Shape = Shape {
    what: "facts_into",
    known: &["preset", "body", "merge", "as_text", "on_conflict"],
    unsupported: &[],
};

const FACT_KINDS: [(&str, FactKind); 4] = [
    (FactKind::String.word(), FactKind::String),
    (FactKind::Number.word(), FactKind::Number),
    (FactKind::Bool.word(), FactKind::Bool),
    (FactKind::Json.word(), FactKind::Json),
];

/// What model servers of one protocol read, as (word, JSON Pointer, as text).
const PRESETS: [(&str, (&str, bool)); 2] =
    [("v2", ("/parameters", false)), ("openai", ("/metadata", true))];

const CONFLICTS: [(&str, bool); 2] = [("replace", false), ("refuse", true)];

pub(super) fn fact(reader: &mut Reader<'_>, node: &Node) -> Option<Fact> {
    let fields = reader.fields(node, &FACT)?;
    let name = fields.required(reader, "name");
    let name = name.and_then(|name| reader.matching(name, Pattern::Fact));
    let kind = fields.required(reader, "type").and_then(|kind| reader.word(kind, &FACT_KINDS));
    let redis = fields.required(reader, "redis").and_then(|redis| redis_key(reader, redis));
    let default = fields.optional("default").map(|node| default(reader, node, kind));
    let fresh_for = fields.optional("fresh_for").map(|node| duration(reader, node));
    Some(Fact {
        name: name?,
        kind: kind?,
        redis: redis?,
        default: transposed(default)?,
        fresh_for: transposed(fresh_for)?,
    })
}

fn default(reader: &mut Reader<'_>, node: &Node, kind: Option<FactKind>) -> Option<Scalar> {
    let value_kind = kind.map(|kind| match kind {
        FactKind::String | FactKind::Json => ValueKind::String,
        FactKind::Number => ValueKind::Number,
        FactKind::Bool => ValueKind::Bool,
    });
    let value = scalar(reader, node, value_kind)?;
    match (&value, kind) {
        (Scalar::String(text), Some(FactKind::Json)) if !syntax::is_json(text) => {
            reader.bad(node, "a text that holds one JSON value, such as '[]'")
        }
        _ => Some(value),
    }
}

fn redis_key(reader: &mut Reader<'_>, node: &Node) -> Option<RedisKey> {
    let fields = reader.fields(node, &REDIS)?;
    let key = fields.required(reader, "key");
    let key = key.and_then(|key| reader.matching(key, Pattern::KeyTemplate));
    let field = fields.optional("field").map(|field| reader.matching(field, Pattern::HashField));
    Some(RedisKey { key: key?, field: transposed(field)? })
}

/// The field `facts` of an Arm or a Model; none where it is not written.
pub(super) fn names(reader: &mut Reader<'_>, fields: Fields<'_>) -> Option<BTreeSet<String>> {
    let Some(node) = fields.optional("facts") else { return Some(BTreeSet::new()) };
    let items = reader.sequence(node, "Fact names")?;
    let names: Vec<_> = items.iter().map(|item| reader.matching(item, Pattern::Fact)).collect();
    let mut distinct = BTreeSet::new();
    for (item, name) in items.iter().zip(names) {
        let name = name?;
        if !distinct.insert(name.clone()) {
            let found = format!("the Fact `{name}` again");
            reader.fault(item.mark, FaultKind::Duplicate, found, "each Fact once in a list");
            return None;
        }
    }
    if distinct.len() > FACTS_PER_ARM_MAX {
        let found = format!("{} Facts", distinct.len());
        let expected = format!("0 to {FACTS_PER_ARM_MAX} Facts");
        reader.fault(node.mark, FaultKind::Limit, found, expected);
        return None;
    }
    Some(distinct)
}

/// The field `facts_into` of an Arm or a Model.
#[expect(clippy::option_option, reason = "absent, wrong and right are three things")]
pub(super) fn into(reader: &mut Reader<'_>, fields: Fields<'_>) -> Option<Option<FactsInto>> {
    transposed(fields.optional("facts_into").map(|node| into_node(reader, node)))
}

fn into_node(reader: &mut Reader<'_>, node: &Node) -> Option<FactsInto> {
    if let Value::Text(_) = node.value {
        return reader.word(node, &[("headers", ())]).map(|()| FactsInto::Headers);
    }
    let fields = reader.fields(node, &INTO)?;
    let refuse = match fields.optional("on_conflict") {
        Some(node) => reader.word(node, &CONFLICTS),
        None => Some(false),
    };
    let object = match (fields.optional("preset"), fields.optional("body")) {
        (Some(preset), None) => {
            for name in ["merge", "as_text"] {
                if let Some(mark) = fields.key_mark(name) {
                    let found = format!("the field `{name}` beside `preset`");
                    let expected = "it left out: the preset decides it";
                    reader.fault(mark, FaultKind::Value, found, expected);
                    return None;
                }
            }
            let (pointer, as_text) = reader.word(preset, &PRESETS)?;
            FactsObject { pointer: pointer.to_owned(), merge: true, as_text, refuse: refuse? }
        }
        (None, Some(body)) => {
            let mut flag = |name| match fields.optional(name) {
                Some(node) => reader.boolean(node),
                None => Some(false),
            };
            let (merge, as_text) = (flag("merge")?, flag("as_text")?);
            let pointer = pointer(reader, body)?;
            if pointer.is_empty() && !merge {
                return reader.bad(body, POINTER);
            }
            FactsObject { pointer, merge, as_text, refuse: refuse? }
        }
        (Some(_), Some(_)) | (None, None) => {
            let found = "facts_into with both or none of `preset` and `body`";
            let expected = "`preset: v2`, `preset: openai`, `body: /POINTER`, or the word headers";
            reader.fault(node.mark, FaultKind::Value, found, expected);
            return None;
        }
    };
    Some(FactsInto::Body(object))
}

const POINTER: &str = "a JSON Pointer of at most 8 names, such as /parameters; \"\", which is the whole body, \
                       only with merge: true";

fn pointer(reader: &mut Reader<'_>, node: &Node) -> Option<String> {
    let text = reader.text(node, POINTER)?;
    let is_short = text.split('/').count() - 1 <= FACTS_POINTER_DEPTH_MAX;
    if text.is_empty() || syntax::is_pointer(text) && is_short {
        return Some(text.to_owned());
    }
    reader.bad(node, POINTER)
}
