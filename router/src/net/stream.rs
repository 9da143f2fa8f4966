//! A connected stream socket, TCP or Unix, split into its two directions.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, RawFd};

use monoio::io::{
    AsyncReadRent, AsyncWriteRent, CancelHandle, CancelableAsyncReadRent, Canceller, OwnedReadHalf,
    OwnedWriteHalf, Splitable,
};
use monoio::net::{TcpStream, UnixStream};

use crate::active::EndpointAddress;

use super::buffer::{Buffer, Gather, Spare, Unsent, empty_vectors};

/// One connection's two directions, which may be used at the same time.
pub struct Stream {
    /// From the peer.
    pub reader: Reader,
    /// To the peer.
    pub writer: Writer,
}

impl Stream {
    pub(super) fn from_tcp(stream: TcpStream) -> Self {
        let fd = stream.as_raw_fd();
        let (reader, writer) = stream.into_split();
        let vectors = RefCell::new(Some(empty_vectors()));
        Self { reader: Reader { half: reader, fd }, writer: Writer { half: writer, fd, vectors } }
    }

    /// Connects.
    ///
    /// # Errors
    /// What the kernel said.
    pub async fn connect(address: &EndpointAddress) -> io::Result<Self> {
        match address {
            EndpointAddress::Tcp(address) => {
                let stream = TcpStream::connect_addr(*address).await?;
                stream.set_nodelay(true)?;
                Ok(Self::from_tcp(stream))
            }
            EndpointAddress::Unix(path) => Self::from_unix(UnixStream::connect(path).await?),
        }
    }

    pub(super) fn from_unix(stream: UnixStream) -> io::Result<Self> {
        let fd = stream.into_raw_fd();
        // SAFETY: the descriptor was just released by its only owner. The runtime's TCP type is used
        // only for recv, send, writev, poll and close, which are the same for any stream socket.
        let stream = unsafe { std::net::TcpStream::from_raw_fd(fd) };
        Ok(Self::from_tcp(TcpStream::from_std(stream)?))
    }

    /// The descriptor, valid while a direction of this stream is alive.
    #[must_use]
    pub fn fd(&self) -> RawFd {
        self.reader.fd
    }
}

/// The direction from the peer.
pub struct Reader {
    half: OwnedReadHalf<TcpStream>,
    fd: RawFd,
}

impl Reader {
    /// Reads once behind the buffer's filled bytes; 0: the peer closed its side.
    /// The future must be awaited to its end: bytes that a dropped read took are lost.
    pub async fn read(&mut self, buffer: Buffer) -> (io::Result<usize>, Buffer) {
        debug_assert!(buffer.spare() > 0, "a read into a full buffer looks like the end");
        let (result, Spare(buffer)) = self.half.read(Spare(buffer)).await;
        (result, buffer)
    }

    /// The same, but a [`Cancel`] can end it early: then the result is `ECANCELED` and nothing was
    /// taken, or the bytes that came first.
    pub async fn read_unless_cancelled(
        &mut self,
        buffer: Buffer,
        handle: CancelHandle,
    ) -> (io::Result<usize>, Buffer) {
        let (result, Spare(buffer)) = self.half.cancelable_read(Spare(buffer), handle).await;
        (result, buffer)
    }

    /// Waits until a read would not wait, without holding a buffer.
    ///
    /// # Errors
    /// What the kernel said.
    pub async fn readable(&self) -> io::Result<()> {
        // SAFETY: both halves live on this thread, and `readable` takes the stream by shared
        // reference; the halves' `&mut` accesses last only while an operation is being submitted.
        let stream = unsafe { &*self.half.0.get() };
        stream.readable(false).await
    }

    /// The descriptor, valid while this half is alive.
    #[must_use]
    pub fn fd(&self) -> RawFd {
        self.fd
    }
}

/// Ends one pending read at a time.
#[derive(Default)]
pub struct Cancel(Canceller);

impl Cancel {
    /// What the read to be ended is given.
    #[must_use]
    pub fn handle(&self) -> CancelHandle {
        self.0.handle()
    }

    /// Asks the kernel to end the read; the read's own result tells what became of it.
    #[must_use]
    pub fn cancel(self) -> Self {
        Self(self.0.cancel())
    }
}

/// The direction to the peer.
pub struct Writer {
    half: OwnedWriteHalf<TcpStream>,
    fd: RawFd,
    vectors: RefCell<Option<Box<[libc::iovec; 2]>>>,
}

