//! From a document's tree to the object that it describes.

mod facts;
mod objective;
mod placement;
mod shadow;
mod validation;

use std::collections::BTreeMap;

use switchboard_shared::{
    limits::{TEXT_BYTES_MAX, TIMEOUT_MS_MAX},
    slot::Slot,
};

use super::{
    fault::FaultKind,
    object::{Allocation, Kind, Layer, LayerSlots, Object, Scalar, Timeouts, ValueKind},
    pattern::Pattern,
    read::{Reader, Shape},
    slots::{SlotSet, SlotSetError},
    yaml::{Key, Node, Value},
};

const ANY: Shape = Shape { what: "an object", known: &["kind"], unsupported: &[] };

const LAYER: Shape = Shape { what: "a Layer", known: &["kind", "name", "salt"], unsupported: &[] };

const ALLOCATION: Shape = Shape {
    what: "an Allocation",
    known: &["kind", "objective", "rule", "salt", "layer", "split"],
    unsupported: &[],
};

const LAYER_SLOTS: Shape =
    Shape { what: "an Allocation's layer section", known: &["salt", "slots"], unsupported: &[] };

const TIMEOUTS: Shape = Shape {
    what: "timeouts",
    known: &["body_idle", "connect", "first_byte", "response_idle", "total"],
    unsupported: &[],
};

const VALUE_KINDS: [(&str, ValueKind); 3] = [
    (ValueKind::String.word(), ValueKind::String),
    (ValueKind::Number.word(), ValueKind::Number),
    (ValueKind::Bool.word(), ValueKind::Bool),
];

/// Reads one document. `None` where a fault was reported that leaves no object.
pub(crate) fn object(reader: &mut Reader<'_>, node: &Node) -> Option<Object> {
    let entries = reader.mapping(node, ANY.what)?;
    let kinds = Kind::ALL.map(Kind::word).join(", ");
    let Some((_, word)) = entries.iter().find(|(key, _)| key.name == "kind") else {
        let expected = format!("the field `kind`, one of: {kinds}");
        reader.fault(node.mark, FaultKind::MissingField, "an object without `kind`", expected);
        return None;
    };
    let words = Kind::ALL.map(|kind| (kind.word(), kind));
    Some(match reader.word(word, &words)? {
        Kind::Objective => Object::Objective(objective::objective(reader, node)?),
        Kind::Layer => Object::Layer(layer(reader, node)?),
        Kind::Fact => Object::Fact(facts::fact(reader, node)?),
        Kind::Model => Object::Model(placement::model(reader, node)?),
        Kind::Shard => Object::Shard(placement::shard(reader, node)?),
        Kind::Allocation => Object::Allocation(allocation(reader, node)?),
    })
}

fn layer(reader: &mut Reader<'_>, node: &Node) -> Option<Layer> {
    let fields = reader.fields(node, &LAYER)?;
    let name = fields.required(reader, "name");
    let name = name.and_then(|name| reader.matching(name, Pattern::Label));
    let salt = match fields.optional("salt") {
        Some(salt) => reader.matching(salt, Pattern::Salt),
        None => name.as_ref().map(|name| format!("layer/{name}")),
    };
    Some(Layer { name: name?, salt: salt? })
}

fn allocation(reader: &mut Reader<'_>, node: &Node) -> Option<Allocation> {
    let fields = reader.fields(node, &ALLOCATION)?;
    let objective = fields.required(reader, "objective");
    let objective = objective.and_then(|token| reader.matching(token, Pattern::Token));
    let rule = fields.required(reader, "rule");
    let rule = rule.and_then(|rule| reader.matching(rule, Pattern::Label));
    let salt = fields.required(reader, "salt");
    let salt = salt.and_then(|salt| reader.matching(salt, Pattern::Salt));
    let layer = fields.optional("layer").map(|layer| layer_slots(reader, layer));
    let split = fields.required(reader, "split").and_then(|split| {
        let arms = named(reader, split, Pattern::Name, "Slots by Arm", slot_set)?;
        let slots = arms.values().flat_map(SlotSet::ranges).copied().collect();
        match SlotSet::of_ranges(slots) {
            Ok(_) => Some(arms),
            Err(error) => {
                let expected = "each Slot in one Arm";
                reader.fault(split.mark, FaultKind::Value, error.to_string(), expected);
                None
            }
        }
    });
    Some(Allocation {
        objective: objective?,
        rule: rule?,
        salt: salt?,
        layer: transposed(layer)?,
        split: split?,
    })
}

