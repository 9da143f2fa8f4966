//! The shadow core: an executor of its own that empties the workers' rings.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use glommio::{LocalExecutorBuilder, Placement};

use super::ShadowError;
use super::copied::Copied;
use super::copies::{CoreEnd, targets_of};
use super::envelope::{Clocks, Envelopes, Told};
use super::exposures::Remembered;
use super::kafka::Kafka;
use super::outlet::Outlet;
use super::owned::{Kind, Record};
use super::rate::{Rates, TargetName};
use super::spool::Spool;
use crate::config::{Config, ExposureMode};
use crate::counters::{ShadowCounters, ShadowLoss, Writer};
use crate::limits::{
    FLUSH_PATIENCE, SHADOW_IO_BYTES, SHADOW_RING_ENTRIES, SHADOW_TICK, SHADOW_TURN_RECORDS,
};
use crate::log;
use crate::net::clock;

/// What the thread is started with.
pub(super) struct Seat {
    pub(super) config: Arc<Config>,
    pub(super) rings: Vec<CoreEnd>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) folder: PathBuf,
    pub(super) counters: Writer<ShadowCounters>,
}

/// Runs until it is stopped, or tells why it could not start.
pub(super) fn run(seat: Seat, report: &Sender<Result<(), ShadowError>>) {
    // The thread is where it should be already, so that cores.pin and containers are handled in one place.
    let executor = LocalExecutorBuilder::new(Placement::Unbound)
        .io_memory(SHADOW_IO_BYTES)
        .ring_depth(SHADOW_RING_ENTRIES)
        .make();
    match executor {
        Ok(executor) => executor.run(async {
            match ShadowCore::start(seat).await {
                Ok(core) => {
                    let _unheard = report.send(Ok(()));
                    core.run().await;
                }
                Err(error) => drop(report.send(Err(error))),
            }
        }),
        Err(error) => drop(report.send(Err(ShadowError::Executor(error.into())))),
    }
}

struct ShadowCore {
    config: Arc<Config>,
    rings: Vec<CoreEnd>,
    stop: Arc<AtomicBool>,
    outlet: Outlet,
    envelopes: Envelopes,
    rates: Rates,
    remembered: Remembered,
    value: Vec<u8>,
}

