//! One core's ring: what was asked of the kernel, and who waits for what it answers.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use slab::Slab;

use super::RingMode;
use super::lent::{GROUP, LentBuffers};
use super::timers::{TimerId, Timers};
use crate::limits::{CALM_COMPLETIONS_MAX, RING_ENTRIES};
use crate::net::buffer::BufferPool;
use crate::net::clock;
use crate::net::socket::{Arrival, Socket, Then};

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
    /// How many completions the present turn began with.
    reaped_count: Cell<usize>,
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

/// How often a socket wants to be told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::net) enum HowOften {
    /// Of each arrival.
    Always,
    /// Of the next one.
    Once,
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
            reaped_count: Cell::new(0),
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

    /// Whether so little happened in this turn that a system call of its own is cheaper than an entry, a
    /// completion and another turn for it. Measured: with one connection's events per turn, sending at once
    /// saves 5 % of all CPU time; with dozens, it costs 10 %.
    pub(in crate::net) fn is_calm(&self) -> bool {
        self.reaped_count.get() <= CALM_COMPLETIONS_MAX
    }

    /// Submits what is queued, waits for a completion where nothing else is to do, and hands out what came.
    pub(super) fn turn(&self, wait: Wait) -> io::Result<()> {
        if wait == Wait::ForCompletion {
            self.arm_next_deadline();
        }
        let entered = if wait == Wait::ForCompletion && !self.has_reaped() {
            self.ring.borrow().submit_and_wait(1)
        } else {
            // A ring that defers its work does none where nothing is waited for: a wait of no length.
            let no_time = Timespec::new();
            let look = SubmitArgs::new().timespec(&no_time);
            self.ring.borrow().submitter().submit_with_args(1, &look)
        };
        match entered.map_err(|error| (error.raw_os_error(), error)) {
            Ok(_) | Err((Some(libc::EINTR | libc::EAGAIN | libc::EBUSY | libc::ETIME), _)) => {}
            Err((_, error)) => return Err(error),
        }
        self.reap();
        self.fire_deadlines();
        Ok(())
    }

    /// Takes the completions out of the ring; [`Self::reap`] hands them out.
    fn collect(&self) {
        let mut reaped = self.reaped.take();
        reaped.extend(self.ring.borrow_mut().completion());
        self.reaped.set(reaped);
    }

    fn has_reaped(&self) -> bool {
        let reaped = self.reaped.take();
        let has_some = !reaped.is_empty();
        self.reaped.set(reaped);
        has_some
    }

    fn reap(&self) {
        self.collect();
        let mut reaped = self.reaped.take();
        self.reaped_count.set(reaped.len());
        let mut took_lent = false;
        for entry in reaped.drain(..) {
            match entry.user_data() {
                IGNORED => {}
                DEADLINE => drop(self.armed.borrow_mut().pop()),
                key => took_lent |= self.complete(key, &entry),
            }
        }
        // Where handing out filled the ring, further ones were collected: they are for the next turn.
        let collected = self.reaped.replace(reaped);
        if !collected.is_empty() {
            self.reaped.set(collected);
        }
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
                let is_over = !cqueue::more(entry.flags());
                let then = if is_over { Then::WatchIsOver } else { Then::More };
                let socket = Rc::clone(socket);
                if is_over {
                    drop(in_flight.remove(key));
                }
                drop(in_flight);
                let arrival = self.arrival(entry);
                let took = matches!(arrival, Arrival::Bytes(_));
                socket.arrived(arrival, then);
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
            // Full. The kernel takes all entries, but not while its completions are full, too.
            let submitted = self.ring.borrow().submit();
            match submitted.map_err(|error| error.raw_os_error()) {
                Ok(_) => {}
                Err(Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)) => self.collect(),
                // The next turn meets it, too, and ends the core.
                Err(_) => return,
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

    /// Has the socket told of what arrives: until [`Self::cancel`], or once.
    pub(in crate::net) fn watch(&self, socket: &Rc<Socket>, how_often: HowOften) -> usize {
        let fd = io_uring::types::Fd(socket.fd());
        let entry = match (self.receiving(), how_often) {
            (Receiving::Multishot, HowOften::Always) => opcode::RecvMulti::new(fd, GROUP).build(),
            (Receiving::Multishot, HowOften::Once) => {
                let receive = opcode::Recv::new(fd, std::ptr::null_mut(), 0).buf_group(GROUP);
                receive.build().flags(squeue::Flags::BUFFER_SELECT)
            }
            (Receiving::Polled, _) => {
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
