//! Listening sockets that several threads share.

use std::io;
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::{Path, PathBuf};

use monoio::net::{ListenerOpts, TcpListener, UnixListener};

use super::address::Address;
use super::stream::Stream;
use crate::limits::LISTEN_BACKLOG;

/// A bound address that each thread opens for itself.
///
/// TCP: every thread binds its own socket with `SO_REUSEPORT`. Unix: the threads accept from
/// copies of one socket.
#[derive(Debug)]
pub enum Bound {
    /// The port is known; also where port 0 was asked for.
    Tcp {
        /// Never has port 0.
        address: Address,
        /// Keeps the port until the threads have bound it.
        reservation: std::net::TcpListener,
    },
    /// One socket for all threads.
    Unix {
        /// The shared socket.
        socket: StdUnixListener,
        /// Its file.
        path: PathBuf,
    },
}

impl Bound {
    /// Takes the address. Port 0 becomes a free port; a Unix socket's file that nobody listens on
    /// is replaced.
    ///
    /// # Errors
    /// What the kernel says, such as an address in use.
    pub fn bind(address: &Address) -> io::Result<Self> {
        match address {
            Address::Tcp(address) => {
                let reservation = reserve(*address)?;
                let address = Address::Tcp(reservation.local_addr()?);
                Ok(Self::Tcp { address, reservation })
            }
            Address::Unix(path) => {
                let socket = bind_unix(path)?;
                Ok(Self::Unix { socket, path: path.clone() })
            }
        }
    }

    /// What clients connect to.
    pub fn address(&self) -> Address {
        match self {
            Self::Tcp { address, .. } => address.clone(),
            Self::Unix { path, .. } => Address::Unix(path.clone()),
        }
    }

    /// Removes a Unix socket's file, so that the next start finds none.
    pub fn remove_file(&self) {
        if let Self::Unix { path, .. } = self {
            drop(std::fs::remove_file(path)); // removed by someone else: the same end
        }
    }

    /// Opens the calling thread's own listener; call it inside the thread's ring.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn listen(&self) -> io::Result<Listener> {
        match self {
            Self::Tcp { address: Address::Tcp(address), .. } => {
                let options = ListenerOpts::new().backlog(LISTEN_BACKLOG);
                Ok(Listener::Tcp(TcpListener::bind_with_config(*address, &options)?))
            }
            Self::Tcp { .. } => Err(io::Error::from(io::ErrorKind::InvalidInput)),
            Self::Unix { socket, .. } => {
                Ok(Listener::Unix(UnixListener::from_std(socket.try_clone()?)?))
            }
        }
    }
}

/// One thread's listener.
#[derive(Debug)]
pub enum Listener {
    /// TCP.
    Tcp(TcpListener),
    /// Unix.
    Unix(UnixListener),
}

impl Listener {
    /// Waits for the next connection.
    ///
    /// # Errors
    /// What the kernel says; `EMFILE` among them, which passes.
    pub async fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener) => Stream::from_tcp(listener.accept().await?.0),
            Self::Unix(listener) => Ok(Stream::Unix(listener.accept().await?.0)),
        }
    }
}

/// Binds without listening, so that the kernel gives this socket no connections.
fn reserve(address: std::net::SocketAddr) -> io::Result<std::net::TcpListener> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    bind(&socket, &address)?;
    Ok(socket.into())
}

fn bind_unix(path: &Path) -> io::Result<StdUnixListener> {
    match StdUnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_stale_socket(path) => {
            std::fs::remove_file(path)?;
            StdUnixListener::bind(path)
        }
        result => result,
    }
}

/// A socket file that refuses connections was left by a process that ended hard.
fn is_stale_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let is_socket =
        std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket());
    is_socket
        && std::os::unix::net::UnixStream::connect(path)
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_socket_file_is_replaced_and_a_live_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.sock");
        drop(StdUnixListener::bind(&path).unwrap()); // leaves its file behind
        let address = Address::Unix(path.clone());
        let live = Bound::bind(&address).unwrap();
        assert_eq!(Bound::bind(&address).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        live.remove_file();
        assert!(!path.exists());
    }

    #[test]
    fn a_file_that_is_no_socket_is_never_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        std::fs::write(&path, "keep me").unwrap();
        assert!(Bound::bind(&Address::Unix(path.clone())).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "keep me");
    }
}
