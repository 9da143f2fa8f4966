//! The snapshot feed: the control plane connects to a Unix socket and pushes; the router never asks.
//!
//! Several controllers may be connected, at most `CONTROLLERS_MAX`: a standby, or a tool that only
//! looks. Each prepares for itself; what one activates makes the others prepare anew. A further one is
//! turned away. `shared::push` has the frames, [`stage`](Stage) the decisions.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;

mod controller;
mod heartbeat;
mod resolve;
mod socket;
mod stage;
mod turns;

pub use socket::SocketError;
pub use stage::Stage;

use crate::config;
use crate::cores::CoreId;
use crate::counters::Counters;
use crate::log;
use crate::net::affinity;
use heartbeat::Heartbeat;
use socket::Socket;
use turns::Turns;

/// The feed's thread, from the outside.
#[derive(Debug)]
pub struct Feed {
    thread: JoinHandle<()>,
    stop: UnixStream,
}

/// Why there is no feed.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// No socket to listen on.
    #[error("feed.socket")]
    Socket(#[from] SocketError),
    /// No thread, or no descriptors.
    #[error("cannot start the feed's thread")]
    Thread(#[source] io::Error),
}

/// Mode of the socket where only the own user and root may push.
const MODE_OWN: u32 = 0o600;
/// Mode where others may, as their credentials tell.
const MODE_OTHERS: u32 = 0o666;

/// Listens on the socket, on a thread that stays on `core`.
///
/// # Errors
/// See [`FeedError`].
pub fn listen(
    settings: &config::Feed,
    stage: Stage,
    counters: Arc<Counters>,
    core: Option<CoreId>,
) -> Result<Feed, FeedError> {
    let mode = if settings.allowed_uids.is_empty() { MODE_OWN } else { MODE_OTHERS };
    let socket = Socket::bind(&settings.socket, mode)?;
    let (stop, stopped) = UnixStream::pair().map_err(FeedError::Thread)?;
    let own = rustix::process::geteuid().as_raw();
    let turns = Turns {
        socket,
        stop: stopped,
        heartbeat: Heartbeat {
            status: Arc::clone(stage.status()),
            counters,
            activation: Arc::clone(stage.activation()),
        },
        stage,
        name: settings.name.clone(),
        users: settings.allowed_uids.iter().copied().chain([0, own]).collect(),
        controllers: Vec::new(),
        rests_until: None,
    };
    let thread = std::thread::Builder::new().name("feed".into());
    let thread = thread.spawn(move || {
        if let Some(core) = core
            && let Err(error) = affinity::pin_current_thread(core)
        {
            log::warn("feed not pinned", &[("core", &core.0), ("error", &error)]);
        }
        turns.run();
    });
    Ok(Feed { thread: thread.map_err(FeedError::Thread)?, stop })
}

impl Feed {
    /// Lets an Activation that runs end, then closes all connections and removes the socket's file.
    pub fn stop(self) {
        drop(self.stop); // the thread sees the end of its stream
        if self.thread.join().is_err() {
            log::warn("feed panicked", &[]);
        }
    }
}
