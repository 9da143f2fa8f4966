//! The admin listener: health, readiness, metrics and the running Snapshot, for people and probes.
//!
//! HTTP/1.1, GET and HEAD, one request per connection, read-only, without authentication. It runs on
//! ordinary threads off the network cores, and shares nothing with the request path but what that
//! publishes anyway. A thread per connection, at most `ADMIN_CONNECTIONS_MAX`, each with one deadline:
//! slow clients cost a thread for that long, and never each other's answer.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

mod exchange;
mod metrics;
mod pages;
mod process;
mod request;
mod upstreams;

pub use pages::Sources;

use crate::cores::CoreId;
use crate::limits::{ACCEPT_REST, ADMIN_CONNECTIONS_MAX};
use crate::log;
use crate::net::affinity;

/// The admin listener's thread, from the outside.
#[derive(Debug)]
pub struct Admin {
    thread: JoinHandle<()>,
    stop: UnixStream,
    address: SocketAddr,
}

/// Why there is no admin listener.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// The address is in use, or not ours.
    #[error("admin.listen: cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// No thread, or no descriptors.
    #[error("cannot start the admin listener's thread")]
    Thread(#[source] io::Error),
}

/// Listens, on a thread that stays on `core`.
///
/// # Errors
/// See [`AdminError`].
pub fn listen(
    address: SocketAddr,
    sources: Sources,
    core: Option<CoreId>,
) -> Result<Admin, AdminError> {
    let failed = |source| AdminError::Listen { address, source };
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let (stop, stopped) = UnixStream::pair().map_err(AdminError::Thread)?;
    let thread = std::thread::Builder::new().name("admin".into()).spawn(move || {
        if let Some(core) = core
            && let Err(error) = affinity::pin_current_thread(core)
        {
            log::warn("admin listener not pinned", &[("core", &core.0), ("error", &error)]);
        }
        run(&listener, &stopped, &Arc::new(sources));
    });
    Ok(Admin { thread: thread.map_err(AdminError::Thread)?, stop, address })
}

impl Admin {
    /// Where it listens, with the port that the kernel chose.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts nothing more. Answers that are being written end by themselves.
    pub fn stop(self) {
        drop(self.stop); // the thread sees the end of its stream
        if self.thread.join().is_err() {
            log::warn("admin listener panicked", &[]);
        }
    }
}

fn run(listener: &TcpListener, stopped: &UnixStream, sources: &Arc<Sources>) {
    let open = Arc::<AtomicUsize>::default();
    loop {
        let mut sockets =
            [PollFd::new(stopped, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
        match poll(&mut sockets, None) {
            Ok(_) if !sockets[0].revents().is_empty() => return,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => {
                log::warn("admin listener cannot wait for its sockets", &[("error", &error)]);
                return;
            }
        }
        match listener.accept() {
            Ok((stream, _)) => admit(stream, sources, &open),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                log::warn("admin listener cannot accept", &[("error", &error)]);
                rest(stopped);
            }
        }
    }
}

/// Waits before the next accept, unless the listener has to stop.
fn rest(stopped: &UnixStream) {
    if let Ok(span) = Timespec::try_from(ACCEPT_REST) {
        // However it ends, the caller looks again.
        let _rested = poll(&mut [PollFd::new(stopped, PollFlags::IN)], Some(&span));
    }
}

/// Answers on a thread of its own. One connection too many is closed: the next probe comes soon.
fn admit(stream: TcpStream, sources: &Arc<Sources>, open: &Arc<AtomicUsize>) {
    if open.fetch_add(1, Ordering::Relaxed) >= ADMIN_CONNECTIONS_MAX {
        open.fetch_sub(1, Ordering::Relaxed);
        log::warn("admin connection refused: too many", &[]);
        return;
    }
    let place = Place(Arc::clone(open));
    let sources = Arc::clone(sources);
    let thread = std::thread::Builder::new().name("admin-answer".into());
    let spawned = thread.spawn(move || {
        let _place = place;
        exchange::serve(&stream, &sources);
    });
    if let Err(error) = spawned {
        log::warn("admin connection refused: no thread", &[("error", &error)]);
    }
}

/// A connection's place among `ADMIN_CONNECTIONS_MAX`, free again when it is dropped, however its
/// thread ends.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
