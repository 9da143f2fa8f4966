//! Sends a scenario on a schedule: pinned threads, each with its own ring and connections.

pub mod connection;
pub mod events;
pub mod feed;
pub mod link;
pub mod worker;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use self::feed::Feed;
use self::worker::Worker;
use crate::net::address::Address;
use crate::net::cores::Cores;
use crate::net::ring::ring;
use crate::recorder::records::Recorder;
use crate::recorder::{Second, Tally};
use crate::scenario::Scenario;
use crate::schedule::{Load, Span};
use crate::signal::StopSignal;

/// Everything that a run does, shared by its threads.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is sent.
    pub source: Source,
    /// Where it is sent.
    pub target: Address,
    /// When it is sent.
    pub load: Load,
    /// Results are thrown away for this long at first.
    pub warmup: Duration,
    /// How long results count; `None`: until `requests_max`.
    pub duration: Option<Duration>,
    /// Requests of the whole run, warm-up included.
    pub requests_max: Option<u64>,
    /// Connections of all threads together; at least one per thread.
    pub connections: u32,
    /// How many threads.
    pub threads: u16,
    /// Where they are pinned; `None`: not at all.
    pub cores: Option<Cores>,
    /// Whether connections are used again.
    pub reuse: Reuse,
    /// Requests that are written at once on one connection.
    pub pipeline: u16,
    /// From sending to the answer's last byte; connecting has its own.
    pub timeout: Duration,
    /// What every answer must hold.
    pub checks: Checks,
}

/// Where requests come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// They are made by these templates and draws.
    Scenario(Scenario),
    /// They were recorded; each thread is handed a [`Feed`] of its own.
    Records,
}

/// Whether connections are used again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reuse {
    /// Until the server closes them.
    KeepAlive,
    /// Each request opens and closes its own; connecting counts into its latency.
    NewPerRequest,
}

/// What every answer must hold.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Checks {
    /// One of these; none given: 200 to 399.
    pub statuses: Vec<u16>,
    /// Header fields by lower-case name, with their exact value.
    pub headers: Vec<(String, String)>,
    /// A stream of events must end with `data: [DONE]`.
    pub stream_done: bool,
}

/// A started run.
#[derive(Debug)]
pub struct Run {
    /// Its moments.
    pub span: Span,
    /// Every thread's seconds, as they pass.
    pub seconds: Receiver<Second>,
    threads: Vec<JoinHandle<Result<Finished, io::Error>>>,
}

/// What one thread hands back.
#[derive(Debug)]
pub struct Finished {
    /// What it measured.
    pub tally: Tally,
    /// Requests that were due but never sent.
    pub unsent: u64,
    /// CPU time of the thread over the time that passed in the measured window, `0..=1`; of several
    /// threads, the busiest.
    pub busy: f64,
}

/// Why a run failed as a whole.
#[derive(Debug, thiserror::Error)]
pub enum GeneratorError {
    /// No io_uring, a core that went away, or no memory.
    #[error("cannot run a generator thread")]
    Thread(#[from] io::Error),
    /// A bug.
    #[error("a generator thread has died")]
    Died,
}

/// Time for the threads to learn when they start.
const START_DELAY: Duration = Duration::from_millis(20);

impl Run {
    /// Starts the threads; `recorders` and `feeds` have one for each, or are empty.
    ///
    /// # Errors
    /// `Thread`, before anything is sent.
    pub fn start(
        plan: &Arc<Plan>,
        mut recorders: Vec<Recorder>,
        mut feeds: Vec<Feed>,
        stop: &StopSignal,
    ) -> Result<Self, GeneratorError> {
        let (second, seconds) = mpsc::channel();
        let (ready, readies) = mpsc::channel();
        let mut starts = Vec::new();
        let mut threads = Vec::new();
        for thread in 0..plan.threads {
            let (start, started) = mpsc::channel();
            starts.push(start);
            let part = Part {
                plan: Arc::clone(plan),
                thread,
                recorder: recorders.pop(),
                feed: feeds.pop(),
                seconds: second.clone(),
                stop: stop.clone(),
            };
            let ready = ready.clone();
            threads.push(
                thread::Builder::new()
                    .name(format!("generator-{thread}"))
                    .spawn(move || part.run(&ready, &started))?,
            );
        }
        drop(ready);
        for _ in 0..plan.threads {
            // A thread that failed early hangs up; joining it tells why.
            if readies.recv().is_err() {
                starts.clear();
                for thread in threads {
                    thread.join().map_err(|_| GeneratorError::Died)??;
                }
                return Err(GeneratorError::Died);
            }
        }
        let now = Instant::now() + START_DELAY;
        let measured_from = now + plan.warmup;
        let end = plan.duration.map(|duration| measured_from + duration);
        let span = Span { start: now, measured_from, end };
        for start in starts {
            start.send(span).map_err(|_| GeneratorError::Died)?;
        }
        Ok(Self { span, seconds, threads })
    }

    /// Whether every thread has finished.
    pub fn is_finished(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Waits for the threads and adds up what they measured.
    ///
    /// # Errors
    /// The first thread that failed.
    pub fn finish(self) -> Result<Finished, GeneratorError> {
        let mut total = Finished { tally: Tally::default(), unsent: 0, busy: 0.0 };
        for thread in self.threads {
            let finished = thread.join().map_err(|_| GeneratorError::Died)??;
            total.tally.merge(&finished.tally);
            total.unsent += finished.unsent;
            total.busy = total.busy.max(finished.busy);
        }
        Ok(total)
    }
}

/// One thread before it starts.
struct Part {
    plan: Arc<Plan>,
    thread: u16,
    recorder: Option<Recorder>,
    feed: Option<Feed>,
    seconds: Sender<Second>,
    stop: StopSignal,
}

impl Part {
    fn run(self, ready: &Sender<()>, started: &Receiver<Span>) -> io::Result<Finished> {
        if let Some(cores) = &self.plan.cores {
            cores.pin_current_thread(usize::from(self.thread))?;
        }
        let mut ring = ring()?;
        let told = ready.send(()).is_ok();
        let Some(span) = started.recv().ok().filter(|_| told) else {
            return Err(io::ErrorKind::Interrupted.into());
        };
        ring.block_on(async {
            let worker = Worker::start(self, span)?;
            worker.run().await;
            Ok(worker.finish())
        })
    }
}
