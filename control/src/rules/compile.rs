//! From objects and their Slots to the Definition that a Snapshot is built from.

use std::collections::BTreeSet;

use switchboard_shared::{
    definition::{self, Definition, Predicate},
    snapshot::{self, syntax},
};

use super::{
    allocate::{Allocations, ExperimentKey},
    check::existing,
    conditions::Conditions,
    documents::Documents,
    fault::{FaultKind, Place, RuleFault},
    object::{
        Arm, Attribute, Experiment, Fact, FactKind, FactsInto, Kind, Objective, Outcome, Rule,
        SampleBy, Scalar, ShadowTarget, Timeouts, ValueKind,
    },
    set::RuleSet,
};

/// Writes the Definition for the routers of `group`. `documents` tells where new objects stand.
///
/// # Errors
/// What the Snapshot's own semantic check refuses. The rules' checks come first and say more, so
/// this is about limits that several objects reach together.
pub(super) fn compile(
    set: &RuleSet,
    conditions: &Conditions,
    allocations: &Allocations,
    group: &str,
    documents: &Documents,
) -> Result<Definition, Vec<RuleFault>> {
    let faults = unknown_facts(set, conditions, documents);
    if !faults.is_empty() {
        return Err(faults);
    }
    let objectives =
        set.objectives.values().map(|one| objective(set, one, conditions, allocations));
    let objectives = objectives.collect();
    let layers = set
        .layers
        .values()
        .map(|layer| definition::Layer { name: layer.name.clone(), salt: layer.salt.clone() });
    let models = set.models.values().map(|model| definition::ModelVersion {
        name: model.name.clone(),
        version: model.version.clone(),
        shard: model.shard.clone(),
        served_name: model.served_name.clone().unwrap_or_else(|| model.name.clone()),
        path: model.path.clone(),
    });
    let shards = set.shards.values().map(|shard| definition::Shard {
        name: shard.name.clone(),
        endpoints: shard
            .endpoints
            .iter()
            .map(|endpoint| definition::Endpoint {
                address: endpoint.address.clone(),
                weight: endpoint.weight,
            })
            .collect(),
        balance: definition::Balance::LeastInFlight,
    });
    let definition = Definition {
        group: group.to_owned(),
        not_before_unix_ms: None,
        expires_unix_ms: None,
        objectives,
        layers: layers.collect(),
        models: models.collect(),
        shards: shards.collect(),
        facts: set.facts.values().map(fact).collect(),
    };
    match snapshot::check(&definition) {
        Ok(()) => Ok(definition),
        Err(error) => Err(vec![refused(&error, documents)]),
    }
}

/// The Snapshot's semantic check names the object, and so leads back to the file.
fn refused(error: &snapshot::BuildError, documents: &Documents) -> RuleFault {
    let place = match error {
        snapshot::BuildError::Check(check) => place_of(&check.place, documents),
        snapshot::BuildError::TooLarge { .. } | snapshot::BuildError::Archive(_) => None,
    };
    let place = place.unwrap_or_else(|| Place { file: "snapshot".to_owned(), line: 0, column: 0 });
    let mut found = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        found = format!("{found}: {cause}");
        source = cause.source();
    }
    let expected = "what a Snapshot can hold".to_owned();
    RuleFault { place, kind: FaultKind::Limit, found, expected }
}

fn place_of(place: &snapshot::Place, documents: &Documents) -> Option<Place> {
    let kind = match place.object {
        snapshot::Object::Snapshot => return None,
        snapshot::Object::Objective => Kind::Objective,
        snapshot::Object::Layer => Kind::Layer,
        snapshot::Object::Model => Kind::Model,
        snapshot::Object::Shard => Kind::Shard,
        snapshot::Object::Fact => Kind::Fact,
    };
    Some(documents.place(kind, &place.name, &[]))
}

