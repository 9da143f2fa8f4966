//! The check of Layers, and of what Experiments own of them.

use std::collections::{HashMap, hash_map::Entry};

use super::{CheckError, Fault, Object, Part, Place, distinct, objective::experiments};
use crate::{
    slot::SlotKey,
    snapshot::{
        archive::{ArchivedExperiment, ArchivedLayerShare, ArchivedPayload},
        syntax,
    },
};

/// The Layers themselves.
pub(super) fn check(payload: &ArchivedPayload) -> Result<(), CheckError> {
    distinct(payload.layers.iter().map(|layer| layer.name.as_str()), Object::Layer)?;
    let mut salts = HashMap::new();
    for layer in payload.layers.iter() {
        let place = || Place::of(Object::Layer, &layer.name);
        if !syntax::is_label(&layer.name) {
            let expected = "[A-Za-z0-9][A-Za-z0-9_.-]{0,63}";
            return Err(Fault::Syntax { what: "its name", expected }.at(place()));
        }
        check_salt(&layer.salt, &layer.key).map_err(|fault| fault.at(place()))?;
        if let Some(other) = salts.insert(layer.salt.as_str(), layer.name.as_str()) {
            let other = Box::new(Place::of(Object::Layer, other));
            let salt = layer.salt.as_str().to_owned();
            return Err(Fault::SaltTwice { salt, other }.at(place()));
        }
    }
    Ok(())
}

/// A salt is a text, and its key is derived from it.
pub(super) fn check_salt(salt: &str, key: &[u8; 32]) -> Result<(), Fault> {
    if !syntax::is_salt(salt) {
        return Err(Fault::Syntax { what: "its salt", expected: "1 to 8192 bytes" });
    }
    if SlotKey::derive(salt).as_bytes() == key { Ok(()) } else { Err(Fault::SlotKey) }
}

/// An Experiment's share of a Layer, with where it is told.
struct Share<'a> {
    objective: &'a str,
    rule: &'a str,
    unit: &'a str,
}

impl Share<'_> {
    fn place(&self) -> Place {
        Place::of(Object::Objective, self.objective).part(Part::Rule, self.rule)
    }
}

/// What all Objectives together own of each Layer: disjoint Slots, of one kind of Unit. No
/// Experiment has a Layer's salt, or the two decisions would be one.
///
/// Runs last: it relies on every index being good.
pub(super) fn check_shares(payload: &ArchivedPayload) -> Result<(), CheckError> {
    let layer_of_salt: HashMap<&str, &str> =
        payload.layers.iter().map(|layer| (layer.salt.as_str(), layer.name.as_str())).collect();
    let mut shares: Vec<Share<'_>> = Vec::new();
    let mut first_of_layer: HashMap<usize, usize> = HashMap::new();
    let mut owned = Vec::new();
    for objective in payload.objectives.iter() {
        for (rule, experiment) in experiments(objective) {
            let unit = objective.context[experiment.unit.get()].name.as_str();
            let share = Share { objective: &objective.token, rule: &rule.name, unit };
            check_salt_is_no_layers(experiment, &layer_of_salt)
                .map_err(|fault| fault.at(share.place()))?;
            let Some(ArchivedLayerShare { layer, slots }) = experiment.layer.as_ref() else {
                continue;
            };
            let layer = layer.get();
            match first_of_layer.entry(layer) {
                Entry::Vacant(entry) => {
                    entry.insert(shares.len());
                }
                Entry::Occupied(first) if shares[*first.get()].unit != unit => {
                    let other = &shares[*first.get()];
                    let fault = Fault::LayerUnit {
                        layer: payload.layers[layer].name.as_str().to_owned(),
                        unit: unit.to_owned(),
                        other: Box::new(other.place()),
                        other_unit: other.unit.to_owned(),
                    };
                    return Err(fault.at(share.place()));
                }
                Entry::Occupied(_) => {}
            }
            let here = shares.len();
            owned.extend(
                slots
                    .iter()
                    .map(|part| (layer, part.first.to_native(), part.last.to_native(), here)),
            );
            shares.push(share);
        }
    }
    owned.sort_unstable();
    for pair in owned.windows(2) {
        if let [(layer, _, last, one), (other_layer, first, _, other)] = *pair
            && layer == other_layer
            && first <= last
        {
            let fault = Fault::LayerSlotTwice {
                slot: first,
                layer: payload.layers[layer].name.as_str().to_owned(),
                other: Box::new(shares[one].place()),
            };
            return Err(fault.at(shares[other].place()));
        }
    }
    Ok(())
}

fn check_salt_is_no_layers(
    experiment: &ArchivedExperiment,
    layer_of_salt: &HashMap<&str, &str>,
) -> Result<(), Fault> {
    match layer_of_salt.get(experiment.salt.as_str()) {
        None => Ok(()),
        Some(layer) => Err(Fault::SaltTwice {
            salt: experiment.salt.as_str().to_owned(),
            other: Box::new(Place::of(Object::Layer, layer)),
        }),
    }
}
