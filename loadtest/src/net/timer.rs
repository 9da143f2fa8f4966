//! Sleeps with microsecond precision: one timerfd per thread, read through the ring.
//!
//! monoio's own timer wheel rounds up to whole milliseconds, which would be most of a latency
//! that is measured from an intended start.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use monoio::fs::File;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

/// A thread's timer.
#[derive(Clone)]
pub struct Timer(Rc<Inner>);

struct Inner {
    descriptor: std::os::fd::OwnedFd,
    /// The same moment on both clocks: `Instant` hides its own number.
    epoch: (Instant, Duration),
    sleepers: RefCell<BinaryHeap<Reverse<Sleeper>>>,
    next_order: Cell<u64>,
}

/// Ordered by deadline, then by arrival.
struct Sleeper {
    deadline: Instant,
    order: u64,
    entry: Rc<Entry>,
}

#[derive(Default)]
struct Entry {
    due: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Timer {
    /// Makes the calling thread's timer and starts the task that drives it; call it inside the
    /// thread's ring.
    ///
    /// # Errors
    /// What the kernel says, such as too many open files.
    pub fn start() -> io::Result<Self> {
        // Not NONBLOCK: the ring would then answer EAGAIN instead of waiting.
        let descriptor = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        let file = File::from_std(descriptor.try_clone()?.into())?;
        let monotonic = clock_gettime(ClockId::Monotonic);
        let timer = Self(Rc::new(Inner {
            descriptor,
            epoch: (Instant::now(), Duration::try_from(monotonic).unwrap_or_default()),
            sleepers: RefCell::default(),
            next_order: Cell::new(0),
        }));
        let weak = Rc::downgrade(&timer.0);
        monoio::spawn(async move {
            let mut expirations = vec![0_u8; size_of::<u64>()];
            loop {
                let result;
                (result, expirations) = file.read_at(expirations, 0).await;
                let (Ok(_), Some(inner)) = (result, weak.upgrade()) else { return };
                inner.wake_due(Instant::now());
            }
        });
        Ok(timer)
    }

    /// Sleeps until `deadline`; ends at once where it has passed.
    pub fn sleep_until(&self, deadline: Instant) -> Sleep {
        Sleep { timer: Rc::clone(&self.0), deadline, entry: None }
    }

    /// Sleeps for `duration` from now.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        self.sleep_until(Instant::now() + duration)
    }
}

impl Inner {
    fn add(&self, deadline: Instant, entry: Rc<Entry>) {
        let order = self.next_order.get();
        self.next_order.set(order + 1);
        let mut sleepers = self.sleepers.borrow_mut();
        let is_first = sleepers.peek().is_none_or(|Reverse(first)| deadline < first.deadline);
        sleepers.push(Reverse(Sleeper { deadline, order, entry }));
        if is_first {
            self.arm(deadline);
        }
    }

    fn wake_due(&self, now: Instant) {
        let mut sleepers = self.sleepers.borrow_mut();
        while let Some(Reverse(first)) = sleepers.peek() {
            if first.deadline > now {
                self.arm(first.deadline);
                return;
            }
            let Some(Reverse(sleeper)) = sleepers.pop() else { return };
            sleeper.entry.due.set(true);
            if let Some(waker) = sleeper.entry.waker.take() {
                waker.wake();
            }
        }
    }

    fn arm(&self, deadline: Instant) {
        let at = self.epoch.1 + deadline.saturating_duration_since(self.epoch.0);
        // Zero would disarm; the monotonic clock is never zero on a running host.
        let it_value = Timespec::try_from(at).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 });
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let armed = timerfd_settime(
            &self.descriptor,
            TimerfdTimerFlags::ABSTIME,
            &Itimerspec { it_interval, it_value },
        );
        debug_assert!(armed.is_ok(), "an absolute time on an own timerfd is always accepted");
    }
}

impl PartialEq for Sleeper {
    fn eq(&self, other: &Self) -> bool {
        (self.deadline, self.order) == (other.deadline, other.order)
    }
}

impl Eq for Sleeper {}

impl PartialOrd for Sleeper {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Sleeper {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.deadline, self.order).cmp(&(other.deadline, other.order))
    }
}

/// Ends at its deadline. Dropping it early is free; its entry leaves at the deadline.
pub struct Sleep {
    timer: Rc<Inner>,
    deadline: Instant,
    entry: Option<Rc<Entry>>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if let Some(entry) = &self.entry {
            if entry.due.get() {
                return Poll::Ready(());
            }
            entry.waker.replace(Some(context.waker().clone()));
            return Poll::Pending;
        }
        if self.deadline <= Instant::now() {
            return Poll::Ready(());
        }
        let entry = Rc::new(Entry::default());
        entry.waker.replace(Some(context.waker().clone()));
        self.timer.add(self.deadline, Rc::clone(&entry));
        self.entry = Some(entry);
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::ring::ring;

    #[test]
    fn sleepers_wake_in_the_order_of_their_deadlines_and_never_early() {
        ring().unwrap().block_on(async {
            let timer = Timer::start().unwrap();
            let start = Instant::now();
            let woken = Rc::new(RefCell::new(Vec::new()));
            let tasks: Vec<_> = [30_u64, 10, 20, 0, 10]
                .into_iter()
                .map(|milliseconds| {
                    let (timer, woken) = (timer.clone(), Rc::clone(&woken));
                    monoio::spawn(async move {
                        let deadline = start + Duration::from_millis(milliseconds);
                        timer.sleep_until(deadline).await;
                        assert!(Instant::now() >= deadline);
                        woken.borrow_mut().push(milliseconds);
                    })
                })
                .collect();
            for task in tasks {
                task.await;
            }
            assert_eq!(*woken.borrow(), [0, 10, 10, 20, 30]);
        });
    }

    #[test]
    fn a_dropped_sleep_holds_nobody_up() {
        ring().unwrap().block_on(async {
            let timer = Timer::start().unwrap();
            let mut dropped = Box::pin(timer.sleep(Duration::from_millis(5)));
            monoio::select! {
                () = &mut dropped => unreachable!("the other ends first"),
                () = timer.sleep(Duration::ZERO) => {}
            }
            drop(dropped);
            timer.sleep(Duration::from_millis(10)).await;
        });
    }
}
