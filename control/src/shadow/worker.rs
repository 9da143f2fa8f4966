//! From the topic of Shadow records to the topic of results, at most so many at once.
//!
//! A record's offset is committed when Kafka has its result and the results of all before it: whatever ends this
//! process, no record is left out. Some are replayed twice then, which results tell by the record's id.

use std::{
    collections::VecDeque,
    path::PathBuf,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rdkafka::{Message as _, message::OwnedMessage};
use switchboard_shared::shadow_record::ShadowRecord;
use tokio::{
    select,
    task::{JoinError, JoinSet},
    time::{Instant, MissedTickBehavior, interval, sleep_until, timeout},
};

use super::{
    candidate::Candidate,
    compare::Measure,
    kafka::{Arrival, Begin, Cluster, ClusterError, Sink, Source, SourceOptions},
    limits::{DRAIN_MAX, PAUSE_AFTER, PROGRESS_SPAN, RECORD_BYTES_MAX},
    progress::{Claim, Progress},
    replay::{Replayer, Treatment},
    report::{Report, ReportFile, Tally},
    request,
    result::{self, Outcome, ShadowResult},
};
use crate::{api::chain, crash};

/// What a worker does.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// Both topics' brokers.
    pub cluster: Cluster,
    /// Topic of Shadow records; those for other candidates are passed over.
    pub topic: String,
    /// Topic of results.
    pub results_topic: String,
    /// Consumer group; its members share the partitions.
    pub group: String,
    /// Where a group begins that has committed nothing.
    pub begin: Begin,
    /// Who gets the requests.
    pub candidate: Candidate,
    /// How it is treated.
    pub treatment: Treatment,
    /// Records under way at once, `1..=CONCURRENCY_MAX`.
    pub concurrency: u16,
    /// Larger records are not replayed; at most [`RECORD_BYTES_MAX`].
    pub record_bytes_max: usize,
    /// What makes answers the same.
    pub measure: Measure,
    /// Where Facts as served go in the body, a JSON Pointer; `None`: the candidate gets the client's body.
    pub facts_into: Option<String>,
    /// Whether to end when the topic's end is reached.
    pub until_end: bool,
    /// The report as a page, written again and again.
    pub html: Option<PathBuf>,
}

/// Why a worker ended before its time. What was not committed is replayed by the next one.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// Kafka's side.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A task of ours broke: a fault in this program.
    #[error("replaying a record broke")]
    Broken(#[source] JoinError),
}

/// Works until `stop`, or to the end where that is asked; returns the report of this run.
///
/// # Errors
/// See [`WorkerError`].
pub async fn run(
    options: WorkerOptions,
    stop: impl Future<Output = ()>,
) -> Result<Report, WorkerError> {
    let progress = Arc::new(Mutex::new(Progress::default()));
    let source_options = SourceOptions {
        topic: options.topic.clone(),
        group: options.group.clone(),
        begin: options.begin,
    };
    let sink = Sink::open(&options.cluster, options.results_topic.clone())?;
    let source = Source::open(&options.cluster, source_options, progress.clone())?;
    if options.until_end {
        source.check_topic().await?;
    }
    let mut worker = Worker {
        tally: Tally::new(&options.candidate.reference),
        file: options.html.clone().map(ReportFile::new),
        replays: Arc::new(Replays {
            replayer: Replayer::new(&options.candidate, options.treatment),
            sink: sink.clone(),
            options,
        }),
        source,
        progress,
        running: JoinSet::new(),
        held: VecDeque::new(),
        full_since: None,
        paused: false,
    };
    let worked = worker.work(stop).await;
    let drained = worker.drain().await;
    let report = worker.tally.report();
    if let Some(file) = &worker.file {
        file.write(&report);
    }
    drop(worker.replays);
    worker.source.close().await?;
    sink.close().await?;
    worked.and(drained).map(|()| report)
}

/// What the tasks share.
struct Replays {
    options: WorkerOptions,
    replayer: Replayer,
    sink: Sink,
}

/// A record that is done with.
struct Done {
    claim: Claim,
    /// `None`: it was for another candidate.
    result: Option<ShadowResult>,
}

struct Worker {
    replays: Arc<Replays>,
    source: Source,
    progress: Arc<Mutex<Progress>>,
    running: JoinSet<Done>,
    /// Came while there was no room, from partitions that were not paused yet.
    held: VecDeque<(OwnedMessage, Claim)>,
    full_since: Option<Instant>,
    paused: bool,
    tally: Tally,
    file: Option<ReportFile>,
}

