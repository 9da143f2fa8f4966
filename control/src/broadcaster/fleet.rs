//! Which router runs what, and what each is told next. Pure: no sockets, no clock.
//!
//! Two things drive it. A *round* takes one Snapshot to all routers that are there: each prepares,
//! and only when all have answered are they told to activate. Between rounds, a router that runs
//! less than the *target* catches up by itself: prepare, then activate.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use switchboard_shared::snapshot::{FORMAT, SnapshotId};

use super::status::{Refusal, RouterStatus, RunningVersion, Standing, router_health};

/// A signed Snapshot that routers are to run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Target {
    /// Its version and content.
    pub id: SnapshotId,
    /// The whole file.
    pub file: Arc<[u8]>,
}

/// What a router is told. It has one thing to do at a time.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Order {
    /// Hold this ready.
    Prepare(Target),
    /// Evaluate what was prepared.
    Activate(SnapshotId),
}

/// What a router said to an order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Reply {
    /// It holds this ready.
    Prepared(SnapshotId),
    /// Every core evaluates this; the slowest swapped after so many microseconds.
    Active { running: SnapshotId, slowest_swap_us: u32 },
    /// It does not do as it was told.
    Refused { step: &'static str, reason: String, detail: String },
}

/// Who a router is, as its first frame says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Identity {
    pub(super) router: String,
    pub(super) group: String,
    pub(super) build: String,
    pub(super) formats: Vec<u16>,
    pub(super) running: Option<SnapshotId>,
}

/// One life of a router's process: a socket is bound anew at each start.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Boot {
    pub(super) process: Option<i32>,
    pub(super) inode: u64,
    pub(super) bound_ns: i64,
}

/// A heartbeat.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Heartbeat {
    pub(super) running: Option<SnapshotId>,
    pub(super) uptime_ms: u64,
    pub(super) health: switchboard_shared::push::Health,
    pub(super) counters: BTreeMap<String, u64>,
}

/// How one router ended a phase of a round.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// As it should.
    Done {
        /// Of an activation: the slowest core's swap.
        slowest_swap_us: Option<u32>,
    },
    /// It refused.
    Refused {
        /// A stable label.
        reason: String,
        /// For people.
        detail: String,
    },
    /// It went away, hung or spoke nonsense.
    Lost {
        /// For people.
        why: String,
    },
}

/// One router's part in a phase.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Participant {
    /// Its own name.
    pub router: String,
    /// How it ended the phase.
    pub outcome: Outcome,
}

/// What the caller has to do.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Effect {
    /// Send this to the router at this socket.
    Tell(PathBuf, Order),
    /// The phase that was asked for is over.
    PhaseOver(Vec<Participant>),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Purpose {
    Round,
    CatchUp,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    Preparing,
    /// Waits for the caller's decision.
    Prepared,
    Activating,
}

struct Round {
    target: Target,
    phase: Phase,
    /// Who is yet to answer in this phase.
    open: BTreeSet<PathBuf>,
    answers: BTreeMap<PathBuf, Participant>,
}

struct Router {
    /// As it said last.
    identity: Option<Identity>,
    connected: bool,
    boot: Boot,
    /// Its heartbeats say so too.
    running: Option<SnapshotId>,
    /// What it was told last and has not answered.
    told: Option<(Order, Purpose)>,
    refusal: Option<(SnapshotId, Boot, Refusal)>,
    heartbeat: Option<Heartbeat>,
    heard_ms: Option<u64>,
    error: Option<String>,
    slowest_swap_us: Option<u32>,
}

/// All routers that were seen.
pub(super) struct Fleet {
    group: String,
    routers: BTreeMap<PathBuf, Router>,
    target: Option<Target>,
    round: Option<Round>,
}

impl Fleet {
    pub(super) fn new(group: String) -> Self {
        Self { group, routers: BTreeMap::new(), target: None, round: None }
    }

