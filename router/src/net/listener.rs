//! Listening: each core has its own TCP listener, and the kernel spreads connections over them; a Unix socket
//! is one listener that all cores accept from.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::{Path, PathBuf};

use monoio::net::{ListenerOpts, TcpListener, UnixListener};

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
pub enum Listener {
    /// TCP, with `SO_REUSEPORT`.
    Tcp(TcpListener),
    /// A Unix stream socket.
    Unix(UnixListener),
}

impl Listener {
    /// Puts a worker's share on its ring.
    ///
    /// # Errors
    /// What the kernel said, such as an address in use.
    pub fn start(listening: Listening) -> Result<Self, ListenFailed> {
        match listening {
            Listening::Tcp(address) => {
                let options = ListenerOpts::new().reuse_port(true).backlog(ACCEPT_BACKLOG);
                TcpListener::bind_with_config(address, &options)
                    .map(Self::Tcp)
                    .map_err(|error| ListenFailed { address: Listen::Tcp(address), error })
            }
            Listening::Unix(path, listener) => UnixListener::from_std(listener)
                .map(Self::Unix)
                .map_err(|error| ListenFailed { address: Listen::Unix(path), error }),
        }
    }

    /// The descriptor, valid while the listener is alive. Shutting it ends a pending accept.
    #[must_use]
    pub fn fd(&self) -> RawFd {
        match self {
            Self::Tcp(listener) => listener.as_raw_fd(),
            Self::Unix(listener) => listener.as_raw_fd(),
        }
    }

    /// The next connection.
    ///
    /// # Errors
    /// What the kernel said; out of descriptors among it, so the caller must back off.
    pub async fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Stream::from_tcp(stream))
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                Stream::from_unix(stream)
            }
        }
    }
}
