//! Where records go: to Kafka, or to the spool while that is away, and in order from there.
//!
//! **Direct**: each record is handed to the producer. The first one that fails, or finds the queue full, ends
//! it. **Retreating**: the producer gives back all that is outstanding, and new records wait. When all is back,
//! it goes into the spool in the order of its making, the waiting ones behind it. **Spooling**: everything goes
//! to the spool's end, and a batch from its front is tried now and then; each one that is delivered is settled.
//! When the spool is empty, Direct again. So the records of one Unit never overtake each other.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::kafka::{Kafka, Outcome, SendError};
use super::owned::{Counts, Kind, OwnedRecord, Record};
use super::spool::{Lost, Spool};
use crate::counters::{ShadowCounters, ShadowLoss, Writer};
use crate::limits::{
    KAFKA_AGAIN_FIRST, KAFKA_AGAIN_MAX, REPLAY_BATCH_BYTES, RETREAT_WAITING_MAX,
    SPOOL_COMPLAINT_EVERY,
};
use crate::log::{self, Chain};

/// The two sinks and what was counted.
pub(super) struct Outlet {
    spool: Spool,
    kafka: Option<(Kafka, Mode)>,
    counters: Writer<ShadowCounters>,
    complained: Option<Instant>,
}

enum Mode {
    Direct,
    Retreating(Retreat),
    Spooling(Replay),
}

/// What came back from the producer, and what came meanwhile.
#[derive(Default)]
struct Retreat {
    failed: Vec<OwnedRecord>,
    waiting: VecDeque<OwnedRecord>,
}

/// Trying whether the brokers are back.
struct Replay {
    again_at: Instant,
    pause: Duration,
    has_failed: bool,
}

impl Outlet {
    pub(super) fn new(
        spool: Spool,
        kafka: Option<Kafka>,
        counters: Writer<ShadowCounters>,
        now: Instant,
    ) -> Self {
        let mode = || {
            if spool.is_empty() { Mode::Direct } else { Mode::Spooling(Replay::at(now)) }
        };
        let kafka = kafka.map(|kafka| (kafka, mode()));
        Self { spool, kafka, counters, complained: None }
    }

    /// The number of the next record.
    pub(super) fn take_sequence(&mut self) -> u64 {
        self.spool.take_sequence()
    }

    /// What is counted.
    pub(super) fn counters(&self) -> &ShadowCounters {
        &self.counters
    }

    /// Takes a record over.
    pub(super) fn accept(&mut self, record: &Record<'_>) {
        let Some((kafka, mode)) = &mut self.kafka else { return self.keep(record) };
        match mode {
            Mode::Spooling(_) => self.keep(record),
            Mode::Retreating(retreat) => retreat.waiting.push_back(OwnedRecord::from(*record)),
            Mode::Direct => match kafka.send(record) {
                Ok(()) => {}
                Err(SendError::Refused) => self.lose(ShadowLoss::KafkaRefused, record.kind, 1),
                Err(SendError::Full) => {
                    kafka.purge();
                    let mut retreat = Retreat::default();
                    retreat.waiting.push_back(OwnedRecord::from(*record));
                    *mode = Mode::Retreating(retreat);
                }
            },
        }
    }

    fn keep(&mut self, record: &Record<'_>) {
        self.spool.append(record);
        self.counters.shadow_spooled.add(record.kind, 1);
    }

    fn lose(&self, why: ShadowLoss, kind: Kind, count: u64) {
        match kind {
            Kind::Shadow => self.counters.shadow_dropped.add(why, count),
            Kind::Exposure => self.counters.exposures_dropped.add(why, count),
        }
    }

    fn lose_all(&self, why: ShadowLoss, counts: Counts) {
        for kind in Kind::ALL {
            self.lose(why, kind, counts.of(kind));
        }
    }

    /// Whether the spool should be written before more is accepted.
    pub(super) fn is_due(&self) -> bool {
        self.spool.is_due()
    }

    /// Whether nothing more should be accepted now: the rings are bounded, and what they cannot hold is
    /// counted there.
    pub(super) fn is_choked(&self) -> bool {
        matches!(&self.kafka, Some((_, Mode::Retreating(retreat)))
            if retreat.waiting.len() >= RETREAT_WAITING_MAX)
    }

    /// Picks up what became of records, writes what waits, and tries the brokers again.
    pub(super) async fn tend(&mut self, now: Instant) {
        self.settle(now);
        self.end_retreat(now);
        self.flush(now).await;
        self.replay(now).await;
        self.counters.spool_records.set(self.spool.records());
        self.counters.spool_bytes.set(self.spool.bytes());
        let is_direct = matches!(self.kafka, Some((_, Mode::Direct)));
        self.counters.kafka_direct.set(u64::from(is_direct));
    }

    async fn flush(&mut self, now: Instant) {
        let lost = self.spool.flush(now).await;
        self.count_lost(lost, now);
    }

    fn count_lost(&mut self, lost: Lost, now: Instant) {
        self.lose_all(ShadowLoss::SpoolFull, lost.full);
        self.lose_all(ShadowLoss::SpoolFailed, lost.failed);
        if let Some(error) = lost.error {
            self.complain(&error, now);
        }
    }

    fn complain(&mut self, error: &super::spool::SpoolError, now: Instant) {
        let is_new = |last: Instant| now.saturating_duration_since(last) >= SPOOL_COMPLAINT_EVERY;
        if self.complained.is_none_or(is_new) {
            self.complained = Some(now);
            log::warn("spool_failed", &[("reason", &Chain(error))]);
        }
    }

