//! One connected socket and what has arrived on it.
//!
//! Bytes arrive by themselves: the kernel is asked once, and whatever it receives waits here until
//! somebody reads. So a read is only a look at a queue: it may be dropped or raced without losing a
//! byte, and a connection that waits pins no buffer. What waits is bounded: beyond
//! [`ARRIVED_BYTES_MAX`], or once a whole buffer was filled at once, the kernel is told to stop, and is asked
//! again, for one buffer at a time, when all was read. So the peer's window closes.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::buffer::{Buffer, BufferPool};
use super::ring::reactor::{HowOften, Reactor};
use crate::limits::{ARRIVED_BYTES_MAX, GATHERED_BYTES_MAX};

/// A socket that this core's ring watches.
pub(super) struct Socket {
    fd: ManuallyDrop<OwnedFd>,
    reactor: Rc<Reactor>,
    arrivals: RefCell<Arrivals>,
    nudged: Cell<bool>,
}

/// What arrived and was not read.
#[derive(Default)]
struct Arrivals {
    watch: Watch,
    waiting: VecDeque<Buffer>,
    bytes: usize,
    /// Nothing comes behind what waits: 0 for the peer's orderly end, else the error's number.
    end: Option<i32>,
    reader: Option<Waker>,
    /// The last arrival filled a whole buffer: more is behind it than a slow reader should be handed.
    is_bulk: bool,
    /// Nobody will read any more.
    is_abandoned: bool,
}

/// What the kernel was asked.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Watch {
    #[default]
    Off,
    /// To tell of arrivals, under this key.
    On(usize),
    /// To stop doing so.
    Stopping,
}

/// One completion of a watch.
pub(super) enum Arrival {
    /// These bytes came.
    Bytes(Buffer),
    /// The peer's end (0), or an error's number.
    Ended(i32),
    /// The result of a poll: a read would not wait.
    Polled(i32),
}

/// What follows a completion of a watch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Then {
    /// Further completions.
    More,
    /// None, until the socket is watched again.
    WatchIsOver,
}

/// How a wait for bytes ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Waited {
    /// Bytes are here, or the end is.
    Ready,
    /// [`Socket::nudge`] came first.
    Nudged,
}

impl Socket {
    /// Takes over a connected socket.
    ///
    /// # Errors
    /// No ring runs on this thread.
    pub(super) fn new(fd: OwnedFd) -> io::Result<Rc<Self>> {
        Ok(Self::on(Reactor::current()?, fd))
    }

    pub(super) fn on(reactor: Rc<Reactor>, fd: OwnedFd) -> Rc<Self> {
        let (arrivals, nudged) = (RefCell::default(), Cell::new(false));
        Rc::new(Self { fd: ManuallyDrop::new(fd), reactor, arrivals, nudged })
    }

    pub(super) fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    pub(super) fn reactor(&self) -> &Rc<Reactor> {
        &self.reactor
    }

    /// Bytes that arrived and were not read, as far as this core knows.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.arrivals.borrow().bytes
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> (usize, usize) {
        let arrivals = self.arrivals.borrow();
        (arrivals.waiting.len(), arrivals.bytes)
    }

    /// Whether nothing waits, neither bytes nor the end.
    pub(super) fn is_quiet(&self) -> bool {
        let arrivals = self.arrivals.borrow();
        arrivals.end.is_none() && arrivals.waiting.is_empty()
    }

    /// Whether the kernel tells of arrivals by itself.
    pub(super) fn is_watched(&self) -> bool {
        matches!(self.arrivals.borrow().watch, Watch::On(_))
    }

    /// Ends a wait that may be nudged, now or when it next begins.
    pub(super) fn nudge(&self) {
        self.nudged.set(true);
        self.wake_reader();
    }

    /// Ready when bytes or the end are here.
    pub(super) fn poll_arrived(self: &Rc<Self>, context: &Context<'_>) -> Poll<()> {
        let mut arrivals = self.arrivals.borrow_mut();
        if !arrivals.waiting.is_empty() || arrivals.end.is_some() {
            return Poll::Ready(());
        }
        match &mut arrivals.reader {
            Some(waker) => waker.clone_from(context.waker()),
            None => arrivals.reader = Some(context.waker().clone()),
        }
        if arrivals.watch == Watch::Off {
            self.watch(&mut arrivals);
        }
        Poll::Pending
    }