impl ShadowCore {
    async fn start(seat: Seat) -> Result<Self, ShadowError> {
        let Seat { config, rings, stop, folder, counters } = seat;
        let now = clock::now();
        let settings = &config.shadow;
        let (spool, recovered) = Spool::open(&folder, settings.spool_bytes_max, now).await?;
        if recovered.records.sum() > 0 || recovered.torn_bytes > 0 {
            let fields: [log::Field<'_>; 2] =
                [("records", &recovered.records.sum()), ("torn_bytes", &recovered.torn_bytes)];
            log::info("spool_recovered", &fields);
        }
        let kafka = match &config.kafka {
            kafka if kafka.brokers.is_empty() => None,
            kafka => Some(Kafka::new(kafka, settings.record_bytes_max())?),
        };
        Ok(Self {
            outlet: Outlet::new(spool, kafka, counters, now),
            envelopes: Envelopes { router: config.feed.name.clone(), id_prefix: id_prefix() },
            rates: Rates::default(),
            remembered: Remembered::default(),
            value: Vec::new(),
            config,
            rings,
            stop,
        })
    }

    async fn run(mut self) {
        loop {
            let is_stopped = self.stop.load(Ordering::Acquire);
            let moved = self.turn().await;
            if is_stopped && moved == 0 && !self.outlet.is_choked() {
                break;
            }
            if moved < SHADOW_TURN_RECORDS {
                glommio::timer::sleep(SHADOW_TICK).await;
            }
        }
        let deadline = clock::now() + FLUSH_PATIENCE;
        while self.outlet.is_underway() && clock::now() < deadline {
            self.outlet.tend(clock::now()).await;
            glommio::timer::sleep(SHADOW_TICK).await;
        }
        self.outlet.retreat();
        let deadline = clock::now() + SHADOW_TICK * 20;
        while self.outlet.is_underway() && clock::now() < deadline {
            self.outlet.tend(clock::now()).await;
            glommio::timer::sleep(SHADOW_TICK).await;
        }
        self.outlet.tend(clock::now()).await;
        self.outlet.close(clock::now()).await;
    }

    /// Empties the rings once; returns how many copies there were.
    async fn turn(&mut self) -> usize {
        let clocks = Clocks { now: clock::now(), unix: unix_time() };
        let mut rings = std::mem::take(&mut self.rings);
        let mut moved = 0;
        for ring in &mut rings {
            for _ in 0..SHADOW_TURN_RECORDS {
                if self.outlet.is_choked() {
                    break;
                }
                let Some(copied) = ring.take() else { break };
                self.tell(&copied, clocks);
                ring.give_back(copied);
                moved += 1;
                if self.outlet.is_due() {
                    self.outlet.tend(clocks.now).await;
                }
            }
        }
        self.rings = rings;
        self.outlet.tend(clock::now()).await;
        moved
    }

    /// Makes the records of a copy.
    fn tell(&mut self, copied: &Copied, clocks: Clocks) {
        let Some(told) = Told::of(copied) else {
            debug_assert!(false, "a worker hands over no copy without its subject");
            return;
        };
        if copied.is_exposed {
            self.tell_exposure(&told, clocks);
        }
        let token = told.objective.token.as_str();
        for (_, target) in targets_of(told.objective, copied.targets) {
            let sequence = self.outlet.take_sequence();
            self.value.clear();
            self.envelopes.write_shadow(&told, target, sequence, clocks, &mut self.value);
            let counters = self.outlet.counters();
            if self.value.len() > self.config.shadow.record_bytes_max() {
                counters.shadow_dropped.add(ShadowLoss::TooLarge, 1);
                continue;
            }
            if let Some(cap) = target.bytes_per_second_max.as_ref() {
                let arm = target
                    .arm
                    .as_ref()
                    .map_or("", |arm| told.objective.arm(arm.to_native()).name.as_str());
                let name = TargetName(format!("{token}/{}/{arm}", told.candidate(target)));
                let bytes = self.value.len() as u64;
                if !self.rates.allow(name, bytes, cap.to_native(), clocks.now) {
                    counters.shadow_dropped.add(ShadowLoss::Rate, 1);
                    continue;
                }
            }
            let unit = told.unit(target);
            self.outlet.accept(&Record {
                sequence,
                kind: Kind::Shadow,
                time_unix_ms: clocks.unix_us(told.subject.started) / 1_000,
                topic: target
                    .topic
                    .as_ref()
                    .map_or(self.config.shadow.topic.as_str(), |topic| topic.as_str()),
                key: unit.as_ref().map(|unit| unit.value.as_bytes()),
                value: &self.value,
            });
        }
    }

    fn tell_exposure(&mut self, told: &Told<'_>, clocks: Clocks) {
        let counters = self.outlet.counters();
        let Some(unit) = told.exposed_unit() else { return };
        let time_unix_ms = clocks.unix_us(told.subject.started) / 1_000;
        if self.config.shadow.exposures == ExposureMode::Hourly
            && !self.remembered.is_new(&told.sameness(&unit), time_unix_ms)
        {
            counters.exposures_repeated.add(1);
            return;
        }
        let sequence = self.outlet.take_sequence();
        self.value.clear();
        self.envelopes.write_exposure(told, unit, sequence, clocks, &mut self.value);
        self.outlet.accept(&Record {
            sequence,
            kind: Kind::Exposure,
            time_unix_ms,
            topic: &self.config.shadow.exposure_topic,
            key: Some(unit.value.as_bytes()),
            value: &self.value,
        });
    }
}

fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Differs by start and host; from the hasher's own random keys.
fn id_prefix() -> u64 {
    use std::hash::BuildHasher;
    std::collections::hash_map::RandomState::new().hash_one(1)
}