fn layer_slots(reader: &mut Reader<'_>, node: &Node) -> Option<LayerSlots> {
    let fields = reader.fields(node, &LAYER_SLOTS)?;
    let salt = fields.required(reader, "salt");
    let salt = salt.and_then(|salt| reader.matching(salt, Pattern::Salt));
    let slots = fields.required(reader, "slots").and_then(|slots| slot_set(reader, slots));
    Some(LayerSlots { salt: salt?, slots: slots? })
}

fn slot_set(reader: &mut Reader<'_>, node: &Node) -> Option<SlotSet> {
    const EXPECTED: &str = "ranges of Slots such as \"0-4499\" or \"7000\"";
    let items = reader.sequence(node, EXPECTED)?;
    if items.len() > usize::from(Slot::COUNT) {
        return reader.bad(node, format!("at most {} ranges", Slot::COUNT));
    }
    let texts: Option<Vec<&str>> = items.iter().map(|item| reader.text(item, EXPECTED)).collect();
    match SlotSet::parse(texts?) {
        Ok(slots) => Some(slots),
        Err(error @ SlotSetError::Range { .. }) => {
            reader.fault(node.mark, FaultKind::Value, error.to_string(), EXPECTED);
            None
        }
        Err(error @ SlotSetError::Twice { .. }) => {
            reader.fault(node.mark, FaultKind::Value, error.to_string(), "each Slot once");
            None
        }
    }
}

/// A mapping from names to values of one sort.
fn named<T>(
    reader: &mut Reader<'_>,
    node: &Node,
    pattern: Pattern,
    what: &str,
    mut value: impl FnMut(&mut Reader<'_>, &Node) -> Option<T>,
) -> Option<BTreeMap<String, T>> {
    let entries = reader.mapping(node, what)?;
    let mut whole = true;
    let mut values = BTreeMap::new();
    for (key, node) in entries {
        let name_is_good = name_matches(reader, key, pattern);
        match value(reader, node) {
            Some(value) if name_is_good => drop(values.insert(key.name.clone(), value)),
            Some(_) | None => whole = false,
        }
    }
    whole.then_some(values)
}

fn name_matches(reader: &mut Reader<'_>, key: &Key, pattern: Pattern) -> bool {
    let good = pattern.matches(&key.name);
    if !good {
        let found = format!("`{}`", key.shown());
        reader.fault(key.mark, FaultKind::Value, found, pattern.expected());
    }
    good
}

/// A value of the given type; of any type where that is itself not known.
fn scalar(reader: &mut Reader<'_>, node: &Node, kind: Option<ValueKind>) -> Option<Scalar> {
    #[expect(clippy::cast_precision_loss, reason = "refused below where it is not exact")]
    let value = match &node.value {
        Value::Boolean(boolean) => Some(Scalar::Bool(*boolean)),
        Value::Integer(number) if number.unsigned_abs() <= 1 << 53 => {
            Some(Scalar::Number(*number as f64))
        }
        Value::Number(number) => Some(Scalar::Number(*number)),
        Value::Text(text) if text.len() <= TEXT_BYTES_MAX => Some(Scalar::String(text.clone())),
        _ => None,
    };
    let kind = kind?;
    match value {
        Some(value) if value.kind() == kind => Some(value),
        Some(_) | None => reader.wrong(
            node,
            match kind {
                ValueKind::String => "a text of at most 8192 bytes, in quotes, as the type says",
                ValueKind::Number => "a number, as the type says",
                ValueKind::Bool => "true or false, as the type says",
            },
        ),
    }
}

fn timeouts(reader: &mut Reader<'_>, node: Option<&Node>) -> Option<Timeouts> {
    let Some(node) = node else { return Some(Timeouts::default()) };
    let fields = reader.fields(node, &TIMEOUTS)?;
    let mut clock = |name| transposed(fields.optional(name).map(|node| duration(reader, node)));
    let body_idle = clock("body_idle");
    let connect = clock("connect");
    let first_byte = clock("first_byte");
    let response_idle = clock("response_idle");
    let total = clock("total");
    Some(Timeouts {
        body_idle: body_idle?,
        connect: connect?,
        first_byte: first_byte?,
        response_idle: response_idle?,
        total: total?,
    })
}

fn duration(reader: &mut Reader<'_>, node: &Node) -> Option<u32> {
    const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
    let expected = "a duration from 1ms to 24h, a whole number of ms, s, m or h, such as 250ms";
    let milliseconds = reader.quantity(node, &UNITS, u64::from(TIMEOUT_MS_MAX), expected)?;
    u32::try_from(milliseconds).ok()
}

/// `None` only where something stood there and was wrong.
#[expect(clippy::option_option, reason = "absent, wrong and right are three things")]
fn transposed<T>(read: Option<Option<T>>) -> Option<Option<T>> {
    match read {
        None => Some(None),
        Some(None) => None,
        Some(Some(value)) => Some(Some(value)),
    }
}