impl Worker {
    async fn work(&mut self, stop: impl Future<Output = ()>) -> Result<(), WorkerError> {
        let mut stop = pin!(stop);
        let mut ticks = interval(PROGRESS_SPAN);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.fill();
            if self.replays.options.until_end && self.is_complete() {
                return Ok(());
            }
            let is_full = self.full_since.is_some();
            let pause_at = self.full_since.unwrap_or_else(Instant::now) + PAUSE_AFTER;
            select! {
                biased;
                () = &mut stop => return Ok(()),
                Some(ended) = self.running.join_next() => self.settle(ended)?,
                () = sleep_until(pause_at), if is_full && !self.paused => self.pause(),
                arrival = self.source.next(), if !is_full || self.paused => self.arrived(arrival),
                _ = ticks.tick() => self.tell(),
            }
        }
    }

    /// Begins what there is room for, and asks for more.
    fn fill(&mut self) {
        while !self.is_full()
            && let Some((message, claim)) = self.held.pop_front()
        {
            self.begin(message, claim);
        }
        if self.is_full() {
            self.full_since.get_or_insert_with(Instant::now);
            return;
        }
        self.full_since = None;
        if self.paused {
            self.source.resume();
            self.paused = false;
        }
    }

    fn is_full(&self) -> bool {
        self.running.len() >= usize::from(self.replays.options.concurrency)
    }

    fn is_complete(&self) -> bool {
        let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.is_complete() && self.running.is_empty() && self.held.is_empty()
    }

    fn begin(&mut self, message: OwnedMessage, claim: Claim) {
        let replays = self.replays.clone();
        self.running.spawn(async move { replays.replay(&message, claim).await });
    }

    /// Nobody is asked for more, but the broker hears of us.
    fn pause(&mut self) {
        tracing::info!(
            under_way = self.running.len(),
            endpoints_away = self.replays.replayer.endpoints_away(),
            "the candidate keeps us waiting; partitions are paused"
        );
        self.source.pause();
        self.paused = true;
    }

    fn arrived(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Record(message) => {
                let claim = self.progress().take(message.partition(), message.offset());
                if self.is_full() {
                    // A partition that came while the others were paused.
                    self.held.push_back((message, claim));
                    self.source.pause();
                } else {
                    self.begin(message, claim);
                }
            }
            Arrival::End(partition) => self.progress().reached_end(partition),
            Arrival::Trouble(error) => tracing::warn!(%error, "cannot read records yet"),
        }
    }

    fn settle(&mut self, ended: Result<Done, JoinError>) -> Result<(), WorkerError> {
        let Done { claim, result } = ended.map_err(WorkerError::Broken)?;
        match result {
            Some(result) => self.tally.add(&result),
            None => self.tally.pass_over(),
        }
        let moved = self.progress().finish(claim);
        if let Some(offset) = moved {
            self.source.store(claim.partition, offset);
        }
        Ok(())
    }

    fn progress(&self) -> std::sync::MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        let report = self.tally.report();
        tracing::info!(
            answered = report.records.answered,
            unanswered = report.records.unanswered,
            not_replayed = report.records.not_replayed,
            unreadable = report.records.unreadable,
            agreement = report.agreement.rate,
            under_way = self.running.len(),
            lag = self.source.lag(),
            endpoints_away = self.replays.replayer.endpoints_away(),
            "working"
        );
        if let Some(file) = &self.file {
            file.write(&report);
        }
    }

    /// What is under way may end; what does not is replayed by the next worker.
    async fn drain(&mut self) -> Result<(), WorkerError> {
        let all = timeout(DRAIN_MAX, async {
            while let Some(ended) = self.running.join_next().await {
                self.settle(ended)?;
            }
            Ok(())
        });
        if let Ok(drained) = all.await {
            return drained;
        }
        tracing::warn!(
            left = self.running.len(),
            "stopped with records under way; they are replayed"
        );
        self.running.shutdown().await;
        Ok(())
    }
}

impl Replays {
    /// Returns when Kafka has the result.
    async fn replay(&self, message: &OwnedMessage, claim: Claim) -> Done {
        let Some((result, body)) = self.result(message).await else {
            return Done { claim, result: None };
        };
        self.store(message.key(), &result, &body).await;
        crash::point("shadow_result_stored");
        Done { claim, result: Some(result) }
    }

    async fn result(&self, message: &OwnedMessage) -> Option<(ShadowResult, Vec<u8>)> {
        let options = &self.options;
        let source = result::Source {
            topic: message.topic().to_owned(),
            partition: message.partition(),
            offset: message.offset(),
        };
        let nothing = |outcome, reason| {
            ShadowResult::of_nothing(source.clone(), &options.candidate, unix_us(), outcome, reason)
        };
        let Some(bytes) = message.payload() else {
            return Some((nothing(Outcome::Unreadable, "no_value"), Vec::new()));
        };
        if bytes.len() > options.record_bytes_max.min(RECORD_BYTES_MAX) {
            return Some((nothing(Outcome::Unreadable, "too_large"), Vec::new()));
        }
        let record = match ShadowRecord::read(bytes) {
            Ok(record) => record,
            Err(error) => {
                tracing::debug!(offset = message.offset(), error = chain(&error), "unreadable");
                return Some((nothing(Outcome::Unreadable, error.reason()), Vec::new()));
            }
        };
        if record.envelope.target.model != options.candidate.reference {
            return None;
        }
        let request =
            match request::request(&record, &options.candidate, options.facts_into.as_deref()) {
                Ok(request) => request,
                Err(error) => {
                    let result = nothing(Outcome::NotReplayed, error.reason());
                    return Some((result.of_record(&record.envelope), Vec::new()));
                }
            };
        let replayed = self.replayer.replay(&request).await;
        let result = ShadowResult { reason: None, ..nothing(Outcome::Answered, "") };
        let result = result.of_record(&record.envelope);
        Some(result.of_replay(replayed, &record, &options.measure))
    }

    async fn store(&self, key: Option<&[u8]>, result: &ShadowResult, body: &[u8]) {
        for (result, body) in [(result, body), (&result.shortened(), &[])] {
            let Ok(bytes) = result.write(body) else { continue };
            if self.sink.store(key, &bytes).await.is_ok() {
                return;
            }
        }
        // Else one record would hold up its partition for ever.
        tracing::error!(source = ?result.source, "the broker takes no result of this record; it is left out");
    }
}

/// Microseconds since 1970; 0 where the clock says that it is earlier.
fn unix_us() -> u64 {
    let since: Duration = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
