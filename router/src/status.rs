//! How the router is, as its readiness, its metrics and its heartbeats tell.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwapOption;
use switchboard_shared::snapshot::SnapshotId;

use crate::net::clock;

/// Shared by the threads off the request path. The feed writes what it does, main that it stops.
#[derive(Debug)]
pub struct Status {
    started: Instant,
    running: ArcSwapOption<Running>,
    last_refusal: ArcSwapOption<LastRefusal>,
    is_draining: AtomicBool,
}

/// The Snapshot that is active, and how it came.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Running {
    /// Which one.
    pub id: SnapshotId,
    /// Where it came from.
    pub source: Source,
    /// When it became active, by the wall clock.
    pub since_unix_ms: u64,
}

/// Where a Snapshot came from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Source {
    /// From the state folder, at start; no control plane has confirmed it since.
    Disk,
    /// From a control plane.
    Push,
}

impl Source {
    /// A stable label.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Push => "push",
        }
    }
}

/// Why the last Snapshot that was refused was.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LastRefusal {
    /// What it claimed to be; unverified.
    pub version: Option<u64>,
    /// A stable label.
    pub reason: &'static str,
    /// For a human.
    pub detail: String,
    /// When, by the wall clock.
    pub at_unix_ms: u64,
}

/// Why the router is not ready for traffic.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum NotReady {
    /// No Snapshot is active.
    #[error("no snapshot yet")]
    NoSnapshot,
    /// It stops.
    #[error("draining")]
    Draining,
}

impl Status {
    /// Nothing runs, nothing was refused.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            started: clock::now(),
            running: ArcSwapOption::empty(),
            last_refusal: ArcSwapOption::empty(),
            is_draining: AtomicBool::new(false),
        })
    }

    /// Whether traffic should come.
    ///
    /// # Errors
    /// See [`NotReady`].
    pub fn ready(&self) -> Result<(), NotReady> {
        if self.is_draining() {
            return Err(NotReady::Draining);
        }
        if self.running.load().is_none() { Err(NotReady::NoSnapshot) } else { Ok(()) }
    }

    /// From now on the router is not ready.
    pub fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    /// Whether it stops.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    /// What is active.
    #[must_use]
    pub fn running(&self) -> Option<Running> {
        self.running.load().as_deref().copied()
    }

    /// A Snapshot became active.
    pub fn set_running(&self, id: SnapshotId, source: Source) {
        let running = Running { id, source, since_unix_ms: now_unix_ms() };
        self.running.store(Some(Arc::new(running)));
    }

    /// The last refusal since the process began.
    #[must_use]
    pub fn last_refusal(&self) -> Option<Arc<LastRefusal>> {
        self.last_refusal.load_full()
    }

    /// A Snapshot was refused.
    pub fn set_last_refusal(&self, refusal: LastRefusal) {
        self.last_refusal.store(Some(Arc::new(refusal)));
    }

    /// Since the process began.
    #[must_use]
    pub fn uptime(&self) -> Duration {
        clock::now().saturating_duration_since(self.started)
    }
}

/// The wall clock, in milliseconds since the unix epoch; 0 before it. Only for what the signer's clock
/// is compared with, and for people: timeouts take the monotonic clock.
#[must_use]
pub fn now_unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use switchboard_shared::snapshot::Digest;

    use super::*;

    #[test]
    fn it_is_ready_with_a_snapshot_until_it_drains() {
        let status = Status::new();
        assert_eq!(status.ready(), Err(NotReady::NoSnapshot));
        let id = SnapshotId { version: crate::samples::version(3), digest: Digest([1; 32]) };
        status.set_running(id, Source::Disk);
        assert_eq!(status.ready(), Ok(()));
        assert_eq!(status.running().map(|running| running.id), Some(id));
        status.drain();
        assert_eq!(status.ready(), Err(NotReady::Draining));
    }
}