    /// A socket is there. Returns whether it was not before.
    pub(super) fn found(&mut self, socket: &Path) -> bool {
        if self.routers.contains_key(socket) {
            return false;
        }
        let router = Router {
            identity: None,
            connected: false,
            boot: Boot::default(),
            running: None,
            told: None,
            refusal: None,
            heartbeat: None,
            heard_ms: None,
            error: None,
            slowest_swap_us: None,
        };
        self.routers.insert(socket.to_owned(), router);
        true
    }

    /// The socket is no longer there, and neither is its router.
    pub(super) fn vanished(&mut self, socket: &Path) -> Vec<Effect> {
        let effects = self.lost(socket, "its socket is gone");
        self.routers.remove(socket);
        effects
    }

    /// The sockets that are known.
    pub(super) fn sockets(&self) -> impl Iterator<Item = &PathBuf> {
        self.routers.keys()
    }

    /// A router said who it is.
    pub(super) fn connected(
        &mut self,
        socket: &Path,
        identity: Identity,
        boot: Boot,
        now_ms: u64,
    ) -> Vec<Effect> {
        let Some(router) = self.routers.get_mut(socket) else { return Vec::new() };
        router.running = identity.running;
        router.identity = Some(identity);
        router.connected = true;
        router.boot = boot;
        router.told = None;
        router.heard_ms = Some(now_ms);
        self.advance(socket)
    }

    /// A router went away, hung or spoke nonsense.
    pub(super) fn lost(&mut self, socket: &Path, why: &str) -> Vec<Effect> {
        let Some(router) = self.routers.get_mut(socket) else { return Vec::new() };
        let name = router.name(socket);
        router.connected = false;
        router.heartbeat = None;
        router.told = None;
        router.error = Some(why.to_owned());
        let outcome = Outcome::Lost { why: why.to_owned() };
        self.close(socket, Participant { router: name, outcome })
    }

    /// A router is alive.
    pub(super) fn heard(
        &mut self,
        socket: &Path,
        heartbeat: Heartbeat,
        now_ms: u64,
    ) -> Vec<Effect> {
        let Some(router) = self.routers.get_mut(socket) else { return Vec::new() };
        router.heard_ms = Some(now_ms);
        router.running = heartbeat.running;
        router.heartbeat = Some(heartbeat);
        self.advance(socket)
    }

    /// A router answered its order.
    pub(super) fn replied(&mut self, socket: &Path, reply: Reply, now_ms: u64) -> Vec<Effect> {
        let Some(router) = self.routers.get_mut(socket) else { return Vec::new() };
        router.heard_ms = Some(now_ms);
        let name = router.name(socket);
        let Some((order, purpose)) = router.told.take() else { return Vec::new() };
        let id = order.id();
        let outcome = match reply {
            Reply::Prepared(_) => Outcome::Done { slowest_swap_us: None },
            Reply::Active { running, slowest_swap_us } => {
                router.running = Some(running);
                router.refusal = None;
                router.error = None;
                router.slowest_swap_us = Some(slowest_swap_us);
                Outcome::Done { slowest_swap_us: Some(slowest_swap_us) }
            }
            Reply::Refused { step, reason, detail } => {
                let refusal = Refusal {
                    version: id.version.get(),
                    digest: id.digest.to_string(),
                    step: step.to_owned(),
                    reason: reason.clone(),
                    detail: detail.clone(),
                    at_ms: now_ms,
                };
                router.refusal = Some((id, router.boot, refusal));
                Outcome::Refused { reason, detail }
            }
        };
        match purpose {
            Purpose::Round => self.close(socket, Participant { router: name, outcome }),
            Purpose::CatchUp => {
                let prepared =
                    matches!((&order, &outcome), (Order::Prepare(_), Outcome::Done { .. }));
                if prepared && self.target.as_ref().is_some_and(|target| target.id == id) {
                    return self.tell(socket, Order::Activate(id), Purpose::CatchUp);
                }
                self.advance(socket)
            }
        }
    }

