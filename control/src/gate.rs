//! What must hold before a version may leave: every newly referenced endpoint is ready, and then proves
//! what its Model's golden inferences and latency limits ask.

mod trial;

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use http_body_util::Full;
use hyper::{Request, body::Bytes, header};
use switchboard_shared::address::Address;
use tokio::task::JoinSet;

pub use self::trial::{Trial, TrialTimes, new_trials};
use crate::{
    api::chain,
    call::{self, Limits},
    registry::{Content, Evidence},
    rules::Model,
};

/// Probes at once: enough for a large Shard, few enough for a small host.
const CONCURRENT_MAX: usize = 32;
/// Of an answer to a probe; what it says is not read.
const ANSWER_BYTES_MAX: usize = 256 << 10;

/// One question to one endpoint.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Probe {
    /// Where, as rule files write it.
    pub address: String,
    /// What to ask for; `None`: a connection is enough.
    pub path: Option<String>,
}

/// How long the gate asks.
#[derive(Clone, Copy, Debug)]
pub struct Gate {
    /// One attempt, from connecting to the answer's last byte.
    pub attempt: Duration,
    /// Between two attempts at one endpoint.
    pub pause: Duration,
    /// All attempts at one endpoint together; a model that loads for longer is deployed later.
    pub patience: Duration,
    /// For what a ready endpoint has to prove.
    pub trial: TrialTimes,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            attempt: Duration::from_secs(2),
            pause: Duration::from_millis(250),
            patience: Duration::from_secs(10),
            trial: TrialTimes::default(),
        }
    }
}

/// What `after` asks of endpoints and `before` did not: Models that an Arm refers to.
#[must_use]
pub fn new_probes(before: &Content, after: &Content) -> Vec<Probe> {
    let old = probes(before);
    probes(after).into_iter().filter(|probe| !old.contains(probe)).collect()
}

fn probes(content: &Content) -> BTreeSet<Probe> {
    let probes = models_with_traffic(content).flat_map(|model| {
        let shard = content.set.shards.get(&model.shard).into_iter();
        shard
            .flat_map(|shard| &shard.endpoints)
            .map(|endpoint| Probe { address: endpoint.address.clone(), path: model.ready.clone() })
    });
    probes.collect()
}

/// Models that an Arm refers to.
fn models_with_traffic(content: &Content) -> impl Iterator<Item = &Model> {
    let arms = content.set.objectives.values().flat_map(|objective| objective.arms.values());
    let models: BTreeSet<&str> = arms.map(|arm| arm.model.as_str()).collect();
    models.into_iter().filter_map(|model| content.set.models.get(model))
}

impl Gate {
    /// The whole gate: probes, and, if all endpoints are ready, trials until one fails.
    pub async fn pass(self, before: &Content, after: &Content) -> Vec<Evidence> {
        let mut evidence = self.check(new_probes(before, after)).await;
        for trial in new_trials(before, after) {
            if evidence.iter().any(|one| !one.passed) {
                break;
            }
            evidence.extend(trial.run(self.trial).await);
        }
        evidence
    }

    /// Asks every endpoint until it is ready or patience is over. One entry per probe, in order.
    pub async fn check(self, probes: Vec<Probe>) -> Vec<Evidence> {
        let mut waiting = probes.into_iter().enumerate();
        let mut running = JoinSet::new();
        let mut evidence = Vec::new();
        loop {
            while running.len() < CONCURRENT_MAX
                && let Some((place, probe)) = waiting.next()
            {
                running.spawn(async move { (place, self.ask(&probe).await) });
            }
            match running.join_next().await {
                Some(Ok(one)) => evidence.push(one),
                // A probe that panicked has no place; the missing evidence fails the check below.
                Some(Err(_)) => evidence.push((usize::MAX, broken())),
                None => break,
            }
        }
        evidence.sort_by_key(|(place, _)| *place);
        evidence.into_iter().map(|(_, evidence)| evidence).collect()
    }

    async fn ask(self, probe: &Probe) -> Evidence {
        let begin = Instant::now();
        let mut attempts = 0_u32;
        loop {
            attempts += 1;
            let seen = self.attempt(probe).await;
            let over = begin.elapsed() + self.pause >= self.patience;
            if seen.is_ok() || over {
                let attempts =
                    if attempts == 1 { String::new() } else { format!(" at attempt {attempts}") };
                let spent = format!("{attempts}, after {} ms", begin.elapsed().as_millis());
                let subject = match &probe.path {
                    Some(path) => format!("endpoint {} {path}", probe.address),
                    None => format!("endpoint {}", probe.address),
                };
                let told = |what: String| what + &spent;
                return Evidence::now(subject, seen.map(told).map_err(told));
            }
            tokio::time::sleep(self.pause).await;
        }
    }

    /// What was seen, good or bad.
    async fn attempt(self, probe: &Probe) -> Result<String, String> {
        let address = Address::parse(&probe.address).map_err(|error| error.to_string())?;
        let Some(path) = &probe.path else {
            return match call::connect(&address, self.attempt).await {
                Ok(()) => Ok("takes connections".to_owned()),
                Err(error) => Err(chain(&error)),
            };
        };
        let request = Request::get(path)
            .header(header::HOST, call::host(&probe.address))
            .header(header::USER_AGENT, "switchboard-control")
            .body(Full::new(Bytes::new()))
            .map_err(|error| error.to_string())?;
        let limits = Limits { total: self.attempt, body_bytes_max: ANSWER_BYTES_MAX };
        match call::call(&address, request, limits).await {
            Ok(answer) if answer.status.is_success() => Ok(answer.status.to_string()),
            Ok(answer) => Err(format!("{} instead of 2xx", answer.status)),
            Err(error) => Err(chain(&error)),
        }
    }
}

fn broken() -> Evidence {
    Evidence::now("gate".to_owned(), Err("a probe ended without an answer".to_owned()))
}

#[cfg(test)]
mod tests;
