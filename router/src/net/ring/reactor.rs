//! One core's ring: what was asked of the kernel, and who waits for what it answers.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use io_uring::types::Timespec;
use io_uring::{IoUring, cqueue, opcode, squeue};
use slab::Slab;

use super::RingMode;
use super::lent::{GROUP, LentBuffers};
use super::timers::{TimerId, Timers};
use crate::limits::RING_ENTRIES;
use crate::net::buffer::BufferPool;
use crate::net::clock;
use crate::net::socket::{Arrival, Socket};

/// Completions that nobody waits for: of cancels and closes.
const IGNORED: u64 = u64::MAX;
/// The completion of a deadline.
const DEADLINE: u64 = u64::MAX - 1;

thread_local! {
    /// This core's reactor, while its ring runs.
    static CURRENT: RefCell<Option<Rc<Reactor>>> = const { RefCell::new(None) };
}

/// A core's ring with everything that is in flight on it.
pub(in crate::net) struct Reactor {
    ring: RefCell<IoUring>,
    in_flight: RefCell<Slab<InFlight>>,
    /// `None`: this kernel has no multishot receive, so sockets are polled and then read.
    lent: Option<RefCell<LentBuffers>>,
    timers: RefCell<Timers>,
    /// Deadlines that the kernel was given, latest first.
    armed: RefCell<Vec<Instant>>,
    /// Read by the kernel when the deadline's entry is submitted.
    timespec: Box<Cell<Timespec>>,
    reaped: Cell<Vec<cqueue::Entry>>,
    buffers: Rc<BufferPool>,
    is_over: Cell<bool>,
}

/// Who waits for a completion.
enum InFlight {
    /// A future that was not polled since.
    Submitted,
    /// A future.
    Awaited(Waker),
    /// Its future has not fetched it yet.
    Done(i32),
    /// Its future is gone; what the kernel uses is kept until it is done.
    Abandoned(#[expect(dead_code, reason = "kept, not read")] Box<dyn Any>),
    /// A socket, for any number of completions.
    Arrivals(Rc<Socket>),
}

/// How sockets learn that bytes came.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::net) enum Receiving {
    /// The kernel writes into a lent buffer, again and again.
    Multishot,
    /// It says when a read would not wait.
    Polled,
}

impl Reactor {
    pub(super) fn new(mode: RingMode) -> io::Result<Rc<Self>> {
        let ring = mode.builder().build(RING_ENTRIES)?;
        let buffers = Rc::<BufferPool>::default();
        // `DEFER_TASKRUN` came with Linux 6.1, after both lent buffers and multishot receive.
        let lent = match mode {
            RingMode::Deferred => Some(RefCell::new(LentBuffers::register(&ring, &buffers)?)),
            RingMode::Cooperative | RingMode::Plain => None,
        };
        Ok(Rc::new(Self {
            ring: RefCell::new(ring),
            in_flight: RefCell::default(),
            lent,
            timers: RefCell::default(),
            armed: RefCell::default(),
            timespec: Box::default(),
            reaped: Cell::default(),
            buffers,
            is_over: Cell::new(false),
        }))
    }

    /// The one of this thread.
    ///
    /// # Errors
    /// No ring runs on this thread.
    pub(in crate::net) fn current() -> io::Result<Rc<Self>> {
        let current = CURRENT.with(|current| current.borrow().clone());
        current.ok_or_else(|| io::Error::other("no ring runs on this thread"))
    }

    pub(super) fn make_current(self: &Rc<Self>) {
        CURRENT.with(|current| *current.borrow_mut() = Some(Rc::clone(self)));
    }

    /// Nothing is submitted any more. What is in flight stays where it is, for the kernel may still write
    /// there: the memory is given up until the process ends, as the core is.
    pub(super) fn end(self: Rc<Self>) {
        self.is_over.set(true);
        CURRENT.with(|current| current.borrow_mut().take());
        let _unsent = self.ring.borrow().submit();
        std::mem::forget(self);
    }

    /// Spare buffers of this core.
    pub(in crate::net) fn buffers(&self) -> &Rc<BufferPool> {
        &self.buffers
    }

    /// How sockets of this ring receive.
    pub(in crate::net) fn receiving(&self) -> Receiving {
        if self.lent.is_some() { Receiving::Multishot } else { Receiving::Polled }
    }

