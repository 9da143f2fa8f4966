//! Seeing that a client left, without a read that could swallow its next request.
//!
//! Each core has one epoll set that watches its clients for `RDHUP`, `HUP` and `ERR` only, and one
//! poll of that set in the ring. A connection costs one `epoll_ctl` when it is accepted and nothing
//! per request; an armed poll per request would cost two ring operations.

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::rc::Rc;

use io_uring::{opcode, types};

use super::ring::reactor::Reactor;
use crate::limits::HANGUPS_PER_TURN;

/// Watches this core's clients.
pub struct Hangups {
    set: Rc<OwnedFd>,
}

impl Hangups {
    /// An empty set.
    ///
    /// # Errors
    /// What the kernel said: out of descriptors.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no memory is involved.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new, so this is its only owner.
        let set = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { set: Rc::new(set) })
    }

    /// Reports the first hang-up of `fd` under `key`, once. Closing the socket ends the watch.
    ///
    /// # Errors
    /// What the kernel said: out of memory or watches.
    pub fn watch(&self, fd: RawFd, key: u64) -> io::Result<()> {
        let events = (libc::EPOLLRDHUP | libc::EPOLLONESHOT).cast_unsigned();
        let mut event = libc::epoll_event { events, u64: key };
        let set = self.set.as_raw_fd();
        // SAFETY: the kernel reads the event, which outlives the call.
        let result = unsafe { libc::epoll_ctl(set, libc::EPOLL_CTL_ADD, fd, &raw mut event) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Waits until somebody hung up.
    ///
    /// # Errors
    /// What the kernel said.
    pub async fn wait(&self) -> io::Result<()> {
        let operation = Reactor::current()?.start(Rc::clone(&self.set), |set| {
            let events = u32::from(libc::POLLIN.cast_unsigned());
            opcode::PollAdd::new(types::Fd(set.as_raw_fd()), events).build()
        });
        operation.await.0.map(|_| ())
    }

    /// Hands the keys of those who hung up to `hung_up`; never waits.
    pub fn drain(&self, mut hung_up: impl FnMut(u64)) {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; HANGUPS_PER_TURN];
        let length = i32::try_from(events.len()).unwrap_or(i32::MAX);
        let set = self.set.as_raw_fd();
        // SAFETY: the kernel writes at most `length` events to an array of that length.
        let count = unsafe { libc::epoll_wait(set, events.as_mut_ptr(), length, 0) };
        for event in events.iter().take(usize::try_from(count).unwrap_or(0)) {
            hung_up(event.u64);
        }
    }
}
