//! The check of one Fact, and of where an Arm's model server gets its Facts.

use super::{Fault, check_default};
use crate::{
    definition::{ArchivedFactsInto, ArchivedFactsOwner, ArchivedValue, FactKind},
    limits::{FACTS_POINTER_DEPTH_MAX, TIMEOUT_MS_MAX},
    snapshot::{archive::ArchivedFact, syntax},
};

pub(super) fn check(fact: &ArchivedFact) -> Result<(), Fault> {
    if !syntax::is_identifier(&fact.name) {
        return Err(Fault::Syntax { what: "its name", expected: "[a-z][a-z0-9_]{0,63}" });
    }
    if !syntax::is_key_template(&fact.key) {
        return Err(Fault::Syntax {
            what: "its key",
            expected: "visible ASCII characters with one `{unit}` and no other brace",
        });
    }
    if fact.hash_field.as_ref().is_some_and(|field| !syntax::is_hash_field(field)) {
        return Err(Fault::Syntax {
            what: "its hash field",
            expected: "1 to 512 visible ASCII characters",
        });
    }
    let fresh_for = fact.fresh_for_ms.as_ref().map(|millis| millis.to_native());
    if fresh_for.is_some_and(|millis| !(1..=TIMEOUT_MS_MAX).contains(&millis)) {
        return Err(Fault::Syntax { what: "how long it is fresh", expected: "1 ms to one day" });
    }
    let Some(default) = fact.default.as_ref() else { return Ok(()) };
    let kind = fact.kind.to_native();
    check_default(default, kind.value_kind())?;
    match (kind, default) {
        (FactKind::Json, ArchivedValue::Text(text)) if !syntax::is_json(text) => {
            Err(Fault::DefaultNoJson)
        }
        _ => Ok(()),
    }
}

/// The object's place is one that the router can find and make.
pub(super) fn check_into(into: &ArchivedFactsInto) -> Result<(), Fault> {
    let ArchivedFactsInto::Body(object) = into else { return Ok(()) };
    let is_root = object.pointer.is_empty() && object.owner == ArchivedFactsOwner::Shared;
    let depth = object.pointer.split('/').count() - 1;
    if is_root || syntax::is_pointer(&object.pointer) && depth <= FACTS_POINTER_DEPTH_MAX {
        return Ok(());
    }
    Err(Fault::Syntax {
        what: "where its Facts go",
        expected: "a JSON Pointer of at most 8 names, such as /parameters; the whole body only if it is shared",
    })
}
