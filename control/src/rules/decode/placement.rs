//! Models and Shards: what can answer, and where.

use std::collections::HashSet;

use switchboard_shared::{
    address::Address,
    limits::{ENDPOINT_WEIGHT_MAX, ENDPOINTS_MAX},
};

use super::{
    facts, transposed,
    validation::{Validation, validation},
};
use crate::rules::{
    fault::FaultKind,
    object::{Endpoint, Model, Shard},
    pattern::Pattern,
    read::{Reader, Shape},
    yaml::Node,
};

const MODEL: Shape = Shape {
    what: "a Model",
    known: &[
        "kind",
        "name",
        "version",
        "shard",
        "served_name",
        "path",
        "facts",
        "facts_into",
        "validation",
    ],
    unsupported: &[],
};

const SHARD: Shape =
    Shape { what: "a Shard", known: &["kind", "name", "endpoints", "balance"], unsupported: &[] };

const ENDPOINT: Shape =
    Shape { what: "an endpoint", known: &["address", "weight"], unsupported: &[] };

pub(super) fn model(reader: &mut Reader<'_>, node: &Node) -> Option<Model> {
    let fields = reader.fields(node, &MODEL)?;
    let mut text = |name, pattern| {
        let node = fields.required(reader, name)?;
        reader.matching(node, pattern)
    };
    let name = text("name", Pattern::Name);
    let version = text("version", Pattern::Version);
    let shard = text("shard", Pattern::Name);
    let mut optional_text = |name, pattern| {
        transposed(fields.optional(name).map(|node| reader.matching(node, pattern)))
    };
    let served_name = optional_text("served_name", Pattern::ServedName);
    let path = optional_text("path", Pattern::Path);
    let validation = match fields.optional("validation") {
        Some(node) => validation(reader, node),
        None => Some(Validation::default()),
    };
    let facts = facts::names(reader, fields);
    let facts_into = facts::into(reader, fields);
    let Validation { ready, golden, latency } = validation?;
    Some(Model {
        name: name?,
        version: version?,
        shard: shard?,
        served_name: served_name?,
        path: path?,
        facts: facts?,
        facts_into: facts_into?,
        ready,
        golden,
        latency,
    })
}

pub(super) fn shard(reader: &mut Reader<'_>, node: &Node) -> Option<Shard> {
    let fields = reader.fields(node, &SHARD)?;
    let name = fields.required(reader, "name");
    let name = name.and_then(|name| reader.matching(name, Pattern::Name));
    let endpoints = fields.required(reader, "endpoints").and_then(|node| endpoints(reader, node));
    let balance = match fields.optional("balance") {
        Some(node) => reader.word(node, &[("least-in-flight", ())]),
        None => Some(()),
    };
    balance?;
    Some(Shard { name: name?, endpoints: endpoints? })
}

fn endpoints(reader: &mut Reader<'_>, node: &Node) -> Option<Vec<Endpoint>> {
    let items = reader.sequence(node, "endpoints")?;
    if !(1..=ENDPOINTS_MAX).contains(&items.len()) {
        return reader.bad(node, format!("1 to {ENDPOINTS_MAX} endpoints"));
    }
    let mut seen = HashSet::new();
    let mut whole = true;
    let mut endpoints = Vec::with_capacity(items.len());
    for item in items {
        match endpoint(reader, item) {
            Some(endpoint) if seen.insert(endpoint.address.clone()) => endpoints.push(endpoint),
            Some(endpoint) => {
                let found = format!("the address `{}` again", endpoint.address);
                reader.fault(
                    item.mark,
                    FaultKind::Duplicate,
                    found,
                    "each address once in a Shard",
                );
                whole = false;
            }
            None => whole = false,
        }
    }
    whole.then_some(endpoints)
}

fn endpoint(reader: &mut Reader<'_>, node: &Node) -> Option<Endpoint> {
    let fields = reader.fields(node, &ENDPOINT)?;
    let address = fields.required(reader, "address").and_then(|node| address(reader, node));
    let weight = match fields.optional("weight") {
        Some(node) => reader.count(node, 1, ENDPOINT_WEIGHT_MAX),
        None => Some(1),
    };
    Some(Endpoint { address: address?, weight: weight? })
}

fn address(reader: &mut Reader<'_>, node: &Node) -> Option<String> {
    const EXPECTED: &str = "an address as host:port, [IPv6]:port or unix:/path";
    let text = reader.text(node, EXPECTED)?;
    match Address::parse(text) {
        Ok(_) => Some(text.to_owned()),
        Err(error) => reader.bad(node, format!("{EXPECTED} ({error})")),
    }
}