    /// Begins a round with every router that is there. Ends with `PhaseOver`.
    pub(super) fn prepare(&mut self, target: Target) -> Vec<Effect> {
        let open: BTreeSet<PathBuf> = self
            .routers
            .iter()
            .filter(|(_, router)| router.takes_orders(&self.group))
            .map(|(socket, _)| socket.clone())
            .collect();
        let sockets: Vec<_> = open.iter().cloned().collect();
        let phase = Phase::Preparing;
        self.round = Some(Round { target, phase, open, answers: BTreeMap::new() });
        self.begin_phase(&sockets)
    }

    /// Tells those that have prepared to activate; the Snapshot is the target from now on.
    /// Ends with `PhaseOver`.
    pub(super) fn activate(&mut self) -> Vec<Effect> {
        let Some(round) = &mut self.round else { return vec![Effect::PhaseOver(Vec::new())] };
        debug_assert_eq!(round.phase, Phase::Prepared, "activated after everyone prepared");
        round.phase = Phase::Activating;
        let prepared = std::mem::take(&mut round.answers);
        round.open = prepared
            .into_iter()
            .filter(|(_, participant)| matches!(participant.outcome, Outcome::Done { .. }))
            .map(|(socket, _)| socket)
            .collect();
        self.target = Some(round.target.clone());
        let sockets: Vec<_> = round.open.iter().cloned().collect();
        self.begin_phase(&sockets)
    }

    /// Gives a prepared round up; routers keep what they run.
    pub(super) fn abandon(&mut self) -> Vec<Effect> {
        self.round = None;
        self.advance_all()
    }

    /// Says what routers are to run without a round: each catches up.
    pub(super) fn retarget(&mut self, target: Target) -> Vec<Effect> {
        self.target = Some(target);
        self.advance_all()
    }

    /// How every router is.
    pub(super) fn status(&self) -> Vec<RouterStatus> {
        self.routers.iter().map(|(socket, router)| self.router_status(socket, router)).collect()
    }

    fn begin_phase(&mut self, sockets: &[PathBuf]) -> Vec<Effect> {
        let mut effects: Vec<Effect> =
            sockets.iter().flat_map(|socket| self.advance(socket)).collect();
        if sockets.is_empty() {
            effects.extend(self.end_phase_if_over());
        }
        effects
    }

    fn advance_all(&mut self) -> Vec<Effect> {
        let sockets: Vec<_> = self.routers.keys().cloned().collect();
        sockets.iter().flat_map(|socket| self.advance(socket)).collect()
    }

    /// Gives an idle router its next order, if there is one.
    fn advance(&mut self, socket: &Path) -> Vec<Effect> {
        let Some(router) = self.routers.get(socket) else { return Vec::new() };
        if router.told.is_some() || !router.takes_orders(&self.group) {
            return Vec::new();
        }
        if let Some(round) = &self.round
            && round.open.contains(socket)
        {
            let order = match round.phase {
                Phase::Preparing => Order::Prepare(round.target.clone()),
                Phase::Activating => Order::Activate(round.target.id),
                Phase::Prepared => return Vec::new(),
            };
            return self.tell(socket, order, Purpose::Round);
        }
        // Who has prepared this round's Snapshot must not prepare another one before it decides.
        if self.round.as_ref().is_some_and(|round| round.answers.contains_key(socket)) {
            return Vec::new();
        }
        match &self.target {
            Some(target) if router.should_catch_up(target.id) => {
                let order = Order::Prepare(target.clone());
                self.tell(socket, order, Purpose::CatchUp)
            }
            Some(_) | None => Vec::new(),
        }
    }

    fn tell(&mut self, socket: &Path, order: Order, purpose: Purpose) -> Vec<Effect> {
        let Some(router) = self.routers.get_mut(socket) else { return Vec::new() };
        router.told = Some((order.clone(), purpose));
        vec![Effect::Tell(socket.to_owned(), order)]
    }

