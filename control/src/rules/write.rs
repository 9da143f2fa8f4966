//! Objects back to YAML, as a person would write them: `export`.

use std::collections::BTreeSet;

use serde::{Serialize, Serializer, ser::SerializeMap};
use switchboard_shared::slot::Slot;

use super::object::{
    Allocation, Arm, Attribute, Experiment, Fact, FactsInto, Golden, LatencyLimits, Layer, Model,
    Object, Objective, Outcome, Rule, SampleBy, Scalar, ShadowTarget, Shard, Timeouts,
};

/// Why objects cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {kind} `{name}` as YAML")]
pub struct WriteError {
    kind: &'static str,
    name: String,
    #[source]
    source: serde_saphyr::SerializeError,
}

/// One document per object, in the given order. Read again, they give the same objects.
///
/// # Errors
/// A text that YAML cannot hold; names and salts that were read from YAML are none.
pub fn write<'a>(objects: impl IntoIterator<Item = &'a Object>) -> Result<String, WriteError> {
    let mut text = String::new();
    for object in objects {
        if !text.is_empty() {
            text.push_str("---\n");
        }
        let fields = Field::Map(
            [vec![("kind".into(), object.kind().word().into())], fields(object)].concat(),
        );
        let document = serde_saphyr::to_string(&fields).map_err(|source| WriteError {
            kind: object.kind().word(),
            name: object.name(),
            source,
        })?;
        text.push_str(&document);
    }
    Ok(text)
}

/// A value whose fields keep their order.
#[derive(Clone)]
enum Field {
    Text(String),
    Whole(u16),
    Number(f64),
    Boolean(bool),
    List(Vec<Self>),
    Map(Fields),
}

type Fields = Vec<(String, Field)>;

impl Serialize for Field {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Whole(number) => serializer.serialize_u16(*number),
            Self::Number(number) => serializer.serialize_f64(*number),
            Self::Boolean(boolean) => serializer.serialize_bool(*boolean),
            Self::List(items) => serializer.collect_seq(items),
            Self::Map(fields) => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (name, value) in fields {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }
    }
}

