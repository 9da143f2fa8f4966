//! From a request's copy to Kafka or the spool, on a thread of its own: nothing here can hold a request up.
//!
//! In reading order: [`draw`] decides what is copied, [`copies`] and [`copied`] are the worker's side and the
//! ring, [`shadow_core`] is the other side's loop; [`envelope`] makes records, [`outlet`] decides where they go,
//! [`spool`] keeps them on disk. `docs/shadow.md` tells the form of the records.

pub mod copied;
pub mod copies;
pub mod draw;
mod envelope;
mod exposures;
pub mod kafka;
mod members;
mod outlet;
pub mod owned;
mod rate;
mod shadow_core;
pub mod spool;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;

use self::copies::{Copies, RingEnd};
use crate::config::Config;
use crate::cores::CoreId;
use crate::counters::{Counters, ShadowCounters, Writer};
use crate::limits::SHADOW_RING_RECORDS;
use crate::log::{self, Chain};
use crate::net::affinity;

/// Folder of the spool's segments, inside the state folder.
pub const SPOOL_FOLDER: &str = "spool";

/// Why there is no shadow core. The router serves on without: what would be copied is counted as not copied.
#[derive(Debug, thiserror::Error)]
pub enum ShadowError {
    /// The thread could not be started, or did not stay on its core.
    #[error("cannot start the thread")]
    Thread(#[source] io::Error),
    /// `glommio` wants Linux 5.8 with io_uring and 512 KiB of locked memory (`ulimit -l`).
    #[error("cannot set up the io_uring of the shadow core")]
    Executor(#[source] io::Error),
    /// The spool cannot be read or written.
    #[error(transparent)]
    Spool(#[from] spool::SpoolError),
    /// The settings of Kafka are not taken.
    #[error(transparent)]
    Kafka(#[from] kafka::KafkaSetupError),
}

/// The running shadow core.
pub struct Shadow {
    ends: Vec<Option<RingEnd>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Shadow {
    /// No shadow core: workers copy nothing.
    #[must_use]
    pub fn off(workers: usize) -> Self {
        let ends = (0..workers).map(|_| None).collect();
        Self { ends, stop: Arc::default(), thread: None }
    }

    /// Starts the shadow core, which recovers what a predecessor left in the spool. Where it cannot start,
    /// that is logged and the router goes on without it: traffic matters more than its copies.
    #[must_use]
    pub fn start(
        config: &Arc<Config>,
        housekeeping: Option<CoreId>,
        workers: usize,
        counters: &Counters,
    ) -> Self {
        let Some(counters) = counters.shadow().filter(|_| config.shadow.enabled) else {
            return Self::off(workers);
        };
        match Self::try_start(config, housekeeping, workers, counters) {
            Ok(shadow) => shadow,
            Err(error) => {
                log::warn("no_shadow_core", &[("reason", &Chain(&error))]);
                Self::off(workers)
            }
        }
    }

    fn try_start(
        config: &Arc<Config>,
        housekeeping: Option<CoreId>,
        workers: usize,
        counters: Writer<ShadowCounters>,
    ) -> Result<Self, ShadowError> {
        let (mut ends, mut rings) = (Vec::new(), Vec::new());
        for _ in 0..workers {
            let (worker, core) = copies::ring(SHADOW_RING_RECORDS);
            ends.push(Some(worker));
            rings.push(core);
        }
        let stop = Arc::<AtomicBool>::default();
        let seat = shadow_core::Seat {
            config: Arc::clone(config),
            rings,
            stop: Arc::clone(&stop),
            folder: spool_folder(config),
            counters,
        };
        let (report, started) = mpsc::channel();
        let thread = std::thread::Builder::new().name("shadow".into());
        let run = move || {
            let pinned = housekeeping.map_or(Ok(()), affinity::pin_current_thread);
            match pinned {
                Ok(()) => shadow_core::run(seat, &report),
                Err(error) => drop(report.send(Err(ShadowError::Thread(error)))),
            }
        };
        let thread = thread.spawn(run).map_err(ShadowError::Thread)?;
        let died = || ShadowError::Thread(io::Error::other("it ended at once"));
        started.recv().map_err(|_| died())??;
        Ok(Self { ends, stop, thread: Some(thread) })
    }

    /// What a worker copies into; to be asked for once per worker.
    pub fn end(&mut self, worker: usize) -> Option<RingEnd> {
        self.ends.get_mut(worker).and_then(Option::take)
    }

    /// Writes out what the workers handed over, and ends. Takes at most `FLUSH_PATIENCE` and a disk write.
    pub fn flush(mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            log::warn("shadow_core_panicked", &[]);
        }
    }
}

/// Where a router with these settings keeps its spool.
#[must_use]
pub fn spool_folder(config: &Config) -> PathBuf {
    config.state_dir.join(SPOOL_FOLDER)
}

/// A worker's side of it, with what the settings allow.
#[must_use]
pub fn copies(end: Option<RingEnd>, config: &Config) -> Copies {
    Copies::new(end, &config.shadow)
}