fn objective(
    set: &RuleSet,
    objective: &Objective,
    conditions: &Conditions,
    allocations: &Allocations,
) -> definition::Objective {
    let conditions = conditions.of_objective(&objective.token);
    debug_assert_eq!(conditions.len(), objective.rules.len(), "one for each Rule");
    let rule_facts = facts_asked(conditions);
    let rule_facts = rule_facts.iter().map(|name| fact_attribute(set, name));
    let rules = objective.rules.iter().zip(conditions);
    definition::Objective {
        token: objective.token.clone(),
        context: objective.context.iter().map(attribute).chain(rule_facts).collect(),
        unit: objective.unit().map(str::to_owned),
        default_arm: objective.default.clone(),
        arms: objective.arms.iter().map(|(name, one)| arm(set, name, one)).collect(),
        rules: rules.map(|(one, when)| rule(objective, one, when, allocations)).collect(),
        idempotent: objective.idempotent,
        timeouts: timeouts(objective.timeouts),
        body_bytes_max: objective.body_bytes_max,
        shadow: objective
            .shadow_targets()
            .map(|(arm, target)| shadow_target(objective, arm, target))
            .collect(),
    }
}

fn attribute((name, attribute): (&String, &Attribute)) -> definition::Attribute {
    definition::Attribute {
        name: name.clone(),
        source: source(&attribute.from),
        kind: value_kind(attribute.kind),
        default: attribute.default.as_ref().map(value),
    }
}

/// `from` was checked when it was decoded; the Snapshot's check reads the name again.
fn source(from: &str) -> definition::Source {
    match from.split_once(':') {
        Some(("header", name)) => definition::Source::Header(name.to_owned()),
        Some(("query", name)) => definition::Source::Query(name.to_owned()),
        Some((_, rest)) => definition::Source::Body(rest.to_owned()),
        None => definition::Source::Body(from.to_owned()),
    }
}

/// The Facts that conditions ask for, in order.
fn facts_asked(conditions: &[Option<Predicate>]) -> BTreeSet<&str> {
    let mut facts = BTreeSet::new();
    let mut rest: Vec<&Predicate> = conditions.iter().flatten().collect();
    while let Some(next) = rest.pop() {
        match next {
            Predicate::All(parts) | Predicate::Any(parts) => rest.extend(parts),
            Predicate::Not(inner) => rest.push(inner),
            Predicate::Test { attribute, .. } => {
                facts.extend(syntax::fact_of_attribute(attribute));
            }
        }
    }
    facts
}

/// Conditions may ask for a Fact of another document, so that only here it is known whether there is one.
fn unknown_facts(set: &RuleSet, conditions: &Conditions, documents: &Documents) -> Vec<RuleFault> {
    let mut faults = Vec::new();
    for token in set.objectives.keys() {
        for (number, condition) in conditions.of_objective(token).iter().enumerate() {
            let asked = facts_asked(std::slice::from_ref(condition));
            faults.extend(asked.iter().filter(|name| !set.facts.contains_key(**name)).map(
                |name| {
                    let path = ["rules", &number.to_string(), "when"];
                    RuleFault {
                        place: documents.place(Kind::Objective, token, &path),
                        kind: FaultKind::Dangling,
                        found: format!("the Fact `{name}`"),
                        expected: existing("Facts", set.facts.keys()),
                    }
                },
            ));
        }
    }
    faults
}

/// What Rules ask of a Fact, they ask of an attribute.
fn fact_attribute(set: &RuleSet, name: &str) -> definition::Attribute {
    let kind = set.facts.get(name).map_or(FactKind::String, |fact| fact.kind);
    definition::Attribute {
        name: format!("fact.{name}"),
        source: definition::Source::Fact(name.to_owned()),
        kind: fact_kind(kind).value_kind(),
        default: None,
    }
}

fn arm(set: &RuleSet, name: &str, arm: &Arm) -> definition::Arm {
    let of_model = set.models.get(&arm.model).and_then(|model| model.facts_into.as_ref());
    let into = arm.facts_into.as_ref().or(of_model);
    definition::Arm {
        name: name.to_owned(),
        model: arm.model.clone(),
        facts: set.facts_of(arm).into_iter().map(str::to_owned).collect(),
        facts_into: into.map(facts_into).unwrap_or_default(),
        timeouts: timeouts(arm.timeouts),
    }
}

fn facts_into(into: &FactsInto) -> definition::FactsInto {
    use definition::{FactsConflict, FactsOwner};
    match into {
        FactsInto::Headers => definition::FactsInto::Headers,
        FactsInto::Body(object) => definition::FactsInto::Body(definition::FactsObject {
            pointer: object.pointer.clone(),
            owner: if object.merge { FactsOwner::Shared } else { FactsOwner::Router },
            as_text: object.as_text,
            conflict: if object.refuse { FactsConflict::Refuse } else { FactsConflict::Replace },
        }),
    }
}

