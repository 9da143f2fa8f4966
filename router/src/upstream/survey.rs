//! How the endpoints are, as each core sees them: told only when somebody asks, and without a lock.
//!
//! The asker raises a number; each worker sees it at its next tick and publishes its own table. While
//! nobody asks, that costs a worker one load per tick and a request nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;

use super::health::Standing;
use crate::active::EndpointAddress;
use crate::cores::WorkerIndex;
use crate::counters::Ejection;
use crate::limits::WORKER_TICK;
use crate::net::clock;

/// One endpoint as one core sees it.
#[derive(Clone, Debug)]
pub struct EndpointState {
    /// Where it is.
    pub address: EndpointAddress,
    /// How it stands.
    pub standing: Standing,
    /// Why it is ejected; also while it awaits its probe.
    pub ejection: Option<Ejection>,
    /// How long its ejection or its rest still lasts.
    pub retry_after: Duration,
    /// Its share of the traffic, of `SLOW_START_STEPS`.
    pub share: u16,
    /// Failures since its last answer.
    pub consecutive_failures: u32,
    /// Requests that it has not answered yet.
    pub in_flight: u32,
    /// Spare connections.
    pub idle: usize,
    /// Connections that were opened.
    pub opened: u64,
    /// Requests that went over a pooled connection.
    pub reused: u64,
}

/// Questions and answers between the admin listener and the workers.
#[derive(Debug)]
pub struct Survey {
    asked: AtomicU64,
    answers: Box<[ArcSwapOption<Answer>]>,
}

/// What one worker told.
#[derive(Debug)]
pub struct Answer {
    question: u64,
    /// Its endpoints, in no order.
    pub endpoints: Box<[EndpointState]>,
}

/// One worker's end.
#[derive(Debug)]
pub struct Surveyed {
    survey: Arc<Survey>,
    worker: WorkerIndex,
}

impl Survey {
    /// Nothing was asked.
    #[must_use]
    pub fn new(workers: usize) -> Arc<Self> {
        let answers = (0..workers).map(|_| ArcSwapOption::empty()).collect();
        Arc::new(Self { asked: AtomicU64::new(0), answers })
    }

    /// Asks all workers, and waits until each has answered or `deadline` has come. `None` for a worker
    /// that has not.
    #[must_use]
    pub fn ask(&self, deadline: Instant) -> Vec<Option<Arc<Answer>>> {
        let question = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let fresh = |answer: &ArcSwapOption<Answer>| {
            // A later question's answer is one to this too.
            answer.load_full().filter(|answer| answer.question >= question)
        };
        while clock::now() < deadline && !self.answers.iter().all(|own| fresh(own).is_some()) {
            std::thread::park_timeout(WORKER_TICK);
        }
        self.answers.iter().map(fresh).collect()
    }
}

impl Surveyed {
    /// The end of this worker.
    #[must_use]
    pub fn new(survey: Arc<Survey>, worker: WorkerIndex) -> Self {
        Self { survey, worker }
    }

    /// Answers what was asked since the last call, if anything was.
    pub fn answer(&self, states: impl FnOnce() -> Box<[EndpointState]>) {
        let Some(own) = self.survey.answers.get(self.worker.get()) else { return };
        let question = self.survey.asked.load(Ordering::Relaxed);
        if question > own.load().as_ref().map_or(0, |answer| answer.question) {
            own.store(Some(Arc::new(Answer { question, endpoints: states() })));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_is_silent_is_told_apart_from_one_that_has_no_endpoints() {
        let survey = Survey::new(2);
        let talker = Surveyed::new(Arc::clone(&survey), WorkerIndex(1));
        let asker = Arc::clone(&survey);
        let asking =
            std::thread::spawn(move || asker.ask(clock::now() + Duration::from_millis(300)));
        while !asking.is_finished() {
            talker.answer(Box::default);
            std::thread::yield_now();
        }
        let answers = asking.join().unwrap();
        assert!(answers[0].is_none());
        assert_eq!(answers[1].as_ref().map(|answer| answer.endpoints.len()), Some(0));
    }

    #[test]
    fn nobody_counts_endpoints_while_nobody_asks() {
        let surveyed = Surveyed::new(Survey::new(1), WorkerIndex(0));
        surveyed.answer(|| panic!("nobody asked"));
    }

    #[test]
    fn an_old_answer_answers_no_new_question() {
        let survey = Survey::new(1);
        let surveyed = Surveyed::new(Arc::clone(&survey), WorkerIndex(0));
        let _unanswered = survey.ask(clock::now());
        surveyed.answer(Box::default);
        assert!(survey.ask(clock::now())[0].is_none());
    }
}
