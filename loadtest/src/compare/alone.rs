//! What is measured of the router alone: decisions, pushes and reloads, memory.

mod activation;
mod decide;
#[path = "../../../shared/tests/support/fleet.rs"]
mod fleet;
mod memory;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::CompareError;
use super::arguments::CompareArguments;
use super::peer::Peer;
use super::results::Results;
use super::site::Site;
use super::spread::Spread;
use super::workload::Workload;

/// All of it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Alone {
    /// What a decision costs.
    pub decide: Known<Vec<Estimate>>,
    /// What new rules cost.
    pub activation: Known<Activation>,
    /// What connections cost.
    pub memory: Known<Memory>,
}

/// Something, or why it is not known.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Known<T> {
    /// It was seen.
    Seen(T),
    /// It was not, and why.
    NotMeasured(String),
}

/// One estimate of the decision benchmark.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Estimate {
    /// Which decision.
    pub what: String,
    /// The median.
    pub nanoseconds: f64,
}

/// What new rules cost.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Activation {
    /// From the first byte of PREPARE to ACTIVE, 10 000 Objectives with 8 rules each.
    pub push_ms: Spread,
    /// From publication to a core's own swap, over all reloads.
    pub swap_us: Spread,
    /// p99 of requests at a steady rate while rules are reloaded.
    pub p99_with_reloads_us: Spread,
    /// p99 at the same rate without.
    pub p99_without_us: Spread,
    /// How fast rules were reloaded.
    pub reloads_per_second: f64,
    /// How often.
    pub reloads: u64,
    /// Requests under way meanwhile.
    pub requests: u64,
    /// Those that failed.
    pub failed: u64,
}

/// What connections cost.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Memory {
    /// Resident memory with rules and no connection.
    pub idle_bytes: u64,
    /// Resident memory with `connections` idle keep-alive connections.
    pub filled_bytes: u64,
    /// How many.
    pub connections: u64,
}

impl Memory {
    /// What one idle connection costs in user space.
    pub fn bytes_per_connection(&self) -> f64 {
        let more = self.filled_bytes.saturating_sub(self.idle_bytes);
        more as f64 / self.connections.max(1) as f64
    }
}

/// How long it takes, for the plan.
pub fn expected(arguments: &CompareArguments) -> Duration {
    if arguments.peers_only { Duration::ZERO } else { Duration::from_secs(40) }
}

/// Measures all of it. What cannot be measured says why and stops nothing.
///
/// # Errors
/// A disk that is full.
pub fn measure(arguments: &CompareArguments, results: &Results) -> Result<Alone, CompareError> {
    if arguments.peers_only {
        let left_out = || "left out by --peers-only".to_owned();
        return Ok(Alone {
            decide: Known::NotMeasured(left_out()),
            activation: Known::NotMeasured(left_out()),
            memory: Known::NotMeasured(left_out()),
        });
    }
    let decide = decide::estimates(&arguments.decide_estimates);
    if !arguments.has_program(Peer::Router) {
        let none = || "there is no router program".to_owned();
        let (activation, memory) = (Known::NotMeasured(none()), Known::NotMeasured(none()));
        return Ok(Alone { decide, activation, memory });
    }
    let workload = Workload::small_json_by_header();
    let site = Site::open(arguments, &workload, results)?;
    eprintln!("the router alone");
    let memory = known(memory::measure(&site));
    let activation = known(activation::measure(&site, arguments, results));
    Ok(Alone { decide, activation, memory })
}

fn known<T>(measured: Result<T, CompareError>) -> Known<T> {
    match measured {
        Ok(measured) => Known::Seen(measured),
        Err(error) => Known::NotMeasured(super::chain(&error)),
    }
}
