//! A connected stream socket, TCP or Unix, split into its two directions.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::rc::Rc;

use io_uring::{opcode, types};

use super::buffer::{Buffer, Gather, Unsent, empty_vectors};
use super::ring::reactor::Reactor;
use super::socket::Socket;
pub use super::socket::Waited;
use crate::active::EndpointAddress;

/// One connection's two directions, which may be used at the same time.
pub struct Stream {
    /// From the peer.
    pub reader: Reader,
    /// To the peer.
    pub writer: Writer,
}

impl Stream {
    /// Takes over a connected socket.
    ///
    /// # Errors
    /// No ring runs on this thread.
    pub(super) fn new(fd: OwnedFd) -> io::Result<Self> {
        let socket = Socket::new(fd)?;
        let vectors = RefCell::new(Some(empty_vectors()));
        let writer = Writer { socket: Rc::clone(&socket), vectors };
        Ok(Self { reader: Reader { socket }, writer })
    }

    /// Connects.
    ///
    /// # Errors
    /// What the kernel said.
    pub async fn connect(address: &EndpointAddress) -> io::Result<Self> {
        let (domain, address) = match address {
            EndpointAddress::Tcp(address) => {
                (socket2::Domain::for_address(*address), socket2::SockAddr::from(*address))
            }
            EndpointAddress::Unix(path) => (socket2::Domain::UNIX, socket2::SockAddr::unix(path)?),
        };
        let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
        if domain != socket2::Domain::UNIX {
            socket.set_nodelay(true)?;
        }
        // Boxed: the kernel reads the address when the entry is submitted, after this value has moved.
        let connecting = (OwnedFd::from(socket), Box::new(address));
        let operation = Reactor::current()?.start(connecting, |(fd, address)| {
            let fd = types::Fd(fd.as_raw_fd());
            opcode::Connect::new(fd, address.as_ptr().cast(), address.len()).build()
        });
        let (connected, (fd, _)) = operation.await;
        connected?;
        Self::new(fd)
    }

    /// The descriptor, valid while a direction of this stream is alive.
    #[must_use]
    pub fn fd(&self) -> RawFd {
        self.reader.fd()
    }

    /// Whether the peer is silent and has not closed, so that the connection is good for a request. What
    /// happened since the core's present turn began may be missed, as it may right after any look.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let socket = &self.reader.socket;
        socket.is_quiet() && (socket.is_watched() || is_silent(socket.fd()))
    }
}

/// The direction from the peer. Dropping it ends the connection, once the writer is dropped, too.
pub struct Reader {
    socket: Rc<Socket>,
}

impl Reader {
    /// Reads what is here behind the buffer's filled bytes, or waits for it; 0: the peer closed its side.
    /// The future may be dropped: what arrives meanwhile is for the next read.
    pub async fn read(&mut self, mut buffer: Buffer) -> (io::Result<usize>, Buffer) {
        let result = poll_fn(|context| {
            self.socket.poll_arrived(context).map(|()| self.socket.take_arrived(&mut buffer))
        });
        let result = result.await;
        (result.unwrap_or(Ok(0)), buffer)
    }

    /// Waits until a read would not wait, without holding a buffer.
    pub async fn readable(&self) {
        poll_fn(|context| self.socket.poll_arrived(context)).await;
    }

    /// The same, unless [`Handle::nudge`] ends the wait.
    pub async fn readable_unless_nudged(&self) -> Waited {
        poll_fn(|context| self.socket.poll_wait(context)).await
    }

    /// For whoever looks after the connection from outside its task.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle { socket: Rc::clone(&self.socket) }
    }

    /// The descriptor, valid while this half is alive.
    #[must_use]
    pub fn fd(&self) -> RawFd {
        self.socket.fd()
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> (usize, usize) {
        self.socket.waiting()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.socket.abandon();
    }
}

/// A connection as others than its task see it. It keeps the descriptor open.
#[derive(Clone)]
pub struct Handle {
    socket: Rc<Socket>,
}

