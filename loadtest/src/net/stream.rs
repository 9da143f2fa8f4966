//! A connected TCP or Unix stream.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use monoio::BufResult;
use monoio::buf::{IoBuf, IoBufMut};
use monoio::io::{AsyncReadRent, AsyncWriteRentExt};
use monoio::net::{TcpStream, UnixStream};
use rustix::net::{RecvFlags, Shutdown};

use super::address::Address;

/// One connection.
#[derive(Debug)]
pub enum Stream {
    /// TCP, without Nagle's delay.
    Tcp(TcpStream),
    /// A Unix stream socket.
    Unix(UnixStream),
}

impl Stream {
    /// Connects to `address`.
    ///
    /// # Errors
    /// What the kernel says.
    pub async fn connect(address: &Address) -> io::Result<Self> {
        match address {
            Address::Tcp(address) => Self::from_tcp(TcpStream::connect_addr(*address).await?),
            Address::Unix(path) => Ok(Self::Unix(UnixStream::connect(path).await?)),
        }
    }

    /// Takes over an accepted TCP stream.
    ///
    /// # Errors
    /// What the kernel says where the peer has gone already.
    pub fn from_tcp(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self::Tcp(stream))
    }

    /// Reads once into the uninitialised part of `buffer`.
    pub async fn read<T: IoBufMut>(&mut self, buffer: T) -> BufResult<usize, T> {
        match self {
            Self::Tcp(stream) => stream.read(buffer).await,
            Self::Unix(stream) => stream.read(buffer).await,
        }
    }

    /// Writes all of `buffer`.
    pub async fn write_all<T: IoBuf + 'static>(&mut self, buffer: T) -> BufResult<usize, T> {
        match self {
            Self::Tcp(stream) => stream.write_all(buffer).await,
            Self::Unix(stream) => stream.write_all(buffer).await,
        }
    }

    /// Ends when the peer has closed or reset the connection. Consumes nothing: where bytes wait
    /// to be read the peer may still be there, so it never ends.
    pub async fn closed_by_peer(&self) {
        let readable = match self {
            Self::Tcp(stream) => stream.readable(false).await,
            Self::Unix(stream) => stream.readable(false).await,
        };
        if readable.is_ok() && !self.is_closed_now() {
            std::future::pending::<()>().await;
        }
    }

    /// Whether the peer has closed or reset the connection and nothing is left to be read.
    pub fn is_closed_now(&self) -> bool {
        let mut byte = [0_u8; 1];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        match rustix::net::recv(borrow(self), byte.as_mut_slice(), flags) {
            Ok((length, _)) => length == 0,
            Err(error) => error != rustix::io::Errno::AGAIN,
        }
    }

    /// Tells the peer that nothing more will come, and goes on reading.
    ///
    /// # Errors
    /// The connection has broken.
    pub fn end_writing(&self) -> io::Result<()> {
        Ok(rustix::net::shutdown(borrow(self), Shutdown::Write)?)
    }

    /// Closes at once; a TCP peer gets a reset instead of an orderly end.
    pub fn reset(self) {
        // A stream that is broken already needs no reset.
        rustix::net::sockopt::set_socket_linger(borrow(&self), Some(Duration::ZERO)).ok();
    }

    /// A handle that ends the stream's pending reads and writes from outside their task.
    pub fn breaker(&self) -> Breaker {
        Breaker(self.as_raw_fd())
    }
}

impl AsRawFd for Stream {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::Tcp(stream) => stream.as_raw_fd(),
            Self::Unix(stream) => stream.as_raw_fd(),
        }
    }
}

/// Names a stream that another task owns. Its owner must drop the breaker before the stream.
#[derive(Debug)]
pub struct Breaker(RawFd);

impl Breaker {
    /// Shuts both directions down: pending operations end, none is dropped half way.
    pub fn shut_down(&self) {
        // Not connected any more: then there is nothing to end.
        rustix::net::shutdown(borrow(self), Shutdown::Both).ok();
    }
}

impl AsRawFd for Breaker {
    fn as_raw_fd(&self) -> RawFd {
        self.0
    }
}

/// Borrows the descriptor for calls that monoio does not offer.
fn borrow(owner: &impl AsRawFd) -> BorrowedFd<'_> {
    // SAFETY: `Stream` owns its descriptor for as long as it is borrowed here, and whoever keeps a
    // `Breaker` drops it before the stream that it was made from.
    unsafe { BorrowedFd::borrow_raw(owner.as_raw_fd()) }
}
