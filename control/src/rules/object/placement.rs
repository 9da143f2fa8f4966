//! Models, what they have to prove, and where they answer.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{FactsInto, Scalar};

/// A Model version.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Name without version.
    pub name: String,
    /// Version text.
    pub version: String,
    /// Name of the Shard that serves it.
    pub shard: String,
    /// Written into a body's `model` member; `None`: the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_name: Option<String>,
    /// Replaces the request's path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Names of Facts that each Arm with this Model needs.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub facts: BTreeSet<String>,
    /// Where it gets them; `None`: the body's member `facts`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts_into: Option<FactsInto>,
    /// Path that answers 2xx once the model can serve; `None`: a connection is enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<String>,
    /// What every endpoint must answer before the Model gets traffic.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub golden: Vec<Golden>,
    /// How fast.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyLimits>,
}

/// A request whose answer is known.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Golden {
    /// Its path.
    pub path: String,
    /// Its body, as it is sent; `None`: it is a GET.
    pub body: Option<String>,
    /// The body's media type.
    pub content_type: String,
    /// The answer's status.
    pub status: u16,
    /// What stands in the answer's JSON, by JSON Pointer.
    pub expect: BTreeMap<String, Scalar>,
    /// Numbers that differ by at most this are the same.
    pub tolerance: f64,
}

/// How long golden inferences may take on each endpoint.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyLimits {
    /// How many are timed.
    pub requests: u16,
    /// How many at once.
    pub concurrency: u16,
    /// Median, in milliseconds.
    pub p50_max_ms: Option<u32>,
    /// 95th percentile, in milliseconds.
    pub p95_max_ms: Option<u32>,
    /// 99th percentile, in milliseconds.
    pub p99_max_ms: Option<u32>,
}

impl Model {
    /// `name@version`, as Arms refer to it.
    #[must_use]
    pub fn reference(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }
}

/// A serving cluster.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Shard {
    /// Unique name.
    pub name: String,
    /// Its addresses with weights.
    pub endpoints: Vec<Endpoint>,
}

/// One address of a Shard.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// `host:port`, `[IPv6]:port` or `unix:/path`.
    pub address: String,
    /// Relative share of requests, `1..=1000`.
    pub weight: u16,
}
