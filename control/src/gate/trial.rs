//! What a ready endpoint has to prove: golden inferences, then how long they take.
//!
//! Each golden inference is asked once before anything is timed, so a model that compiles or loads at
//! its first request is warm by then. Endpoints are tried one after the other: two on one host would
//! spoil each other's times.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use http_body_util::Full;
use hyper::{Request, body::Bytes, client::conn::http1::SendRequest, header};
use serde_json::Value;
use switchboard_shared::address::Address;
use tokio::{task::JoinSet, time::timeout};

use crate::{
    api::chain,
    call,
    registry::{Content, Evidence},
    rules::{Golden, LatencyLimits, Scalar},
};

/// Of an answer to a golden inference.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// Of an answer, in the words of a refusal.
const SHOWN_MAX: usize = 120;

/// One endpoint and what it has to prove.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// Where, as rule files write it.
    pub address: String,
    /// What it must answer.
    pub golden: Vec<Golden>,
    /// How fast.
    pub latency: Option<LatencyLimits>,
}

/// How long a trial may take.
#[derive(Clone, Copy, Debug)]
pub struct TrialTimes {
    /// One inference, from connecting to the answer's last byte.
    pub inference: Duration,
    /// All timed inferences of one endpoint together.
    pub timed: Duration,
}

impl Default for TrialTimes {
    fn default() -> Self {
        Self { inference: Duration::from_secs(30), timed: Duration::from_secs(120) }
    }
}

/// What `after` asks of endpoints and `before` did not: Models that an Arm refers to.
#[must_use]
pub fn new_trials(before: &Content, after: &Content) -> Vec<Trial> {
    let old = trials(before);
    trials(after).into_iter().filter(|trial| !old.contains(trial)).collect()
}

fn trials(content: &Content) -> Vec<Trial> {
    let set = &content.set;
    let mut trials = Vec::new();
    for model in super::models_with_traffic(content).filter(|model| !model.golden.is_empty()) {
        let Some(shard) = set.shards.get(&model.shard) else { continue };
        for endpoint in &shard.endpoints {
            let trial = Trial {
                address: endpoint.address.clone(),
                golden: model.golden.clone(),
                latency: model.latency,
            };
            if !trials.contains(&trial) {
                trials.push(trial);
            }
        }
    }
    trials
}

impl Trial {
    /// Asks what there is to ask, until something is wrong. One entry for each thing that was looked at.
    pub async fn run(self, times: TrialTimes) -> Vec<Evidence> {
        let mut evidence = Vec::new();
        for golden in &self.golden {
            let seen = self.ask_once(golden, times.inference).await;
            let subject = format!("endpoint {} {}", self.address, golden.path);
            evidence.push(Evidence::now(subject, seen));
            if evidence.last().is_some_and(|one| !one.passed) {
                return evidence;
            }
        }
        if let Some(limits) = self.latency {
            let subject = format!("endpoint {} latency", self.address);
            let seen = match timeout(times.timed, self.time(limits, times.inference)).await {
                Ok(seen) => seen,
                Err(_) => Err(format!(
                    "{} golden inferences, {} at once, take longer than {:?}",
                    limits.requests, limits.concurrency, times.timed
                )),
            };
            evidence.push(Evidence::now(subject, seen));
        }
        evidence
    }

    async fn ask_once(&self, golden: &Golden, within: Duration) -> Result<String, String> {
        let begin = Instant::now();
        let asked = async {
            let mut sender = self.open().await?;
            self.ask(&mut sender, golden).await
        };
        match timeout(within, asked).await {
            Ok(Ok(())) => {
                let milliseconds = begin.elapsed().as_secs_f64() * 1e3;
                Ok(format!("answers as expected, after {milliseconds:.1} ms"))
            }
            Ok(Err(wrong)) => Err(wrong),
            Err(_) => Err(format!("no answer within {within:?}")),
        }
    }

    /// Keep-alive connections take the golden inferences in turn. The first that fails ends it.
    async fn time(&self, limits: LatencyLimits, within: Duration) -> Result<String, String> {
        let next = Arc::new(AtomicUsize::new(0));
        let mut running = JoinSet::new();
        for _ in 0..limits.concurrency.min(limits.requests) {
            let (trial, next) = (self.clone(), Arc::clone(&next));
            running.spawn(async move { trial.ask_in_turn(&next, limits.requests, within).await });
        }
        let mut spans = Vec::with_capacity(limits.requests.into());
        while let Some(ended) = running.join_next().await {
            spans.extend(ended.map_err(|_| "a timed inference broke".to_owned())??);
        }
        judge(spans, limits)
    }

