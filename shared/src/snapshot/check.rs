//! Whether a Snapshot makes sense: every index, name, range and type that the router relies on.
//!
//! The builder runs this over what it built, and [`super::Snapshot::open`] over what came: one set
//! of rules, told in the same words to the author of a rule file and to the operator of a router.
//! Time and memory are linear in the Snapshot's size (times a logarithm), recursion there is none.

mod fact;
mod fault;
mod layers;
mod objective;
mod shadow;

use std::collections::HashSet;

pub use self::fault::{CheckError, Fault, Object, Part, Place};
use super::{
    archive::{ArchivedModelVersion, ArchivedPayload, ArchivedShard},
    open::HASH_VERSION,
    syntax,
};
use crate::{
    address::Address,
    definition::ArchivedValue,
    limits::{
        ENDPOINT_WEIGHT_MAX, ENDPOINTS_MAX, FACTS_MAX, LAYERS_MAX, MODELS_MAX, OBJECTIVES_MAX,
        SHARDS_MAX, TEXT_BYTES_MAX,
    },
    text_table,
};

/// Checks everything; the first fault is told.
pub(super) fn check(payload: &ArchivedPayload) -> Result<(), CheckError> {
    let whole = || Place::of(Object::Snapshot, "");
    debug_assert_eq!(payload.hash_version, HASH_VERSION, "`open` and `build` see to it");
    check_whole(payload).map_err(|fault| fault.at(whole()))?;
    layers::check(payload)?;

    distinct(payload.shards.iter().map(|shard| shard.name.as_str()), Object::Shard)?;
    for shard in payload.shards.iter() {
        check_shard(shard).map_err(|fault| fault.at(Place::of(Object::Shard, &shard.name)))?;
    }
    distinct(payload.models.iter().map(|model| model.id.as_str()), Object::Model)?;
    for model in payload.models.iter() {
        check_model(payload, model)
            .map_err(|fault| fault.at(Place::of(Object::Model, &model.id)))?;
    }
    distinct(payload.facts.iter().map(|fact| fact.name.as_str()), Object::Fact)?;
    for fact in payload.facts.iter() {
        fact::check(fact).map_err(|fault| fault.at(Place::of(Object::Fact, &fact.name)))?;
    }
    distinct(payload.objectives.iter().map(|one| one.token.as_str()), Object::Objective)?;
    for objective in payload.objectives.iter() {
        objective::check(payload, objective)?;
    }
    check_tokens(payload).map_err(|fault| fault.at(whole()))?;
    layers::check_shares(payload)
}

fn check_whole(payload: &ArchivedPayload) -> Result<(), Fault> {
    if !syntax::is_label(&payload.group) {
        return Err(Fault::Syntax {
            what: "the group",
            expected: "[A-Za-z0-9][A-Za-z0-9_.-]{0,63}",
        });
    }
    let times = (payload.not_before_unix_ms.as_ref(), payload.expires_unix_ms.as_ref());
    if let (Some(not_before), Some(expires)) = times
        && not_before.to_native() > expires.to_native()
    {
        return Err(Fault::NeverValid);
    }
    at_most("Objectives", payload.objectives.len(), OBJECTIVES_MAX)?;
    at_most("Layers", payload.layers.len(), LAYERS_MAX)?;
    at_most("Model versions", payload.models.len(), MODELS_MAX)?;
    at_most("Shards", payload.shards.len(), SHARDS_MAX)?;
    at_most("Facts", payload.facts.len(), FACTS_MAX)
}

/// Every token is found where it is, and a search for a foreign one ends.
fn check_tokens(payload: &ArchivedPayload) -> Result<(), Fault> {
    let objectives = &payload.objectives;
    let token_at = |place: usize| objectives.get(place).map(|one| one.token.as_str());
    let sound = text_table::is_sound(&payload.tokens, objectives.len(), token_at);
    if sound { Ok(()) } else { Err(Fault::TokenTable) }
}

