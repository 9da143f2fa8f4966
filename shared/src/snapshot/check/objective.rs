//! The check of one Objective.

use super::{
    CheckError, Fault, Object, Part, Place, at_most, check_default, fact, first_repeated,
    layers::check_salt,
};
use crate::{
    definition::{ArchivedSource, ArchivedTimeouts, FactKind, ValueKind},
    limits::{ARMS_MAX, ATTRIBUTES_MAX, FACTS_PER_ARM_MAX, RULES_MAX, TIMEOUT_MS_MAX},
    predicate::{check_start, check_tests},
    slot::Slot,
    snapshot::{
        archive::{
            ArchivedArm, ArchivedArmIndex, ArchivedAttribute, ArchivedExperiment,
            ArchivedObjective, ArchivedOutcome, ArchivedPayload, ArchivedRule,
        },
        syntax,
    },
};

pub(super) fn check(
    payload: &ArchivedPayload,
    objective: &ArchivedObjective,
) -> Result<(), CheckError> {
    let whole = || Place::of(Object::Objective, &objective.token);
    check_whole(objective).map_err(|fault| fault.at(whole()))?;
    check_unit(objective).map_err(|fault| fault.at(whole()))?;
    check_rule_facts(payload, objective)?;
    for attribute in objective.context.iter() {
        check_attribute(attribute)
            .map_err(|fault| fault.at(whole().part(Part::Attribute, &attribute.name)))?;
    }
    for arm in objective.arms.iter() {
        check_arm(payload, objective, arm)
            .map_err(|fault| fault.at(whole().part(Part::Arm, &arm.name)))?;
    }
    check_default_arm(payload, objective)?;
    check_tests(&objective.tests, &objective.context)
        .map_err(|fault| Fault::Predicate(fault).at(whole()))?;
    for rule in objective.rules.iter() {
        check_rule(payload, objective, rule)
            .map_err(|fault| fault.at(whole().part(Part::Rule, &rule.name)))?;
    }
    super::shadow::check(payload, objective)
        .map_err(|(model, fault)| fault.at(whole().part(Part::Shadow, &model)))?;
    check_names(objective)?;
    check_salts(objective)?;
    // No Experiment is two Rules' (their salt would be used twice), so none is nobody's.
    if objective.experiments.len() != experiments(objective).count() {
        return Err(Fault::Experiments.at(whole()));
    }
    Ok(())
}

/// The Rules that are Experiments.
pub(super) fn experiments(
    objective: &ArchivedObjective,
) -> impl Iterator<Item = (&ArchivedRule, &ArchivedExperiment)> + Clone {
    objective.rules.iter().filter_map(|rule| Some((rule, objective.experiment(rule)?)))
}

fn check_whole(objective: &ArchivedObjective) -> Result<(), Fault> {
    if !syntax::is_token(&objective.token) {
        return Err(Fault::Syntax { what: "its token", expected: "[A-Z][A-Z0-9_]{0,63}" });
    }
    at_most("attributes", objective.context.len(), ATTRIBUTES_MAX)?;
    at_most("arms", objective.arms.len(), ARMS_MAX)?;
    at_most("rules", objective.rules.len(), RULES_MAX)?;
    check_arm_index(objective, objective.default_arm)?;
    let has_default = |place: usize| {
        objective.context.get(place).is_some_and(|attribute| attribute.default.is_some())
    };
    let defaults = objective.defaults.to_native();
    if !(0..ATTRIBUTES_MAX).all(|place| (defaults >> place & 1 == 1) == has_default(place)) {
        return Err(Fault::Defaults);
    }
    check_timeouts(&objective.timeouts)
}

/// Facts are looked up for what can be bucketed, and what a request carries itself.
fn check_unit(objective: &ArchivedObjective) -> Result<(), Fault> {
    let Some(unit) = objective.unit.as_ref() else { return Ok(()) };
    let unit = objective.context.get(unit.get()).ok_or(Fault::Index { what: "unit" })?;
    let is_fact = matches!(unit.source, ArchivedSource::Fact(_));
    if is_fact || unit.kind.to_native() == ValueKind::Boolean {
        return Err(Fault::UnitType { unit: unit.name.as_str().to_owned() });
    }
    Ok(())
}