impl From<&str> for Field {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Field {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&Scalar> for Field {
    fn from(scalar: &Scalar) -> Self {
        match scalar {
            Scalar::Bool(boolean) => Self::Boolean(*boolean),
            Scalar::Number(number) => Self::Number(*number),
            Scalar::String(text) => text.as_str().into(),
        }
    }
}

fn field(name: &str, value: impl Into<Field>) -> (String, Field) {
    (name.to_owned(), value.into())
}

fn fields(object: &Object) -> Fields {
    match object {
        Object::Objective(objective) => objective_fields(objective),
        Object::Layer(layer) => layer_fields(layer),
        Object::Fact(fact) => fact_fields(fact),
        Object::Model(model) => model_fields(model),
        Object::Shard(shard) => shard_fields(shard),
        Object::Allocation(allocation) => allocation_fields(allocation),
    }
}

fn objective_fields(objective: &Objective) -> Fields {
    let mut fields = vec![field("token", objective.token.as_str())];
    if !objective.context.is_empty() {
        let context = objective.context.iter().map(|(name, one)| field(name, attribute(one)));
        fields.push(("context".to_owned(), Field::Map(context.collect())));
    }
    fields.extend(objective.unit.as_ref().map(|unit| field("unit", unit.as_str())));
    fields.push(field("default", objective.default.as_str()));
    let arms = objective.arms.iter().map(|(name, one)| field(name, arm(one)));
    fields.push(("arms".to_owned(), Field::Map(arms.collect())));
    if !objective.rules.is_empty() {
        let rules = objective.rules.iter().map(rule);
        fields.push(("rules".to_owned(), Field::List(rules.collect())));
    }
    if objective.idempotent {
        fields.push(field("idempotent", Field::Boolean(true)));
    }
    fields.extend(timeouts(objective.timeouts));
    fields.extend(objective.body_bytes_max.map(|bytes| field("body_max", format!("{bytes}B"))));
    fields.extend(shadow(&objective.shadow));
    fields
}

fn attribute(attribute: &Attribute) -> Field {
    let mut fields =
        vec![field("from", attribute.from.as_str()), field("type", attribute.kind.word())];
    fields.extend(attribute.default.as_ref().map(|default| field("default", default)));
    Field::Map(fields)
}

fn arm(arm: &Arm) -> Field {
    let mut fields = vec![field("model", arm.model.as_str())];
    fields.extend(needed_facts(&arm.facts, arm.facts_into.as_ref()));
    fields.extend(timeouts(arm.timeouts));
    fields.extend(shadow(&arm.shadow));
    Field::Map(fields)
}

fn shadow(targets: &[ShadowTarget]) -> Option<(String, Field)> {
    let targets: Vec<_> = targets.iter().map(shadow_target).collect();
    (!targets.is_empty()).then(|| ("shadow".to_owned(), Field::List(targets)))
}

fn shadow_target(target: &ShadowTarget) -> Field {
    let mut fields =
        vec![field("model", target.model.as_str()), field("sample", Field::Whole(target.sample))];
    if target.by != SampleBy::Unit {
        fields.push(field("by", target.by.word()));
    }
    fields.extend(target.unit.as_ref().map(|unit| field("unit", unit.as_str())));
    let cap = target.bytes_per_second_max;
    fields.extend(cap.map(|bytes| field("max_bytes_per_second", format!("{bytes}B"))));
    fields.extend(target.topic.as_ref().map(|topic| field("topic", topic.as_str())));
    if target.capture_response {
        fields.push(field("capture_response", Field::Boolean(true)));
    }
    for (name, pointers) in [("keep", &target.keep), ("drop", &target.drop)] {
        if !pointers.is_empty() {
            let pointers = pointers.iter().map(|pointer| pointer.as_str().into()).collect();
            fields.push((name.to_owned(), Field::List(pointers)));
        }
    }
    Field::Map(fields)
}

fn needed_facts(facts: &BTreeSet<String>, into: Option<&FactsInto>) -> Fields {
    let mut fields = Vec::new();
    if !facts.is_empty() {
        let facts = facts.iter().map(|fact| fact.as_str().into());
        fields.push(("facts".to_owned(), Field::List(facts.collect())));
    }
    fields.extend(into.map(|into| match into {
        FactsInto::Headers => field("facts_into", "headers"),
        FactsInto::Body(object) => {
            let mut parts = vec![field("body", object.pointer.as_str())];
            let flags = [("merge", object.merge), ("as_text", object.as_text)];
            let set = flags.into_iter().filter(|(_, is_set)| *is_set);
            parts.extend(set.map(|(name, _)| field(name, Field::Boolean(true))));
            parts.extend(object.refuse.then(|| field("on_conflict", "refuse")));
            field("facts_into", Field::Map(parts))
        }
    }));
    fields
}

fn rule(rule: &Rule) -> Field {
    let mut fields = vec![field("name", rule.name.as_str())];
    fields.extend(rule.when.as_ref().map(|when| field("when", when.as_str())));
    fields.push(match &rule.then {
        Outcome::Arm(arm) => field("arm", arm.as_str()),
        Outcome::Experiment(one) => field("experiment", experiment(one)),
    });
    Field::Map(fields)
}

fn experiment(experiment: &Experiment) -> Field {
    let mut fields =
        vec![field("unit", experiment.unit.as_str()), field("salt", experiment.salt.as_str())];
    if let Some(share) = &experiment.layer {
        fields.push(field("layer", share.name.as_str()));
        if share.share != Slot::COUNT {
            fields.push(field("layer_share", Field::Whole(share.share)));
        }
    }
    let split = experiment.split.iter().map(|(arm, weight)| field(arm, Field::Whole(*weight)));
    fields.push(("split".to_owned(), Field::Map(split.collect())));
    Field::Map(fields)
}

fn layer_fields(layer: &Layer) -> Fields {
    vec![field("name", layer.name.as_str()), field("salt", layer.salt.as_str())]
}

fn fact_fields(fact: &Fact) -> Fields {
    let mut redis = vec![field("key", fact.redis.key.as_str())];
    redis.extend(fact.redis.field.as_ref().map(|name| field("field", name.as_str())));
    let mut fields = vec![
        field("name", fact.name.as_str()),
        field("type", fact.kind.word()),
        field("redis", Field::Map(redis)),
    ];
    fields.extend(fact.default.as_ref().map(|default| field("default", default)));
    fields.extend(fact.fresh_for.map(|millis| field("fresh_for", format!("{millis}ms"))));
    fields
}

fn model_fields(model: &Model) -> Fields {
    let mut fields = vec![
        field("name", model.name.as_str()),
        field("version", model.version.as_str()),
        field("shard", model.shard.as_str()),
    ];
    fields.extend(model.served_name.as_ref().map(|name| field("served_name", name.as_str())));
    fields.extend(model.path.as_ref().map(|path| field("path", path.as_str())));
    fields.extend(needed_facts(&model.facts, model.facts_into.as_ref()));
    let mut validation = Fields::new();
    validation.extend(model.ready.as_ref().map(|ready| field("ready", ready.as_str())));
    if !model.golden.is_empty() {
        let golden = model.golden.iter().map(|golden| Field::Map(golden_fields(golden)));
        validation.push(("golden".to_owned(), Field::List(golden.collect())));
    }
    validation.extend(model.latency.map(|limits| ("latency".to_owned(), latency_fields(limits))));
    if !validation.is_empty() {
        fields.push(("validation".to_owned(), Field::Map(validation)));
    }
    fields
}

fn golden_fields(golden: &Golden) -> Fields {
    let mut fields = vec![field("path", golden.path.as_str())];
    fields.extend(golden.body.as_ref().map(|body| field("body", body.as_str())));
    fields.push(field("content_type", golden.content_type.as_str()));
    fields.push(field("status", Field::Whole(golden.status)));
    if !golden.expect.is_empty() {
        let expect = golden.expect.iter().map(|(pointer, value)| field(pointer, value));
        fields.push(("expect".to_owned(), Field::Map(expect.collect())));
    }
    fields.push(field("tolerance", Field::Number(golden.tolerance)));
    fields
}

fn latency_fields(limits: LatencyLimits) -> Field {
    let mut fields = vec![
        field("requests", Field::Whole(limits.requests)),
        field("concurrency", Field::Whole(limits.concurrency)),
    ];
    let all = [
        ("p50_max", limits.p50_max_ms),
        ("p95_max", limits.p95_max_ms),
        ("p99_max", limits.p99_max_ms),
    ];
    let set = all.into_iter().filter_map(|(name, limit)| Some((name, limit?)));
    fields.extend(set.map(|(name, limit)| field(name, format!("{limit}ms"))));
    Field::Map(fields)
}

fn shard_fields(shard: &Shard) -> Fields {
    let endpoints = shard.endpoints.iter().map(|endpoint| {
        let weight = field("weight", Field::Whole(endpoint.weight));
        Field::Map(vec![field("address", endpoint.address.as_str()), weight])
    });
    vec![
        field("name", shard.name.as_str()),
        ("endpoints".to_owned(), Field::List(endpoints.collect())),
        field("balance", "least-in-flight"),
    ]
}

fn allocation_fields(allocation: &Allocation) -> Fields {
    let ranges = |slots: &super::SlotSet| Field::List(slots.texts().map(Field::from).collect());
    let mut fields = vec![
        field("objective", allocation.objective.as_str()),
        field("rule", allocation.rule.as_str()),
        field("salt", allocation.salt.as_str()),
    ];
    fields.extend(allocation.layer.as_ref().map(|layer| {
        let slots = field("slots", ranges(&layer.slots));
        field("layer", Field::Map(vec![field("salt", layer.salt.as_str()), slots]))
    }));
    let split = allocation.split.iter().map(|(arm, slots)| field(arm, ranges(slots)));
    fields.push(("split".to_owned(), Field::Map(split.collect())));
    fields
}

fn timeouts(timeouts: Timeouts) -> Option<(String, Field)> {
    if timeouts.is_empty() {
        return None;
    }
    let clocks = [
        ("body_idle", timeouts.body_idle),
        ("connect", timeouts.connect),
        ("first_byte", timeouts.first_byte),
        ("response_idle", timeouts.response_idle),
        ("total", timeouts.total),
    ];
    let clocks = clocks
        .into_iter()
        .filter_map(|(name, clock)| clock.map(|clock| field(name, format!("{clock}ms"))));
    Some(("timeouts".to_owned(), Field::Map(clocks.collect())))
}