impl Writer {
    /// Writes all filled bytes, which stay in the buffer.
    pub async fn write_all(&mut self, buffer: Buffer) -> (Result<(), WriteFault>, Buffer) {
        let mut unsent = Unsent { buffer, sent: 0 };
        while !unsent.is_empty() {
            let (result, returned) = self.half.write(unsent).await;
            unsent = returned;
            match result {
                Ok(count @ 1..) => unsent.sent += count,
                stopped => return (Err(WriteFault::new(unsent.sent, stopped)), unsent.buffer),
            }
        }
        (Ok(()), unsent.buffer)
    }

    /// Writes both buffers' filled bytes, head first, in as few calls as the socket takes. They stay
    /// in the buffers.
    pub async fn write_both(
        &mut self,
        head: Buffer,
        body: Buffer,
    ) -> (Result<(), WriteFault>, Buffer, Buffer) {
        let vectors = self.vectors.borrow_mut().take().unwrap_or_else(empty_vectors);
        let mut gather = Gather::new(head, body, vectors);
        let mut outcome = Ok(());
        while outcome.is_ok() && !gather.is_empty() {
            let (result, returned) = self.half.writev(gather).await;
            gather = returned;
            match result {
                Ok(count @ 1..) => gather.advance(count),
                stopped => outcome = Err(WriteFault::new(gather.sent(), stopped)),
            }
        }
        let (head, body, vectors) = gather.into_parts();
        *self.vectors.borrow_mut() = Some(vectors);
        (outcome, head, body)
    }

    /// The descriptor, valid while this half is alive.
    #[must_use]
    pub fn fd(&self) -> RawFd {
        self.fd
    }
}

/// A write that stopped before its end.
#[derive(Debug, thiserror::Error)]
#[error("the connection took only {sent} bytes")]
pub struct WriteFault {
    /// Bytes that the kernel had taken; with none, the peer cannot have begun anything.
    pub sent: usize,
    /// What the kernel said.
    #[source]
    pub error: io::Error,
}

impl WriteFault {
    fn new(sent: usize, stopped: io::Result<usize>) -> Self {
        Self { sent, error: stopped.err().unwrap_or_else(|| io::ErrorKind::WriteZero.into()) }
    }
}

/// Which directions to shut.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shut {
    /// Reads end: a pending one completes with 0.
    Read,
    /// The peer sees the end of our bytes.
    Write,
    /// Both; pending operations complete.
    Both,
}

/// Shuts directions of a socket now. This is how a clock or a hang-up ends a pending operation: the
/// operation completes, so no byte and no buffer is lost, unlike in a race that drops it.
pub fn shut(fd: RawFd, directions: Shut) {
    let how = match directions {
        Shut::Read => libc::SHUT_RD,
        Shut::Write => libc::SHUT_WR,
        Shut::Both => libc::SHUT_RDWR,
    };
    // SAFETY: no memory is involved. A descriptor that is no connected socket any more gets an
    // error, which means that there is nothing left to end.
    unsafe { libc::shutdown(fd, how) };
}

/// How a pooled connection looks before it is used again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Quiet {
    /// Open, and nothing to read.
    Yes,
    /// Closed by the peer, broken, or with bytes that nobody asked for.
    No,
}

/// Looks, without taking anything, whether the socket is still good for a request.
///
/// One non-blocking `recv(MSG_PEEK)`, about 0.2 µs: a poll through the ring would cost a loop turn.
#[must_use]
pub fn peek(fd: RawFd) -> Quiet {
    let mut byte = 0_u8;
    let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
    // SAFETY: the pointer is to one writable byte that outlives the call.
    let result = unsafe { libc::recv(fd, (&raw mut byte).cast(), 1, flags) };
    let waits = result < 0 && io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock;
    if waits { Quiet::Yes } else { Quiet::No }
}

/// How many bytes wait to be read.
#[must_use]
pub fn unread(fd: RawFd) -> usize {
    let mut count: libc::c_int = 0;
    // SAFETY: FIONREAD writes one int, to one that outlives the call.
    let result = unsafe { libc::ioctl(fd, libc::FIONREAD, &raw mut count) };
    if result < 0 { 0 } else { usize::try_from(count).unwrap_or(0) }
}

/// Makes closing the socket send a reset: an orderly end would look like the end of the answer (MS-08).
pub fn reset_on_close(fd: RawFd) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let length = libc::socklen_t::try_from(size_of::<libc::linger>()).unwrap_or(0);
    let value = (&raw const linger).cast();
    // SAFETY: the pointer is to a `linger` of that length, which outlives the call.
    unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_LINGER, value, length) };
}
