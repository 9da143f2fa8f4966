//! Brings Snapshots to routers: finds their sockets, keeps them connected, and takes them through
//! PREPARE and ACTIVATE together.
//!
//! One task owns the [`fleet`], which decides; a task per socket moves the bytes. What others may
//! know is published as a list of [`RouterStatus`].

mod connection;
mod fleet;
mod status;

use std::{
    collections::{BTreeSet, HashMap},
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinHandle,
    time::{MissedTickBehavior, interval},
};

use self::{
    connection::Event,
    fleet::{Effect, Fleet, Order},
};
pub use self::{
    connection::Patience,
    fleet::{Outcome, Participant, Target},
    status::{Refusal, RouterHealth, RouterStatus, RunningVersion, Standing},
};
use crate::clock;

/// Between two looks into the folder of sockets.
const SCAN_EVERY: Duration = Duration::from_millis(200);
/// Sockets of one folder: a host has a handful of routers, a test some hundreds.
const SOCKETS_MAX: usize = 1_024;
/// Events that wait for the fleet's task.
const EVENTS_WAITING: usize = 1_024;

/// Where routers are, and how patient to be with them.
#[derive(Clone, Debug)]
pub struct BroadcasterOptions {
    /// Every `*.sock` in this folder is a router. It may come later than we do.
    pub sockets: PathBuf,
    /// Routers of other groups are shown and left alone.
    pub group: String,
    /// With each router.
    pub patience: Patience,
}

/// The way to the task that owns the fleet.
#[derive(Clone, Debug)]
pub struct Broadcaster {
    commands: mpsc::Sender<Command>,
    status: watch::Receiver<Vec<RouterStatus>>,
}

/// The task that owns the fleet is gone: the program is stopping.
#[derive(Debug, thiserror::Error)]
#[error("the broadcaster has stopped")]
pub struct Stopped;

#[derive(Debug)]
enum Command {
    Prepare(Target, oneshot::Sender<Vec<Participant>>),
    Activate(oneshot::Sender<Vec<Participant>>),
    Abandon,
    Retarget(Target),
}

impl Broadcaster {
    /// Starts looking for routers. It ends when the last handle is dropped.
    #[must_use]
    pub fn start(options: BroadcasterOptions) -> (Self, JoinHandle<()>) {
        let (commands, incoming) = mpsc::channel(16);
        let (publish, status) = watch::channel(Vec::new());
        let task = tokio::spawn(Task::new(options, publish).run(incoming));
        (Self { commands, status }, task)
    }

    /// Has every router that is there hold this Snapshot ready; returns how each one answered.
    ///
    /// # Errors
    /// [`Stopped`].
    pub async fn prepare(&self, target: Target) -> Result<Vec<Participant>, Stopped> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Prepare(target, reply)).await?;
        answer.await.map_err(|_| Stopped)
    }

    /// Has every router that has prepared evaluate it; it is the target from now on.
    ///
    /// # Errors
    /// [`Stopped`].
    pub async fn activate(&self) -> Result<Vec<Participant>, Stopped> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Activate(reply)).await?;
        answer.await.map_err(|_| Stopped)
    }

    /// Gives up what was prepared.
    ///
    /// # Errors
    /// [`Stopped`].
    pub async fn abandon(&self) -> Result<(), Stopped> {
        self.send(Command::Abandon).await
    }

    /// Says what routers are to run: those that run less catch up, now and whenever they come.
    ///
    /// # Errors
    /// [`Stopped`].
    pub async fn retarget(&self, target: Target) -> Result<(), Stopped> {
        self.send(Command::Retarget(target)).await
    }

    /// How every router is, by socket.
    #[must_use]
    pub fn status(&self) -> Vec<RouterStatus> {
        self.status.borrow().clone()
    }

    async fn send(&self, command: Command) -> Result<(), Stopped> {
        self.commands.send(command).await.map_err(|_| Stopped)
    }
}

struct Link {
    task: JoinHandle<()>,
    orders: Option<mpsc::Sender<Order>>,
}

