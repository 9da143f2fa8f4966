//! Listening: each core has its own TCP listener, and the kernel spreads connections over them; a Unix socket
//! is one listener that all cores accept from.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use io_uring::{opcode, types};

use super::ring::reactor::Reactor;
use super::stream::Stream;
use crate::config::Listen;
use crate::limits::ACCEPT_BACKLOG;

/// An address that cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}")]
pub struct ListenFailed {
    address: Listen,
    #[source]
    error: io::Error,
}

/// What all workers listen on.
pub struct Prepared {
    places: Vec<Place>,
}

enum Place {
    /// The socket holds the port, so that all workers get the same one; it never listens itself.
    Tcp(
        SocketAddr,
        #[expect(dead_code, reason = "held until all workers have bound")] socket2::Socket,
    ),
    Unix(PathBuf, StdUnixListener),
}

/// One worker's share of an address, until it is on its ring.
pub enum Listening {
    /// To be bound by the worker.
    Tcp(SocketAddr),
    /// Bound already.
    Unix(PathBuf, StdUnixListener),
}

/// Checks all addresses before a worker is started, and settles the ports that the kernel chooses.
///
/// # Errors
/// An address that is taken, say.
pub fn prepare(addresses: &[Listen]) -> Result<Prepared, ListenFailed> {
    let places = addresses.iter().map(|address| {
        let place = match address {
            Listen::Tcp(address) => hold_port(*address),
            Listen::Unix(path) => bind_unix(path),
        };
        place.map_err(|error| ListenFailed { address: address.clone(), error })
    });
    Ok(Prepared { places: places.collect::<Result<_, _>>()? })
}

impl Prepared {
    /// One worker's share.
    ///
    /// # Errors
    /// Out of descriptors.
    pub fn for_worker(&self) -> io::Result<Vec<Listening>> {
        let share = |place: &Place| match place {
            Place::Tcp(address, _) => Ok(Listening::Tcp(*address)),
            Place::Unix(path, listener) => Ok(Listening::Unix(path.clone(), listener.try_clone()?)),
        };
        self.places.iter().map(share).collect()
    }

    /// The addresses, with the ports that the kernel chose. All workers must have bound by now.
    #[must_use]
    pub fn into_addresses(self) -> Vec<Listen> {
        let address = |place| match place {
            Place::Tcp(address, _) => Listen::Tcp(address),
            Place::Unix(path, _) => Listen::Unix(path),
        };
        self.places.into_iter().map(address).collect()
    }
}

fn hold_port(address: SocketAddr) -> io::Result<Place> {
    let socket =
        socket2::Socket::new(socket2::Domain::for_address(address), socket2::Type::STREAM, None)?;
    socket.set_reuse_port(true)?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    let bound = socket.local_addr()?.as_socket().unwrap_or(address);
    Ok(Place::Tcp(bound, socket))
}

/// A socket file that nobody listens on is a leftover and is replaced.
fn bind_unix(path: &Path) -> io::Result<Place> {
    let is_leftover = std::os::unix::net::UnixStream::connect(path)
        .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    if is_leftover {
        std::fs::remove_file(path)?;
    }
    Ok(Place::Unix(path.to_owned(), StdUnixListener::bind(path)?))
}

/// A listening socket on one core's ring.
pub struct Listener {
    fd: Rc<OwnedFd>,
}

impl Listener {
    /// Puts a worker's share on its ring.
    ///
    /// # Errors
    /// What the kernel said, such as an address in use.
    pub fn start(listening: Listening) -> Result<Self, ListenFailed> {
        let fd = match listening {
            Listening::Tcp(address) => listen(address)
                .map_err(|error| ListenFailed { address: Listen::Tcp(address), error })?,
            Listening::Unix(_, listener) => OwnedFd::from(listener),
        };
        Ok(Self { fd: Rc::new(fd) })
    }

    /// The descriptor, valid while the listener is alive. Shutting it ends a pending accept.
    #[must_use]
    pub fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// The next connection.
    ///
    /// # Errors
    /// What the kernel said; out of descriptors among it, so the caller must back off.
    pub async fn accept(&self) -> io::Result<Stream> {
        let operation = Reactor::current()?.start(Rc::clone(&self.fd), |fd| {
            let (no_address, no_length) = (std::ptr::null_mut(), std::ptr::null_mut());
            let accept = opcode::Accept::new(types::Fd(fd.as_raw_fd()), no_address, no_length);
            accept.flags(libc::SOCK_CLOEXEC).build()
        });
        let (accepted, _) = operation.await;
        let fd = RawFd::try_from(accepted?).map_err(io::Error::other)?;
        // SAFETY: the kernel just made this descriptor for us.
        Stream::new(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

fn listen(address: SocketAddr) -> io::Result<OwnedFd> {
    let socket =
        socket2::Socket::new(socket2::Domain::for_address(address), socket2::Type::STREAM, None)?;
    socket.set_reuse_port(true)?;
    socket.set_reuse_address(true)?;
    // Accepted connections inherit it.
    socket.set_nodelay(true)?;
    socket.bind(&address.into())?;
    socket.listen(ACCEPT_BACKLOG)?;
    Ok(socket.into())
}