/// The attributes that are Facts are those of the table, in order, and typed as their Facts are.
fn check_rule_facts(
    payload: &ArchivedPayload,
    objective: &ArchivedObjective,
) -> Result<(), CheckError> {
    let whole = || Place::of(Object::Objective, &objective.token);
    let mut table = objective.rule_facts.iter();
    for (index, attribute) in objective.attributes() {
        let ArchivedSource::Fact(name) = &attribute.source else { continue };
        let place = || whole().part(Part::Attribute, &attribute.name);
        if objective.unit.is_none() {
            return Err(Fault::FactsWithoutUnit.at(place()));
        }
        let row = table.next().filter(|row| row.attribute.to_native() == index);
        let row = row.ok_or_else(|| Fault::RuleFacts.at(whole()))?;
        let fact = payload.facts.get(row.fact.get());
        let fact = fact.ok_or_else(|| Fault::Index { what: "Fact" }.at(place()))?;
        let kind = fact.kind.to_native();
        let is_it = fact.name == *name
            && kind != FactKind::Json
            && kind.value_kind() == attribute.kind.to_native()
            && attribute.default.is_none()
            && syntax::fact_of_attribute(&attribute.name) == Some(name.as_str());
        if !is_it {
            return Err(Fault::AttributeNoFact.at(place()));
        }
    }
    if table.next().is_some() { Err(Fault::RuleFacts.at(whole())) } else { Ok(()) }
}

fn check_attribute(attribute: &ArchivedAttribute) -> Result<(), Fault> {
    if matches!(attribute.source, ArchivedSource::Fact(_)) {
        return Ok(()); // `check_rule_facts` saw to it
    }
    if !syntax::is_identifier(&attribute.name) {
        return Err(Fault::Syntax { what: "its name", expected: "[a-z][a-z0-9_]{0,63}" });
    }
    let (good, expected) = match &attribute.source {
        ArchivedSource::Header(name) => {
            (syntax::is_header_name(name), "a header field's name in lower case")
        }
        ArchivedSource::Query(name) => {
            (syntax::is_query_name(name), "1 to 64 visible ASCII characters")
        }
        ArchivedSource::Body(pointer) => {
            (syntax::is_pointer(pointer), "a JSON Pointer such as /context/country")
        }
        ArchivedSource::Fact(name) => (syntax::is_identifier(name), "the name of a Fact"),
    };
    if !good {
        return Err(Fault::Syntax { what: "its source", expected });
    }
    let declared = attribute.kind.to_native();
    attribute.default.as_ref().map_or(Ok(()), |value| check_default(value, declared))
}

fn check_arm(
    payload: &ArchivedPayload,
    objective: &ArchivedObjective,
    arm: &ArchivedArm,
) -> Result<(), Fault> {
    if !syntax::is_name(&arm.name) {
        return Err(Fault::Syntax { what: "its name", expected: "[a-z0-9][a-z0-9_.-]{0,63}" });
    }
    if arm.model.get() >= payload.models.len() {
        return Err(Fault::Index { what: "Model version" });
    }
    at_most("facts", arm.facts.len(), FACTS_PER_ARM_MAX)?;
    if !arm.facts.is_empty() && objective.unit.is_none() {
        return Err(Fault::FactsWithoutUnit);
    }
    fact::check_into(&arm.facts_into)?;
    for (place, fact) in arm.facts.iter().enumerate() {
        if fact.get() >= payload.facts.len() {
            return Err(Fault::Index { what: "Fact" });
        }
        if arm.facts.iter().skip(place + 1).any(|other| other == fact) {
            return Err(Fault::FactTwice);
        }
    }
    check_timeouts(&arm.timeouts)
}

/// All Fallout lands on the default Arm, so nothing that it needs may be missing.
fn check_default_arm(
    payload: &ArchivedPayload,
    objective: &ArchivedObjective,
) -> Result<(), CheckError> {
    let arm = objective.arm(objective.default_arm());
    let required = payload.facts(arm).find(|(_, fact)| fact.default.is_none());
    match required {
        None => Ok(()),
        Some((_, fact)) => Err(Fault::DefaultArmNeedsFact(fact.name.as_str().to_owned())
            .at(Place::of(Object::Objective, &objective.token).part(Part::Arm, &arm.name))),
    }
}