    /// Submits what is queued, waits for a completion where nothing else is to do, and hands out what came.
    pub(super) fn turn(&self, wait: Wait) -> io::Result<()> {
        if wait == Wait::ForCompletion {
            self.arm_next_deadline();
        }
        let ring = self.ring.borrow();
        let wanted = usize::from(wait == Wait::ForCompletion);
        let entered = ring.submit_and_wait(wanted);
        drop(ring);
        match entered.map_err(|error| (error.raw_os_error(), error)) {
            Ok(_) | Err((Some(libc::EINTR | libc::EAGAIN | libc::EBUSY), _)) => {}
            Err((_, error)) => return Err(error),
        }
        self.reap();
        self.fire_deadlines();
        Ok(())
    }

    fn reap(&self) {
        let mut reaped = self.reaped.take();
        reaped.extend(self.ring.borrow_mut().completion());
        let mut took_lent = false;
        for entry in reaped.drain(..) {
            match entry.user_data() {
                IGNORED => {}
                DEADLINE => drop(self.armed.borrow_mut().pop()),
                key => took_lent |= self.complete(key, &entry),
            }
        }
        self.reaped.set(reaped);
        if let Some(lent) = self.lent.as_ref().filter(|_| took_lent) {
            lent.borrow().publish();
        }
    }

    /// Tells whether a lent buffer was taken.
    fn complete(&self, key: u64, entry: &cqueue::Entry) -> bool {
        let Ok(key) = usize::try_from(key) else { return false };
        let mut in_flight = self.in_flight.borrow_mut();
        let Some(place) = in_flight.get_mut(key) else { return false };
        match place {
            InFlight::Submitted => *place = InFlight::Done(entry.result()),
            InFlight::Awaited(_) => {
                let before = std::mem::replace(place, InFlight::Done(entry.result()));
                drop(in_flight);
                if let InFlight::Awaited(waker) = before {
                    waker.wake();
                }
            }
            InFlight::Done(_) => debug_assert!(false, "an operation completes once"),
            InFlight::Abandoned(_) => {
                let held = in_flight.remove(key);
                drop(in_flight);
                drop(held); // It may close a socket, which submits.
            }
            InFlight::Arrivals(socket) => {
                let goes_on = cqueue::more(entry.flags());
                let socket = Rc::clone(socket);
                if !goes_on {
                    drop(in_flight.remove(key));
                }
                drop(in_flight);
                let arrival = self.arrival(entry);
                let took = matches!(arrival, Arrival::Bytes(_));
                socket.arrived(arrival, goes_on);
                return took;
            }
        }
        false
    }

    fn arrival(&self, entry: &cqueue::Entry) -> Arrival {
        let Some(lent) = &self.lent else { return Arrival::Polled(entry.result()) };
        match (u32::try_from(entry.result()), cqueue::buffer_select(entry.flags())) {
            (Ok(count @ 1..), Some(id)) => {
                match lent.borrow_mut().take(id, count as usize, &self.buffers) {
                    Some(buffer) => Arrival::Bytes(buffer),
                    None => Arrival::Ended(libc::EPROTO),
                }
            }
            (Ok(0), _) => Arrival::Ended(0),
            (Ok(_), None) => Arrival::Ended(libc::EPROTO),
            (Err(_), _) => Arrival::Ended(-entry.result()),
        }
    }

