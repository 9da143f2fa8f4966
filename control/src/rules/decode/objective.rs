//! Objectives: context, Arms and Rules.

use std::collections::{BTreeMap, HashSet};

use switchboard_shared::{
    limits::{ARMS_MAX, ATTRIBUTES_MAX, RULES_MAX},
    slot::Slot,
    snapshot::syntax,
};

use super::{VALUE_KINDS, facts, named, scalar, timeouts, transposed};
use crate::rules::{
    fault::FaultKind,
    object::{Arm, Attribute, Experiment, LayerShare, Objective, Outcome, Rule},
    pattern::Pattern,
    read::{Fields, Reader, Shape},
    yaml::Node,
};

const RULE_SHADOW: (&str, &str) = ("shadow", "shadow targets belong to an Objective or an Arm");

const OBJECTIVE: Shape = Shape {
    what: "an Objective",
    known: &[
        "kind",
        "token",
        "context",
        "unit",
        "default",
        "arms",
        "rules",
        "idempotent",
        "timeouts",
        "body_max",
        "shadow",
    ],
    unsupported: &[("half_close", "half-closed clients are not supported by this build")],
};

const ATTRIBUTE: Shape =
    Shape { what: "an attribute", known: &["from", "type", "default"], unsupported: &[] };

const ARM: Shape = Shape {
    what: "an Arm",
    known: &["model", "facts", "facts_into", "timeouts", "shadow"],
    unsupported: &[("body", "body edits are not supported by this build")],
};

const RULE: Shape = Shape {
    what: "a Rule",
    known: &["name", "when", "arm", "experiment"],
    unsupported: &[RULE_SHADOW],
};

const EXPERIMENT: Shape = Shape {
    what: "an experiment",
    known: &["unit", "salt", "layer", "layer_share", "split"],
    unsupported: &[],
};

pub(super) fn objective(reader: &mut Reader<'_>, node: &Node) -> Option<Objective> {
    let fields = reader.fields(node, &OBJECTIVE)?;
    let token = fields.required(reader, "token");
    let token = token.and_then(|token| reader.matching(token, Pattern::Token));
    let context = match fields.optional("context") {
        Some(node) => context(reader, node),
        None => Some(BTreeMap::new()),
    };
    let unit = fields.optional("unit").map(|name| reader.matching(name, Pattern::Attribute));
    let default = fields.required(reader, "default");
    let default = default.and_then(|name| reader.matching(name, Pattern::Name));
    let arms = fields.required(reader, "arms").and_then(|node| arms(reader, node));
    let rules = match fields.optional("rules") {
        Some(node) => rules(reader, node),
        None => Some(Vec::new()),
    };
    let idempotent = match fields.optional("idempotent") {
        Some(node) => reader.boolean(node),
        None => Some(false),
    };
    let timeouts = timeouts(reader, fields.optional("timeouts"));
    let shadow = super::shadow::targets(reader, fields.optional("shadow"));
    let body_max = transposed(fields.optional("body_max").map(|node| size(reader, node)));
    Some(Objective {
        token: token?,
        context: context?,
        unit: transposed(unit)?,
        default: default?,
        arms: arms?,
        rules: rules?,
        idempotent: idempotent?,
        timeouts: timeouts?,
        body_bytes_max: body_max?,
        shadow: shadow?,
    })
}

fn context(reader: &mut Reader<'_>, node: &Node) -> Option<BTreeMap<String, Attribute>> {
    let attributes = named(reader, node, Pattern::Attribute, "attributes by name", attribute)?;
    at_most(reader, node, attributes.len(), 0, ATTRIBUTES_MAX, "attributes")?;
    Some(attributes)
}

fn attribute(reader: &mut Reader<'_>, node: &Node) -> Option<Attribute> {
    let fields = reader.fields(node, &ATTRIBUTE)?;
    let from = fields.required(reader, "from").and_then(|node| source(reader, node));
    let kind = fields.required(reader, "type").and_then(|kind| reader.word(kind, &VALUE_KINDS));
    let default = fields.optional("default").map(|default| scalar(reader, default, kind));
    Some(Attribute { from: from?, kind: kind?, default: transposed(default)? })
}

fn source(reader: &mut Reader<'_>, node: &Node) -> Option<String> {
    const EXPECTED: &str = "a source as header:NAME, query:NAME or body:/JSON/POINTER";
    let text = reader.text(node, EXPECTED)?;
    let canonical = match text.split_once(':') {
        Some(("header", name)) => {
            let name = name.to_ascii_lowercase();
            syntax::is_header_name(&name).then(|| format!("header:{name}"))
        }
        Some(("query", name)) => syntax::is_query_name(name).then(|| text.to_owned()),
        Some(("body", pointer)) => syntax::is_pointer(pointer).then(|| text.to_owned()),
        Some(_) | None => None,
    };
    canonical.or_else(|| reader.bad(node, EXPECTED))
}

fn arms(reader: &mut Reader<'_>, node: &Node) -> Option<BTreeMap<String, Arm>> {
    let arms = named(reader, node, Pattern::Name, "Arms by name", arm)?;
    at_most(reader, node, arms.len(), 1, ARMS_MAX, "Arms")?;
    Some(arms)
}

