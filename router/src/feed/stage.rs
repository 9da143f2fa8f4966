//! From a pushed file to an Activation: what is prepared, what is refused, what becomes active.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use switchboard_shared::limits::SNAPSHOT_BYTES_MAX;
use switchboard_shared::push;
use switchboard_shared::snapshot::{
    Expectations, Header, Snapshot, SnapshotError, SnapshotId, TrustedKeys,
};

use super::resolve::resolve;
use crate::activation::{Activation, Publisher, Stragglers};
use crate::active::{Active, HostNames, PrepareError, host_names};
use crate::counters::{FeedCounters, Writer};
use crate::limits::{RESOLVE_PATIENCE, START_AGAIN, SWAP_PATIENCE};
use crate::log::{self, Chain};
use crate::net::clock;
use crate::state::{State, StateError};
use crate::status::{LastRefusal, Running, Source, Status, now_unix_ms};

/// All that decides about Snapshots, and what it decides about. Owned by the feed's thread.
#[derive(Debug)]
pub struct Stage {
    trusted: TrustedKeys,
    group: String,
    state: State,
    publisher: Publisher,
    pub(super) counters: Writer<FeedCounters>,
    status: Arc<Status>,
    /// The newest Snapshot ever activated, also before a restart. It may not be the running one: its
    /// file may have been lost.
    newest: Option<SnapshotId>,
    resolver: Resolver,
    /// When to try again to serve what is on disk: a host name in it had no address.
    start_again: Option<Instant>,
}

/// Asks for the addresses of host names, for at most this long.
type Resolver = fn(BTreeSet<(String, u16)>, Duration) -> HostNames;

/// A Snapshot that can be activated at once.
#[derive(Debug)]
pub(super) enum Prepared {
    /// It is active already.
    Running(SnapshotId),
    /// It is verified, its tables are made, it is on disk.
    Ready(Box<Active>),
}

impl Prepared {
    pub(super) fn id(&self) -> SnapshotId {
        match self {
            Self::Running(id) => *id,
            Self::Ready(active) => active.snapshot.id(),
        }
    }
}

