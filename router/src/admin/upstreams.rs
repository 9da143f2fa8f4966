//! The page `/upstreams`: the Shards of the running Snapshot, and how each worker finds their endpoints.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_shared::snapshot::ShardIndex;

use super::pages::Sources;
use crate::active::EndpointAddress;
use crate::counters::{Ejection, Labels as _};
use crate::limits::{SLOW_START_STEPS, SURVEY_PATIENCE};
use crate::net::clock;
use crate::upstream::health::Standing;
use crate::upstream::survey::{Answer, EndpointState};

/// Asks the workers; takes as long as their next tick.
pub(super) fn page(sources: &Sources) -> Value {
    let answers = sources.survey.ask(clock::now() + SURVEY_PATIENCE);
    let silent = answers.iter().filter(|answer| answer.is_none()).count();
    let states_at = |address: &EndpointAddress| -> Vec<Value> {
        let of_worker = |(worker, answer): (usize, &Option<Arc<Answer>>)| {
            let answer = answer.as_ref()?;
            let known = answer.endpoints.iter().find(|state| state.address == *address)?;
            Some(state(worker, known))
        };
        answers.iter().enumerate().filter_map(of_worker).collect()
    };
    let shards = sources.activation.published().map(|active| {
        let shards = active.snapshot.payload().shards.iter().zip(0..);
        let shards = shards.filter_map(|(shard, place)| {
            let addresses = active.endpoints(ShardIndex::new(place)?);
            let endpoints = shard.endpoints.iter().zip(addresses).map(|(endpoint, address)| {
                json!({
                    "address": endpoint.address.as_str(),
                    "connects_to": Shown(address).to_string(),
                    "weight": endpoint.weight.to_native(),
                    "workers": states_at(address),
                })
            });
            Some(json!({ "name": shard.name.as_str(), "endpoints": endpoints.collect::<Vec<_>>() }))
        });
        shards.collect::<Vec<_>>()
    });
    json!({ "workers": answers.len(), "workers_silent": silent, "shards": shards })
}

fn state(worker: usize, state: &EndpointState) -> Value {
    let standing = match state.standing {
        Standing::Sound => "sound",
        Standing::Rests => "rests",
        Standing::Doubted => "doubted",
        Standing::Out => "out",
    };
    json!({
        "worker": worker,
        "standing": standing,
        "ejected_for": state.ejection.map(|cause| Ejection::TEXTS[cause as usize]),
        "retry_after_ms": u64::try_from(state.retry_after.as_millis()).unwrap_or(u64::MAX),
        "slow_start_percent": u32::from(state.share) * 100 / u32::from(SLOW_START_STEPS),
        "failures_in_a_row": state.consecutive_failures,
        "in_flight": state.in_flight,
        "connections_idle": state.idle,
        "connections_opened": state.opened,
        "requests_on_reused_connections": state.reused,
    })
}

struct Shown<'a>(&'a EndpointAddress);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            EndpointAddress::Tcp(address) => address.fmt(formatter),
            EndpointAddress::Unix(path) => write!(formatter, "unix:{}", path.display()),
        }
    }
}
