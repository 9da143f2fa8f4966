//! The check of an Objective's shadow targets.

use super::{Fault, at_most};
use crate::{
    definition::{ArchivedMembers, SampleBy, ValueKind},
    limits::{SHADOW_MEMBERS_MAX, SHADOW_TARGETS_MAX},
    slot::{Slot, SlotKey},
    snapshot::{
        archive::{ArchivedObjective, ArchivedPayload, ArchivedShadowTarget},
        syntax,
    },
};

/// Every index is in range and every target can be told from the others. Each fault comes with the
/// name of its candidate.
pub(super) fn check(
    payload: &ArchivedPayload,
    objective: &ArchivedObjective,
) -> Result<(), (String, Fault)> {
    let unnamed = |fault| (String::new(), fault);
    at_most("shadow targets", objective.shadow.len(), SHADOW_TARGETS_MAX).map_err(unnamed)?;
    if objective.shadow.is_empty() {
        return Ok(());
    }
    let key = SlotKey::derive_sample(&objective.token);
    for (place, target) in objective.shadow.iter().enumerate() {
        let model = payload.models.get(target.model.get());
        let model = model.ok_or(unnamed(Fault::Index { what: "Model version" }))?;
        let named = |fault| (model.id.as_str().to_owned(), fault);
        check_target(objective, target, &key).map_err(named)?;
        let is_same = |other: &ArchivedShadowTarget| {
            (other.model, other.arm.as_ref()) == (target.model, target.arm.as_ref())
        };
        if objective.shadow.iter().skip(place + 1).any(is_same) {
            return Err(named(Fault::Twice));
        }
    }
    Ok(())
}

fn check_target(
    objective: &ArchivedObjective,
    target: &ArchivedShadowTarget,
    key: &SlotKey,
) -> Result<(), Fault> {
    if target.key != *key.as_bytes() {
        return Err(Fault::SampleKey);
    }
    if !(1..=Slot::COUNT).contains(&target.sample.to_native()) {
        return Err(Fault::Sample);
    }
    if target.arm.as_ref().is_some_and(|arm| arm.get() >= objective.arms.len()) {
        return Err(Fault::Index { what: "arm" });
    }
    match target.unit() {
        None if target.by.to_native() == SampleBy::Unit => return Err(Fault::SampleWithoutUnit),
        None => {}
        Some(unit) => {
            let unit = objective.context.get(unit.get());
            let unit = unit.ok_or(Fault::Index { what: "attribute" })?;
            if unit.kind.to_native() == ValueKind::Boolean {
                return Err(Fault::UnitType { unit: unit.name.as_str().to_owned() });
            }
        }
    }
    if target.bytes_per_second_max.as_ref().is_some_and(|bytes| bytes.to_native() == 0) {
        return Err(Fault::BytesPerSecond);
    }
    if target.topic.as_ref().is_some_and(|topic| !syntax::is_topic(topic)) {
        return Err(Fault::Syntax { what: "its topic", expected: syntax::TOPIC });
    }
    let (ArchivedMembers::Keep(pointers) | ArchivedMembers::Drop(pointers)) = &target.members
    else {
        return Ok(());
    };
    at_most("kept or dropped members", pointers.len(), SHADOW_MEMBERS_MAX)?;
    if pointers.is_empty() || !pointers.iter().all(|pointer| syntax::is_pointer(pointer)) {
        return Err(Fault::Syntax {
            what: "a kept or dropped member",
            expected: "a JSON Pointer such as /context/country",
        });
    }
    Ok(())
}