/// Why a controller was not obeyed. What ran still runs, but for `Stragglers`.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("the snapshot is refused")]
    Snapshot(#[from] SnapshotError),
    #[error("the snapshot cannot be served here")]
    Prepare(#[from] PrepareError),
    #[error("the snapshot cannot be kept over a restart, after which an older one would serve")]
    State(#[from] StateError),
    #[error("this is not what was prepared last on this connection")]
    NotPrepared,
    #[error("the snapshot is active, but not on every core yet")]
    Stragglers(#[from] Stragglers),
}

impl Refusal {
    /// A stable label.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Snapshot(error) => error.reason(),
            Self::Prepare(error) => error.reason(),
            Self::State(_) => "state_not_saved",
            Self::NotPrepared => "not_prepared",
            Self::Stragglers(_) => "core_not_swapped",
        }
    }
}

impl Stage {
    /// Nothing is active yet. Snapshots are accepted from `trusted` signers for `group`, kept in
    /// `state`, published to the workers, and told about in `status`.
    #[must_use]
    pub fn new(
        trusted: TrustedKeys,
        group: String,
        state: State,
        publisher: Publisher,
        counters: Writer<FeedCounters>,
        status: Arc<Status>,
    ) -> Self {
        Self {
            trusted,
            group,
            state,
            publisher,
            counters,
            status,
            newest: None,
            resolver: resolve,
            start_again: None,
        }
    }

    /// Serves from the last good Snapshot, if there is one. Without it the router starts not ready.
    ///
    /// At boot the network may come after us: where a host name has no address yet, this is tried
    /// again every `START_AGAIN`, so that the control plane is not needed for it.
    pub fn start(&mut self) {
        self.start_again = None;
        let last_good = self.state.load(&self.trusted, &self.group);
        self.newest = last_good.newest;
        let Some(snapshot) = last_good.snapshot else {
            let newest = self.newest.map_or(0, |id| id.version.get());
            log::info("no snapshot to start from", &[("newest_activated", &newest)]);
            return;
        };
        let id = snapshot.id();
        match self.derive(snapshot) {
            Ok(active) => {
                self.publisher.publish(active);
                self.status.set_running(id, Source::Disk);
                self.state.keep_only(&[id]);
                log::info("snapshot from disk is active", &[("version", &id.version)]);
            }
            Err(error) => {
                let fields: [log::Field<'_>; 2] =
                    [("version", &id.version), ("error", &Chain(&error))];
                log::warn("snapshot from disk cannot be served yet", &fields);
                self.start_again = Some(clock::now() + START_AGAIN);
            }
        }
    }

    /// What is active.
    pub(super) fn running(&self) -> Option<Running> {
        self.status.running()
    }

    fn is_running(&self, id: SnapshotId) -> bool {
        self.running().is_some_and(|running| running.id == id)
    }

    /// Verifies a pushed file, makes its tables and saves it. What runs is not touched.
    pub(super) fn prepare(&self, file: &[u8]) -> Result<Prepared, Refusal> {
        let begun = clock::now();
        let expected = Expectations {
            group: &self.group,
            newest: self.newest,
            now_unix_ms: Some(now_unix_ms()),
            bytes_max: SNAPSHOT_BYTES_MAX,
        };
        let snapshot = Snapshot::open(file, &self.trusted, expected)?;
        let id = snapshot.id();
        if self.is_running(id) {
            return Ok(Prepared::Running(id));
        }
        let active = self.derive(snapshot)?;
        self.state.save(&active.snapshot)?;
        self.counters.prepare.record(clock::now().saturating_duration_since(begun));
        Ok(Prepared::Ready(Box::new(active)))
    }

    /// Makes what was prepared the active one on every core; `prepared` is taken if it is that.
    ///
    /// It is on disk first: else a crash right after could bring an older version back. Asking for
    /// the one that runs is fine: it is answered again, once every core has it.
    pub(super) fn activate(
        &mut self,
        prepared: &mut Option<Prepared>,
        id: SnapshotId,
    ) -> Result<push::Active, Refusal> {
        let begun = clock::now();
        if self.is_running(id) {
            // A control plane has confirmed it, wherever it came from.
            self.status.set_running(id, Source::Push);
        } else {
            match prepared.take_if(|prepared| prepared.id() == id) {
                Some(Prepared::Ready(active)) => self.publish(*active)?,
                Some(Prepared::Running(_)) | None => return Err(Refusal::NotPrepared),
            }
        }
        let swaps = self.publisher.wait(SWAP_PATIENCE)?;
        self.counters.swap.record(clock::now().saturating_duration_since(begun));
        Ok(push::Active { running: id, swaps: swaps.into_iter().map(Into::into).collect() })
    }

    fn publish(&mut self, active: Active) -> Result<(), Refusal> {
        let id = active.snapshot.id();
        self.check_newest(id)?;
        self.state.commit(id)?;
        self.newest = Some(id);
        self.publisher.publish(active);
        self.status.set_running(id, Source::Push);
        self.counters.activations.add(1);
        log::info("snapshot is active", &[("version", &id.version), ("digest", &id.digest)]);
        Ok(())
    }

    /// Another controller may have activated a newer one since this one was prepared.
    fn check_newest(&self, offered: SnapshotId) -> Result<(), SnapshotError> {
        match self.newest {
            Some(newest) if offered.version < newest.version => {
                let (offered, running) = (offered.version, newest.version);
                Err(SnapshotError::NotNewer { offered, running })
            }
            Some(newest) if offered.version == newest.version && offered != newest => {
                Err(SnapshotError::SameVersion { version: offered.version })
            }
            Some(_) | None => Ok(()),
        }
    }

    fn derive(&self, snapshot: Snapshot) -> Result<Active, PrepareError> {
        let activation = self.publisher.activation();
        let names = (self.resolver)(host_names(snapshot.payload()), RESOLVE_PATIENCE);
        let before = activation.published();
        Active::prepare(snapshot, &names, activation.workers(), before.as_ref())
    }

    /// Notes a refusal where people and machines look for it. `file` is what was to be prepared, `id`
    /// what was to be activated.
    pub(super) fn note(
        &self,
        refusal: &Refusal,
        file: Option<&[u8]>,
        id: Option<SnapshotId>,
    ) -> LastRefusal {
        let noted = LastRefusal {
            version: file.and_then(Header::claimed_version).or(id.map(|id| id.version.get())),
            reason: refusal.reason(),
            detail: Chain(refusal).to_string(),
            at_unix_ms: now_unix_ms(),
        };
        self.counters.refusals.add(noted.reason, 1);
        let version = noted.version.map_or_else(|| "unknown".into(), |version| version.to_string());
        let fields: [log::Field<'_>; 3] =
            [("version", &version), ("reason", &noted.reason), ("detail", &noted.detail)];
        log::warn("snapshot refused", &fields);
        self.status.set_last_refusal(noted.clone());
        noted
    }

    /// Once per heartbeat: frees what no request uses any more, and tries again what failed at start.
    pub(super) fn beat(&mut self, now: Instant) {
        self.publisher.free_unused();
        if self.start_again.is_some_and(|due| now >= due) {
            self.start_again = None;
            if self.running().is_none() {
                self.start();
            }
        }
    }

    /// The newest Snapshot ever activated.
    pub(super) fn newest(&self) -> Option<SnapshotId> {
        self.newest
    }

    /// The group whose Snapshots are accepted.
    pub(super) fn group(&self) -> &str {
        &self.group
    }

    /// How the router is.
    pub(super) fn status(&self) -> &Arc<Status> {
        &self.status
    }

    /// What the workers see.
    pub(super) fn activation(&self) -> &Arc<Activation> {
        self.publisher.activation()
    }

    /// Frees what no request uses any more, in memory and on disk. `prepared`: what connections hold
    /// ready.
    pub(super) fn tidy(&mut self, prepared: impl Iterator<Item = SnapshotId>) {
        self.publisher.free_unused();
        let kept: Vec<SnapshotId> = self.newest.into_iter().chain(prepared).collect();
        self.state.keep_only(&kept);
    }
}

#[cfg(test)]
mod tests;