fn arm(reader: &mut Reader<'_>, node: &Node) -> Option<Arm> {
    let fields = reader.fields(node, &ARM)?;
    let model = fields.required(reader, "model");
    let model = model.and_then(|model| reader.matching(model, Pattern::ModelReference));
    let facts = facts::names(reader, fields);
    let facts_into = facts::into(reader, fields);
    let timeouts = timeouts(reader, fields.optional("timeouts"));
    let shadow = super::shadow::targets(reader, fields.optional("shadow"));
    Some(Arm {
        model: model?,
        facts: facts?,
        facts_into: facts_into?,
        timeouts: timeouts?,
        shadow: shadow?,
    })
}

fn rules(reader: &mut Reader<'_>, node: &Node) -> Option<Vec<Rule>> {
    let items = reader.sequence(node, "Rules")?;
    at_most(reader, node, items.len(), 0, RULES_MAX, "Rules")?;
    let rules: Vec<_> = items.iter().map(|item| rule(reader, item)).collect();
    let mut names = HashSet::new();
    for (item, rule) in items.iter().zip(&rules) {
        if let Some(rule) = rule
            && !names.insert(rule.name.clone())
        {
            let found = format!("a second Rule `{}`", rule.name);
            let mark = item.under(&["name"]).mark;
            reader.fault(mark, FaultKind::Duplicate, found, "another name in each Rule");
            return None;
        }
    }
    rules.into_iter().collect()
}

fn rule(reader: &mut Reader<'_>, node: &Node) -> Option<Rule> {
    let fields = reader.fields(node, &RULE)?;
    let name = fields.required(reader, "name");
    let name = name.and_then(|name| reader.matching(name, Pattern::Label));
    let when = fields.optional("when").map(|node| {
        reader.text(node, "a condition in CEL, such as country == \"DE\"").map(str::to_owned)
    });
    let then = outcome(reader, node, fields);
    Some(Rule { name: name?, when: transposed(when)?, then: then? })
}

fn outcome(reader: &mut Reader<'_>, node: &Node, fields: Fields<'_>) -> Option<Outcome> {
    match (fields.optional("arm"), fields.optional("experiment")) {
        (Some(arm), None) => reader.matching(arm, Pattern::Name).map(Outcome::Arm),
        (None, Some(node)) => experiment(reader, node).map(Outcome::Experiment),
        (Some(_), Some(_)) => {
            let mark = fields.key_mark("experiment").unwrap_or(node.mark);
            let expected = "one of `arm` and `experiment`";
            reader.fault(mark, FaultKind::Value, "both `arm` and `experiment`", expected);
            None
        }
        (None, None) => {
            let expected = "the field `arm` or the field `experiment`";
            let found = "a Rule without an outcome";
            reader.fault(node.mark, FaultKind::MissingField, found, expected);
            None
        }
    }
}

fn experiment(reader: &mut Reader<'_>, node: &Node) -> Option<Experiment> {
    let fields = reader.fields(node, &EXPERIMENT)?;
    let unit = fields.required(reader, "unit");
    let unit = unit.and_then(|unit| reader.matching(unit, Pattern::Attribute));
    let salt = fields.required(reader, "salt");
    let salt = salt.and_then(|salt| reader.matching(salt, Pattern::Salt));
    let layer = transposed(layer_share(reader, fields));
    let split = fields.required(reader, "split").and_then(|node| split(reader, node));
    Some(Experiment { unit: unit?, salt: salt?, layer: layer?, split: split? })
}

#[expect(clippy::option_option, reason = "absent, wrong and right are three things")]
fn layer_share(reader: &mut Reader<'_>, fields: Fields<'_>) -> Option<Option<LayerShare>> {
    let share = fields.optional("layer_share");
    let Some(layer) = fields.optional("layer") else {
        let share = share?;
        let expected = "the field `layer` beside it";
        reader.fault(share.mark, FaultKind::MissingField, "`layer_share` alone", expected);
        return Some(None);
    };
    let name = reader.matching(layer, Pattern::Label);
    let share = match share {
        Some(node) => reader.count(node, 1, Slot::COUNT),
        None => Some(Slot::COUNT),
    };
    Some(name.zip(share).map(|(name, share)| LayerShare { name, share }))
}

fn split(reader: &mut Reader<'_>, node: &Node) -> Option<BTreeMap<String, u16>> {
    let weight = |reader: &mut Reader<'_>, node: &Node| reader.count(node, 0, Slot::COUNT);
    let split = named(reader, node, Pattern::Name, "Slots out of 10000 by Arm", weight)?;
    let sum: u32 = split.values().map(|weight| u32::from(*weight)).sum();
    if (1..=u32::from(Slot::COUNT)).contains(&sum) {
        return Some(split);
    }
    let expected = format!("1 to {} in sum; what is left over falls through", Slot::COUNT);
    reader.fault(node.mark, FaultKind::Value, format!("weights that sum to {sum}"), expected);
    None
}

pub(super) fn size(reader: &mut Reader<'_>, node: &Node) -> Option<u64> {
    const UNITS: [(&str, u64); 4] =
        [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];
    const BYTES_MAX: u64 = 1 << 40;
    let expected = "a size from 1B to 1024GiB, a whole number of B, KiB, MiB or GiB, such as 4MiB";
    reader.quantity(node, &UNITS, BYTES_MAX, expected)
}

pub(super) fn at_most(
    reader: &mut Reader<'_>,
    node: &Node,
    count: usize,
    min: usize,
    max: usize,
    what: &str,
) -> Option<()> {
    if (min..=max).contains(&count) {
        return Some(());
    }
    let found = format!("{count} {what}");
    reader.fault(node.mark, FaultKind::Limit, found, format!("{min} to {max} {what}"));
    None
}