fn check_rule(
    payload: &ArchivedPayload,
    objective: &ArchivedObjective,
    rule: &ArchivedRule,
) -> Result<(), Fault> {
    if !syntax::is_label(&rule.name) {
        return Err(Fault::Syntax {
            what: "its name",
            expected: "[A-Za-z0-9][A-Za-z0-9_.-]{0,63}",
        });
    }
    check_start(&objective.tests, rule.when.to_native()).map_err(Fault::Predicate)?;
    match rule.then {
        ArchivedOutcome::Arm(arm) => check_arm_index(objective, arm),
        ArchivedOutcome::Experiment(experiment) => {
            let experiment = objective.experiments.get(experiment.get());
            let experiment = experiment.ok_or(Fault::Index { what: "experiment" })?;
            check_experiment(payload, objective, experiment)
        }
    }
}

fn check_experiment(
    payload: &ArchivedPayload,
    objective: &ArchivedObjective,
    experiment: &ArchivedExperiment,
) -> Result<(), Fault> {
    let unit = objective.context.get(experiment.unit.get());
    let unit = unit.ok_or(Fault::Index { what: "attribute" })?;
    if unit.kind.to_native() == ValueKind::Boolean {
        return Err(Fault::UnitType { unit: unit.name.as_str().to_owned() });
    }
    check_salt(&experiment.salt, &experiment.key)?;
    let split = experiment.split.iter();
    check_slots(split.map(|part| (part.first.to_native(), part.last.to_native())))?;
    for part in experiment.split.iter() {
        check_arm_index(objective, part.arm)?;
    }
    let Some(share) = experiment.layer.as_ref() else { return Ok(()) };
    if share.layer.get() >= payload.layers.len() {
        return Err(Fault::Index { what: "Layer" });
    }
    check_slots(share.slots.iter().map(|part| (part.first.to_native(), part.last.to_native())))
}

/// Within `0..Slot::COUNT`, ascending and disjoint, as the binary search needs them.
fn check_slots(ranges: impl Iterator<Item = (u16, u16)>) -> Result<(), Fault> {
    let mut free_from = 0;
    for (first, last) in ranges {
        if first > last || last >= Slot::COUNT {
            return Err(Fault::SlotRange { first, last });
        }
        if first < free_from {
            return Err(Fault::SlotTwice { slot: first });
        }
        free_from = last + 1;
    }
    Ok(())
}

fn check_arm_index(objective: &ArchivedObjective, arm: ArchivedArmIndex) -> Result<(), Fault> {
    if arm.get() < objective.arms.len() { Ok(()) } else { Err(Fault::Index { what: "arm" }) }
}

fn check_timeouts(timeouts: &ArchivedTimeouts) -> Result<(), Fault> {
    for (clock, timeout) in [
        ("body_idle_ms", &timeouts.body_idle_ms),
        ("connect_ms", &timeouts.connect_ms),
        ("first_byte_ms", &timeouts.first_byte_ms),
        ("response_idle_ms", &timeouts.response_idle_ms),
        ("total_ms", &timeouts.total_ms),
    ] {
        let Some(timeout) = timeout.as_ref() else { continue };
        if !(1..=TIMEOUT_MS_MAX).contains(&timeout.to_native()) {
            return Err(Fault::Timeout { clock });
        }
    }
    Ok(())
}

/// No two attributes, Arms or Rules share a name.
fn check_names(objective: &ArchivedObjective) -> Result<(), CheckError> {
    let attribute = first_repeated(objective.context.iter(), |one| one.name.as_str())
        .map(|(_, attribute)| (Part::Attribute, attribute.name.as_str()));
    let arm = || {
        first_repeated(objective.arms.iter(), |one| one.name.as_str())
            .map(|(_, arm)| (Part::Arm, arm.name.as_str()))
    };
    let rule = || {
        first_repeated(objective.rules.iter(), |one| one.name.as_str())
            .map(|(_, rule)| (Part::Rule, rule.name.as_str()))
    };
    match attribute.or_else(arm).or_else(rule) {
        None => Ok(()),
        Some((part, name)) => {
            Err(Fault::Twice.at(Place::of(Object::Objective, &objective.token).part(part, name)))
        }
    }
}

/// Two Experiments of one Objective with one salt would always agree.
fn check_salts(objective: &ArchivedObjective) -> Result<(), CheckError> {
    let place = |rule: &str| Place::of(Object::Objective, &objective.token).part(Part::Rule, rule);
    match first_repeated(experiments(objective), |(_, experiment)| experiment.salt.as_str()) {
        None => Ok(()),
        Some(((other, _), (rule, experiment))) => {
            let salt = experiment.salt.as_str().to_owned();
            let fault = Fault::SaltTwice { salt, other: Box::new(place(&other.name)) };
            Err(fault.at(place(&rule.name)))
        }
    }
}