    async fn ask_in_turn(
        &self,
        next: &AtomicUsize,
        count: u16,
        within: Duration,
    ) -> Result<Vec<Duration>, String> {
        let mut sender = self.open().await?;
        let mut spans = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let golden = self.golden.get(number % self.golden.len().max(1));
            let Some(golden) = golden.filter(|_| number < count.into()) else { return Ok(spans) };
            let begin = Instant::now();
            match timeout(within, self.ask(&mut sender, golden)).await {
                Ok(seen) => seen.map_err(|wrong| format!("{}: {wrong}", golden.path))?,
                Err(_) => return Err(format!("{}: no answer within {within:?}", golden.path)),
            }
            spans.push(begin.elapsed());
            if sender.is_closed() {
                sender = self.open().await?; // it does not keep connections alive
            }
        }
    }

    async fn open(&self) -> Result<SendRequest<Full<Bytes>>, String> {
        let address = Address::parse(&self.address).map_err(|error| error.to_string())?;
        call::open(&address).await.map_err(|error| chain(&error))
    }

    async fn ask(
        &self,
        sender: &mut SendRequest<Full<Bytes>>,
        golden: &Golden,
    ) -> Result<(), String> {
        let request = match &golden.body {
            Some(_) => Request::post(&golden.path)
                .header(header::CONTENT_TYPE, golden.content_type.as_str()),
            None => Request::get(&golden.path),
        };
        let body = golden.body.clone().unwrap_or_default();
        let request = request
            .header(header::HOST, call::host(&self.address))
            .header(header::USER_AGENT, "switchboard-control")
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| error.to_string())?;
        let sent = call::send(sender, request, ANSWER_BYTES_MAX).await;
        let answer = sent.map_err(|error| chain(&error))?;
        if answer.status.as_u16() != golden.status {
            return Err(format!("{} instead of {}", answer.status, golden.status));
        }
        wrong_value(golden, &answer.body).map_or(Ok(()), Err)
    }
}

/// The first place where the answer is not what was expected.
fn wrong_value(golden: &Golden, body: &[u8]) -> Option<String> {
    if golden.expect.is_empty() {
        return None;
    }
    let answer: Value = match serde_json::from_slice(body) {
        Ok(answer) => answer,
        Err(error) => return Some(format!("the answer is no JSON: {error}")),
    };
    golden.expect.iter().find_map(|(pointer, expected)| {
        let found = answer.pointer(pointer);
        let is_right = match (expected, found) {
            (Scalar::String(expected), Some(Value::String(found))) => expected == found,
            (Scalar::Bool(expected), Some(Value::Bool(found))) => expected == found,
            (Scalar::Number(expected), Some(Value::Number(found))) => {
                found.as_f64().is_some_and(|found| (found - expected).abs() <= golden.tolerance)
            }
            _ => false,
        };
        let expected = match expected {
            Scalar::String(text) => Value::from(text.as_str()).to_string(),
            Scalar::Number(number) => number.to_string(),
            Scalar::Bool(boolean) => boolean.to_string(),
        };
        (!is_right).then(|| match found {
            Some(found) => format!("{pointer} is {}, not {expected}", shown(found)),
            None => format!("the answer has no {pointer}, which should be {expected}"),
        })
    })
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Percentiles by nearest rank: with few requests p99 is the slowest one.
fn judge(mut spans: Vec<Duration>, limits: LatencyLimits) -> Result<String, String> {
    spans.sort_unstable();
    let at = |percent: usize| {
        let rank = (spans.len() * percent).div_ceil(100).max(1);
        spans.get(rank - 1).copied().unwrap_or_default()
    };
    let all = [
        ("p50", at(50), limits.p50_max_ms),
        ("p95", at(95), limits.p95_max_ms),
        ("p99", at(99), limits.p99_max_ms),
    ];
    let figures: Vec<_> = all
        .iter()
        .map(|(name, span, _)| format!("{name} {:.1} ms", span.as_secs_f64() * 1e3))
        .collect();
    let seen = format!(
        "{} ({} requests, {} at once)",
        figures.join(", "),
        spans.len(),
        limits.concurrency
    );
    let over = all.iter().find_map(|(name, span, max)| {
        let max = (*max)?;
        (*span > Duration::from_millis(max.into())).then(|| format!("{name} is over {max} ms: "))
    });
    match over {
        Some(over) => Err(over + &seen),
        None => Ok(seen),
    }
}

#[cfg(test)]
mod tests;