    /// Queues an entry; it is submitted with all others of this turn.
    fn push(&self, entry: &squeue::Entry) {
        if self.is_over.get() {
            return;
        }
        loop {
            // SAFETY: whoever builds an entry keeps what it points at in `in_flight` until it completes.
            let pushed = unsafe { self.ring.borrow_mut().submission().push(entry) };
            if pushed.is_ok() {
                return;
            }
            // Full. The kernel takes all entries, or says why not; completions are handed out next turn.
            if let Err(error) = self.ring.borrow().submit()
                && !matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY))
            {
                return;
            }
        }
    }

    /// Starts an operation on `data`, which is kept until the kernel is done with it.
    pub(in crate::net) fn start<T: 'static>(
        self: &Rc<Self>,
        mut data: T,
        entry: impl FnOnce(&mut T) -> squeue::Entry,
    ) -> Operation<T> {
        let key = self.in_flight.borrow_mut().insert(InFlight::Submitted);
        self.push(&entry(&mut data).user_data(key as u64));
        Operation { reactor: Rc::clone(self), key, data: Some(data) }
    }

    /// Has the socket told of what arrives, until [`Self::cancel`].
    pub(in crate::net) fn watch(&self, socket: &Rc<Socket>) -> usize {
        let fd = io_uring::types::Fd(socket.fd());
        let entry = match self.receiving() {
            Receiving::Multishot => opcode::RecvMulti::new(fd, GROUP).build(),
            Receiving::Polled => {
                let events = (libc::POLLIN | libc::POLLRDHUP).cast_unsigned();
                opcode::PollAdd::new(fd, u32::from(events)).build()
            }
        };
        let key = self.in_flight.borrow_mut().insert(InFlight::Arrivals(Rc::clone(socket)));
        self.push(&entry.user_data(key as u64));
        key
    }

    /// Asks the kernel to end an operation early; its own completion tells what became of it.
    pub(in crate::net) fn cancel(&self, key: usize) {
        self.push(&opcode::AsyncCancel::new(key as u64).build().user_data(IGNORED));
    }

    /// Closes a descriptor with the turn's other entries. False: nothing is submitted any more.
    pub(in crate::net) fn close(&self, fd: libc::c_int) -> bool {
        if !self.is_over.get() {
            let close = opcode::Close::new(io_uring::types::Fd(fd)).build();
            self.push(&close.user_data(IGNORED));
        }
        !self.is_over.get()
    }

    /// Wakes the task at that time or soon after.
    pub(in crate::net) fn set_timer(&self, at: Instant, context: &Context<'_>) -> TimerId {
        self.timers.borrow_mut().set(at, context.waker().clone())
    }

    /// Waits on; false: it is due.
    pub(in crate::net) fn keep_timer(&self, id: TimerId, context: &Context<'_>) -> bool {
        self.timers.borrow_mut().keep(id, context)
    }

    /// Nobody waits for it any more.
    pub(in crate::net) fn give_up_timer(&self, id: TimerId) {
        self.timers.borrow_mut().give_up(id);
    }

    /// The kernel gets a deadline only where it has no sooner one: a timeout for each wait would program the
    /// clock's interrupt each time, which costs a virtual machine an exit.
    fn arm_next_deadline(&self) {
        let Some(next) = self.timers.borrow_mut().next() else { return };
        if self.armed.borrow().last().is_some_and(|armed| *armed <= next) {
            return;
        }
        self.armed.borrow_mut().push(next);
        let span = next.saturating_duration_since(clock::now());
        self.timespec.set(Timespec::new().sec(span.as_secs()).nsec(span.subsec_nanos()));
        let timeout = opcode::Timeout::new(self.timespec.as_ptr());
        self.push(&timeout.build().user_data(DEADLINE));
    }

    fn fire_deadlines(&self) {
        if self.timers.borrow_mut().next().is_none() {
            return;
        }
        let now = clock::now();
        loop {
            let due = self.timers.borrow_mut().pop(now);
            match due {
                Some(waker) => waker.wake(),
                None => return,
            }
        }
    }
}

/// Whether a turn may wait.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Wait {
    /// No task is ready: sleep until something completes.
    ForCompletion,
    /// Some are: only look.
    No,
}

/// One operation in flight. Dropped early, what it uses is kept until the kernel is done.
pub(in crate::net) struct Operation<T: 'static> {
    reactor: Rc<Reactor>,
    key: usize,
    data: Option<T>,
}

impl<T: Unpin> Future for Operation<T> {
    /// What the kernel returned, and what the operation was started with.
    type Output = (io::Result<usize>, T);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let operation = &mut *self;
        let mut in_flight = operation.reactor.in_flight.borrow_mut();
        let place = in_flight.get_mut(operation.key);
        let result = match place {
            Some(InFlight::Done(result)) => *result,
            Some(InFlight::Awaited(waker)) => {
                waker.clone_from(context.waker());
                return Poll::Pending;
            }
            Some(place @ InFlight::Submitted) => {
                *place = InFlight::Awaited(context.waker().clone());
                return Poll::Pending;
            }
            Some(InFlight::Abandoned(_) | InFlight::Arrivals(_)) | None => return Poll::Pending,
        };
        in_flight.remove(operation.key);
        drop(in_flight);
        let Some(data) = operation.data.take() else { return Poll::Pending };
        let outcome = usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result));
        Poll::Ready((outcome, data))
    }
}

impl<T> Drop for Operation<T> {
    fn drop(&mut self) {
        let Some(data) = self.data.take() else { return };
        let mut in_flight = self.reactor.in_flight.borrow_mut();
        let Some(place) = in_flight.get_mut(self.key) else { return };
        if matches!(place, InFlight::Done(_)) {
            in_flight.remove(self.key);
            drop(in_flight);
            drop(data);
            return;
        }
        let before = std::mem::replace(place, InFlight::Abandoned(Box::new(data)));
        drop(in_flight);
        drop(before);
        self.reactor.cancel(self.key);
    }
}