/// Owns the fleet and the connections.
struct Task {
    options: BroadcasterOptions,
    fleet: Fleet,
    links: HashMap<PathBuf, Link>,
    events: mpsc::Sender<(PathBuf, Event)>,
    happened: mpsc::Receiver<(PathBuf, Event)>,
    publish: watch::Sender<Vec<RouterStatus>>,
    waiting: Option<oneshot::Sender<Vec<Participant>>>,
}

impl Task {
    fn new(options: BroadcasterOptions, publish: watch::Sender<Vec<RouterStatus>>) -> Self {
        let (events, happened) = mpsc::channel(EVENTS_WAITING);
        let fleet = Fleet::new(options.group.clone());
        let links = HashMap::new();
        Self { options, fleet, links, events, happened, publish, waiting: None }
    }

    async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        let mut scan = interval(SCAN_EVERY);
        scan.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let effects = tokio::select! {
                command = commands.recv() => match command {
                    Some(command) => self.command(command),
                    None => break,
                },
                Some((socket, event)) = self.happened.recv() => self.event(&socket, event),
                _ = scan.tick() => self.scan().await,
            };
            self.carry_out(effects);
            self.publish.send_replace(self.fleet.status());
        }
        for link in self.links.values() {
            link.task.abort();
        }
    }

    fn command(&mut self, command: Command) -> Vec<Effect> {
        match command {
            Command::Prepare(target, reply) => {
                self.waiting = Some(reply);
                self.fleet.prepare(target)
            }
            Command::Activate(reply) => {
                self.waiting = Some(reply);
                self.fleet.activate()
            }
            Command::Abandon => self.fleet.abandon(),
            Command::Retarget(target) => self.fleet.retarget(target),
        }
    }

    fn event(&mut self, socket: &Path, event: Event) -> Vec<Effect> {
        let now_ms = clock::unix_ms();
        let Some(link) = self.links.get_mut(socket) else { return Vec::new() };
        match event {
            Event::Connected { identity, boot, orders } => {
                link.orders = Some(orders);
                tracing::info!(socket = %socket.display(), router = identity.router, "connected");
                self.fleet.connected(socket, identity, boot, now_ms)
            }
            Event::Replied(reply) => self.fleet.replied(socket, reply, now_ms),
            Event::Heard(heartbeat) => self.fleet.heard(socket, heartbeat, now_ms),
            Event::Lost(why) => {
                if link.orders.take().is_some() {
                    tracing::warn!(socket = %socket.display(), why, "lost");
                }
                self.fleet.lost(socket, &why)
            }
        }
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Tell(socket, order) => {
                    let orders = self.links.get(&socket).and_then(|link| link.orders.as_ref());
                    // A connection that takes no order has ended, and says so in its next event.
                    let taken = orders.is_some_and(|orders| orders.try_send(order).is_ok());
                    if !taken {
                        tracing::debug!(socket = %socket.display(), "ended before its order");
                    }
                }
                Effect::PhaseOver(participants) => {
                    if let Some(reply) = self.waiting.take() {
                        // Who asked may have stopped waiting.
                        drop(reply.send(participants));
                    }
                }
            }
        }
    }

    async fn scan(&mut self) -> Vec<Effect> {
        let folder = self.options.sockets.clone();
        let Ok(found) = tokio::task::spawn_blocking(move || sockets_in(&folder)).await else {
            return Vec::new();
        };
        let gone: Vec<PathBuf> =
            self.fleet.sockets().filter(|socket| !found.contains(*socket)).cloned().collect();
        let mut effects = Vec::new();
        for socket in gone {
            if let Some(link) = self.links.remove(&socket) {
                link.task.abort();
            }
            effects.extend(self.fleet.vanished(&socket));
        }
        for socket in found {
            if self.fleet.found(&socket) {
                let (patience, events) = (self.options.patience, self.events.clone());
                let task = tokio::spawn(connection::keep(socket.clone(), patience, events));
                self.links.insert(socket, Link { task, orders: None });
            }
        }
        effects
    }
}

/// Every `*.sock` that is a socket; none where the folder cannot be read.
fn sockets_in(folder: &Path) -> BTreeSet<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return BTreeSet::new() };
    entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()))
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sock"))
        .take(SOCKETS_MAX)
        .collect()
}
