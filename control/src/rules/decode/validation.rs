//! What a Model has to prove before it gets traffic.

use std::collections::BTreeMap;

use super::{duration, named, objective::at_most, scalar, transposed};
use crate::rules::{
    object::{Golden, LatencyLimits, Scalar, ValueKind},
    pattern::Pattern,
    read::{Reader, Shape},
    yaml::{Node, Value},
};

/// Golden inferences of one Model; each is asked on every endpoint.
const GOLDEN_MAX: usize = 16;
/// Of one golden inference's body.
const BODY_BYTES_MAX: usize = 256 << 10;
/// Places of one answer that are looked at.
const EXPECTED_MAX: usize = 64;
/// Requests behind one latency figure, on each endpoint.
const REQUESTS_MAX: u16 = 10_000;
/// At once: enough to see a model queue, few enough for one control plane.
const CONCURRENCY_MAX: u16 = 64;

const VALIDATION: Shape = Shape {
    what: "a Model's validation section",
    known: &["ready", "golden", "latency"],
    unsupported: &[(
        "warm_up",
        "golden inferences are asked before anything is timed, and so warm the model up",
    )],
};

const GOLDEN: Shape = Shape {
    what: "a golden inference",
    known: &["path", "body", "content_type", "status", "expect", "tolerance"],
    unsupported: &[],
};

const LATENCY: Shape = Shape {
    what: "a latency section",
    known: &["requests", "concurrency", "p50_max", "p95_max", "p99_max"],
    unsupported: &[],
};

/// The section, taken apart.
#[derive(Default)]
pub(super) struct Validation {
    pub(super) ready: Option<String>,
    pub(super) golden: Vec<Golden>,
    pub(super) latency: Option<LatencyLimits>,
}

pub(super) fn validation(reader: &mut Reader<'_>, node: &Node) -> Option<Validation> {
    let fields = reader.fields(node, &VALIDATION)?;
    let ready =
        transposed(fields.optional("ready").map(|node| reader.matching(node, Pattern::Path)));
    let golden = match fields.optional("golden") {
        Some(node) => golden_list(reader, node),
        None => Some(Vec::new()),
    };
    let latency = transposed(fields.optional("latency").map(|node| latency(reader, node)));
    let validation = Validation { ready: ready?, golden: golden?, latency: latency? };
    if validation.latency.is_some() && validation.golden.is_empty() {
        return reader.bad(node, "`golden` beside `latency`: golden inferences are what is timed");
    }
    if validation.ready.is_none() && validation.golden.is_empty() {
        return reader.bad(node, "`ready`, `golden` or both");
    }
    Some(validation)
}

fn golden_list(reader: &mut Reader<'_>, node: &Node) -> Option<Vec<Golden>> {
    let items = reader.sequence(node, "golden inferences")?;
    at_most(reader, node, items.len(), 1, GOLDEN_MAX, "golden inferences")?;
    let read: Vec<_> = items.iter().map(|item| golden(reader, item)).collect();
    read.into_iter().collect()
}

fn golden(reader: &mut Reader<'_>, node: &Node) -> Option<Golden> {
    let fields = reader.fields(node, &GOLDEN)?;
    let path = fields.required(reader, "path");
    let path = path.and_then(|path| reader.matching(path, Pattern::Path));
    let body = transposed(fields.optional("body").map(|node| body(reader, node)));
    let content_type = match fields.optional("content_type") {
        Some(node) => content_type(reader, node),
        None => Some("application/json".to_owned()),
    };
    let status = match fields.optional("status") {
        Some(node) => reader.count(node, 200, 599),
        None => Some(200),
    };
    let expect = match fields.optional("expect") {
        Some(node) => expected(reader, node),
        None => Some(BTreeMap::new()),
    };
    let tolerance = match fields.optional("tolerance") {
        Some(node) => tolerance(reader, node),
        None => Some(0.0),
    };
    Some(Golden {
        path: path?,
        body: body?,
        content_type: content_type?,
        status: status?,
        expect: expect?,
        tolerance: tolerance?,
    })
}

fn body(reader: &mut Reader<'_>, node: &Node) -> Option<String> {
    let text = reader.text(node, "the body as a text")?;
    if text.len() > BODY_BYTES_MAX {
        return reader.bad(node, format!("a body of at most {BODY_BYTES_MAX} bytes"));
    }
    Some(text.to_owned())
}

fn content_type(reader: &mut Reader<'_>, node: &Node) -> Option<String> {
    const EXPECTED: &str = "a media type such as application/json";
    let text = reader.text(node, EXPECTED)?;
    let is_good = (1..=256).contains(&text.len())
        && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    if is_good { Some(text.to_owned()) } else { reader.bad(node, EXPECTED) }
}

/// JSON Pointers (RFC 6901) and what stands there.
fn expected(reader: &mut Reader<'_>, node: &Node) -> Option<BTreeMap<String, Scalar>> {
    let values =
        named(reader, node, Pattern::JsonPlace, "values by JSON Pointer", |reader, node| {
            let kind = match &node.value {
                Value::Boolean(_) => ValueKind::Bool,
                Value::Integer(_) | Value::Number(_) => ValueKind::Number,
                _ => ValueKind::String,
            };
            scalar(reader, node, Some(kind))
        })?;
    at_most(reader, node, values.len(), 1, EXPECTED_MAX, "values by JSON Pointer")?;
    Some(values)
}

fn tolerance(reader: &mut Reader<'_>, node: &Node) -> Option<f64> {
    match scalar(reader, node, Some(ValueKind::Number))? {
        Scalar::Number(number) if number >= 0.0 => Some(number),
        _ => reader.bad(node, "a number of at least 0"),
    }
}

fn latency(reader: &mut Reader<'_>, node: &Node) -> Option<LatencyLimits> {
    let fields = reader.fields(node, &LATENCY)?;
    let requests = match fields.optional("requests") {
        Some(node) => reader.count(node, 1, REQUESTS_MAX),
        None => Some(100),
    };
    let concurrency = match fields.optional("concurrency") {
        Some(node) => reader.count(node, 1, CONCURRENCY_MAX),
        None => Some(1),
    };
    let mut limit = |name| transposed(fields.optional(name).map(|node| duration(reader, node)));
    let p50_max_ms = limit("p50_max");
    let p95_max_ms = limit("p95_max");
    let p99_max_ms = limit("p99_max");
    let limits = LatencyLimits {
        requests: requests?,
        concurrency: concurrency?,
        p50_max_ms: p50_max_ms?,
        p95_max_ms: p95_max_ms?,
        p99_max_ms: p99_max_ms?,
    };
    match (limits.p50_max_ms, limits.p95_max_ms, limits.p99_max_ms) {
        (None, None, None) => reader.bad(node, "at least one of p50_max, p95_max and p99_max"),
        _ => Some(limits),
    }
}