fn shadow_target(
    objective: &Objective,
    arm: Option<&String>,
    target: &ShadowTarget,
) -> definition::ShadowTarget {
    let members = match (target.keep.is_empty(), target.drop.is_empty()) {
        (false, _) => definition::Members::Keep(target.keep.clone()),
        (true, false) => definition::Members::Drop(target.drop.clone()),
        (true, true) => definition::Members::All,
    };
    definition::ShadowTarget {
        model: target.model.clone(),
        arm: arm.cloned(),
        sample: target.sample,
        by: match target.by {
            SampleBy::Unit => definition::SampleBy::Unit,
            SampleBy::Random => definition::SampleBy::Random,
        },
        unit: objective.shadow_unit(target).map(str::to_owned),
        bytes_per_second_max: target.bytes_per_second_max,
        topic: target.topic.clone(),
        captures_response: target.capture_response,
        members,
    }
}

fn rule(
    objective: &Objective,
    rule: &Rule,
    when: &Option<Predicate>,
    allocations: &Allocations,
) -> definition::Rule {
    let then = match &rule.then {
        Outcome::Arm(arm) => definition::Outcome::Arm(arm.clone()),
        Outcome::Experiment(one) => {
            let (objective, rule) = (objective.token.clone(), rule.name.clone());
            let key = ExperimentKey { objective, rule };
            definition::Outcome::Experiment(experiment(&key, one, allocations))
        }
    };
    definition::Rule { name: rule.name.clone(), when: when.clone(), then }
}

fn experiment(
    key: &ExperimentKey,
    experiment: &Experiment,
    allocations: &Allocations,
) -> definition::Experiment {
    let layer = experiment.layer.as_ref().map(|share| definition::LayerShare {
        layer: share.name.clone(),
        slots: allocations
            .layers
            .get(&share.name)
            .map(|owners| owners.experiments.ranges(&key.to_string()).to_vec())
            .unwrap_or_default(),
    });
    // An Arm of weight 0 owns nothing and is not in the split.
    let split = allocations.experiments.get(key).map(|slots| {
        let share = |(arm, slots): (&str, &[_])| definition::ArmShare {
            arm: arm.to_owned(),
            slots: slots.to_vec(),
        };
        slots.arms.owners().map(share).collect()
    });
    definition::Experiment {
        unit: experiment.unit.clone(),
        salt: experiment.salt.clone(),
        layer,
        split: split.unwrap_or_default(),
    }
}

fn fact(fact: &Fact) -> definition::Fact {
    definition::Fact {
        name: fact.name.clone(),
        kind: fact_kind(fact.kind),
        key: fact.redis.key.clone(),
        hash_field: fact.redis.field.clone(),
        default: fact.default.as_ref().map(value),
        fresh_for_ms: fact.fresh_for,
    }
}

fn fact_kind(kind: FactKind) -> definition::FactKind {
    match kind {
        FactKind::String => definition::FactKind::Text,
        FactKind::Number => definition::FactKind::Number,
        FactKind::Bool => definition::FactKind::Boolean,
        FactKind::Json => definition::FactKind::Json,
    }
}

fn value_kind(kind: ValueKind) -> definition::ValueKind {
    match kind {
        ValueKind::String => definition::ValueKind::Text,
        ValueKind::Number => definition::ValueKind::Number,
        ValueKind::Bool => definition::ValueKind::Boolean,
    }
}

fn value(scalar: &Scalar) -> definition::Value {
    match scalar {
        Scalar::String(text) => definition::Value::Text(text.clone()),
        Scalar::Number(number) => definition::Value::Number(*number),
        Scalar::Bool(boolean) => definition::Value::Boolean(*boolean),
    }
}

fn timeouts(timeouts: Timeouts) -> definition::Timeouts {
    definition::Timeouts {
        body_idle_ms: timeouts.body_idle,
        connect_ms: timeouts.connect,
        first_byte_ms: timeouts.first_byte,
        response_idle_ms: timeouts.response_idle,
        total_ms: timeouts.total,
    }
}
