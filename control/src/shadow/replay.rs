//! One record brought to the candidate: as many attempts as it takes, or as may be.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use http_body_util::Full;
use hyper::{Request, StatusCode, body::Bytes};

use super::{
    candidate::Candidate,
    connections::{Answer, Connections},
    endpoints::{Choice, EndpointIndex, Endpoints, Settled, backoff},
    limits::ANSWER_BYTES_MAX,
    pace::Pace,
};
use crate::call::{CallError, Limits};

/// How the candidate is treated.
#[derive(Clone, Copy, Debug)]
pub struct Treatment {
    /// Calls per second over all connections, attempts after a failure included; `None`: no limit but concurrency.
    pub calls_per_second: Option<f64>,
    /// From connecting to an answer's last byte.
    pub answer_within: Duration,
    /// Attempts that reach the candidate and bring no answer; refused connections do not count.
    pub attempts: u16,
}

/// Why a request brought no answer, after all attempts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Unanswered {
    TimedOut,
    BrokenOff,
    NotHttp,
    TooLarge,
}

impl Unanswered {
    /// A stable label.
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::TimedOut => "timed_out",
            Self::BrokenOff => "broken_off",
            Self::NotHttp => "no_http_answer",
            Self::TooLarge => "answer_too_large",
        }
    }
}

/// What came of one request.
#[derive(Debug)]
pub(super) struct Replayed {
    /// The last attempt's answer.
    pub(super) answer: Result<Answer, Unanswered>,
    /// The last attempt's endpoint.
    pub(super) endpoint: String,
    /// Those that reached the candidate.
    pub(super) attempts: u16,
}

/// Replays to one candidate.
#[derive(Debug)]
pub(super) struct Replayer {
    treatment: Treatment,
    connections: Vec<Connections>,
    endpoints: Arc<Mutex<Endpoints>>,
    pace: Mutex<Pace>,
}

impl Replayer {
    pub(super) fn new(candidate: &Candidate, treatment: Treatment) -> Self {
        let endpoints = &candidate.endpoints;
        let weights = Endpoints::new(endpoints.iter().map(|endpoint| endpoint.weight));
        Self {
            treatment,
            connections: endpoints.iter().map(|one| Connections::new(&one.address)).collect(),
            endpoints: Arc::new(Mutex::new(weights)),
            pace: Mutex::new(Pace::new(treatment.calls_per_second)),
        }
    }

    /// How many endpoints take no connection.
    pub(super) fn endpoints_away(&self) -> usize {
        locked(&self.endpoints).away()
    }

    /// Sends a request until it is answered. A candidate that is away is waited for, without end: the record stays where
    /// it is. One that says it is overloaded (429, 503) is asked again as long as there are attempts.
    pub(super) async fn replay(&self, request: &Request<Full<Bytes>>) -> Replayed {
        let mut attempts = 0_u16;
        loop {
            let (mut call, connections) = self.begin().await;
            let limits =
                Limits { total: self.treatment.answer_within, body_bytes_max: ANSWER_BYTES_MAX };
            let exchanged = connections.exchange(request.clone(), limits).await;
            let answer = match exchanged {
                Err(CallError::Connect(_)) => {
                    call.end(Settled::Refused);
                    continue;
                }
                Err(CallError::TimedOut { .. }) => Err(Unanswered::TimedOut),
                Err(CallError::Broken(_)) => Err(Unanswered::BrokenOff),
                Err(CallError::Http(_)) => Err(Unanswered::NotHttp),
                Err(CallError::TooLarge { .. }) => Err(Unanswered::TooLarge),
                Ok(answer) => Ok(answer),
            };
            call.end(Settled::Reached);
            attempts = attempts.saturating_add(1);
            let is_worth_another = match &answer {
                Ok(answer) => is_overloaded(answer.status),
                Err(Unanswered::TooLarge) => false,
                Err(Unanswered::TimedOut | Unanswered::BrokenOff | Unanswered::NotHttp) => true,
            };
            if !is_worth_another || attempts >= self.treatment.attempts {
                let endpoint = connections.address().to_owned();
                return Replayed { answer, endpoint, attempts };
            }
            tokio::time::sleep(backoff(u32::from(attempts - 1), jitter())).await;
        }
    }

    /// Waits for an endpoint that takes calls, and for the call's turn.
    async fn begin(&self) -> (Call, &Connections) {
        loop {
            let choice = locked(&self.endpoints).choose(Instant::now());
            match choice {
                Choice::Wait(at) => tokio::time::sleep_until(at.into()).await,
                Choice::Call(endpoint) => {
                    let call = Call { endpoints: self.endpoints.clone(), endpoint: Some(endpoint) };
                    let at = locked(&self.pace).take(Instant::now());
                    tokio::time::sleep_until(at.into()).await;
                    if let Some(connections) = self.connections.get(endpoint.0) {
                        return (call, connections);
                    }
                }
            }
        }
    }
}

/// A call under way; dropped with the task that made it, it frees its endpoint.
#[derive(Debug)]
struct Call {
    endpoints: Arc<Mutex<Endpoints>>,
    endpoint: Option<EndpointIndex>,
}

impl Call {
    fn end(&mut self, settled: Settled) {
        if let Some(endpoint) = self.endpoint.take() {
            locked(&self.endpoints).settle(endpoint, settled, Instant::now(), jitter());
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(endpoint) = self.endpoint.take() {
            locked(&self.endpoints).abandon(endpoint);
        }
    }
}

/// An answer that says "later", and nothing about the request.
fn is_overloaded(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::SERVICE_UNAVAILABLE
}

/// A random number of 0 to 1; without randomness, the longest wait.
pub(super) fn jitter() -> f64 {
    getrandom::u32().map_or(1.0, |random| f64::from(random) / f64::from(u32::MAX))
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