    /// One router's part in the phase is over.
    fn close(&mut self, socket: &Path, participant: Participant) -> Vec<Effect> {
        let Some(round) = &mut self.round else { return self.advance(socket) };
        if round.open.remove(socket) {
            round.answers.insert(socket.to_owned(), participant);
            return self.end_phase_if_over();
        }
        // Who is lost after it has prepared has nothing to activate, even if it comes back.
        if let Some(answer) = round.answers.get_mut(socket)
            && matches!(participant.outcome, Outcome::Lost { .. })
        {
            *answer = participant;
        }
        self.advance(socket)
    }

    fn end_phase_if_over(&mut self) -> Vec<Effect> {
        let Some(round) = &mut self.round else { return Vec::new() };
        if !round.open.is_empty() {
            return Vec::new();
        }
        let participants = round.answers.values().cloned().collect();
        let mut effects = vec![Effect::PhaseOver(participants)];
        match round.phase {
            Phase::Preparing => round.phase = Phase::Prepared,
            Phase::Prepared => {}
            Phase::Activating => {
                self.round = None;
                effects.extend(self.advance_all());
            }
        }
        effects
    }

    fn router_status(&self, socket: &Path, router: &Router) -> RouterStatus {
        let identity = router.identity.as_ref();
        let heartbeat = router.heartbeat.as_ref();
        RouterStatus {
            socket: socket.display().to_string(),
            router: identity.map(|identity| identity.router.clone()),
            group: identity.map(|identity| identity.group.clone()),
            build: identity.map(|identity| identity.build.clone()),
            standing: self.standing(router),
            running: router.running.map(RunningVersion::from),
            refusal: router.refusal.as_ref().map(|(_, _, refusal)| refusal.clone()),
            error: router.error.clone(),
            heard_ms: router.heard_ms,
            uptime_ms: heartbeat.map(|heartbeat| heartbeat.uptime_ms),
            health: heartbeat.map(|heartbeat| router_health(heartbeat.health)),
            slowest_swap_us: router.slowest_swap_us,
            counters: heartbeat.map(|heartbeat| heartbeat.counters.clone()).unwrap_or_default(),
        }
    }

    fn standing(&self, router: &Router) -> Standing {
        let Some(identity) = router.identity.as_ref().filter(|_| router.connected) else {
            return Standing::Away;
        };
        if identity.group != self.group {
            return Standing::ForeignGroup;
        }
        if !identity.formats.contains(&FORMAT) {
            return Standing::OtherFormat;
        }
        let Some(target) = &self.target else { return Standing::NoTarget };
        match router.running {
            Some(running) if running == target.id => Standing::Current,
            Some(running) if running.version == target.id.version => Standing::Differs,
            Some(running) if running.version > target.id.version => Standing::Ahead,
            Some(_) | None if router.has_refused(target.id) => Standing::Refused,
            Some(_) | None => Standing::Behind,
        }
    }
}

impl Order {
    const fn id(&self) -> SnapshotId {
        match self {
            Self::Prepare(target) => target.id,
            Self::Activate(id) => *id,
        }
    }
}

impl Router {
    /// Its own name, or its socket while it has none.
    fn name(&self, socket: &Path) -> String {
        match &self.identity {
            Some(identity) => identity.router.clone(),
            None => socket.display().to_string(),
        }
    }

    fn takes_orders(&self, group: &str) -> bool {
        let reads =
            |identity: &Identity| identity.group == group && identity.formats.contains(&FORMAT);
        self.connected && self.identity.as_ref().is_some_and(reads)
    }

    /// The same content under the same version in the same life of the router stays refused.
    fn has_refused(&self, id: SnapshotId) -> bool {
        self.refusal.as_ref().is_some_and(|(refused, boot, _)| *refused == id && *boot == self.boot)
    }

    fn should_catch_up(&self, target: SnapshotId) -> bool {
        self.running.is_none_or(|running| running.version < target.version)
            && !self.has_refused(target)
    }
}

#[cfg(test)]
mod tests;