    /// Counts what was delivered and takes back what was not.
    fn settle(&mut self, now: Instant) {
        let Some((kafka, mode)) = &mut self.kafka else { return };
        let (mut refused, mut purges) = (Vec::new(), false);
        for outcome in kafka.poll() {
            match outcome {
                Outcome::Delivered { sequence, kind } => {
                    let counts = match mode {
                        // Dropped meanwhile, with its segment: counted as that.
                        Mode::Spooling(replay) => {
                            replay.pause = KAFKA_AGAIN_FIRST;
                            self.spool.settle(sequence, kind)
                        }
                        Mode::Direct | Mode::Retreating(_) => true,
                    };
                    self.counters.shadow_delivered.add(kind, u64::from(counts));
                }
                Outcome::Refused { sequence, kind } => {
                    let counts = match mode {
                        Mode::Spooling(_) => self.spool.settle(sequence, kind),
                        Mode::Direct | Mode::Retreating(_) => true,
                    };
                    refused.extend(counts.then_some(kind));
                }
                Outcome::Failed(record) => {
                    self.counters.kafka_failures.add(1);
                    match mode {
                        Mode::Spooling(replay) => {
                            // What came behind it must not overtake it.
                            purges |= !replay.has_failed;
                            replay.has_failed = true;
                        }
                        Mode::Retreating(retreat) => retreat.failed.push(record),
                        Mode::Direct => {
                            purges = true;
                            let failed = vec![record];
                            *mode = Mode::Retreating(Retreat { failed, ..Retreat::default() });
                        }
                    }
                }
            }
        }
        if purges {
            kafka.purge();
        }
        if let Mode::Spooling(replay) = mode
            && replay.has_failed
            && kafka.outstanding() == 0
        {
            replay.has_failed = false;
            replay.pause = (replay.pause * 2).min(KAFKA_AGAIN_MAX);
            replay.again_at = now + replay.pause;
        }
        for kind in refused {
            self.lose(ShadowLoss::KafkaRefused, kind, 1);
        }
    }

    fn end_retreat(&mut self, now: Instant) {
        let Some((kafka, mode @ Mode::Retreating(_))) = &mut self.kafka else { return };
        if kafka.outstanding() > 0 {
            return;
        }
        let next = Mode::Spooling(Replay::at(now + KAFKA_AGAIN_FIRST));
        let Mode::Retreating(mut retreat) = std::mem::replace(mode, next) else { return };
        log::warn("kafka_away", &[("records", &retreat.failed.len())]);
        retreat.failed.sort_unstable_by_key(|record| record.record().sequence);
        for record in retreat.failed.iter().chain(&retreat.waiting) {
            self.keep(&record.record());
        }
    }

    /// Sends a batch from the spool's front when the last one is told about.
    async fn replay(&mut self, now: Instant) {
        let Some((kafka, Mode::Spooling(replay))) = &mut self.kafka else { return };
        if kafka.outstanding() > 0 || now < replay.again_at {
            return;
        }
        if let Err(error) = self.spool.save_cursor().await {
            return self.complain(&error, now);
        }
        if self.spool.is_empty() {
            log::info("kafka_is_back", &[]);
            if let Some((_, mode)) = &mut self.kafka {
                *mode = Mode::Direct;
            }
            return;
        }
        let batch = match self.spool.read(REPLAY_BATCH_BYTES).await {
            Ok(batch) => batch,
            Err(error) => return self.complain(&error, now),
        };
        let Some(batch) = batch else { return };
        let mut refused = Vec::new();
        for record in batch.records() {
            match kafka.send(&record) {
                Ok(()) => {}
                Err(SendError::Full) => break,
                Err(SendError::Refused) => refused.push((record.sequence, record.kind)),
            }
        }
        for (sequence, kind) in refused {
            if self.spool.settle(sequence, kind) {
                self.lose(ShadowLoss::KafkaRefused, kind, 1);
            }
        }
    }

    /// Whether records are still on their way to the brokers.
    pub(super) fn is_underway(&self) -> bool {
        self.kafka.as_ref().is_some_and(|(kafka, mode)| {
            kafka.outstanding() > 0 && !matches!(mode, Mode::Spooling(_))
        })
    }

    /// What is still on its way is taken back: it goes to the spool.
    pub(super) fn retreat(&mut self) {
        if let Some((kafka, mode)) = &mut self.kafka {
            kafka.purge();
            if matches!(mode, Mode::Direct) {
                *mode = Mode::Retreating(Retreat::default());
            }
        }
    }

    /// Writes everything that is left to disk.
    pub(super) async fn close(mut self, now: Instant) {
        if let Some((_, Mode::Retreating(retreat))) = &mut self.kafka {
            // The producer was given time to give these back; what it kept is lost with it.
            let Retreat { failed, waiting } = std::mem::take(retreat);
            for record in failed.iter().chain(&waiting) {
                self.keep(&record.record());
            }
        }
        let lost_underway = self.kafka.as_ref().map_or(0, |(kafka, mode)| match mode {
            Mode::Spooling(_) => 0, // still in the spool
            Mode::Direct | Mode::Retreating(_) => kafka.outstanding(),
        });
        let records = self.spool.records();
        let Self { spool, counters, .. } = self;
        let lost = spool.close(now).await;
        let lost_records = lost.failed.sum() + lost_underway;
        counters.spool_records.set(records);
        if let Some(error) = &lost.error {
            log::warn("spool_failed", &[("reason", &Chain(error))]);
        }
        log::info("shadow_core_stopped", &[("spooled", &records), ("lost", &lost_records)]);
    }
}

impl Replay {
    fn at(again_at: Instant) -> Self {
        Self { again_at, pause: KAFKA_AGAIN_FIRST, has_failed: false }
    }
}