impl Handle {
    /// Shuts directions now; pending operations complete.
    pub fn shut(&self, directions: Shut) {
        shut(self.socket.fd(), directions);
    }

    /// How many bytes wait to be read, here or in the kernel.
    #[must_use]
    pub fn unread(&self) -> usize {
        self.socket.waiting_bytes() + unread(self.socket.fd())
    }

    /// Ends a wait of [`Reader::readable_unless_nudged`], now or when it next begins.
    pub fn nudge(&self) {
        self.socket.nudge();
    }
}

/// The direction to the peer.
pub struct Writer {
    socket: Rc<Socket>,
    vectors: RefCell<Option<Box<[libc::iovec; 2]>>>,
}

impl Writer {
    /// Writes all filled bytes, which stay in the buffer.
    pub async fn write_all(&mut self, buffer: Buffer) -> (Result<(), WriteFault>, Buffer) {
        let mut unsent = Unsent { buffer, sent: 0 };
        while !unsent.is_empty() {
            let (result, returned) = self.send(unsent).await;
            unsent = returned;
            match result {
                Ok(count @ 1..) => unsent.sent += count,
                stopped => return (Err(WriteFault::new(unsent.sent, stopped)), unsent.buffer),
            }
        }
        (Ok(()), unsent.buffer)
    }

    async fn send(&self, unsent: Unsent) -> (io::Result<usize>, Unsent) {
        if self.socket.reactor().is_calm() {
            match send_now(self.socket.fd(), unsent.rest()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return (result, unsent),
            }
        }
        let sending = (unsent, Rc::clone(&self.socket));
        let operation = self.socket.reactor().start(sending, |(unsent, socket)| {
            let rest = unsent.rest();
            let length = u32::try_from(rest.len()).unwrap_or(u32::MAX);
            let send = opcode::Send::new(types::Fd(socket.fd()), rest.as_ptr(), length);
            send.flags(libc::MSG_NOSIGNAL).build()
        });
        let (result, (unsent, _)) = operation.await;
        (result, unsent)
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
            let sending = (gather, Rc::clone(&self.socket));
            let operation = self.socket.reactor().start(sending, |(gather, socket)| {
                let [head, body] = gather.vectors();
                // An empty first vector would be taken for the end of all.
                let vectors =
                    if head.iov_len == 0 { std::slice::from_ref(body) } else { gather.vectors() };
                let count = u32::try_from(vectors.len()).unwrap_or(u32::MAX);
                opcode::Writev::new(types::Fd(socket.fd()), vectors.as_ptr(), count).build()
            });
            let (result, (returned, _)) = operation.await;
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
        self.socket.fd()
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

/// Looks, without taking anything, whether the socket is open with nothing to read.
fn is_silent(fd: RawFd) -> bool {
    let mut byte = 0_u8;
    let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
    // SAFETY: the pointer is to one writable byte that outlives the call.
    let result = unsafe { libc::recv(fd, (&raw mut byte).cast(), 1, flags) };
    result < 0 && io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock
}

/// Receives what is here behind the buffer's filled bytes, without waiting.
///
/// # Errors
/// `WouldBlock`, or what else the kernel said.
pub(super) fn receive_now(fd: RawFd, buffer: &mut Buffer) -> io::Result<usize> {
    let (room, length) = buffer.room();
    // SAFETY: the room has that many writable bytes, and outlives the call.
    let result = unsafe { libc::recv(fd, room.cast(), length as usize, libc::MSG_DONTWAIT) };
    let count = usize::try_from(result).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel wrote that many bytes from the room's start.
    unsafe { buffer.arrived(count) };
    Ok(count)
}

/// Sends what the socket takes, without waiting.
fn send_now(fd: RawFd, bytes: &[u8]) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the pointer is to that many readable bytes, which outlive the call.
    let result = unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), flags) };
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// How many bytes wait in the kernel to be read.
fn unread(fd: RawFd) -> usize {
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