    /// The same, unless [`Self::nudge`] came first.
    pub(super) fn poll_wait(self: &Rc<Self>, context: &Context<'_>) -> Poll<Waited> {
        match self.poll_arrived(context) {
            Poll::Ready(()) => {
                self.nudged.set(false);
                Poll::Ready(Waited::Ready)
            }
            Poll::Pending if self.nudged.replace(false) => Poll::Ready(Waited::Nudged),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Moves what waits behind the buffer's filled bytes, one arrival; an empty buffer is exchanged for the
    /// one that the kernel filled. 0: the peer's end. `None`: nothing is here.
    pub(super) fn take_arrived(&self, buffer: &mut Buffer) -> Option<io::Result<usize>> {
        let mut arrivals = self.arrivals.borrow_mut();
        let Some(mut arrived) = arrivals.waiting.pop_front() else {
            return arrivals.end.map(|end| match end {
                0 => Ok(0),
                number => Err(io::Error::from_raw_os_error(number)),
            });
        };
        let count = arrived.len();
        arrivals.bytes -= count;
        drop(arrivals);
        if buffer.is_empty() {
            std::mem::swap(buffer, &mut arrived);
        } else {
            buffer.reserve(count);
            buffer.extend(arrived.filled());
        }
        self.reactor.buffers().put_back(arrived);
        Some(Ok(count))
    }

    /// A completion of the watch.
    pub(super) fn arrived(self: &Rc<Self>, arrival: Arrival, then: Then) {
        let mut arrivals = self.arrivals.borrow_mut();
        let was_stopping = arrivals.watch == Watch::Stopping;
        if then == Then::WatchIsOver {
            arrivals.watch = Watch::Off;
        }
        match arrival {
            Arrival::Bytes(buffer) => arrivals.add(buffer, self.reactor.buffers()),
            // Stopped by us, or out of lent buffers, which are refilled by now.
            Arrival::Ended(libc::ECANCELED) if was_stopping => {}
            Arrival::Ended(libc::ENOBUFS) => {}
            Arrival::Ended(end) => arrivals.end = Some(end),
            Arrival::Polled(result) => self.read_polled(&mut arrivals, result),
        }
        let is_enough = arrivals.is_bulk || arrivals.bytes >= ARRIVED_BYTES_MAX;
        if let (Watch::On(key), true) = (arrivals.watch, is_enough) {
            arrivals.watch = Watch::Stopping;
            self.reactor.cancel(key);
        }
        let has_news = !arrivals.waiting.is_empty() || arrivals.end.is_some();
        let is_awaited = arrivals.reader.is_some() && !arrivals.is_abandoned;
        if arrivals.watch == Watch::Off && !has_news && is_awaited {
            self.watch(&mut arrivals);
        }
        drop(arrivals);
        if has_news {
            self.wake_reader();
        }
    }

    /// Nothing completes within, so the arrivals may be borrowed.
    fn watch(self: &Rc<Self>, arrivals: &mut Arrivals) {
        let how_often = if arrivals.is_bulk { HowOften::Once } else { HowOften::Always };
        arrivals.watch = Watch::On(self.reactor.watch(self, how_often));
    }

    /// Where the kernel cannot receive into lent buffers, it said that a read would not wait.
    fn read_polled(&self, arrivals: &mut Arrivals, result: i32) {
        if result < 0 {
            arrivals.end = Some(-result).filter(|number| *number != libc::ECANCELED);
            return;
        }
        let mut buffer = self.reactor.buffers().take();
        match super::stream::receive_now(self.fd(), &mut buffer) {
            Ok(0) => arrivals.end = Some(0),
            Ok(_) => return arrivals.add(buffer, self.reactor.buffers()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => arrivals.end = Some(error.raw_os_error().unwrap_or(libc::EIO)),
        }
        self.reactor.buffers().put_back(buffer);
    }

    /// Nobody reads any more: the socket is closed when its last operation has ended.
    pub(super) fn abandon(&self) {
        let mut arrivals = self.arrivals.borrow_mut();
        arrivals.is_abandoned = true;
        arrivals.reader = None;
        while let Some(buffer) = arrivals.waiting.pop_front() {
            self.reactor.buffers().put_back(buffer);
        }
        arrivals.bytes = 0;
        if let Watch::On(key) = arrivals.watch {
            arrivals.watch = Watch::Stopping;
            self.reactor.cancel(key);
        }
    }

    fn wake_reader(&self) {
        // Cloned and kept: the same task reads again and again.
        let reader = self.arrivals.borrow().reader.clone();
        if let Some(waker) = reader {
            waker.wake();
        }
    }
}

impl Arrivals {
    fn add(&mut self, buffer: Buffer, pool: &BufferPool) {
        let count = buffer.len();
        if self.is_abandoned {
            return pool.put_back(buffer);
        }
        self.is_bulk = buffer.spare() == 0;
        self.bytes += count;
        match self.waiting.back_mut() {
            // A trickle must not pin a buffer for each of its bytes.
            Some(last) if count <= GATHERED_BYTES_MAX && last.spare() >= count => {
                last.extend(buffer.filled());
                pool.put_back(buffer);
            }
            _ => self.waiting.push_back(buffer),
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let fd = self.fd.as_raw_fd();
        if !self.reactor.close(fd) {
            // SAFETY: this is its only owner, and the ring did not take it.
            drop(unsafe { OwnedFd::from_raw_fd(fd) });
        }
    }
}
