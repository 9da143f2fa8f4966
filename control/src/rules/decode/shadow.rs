//! Shadow targets, of an Objective and of one of its Arms.

use switchboard_shared::{
    limits::{SHADOW_MEMBERS_MAX, SHADOW_TARGETS_MAX},
    slot::Slot,
    snapshot::syntax,
};

use super::{
    objective::{at_most, size},
    transposed,
};
use crate::rules::{
    fault::FaultKind,
    object::{SampleBy, ShadowTarget},
    pattern::Pattern,
    read::{Fields, Reader, Shape},
    yaml::Node,
};

const TARGET: Shape = Shape {
    what: "a shadow target",
    known: &[
        "model",
        "sample",
        "by",
        "unit",
        "max_bytes_per_second",
        "topic",
        "capture_response",
        "keep",
        "drop",
    ],
    unsupported: &[],
};

const SAMPLE_BY: [(&str, SampleBy); 2] = [("unit", SampleBy::Unit), ("random", SampleBy::Random)];

/// What stands in a field `shadow`; none is an empty list.
pub(super) fn targets(reader: &mut Reader<'_>, node: Option<&Node>) -> Option<Vec<ShadowTarget>> {
    let Some(node) = node else { return Some(Vec::new()) };
    let items = reader.sequence(node, "shadow targets")?;
    at_most(reader, node, items.len(), 1, SHADOW_TARGETS_MAX, "shadow targets")?;
    let targets: Vec<_> = items.iter().map(|item| target(reader, item)).collect();
    targets.into_iter().collect()
}

fn target(reader: &mut Reader<'_>, node: &Node) -> Option<ShadowTarget> {
    let fields = reader.fields(node, &TARGET)?;
    let model = fields.required(reader, "model");
    let model = model.and_then(|model| reader.matching(model, Pattern::ModelReference));
    let sample = fields.required(reader, "sample");
    let sample = sample.and_then(|node| reader.count(node, 1, Slot::COUNT));
    let by = match fields.optional("by") {
        Some(node) => reader.word(node, &SAMPLE_BY),
        None => Some(SampleBy::Unit),
    };
    let unit = fields.optional("unit").map(|node| reader.matching(node, Pattern::Attribute));
    let cap = fields.optional("max_bytes_per_second").map(|node| size(reader, node));
    let topic = fields.optional("topic").map(|node| reader.matching(node, Pattern::Topic));
    let capture_response = match fields.optional("capture_response") {
        Some(node) => reader.boolean(node),
        None => Some(false),
    };
    let keep = members(reader, fields, "keep");
    let drop = members(reader, fields, "drop");
    if let (Some(_), Some(drop)) = (fields.optional("keep"), fields.key_mark("drop")) {
        let expected = "one of `keep` and `drop`";
        reader.fault(drop, FaultKind::Value, "both `keep` and `drop`", expected);
        return None;
    }
    Some(ShadowTarget {
        model: model?,
        sample: sample?,
        by: by?,
        unit: transposed(unit)?,
        bytes_per_second_max: transposed(cap)?,
        topic: transposed(topic)?,
        capture_response: capture_response?,
        keep: keep?,
        drop: drop?,
    })
}

fn members(reader: &mut Reader<'_>, fields: Fields<'_>, name: &str) -> Option<Vec<String>> {
    const EXPECTED: &str = "a JSON Pointer such as /context/country";
    let Some(node) = fields.optional(name) else { return Some(Vec::new()) };
    let items = reader.sequence(node, "JSON Pointers")?;
    at_most(reader, node, items.len(), 1, SHADOW_MEMBERS_MAX, "JSON Pointers")?;
    let pointers: Vec<_> = items
        .iter()
        .map(|item| {
            let pointer = reader.text(item, EXPECTED)?;
            if syntax::is_pointer(pointer) {
                return Some(pointer.to_owned());
            }
            reader.bad(item, EXPECTED)
        })
        .collect();
    pointers.into_iter().collect()
}