fn check_shard(shard: &ArchivedShard) -> Result<(), Fault> {
    if !syntax::is_name(&shard.name) {
        return Err(Fault::Syntax { what: "its name", expected: "[a-z0-9][a-z0-9_.-]{0,63}" });
    }
    if shard.endpoints.is_empty() {
        return Err(Fault::NoEndpoints);
    }
    at_most("endpoints", shard.endpoints.len(), ENDPOINTS_MAX)?;
    let mut addresses = HashSet::new();
    for endpoint in shard.endpoints.iter() {
        let address = endpoint.address.as_str();
        if let Err(source) = Address::parse(address) {
            return Err(Fault::Address { address: address.to_owned(), source });
        }
        if !addresses.insert(address) {
            return Err(Fault::AddressTwice(address.to_owned()));
        }
        if !(1..=ENDPOINT_WEIGHT_MAX).contains(&endpoint.weight.to_native()) {
            return Err(Fault::Weight { address: address.to_owned() });
        }
    }
    Ok(())
}

fn check_model(payload: &ArchivedPayload, model: &ArchivedModelVersion) -> Result<(), Fault> {
    if !syntax::is_name(model.name()) {
        return Err(Fault::Syntax { what: "its name", expected: "[a-z0-9][a-z0-9_.-]{0,63}" });
    }
    if !syntax::is_version(model.version()) {
        return Err(Fault::Syntax {
            what: "its version",
            expected: "[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}",
        });
    }
    if !syntax::is_served_name(&model.served_name) {
        return Err(Fault::Syntax {
            what: "its served name",
            expected: "1 to 256 visible ASCII characters without quotes and backslashes",
        });
    }
    if model.path.as_ref().is_some_and(|path| !syntax::is_path(path)) {
        return Err(Fault::Syntax {
            what: "its path",
            expected: "`/` and visible ASCII characters without `?` and `#`",
        });
    }
    if model.shard.get() >= payload.shards.len() {
        return Err(Fault::Index { what: "Shard" });
    }
    Ok(())
}

/// A default is of the declared type, finite, and not too long.
fn check_default(
    value: &ArchivedValue,
    declared: crate::definition::ValueKind,
) -> Result<(), Fault> {
    use crate::definition::ValueKind;

    let kind = match value {
        ArchivedValue::Text(_) => ValueKind::Text,
        ArchivedValue::Number(_) => ValueKind::Number,
        ArchivedValue::Boolean(_) => ValueKind::Boolean,
    };
    if kind != declared {
        return Err(Fault::DefaultType { declared, found: kind });
    }
    let good = match value {
        ArchivedValue::Text(text) => text.len() <= TEXT_BYTES_MAX,
        ArchivedValue::Number(number) => number.to_native().is_finite(),
        ArchivedValue::Boolean(_) => true,
    };
    if good { Ok(()) } else { Err(Fault::DefaultValue) }
}

fn at_most(what: &'static str, count: usize, count_max: usize) -> Result<(), Fault> {
    if count <= count_max { Ok(()) } else { Err(Fault::TooMany { what, count_max }) }
}

/// No two objects of one kind share a name.
fn distinct<'a>(
    mut names: impl Iterator<Item = &'a str>,
    object: Object,
) -> Result<(), CheckError> {
    let mut seen = HashSet::new();
    match names.find(|name| !seen.insert(*name)) {
        None => Ok(()),
        Some(name) => Err(Fault::Twice.at(Place::of(object, name))),
    }
}

/// The first two of one name among an Objective's few. Comparing each with each costs less than a
/// hash table for each of 10 000 Objectives, which would be a good part of the whole check.
fn first_repeated<'a, T>(
    few: impl Iterator<Item = T> + Clone,
    name: impl Fn(&T) -> &'a str,
) -> Option<(T, T)> {
    few.clone().enumerate().find_map(|(place, one)| {
        let before = few.clone().take(place).find(|other| name(other) == name(&one));
        before.map(|before| (before, one))
    })
}
