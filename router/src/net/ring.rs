//! A core's executor: its ring with the cheapest flags that the kernel knows, and the loop around it.

mod lent;
pub(super) mod reactor;
mod timers;

#[cfg(test)]
mod tests;

pub(super) use timers::TimerId;

use std::future::Future;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use self::reactor::{Reactor, Wait};
use super::task;
use crate::limits::POLLS_PER_TURN;

/// How a ring was set up, best first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RingMode {
    /// `SINGLE_ISSUER | COOP_TASKRUN | DEFER_TASKRUN` (Linux 6.1): completions are run only when
    /// the core asks for them. Arriving bytes go into lent buffers by multishot receives.
    Deferred,
    /// `COOP_TASKRUN` (Linux 5.19): no inter-processor interrupt per completion. Sockets are polled and
    /// then read, as in the plain mode.
    Cooperative,
    /// No flags (Linux 5.11).
    Plain,
}

impl RingMode {
    const BEST_FIRST: [Self; 3] = [Self::Deferred, Self::Cooperative, Self::Plain];

    /// A word for logs and metrics.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Deferred => "deferred",
            Self::Cooperative => "cooperative",
            Self::Plain => "plain",
        }
    }

    fn builder(self) -> io_uring::Builder {
        let mut builder = io_uring::IoUring::builder();
        match self {
            Self::Deferred => {
                builder.setup_single_issuer().setup_coop_taskrun().setup_defer_taskrun();
            }
            Self::Cooperative => {
                builder.setup_coop_taskrun();
            }
            Self::Plain => {}
        }
        builder
    }
}

/// Makes a ring on this thread and runs the future on it to its end; `start` is told how the ring
/// was set up. The ring is entered by this thread only, as `DEFER_TASKRUN` requires.
///
/// # Errors
/// What the kernel said to the plainest ring: io_uring absent, forbidden, or out of locked memory; or to a
/// ring that ran.
pub fn run<F: Future>(start: impl FnOnce(RingMode) -> F) -> io::Result<F::Output> {
    let mut refused = io::Error::from(io::ErrorKind::Unsupported);
    for mode in RingMode::BEST_FIRST {
        match Reactor::new(mode) {
            Ok(reactor) => return run_on(reactor, start(mode)),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

fn run_on<F: Future>(reactor: Rc<Reactor>, future: F) -> io::Result<F::Output> {
    reactor.make_current();
    let output = turn_until_ready(&reactor, future);
    task::clear();
    reactor.end();
    output
}

fn turn_until_ready<F: Future>(reactor: &Reactor, future: F) -> io::Result<F::Output> {
    let woken = Arc::new(Woken(AtomicBool::new(true)));
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if woken.0.swap(false, Ordering::Relaxed)
            && let Poll::Ready(output) = future.as_mut().poll(&mut context)
        {
            return Ok(output);
        }
        let is_busy = task::run_ready(POLLS_PER_TURN) || woken.0.load(Ordering::Relaxed);
        reactor.turn(if is_busy { Wait::No } else { Wait::ForCompletion })?;
    }
}

/// Whether the future that the core runs for is to be polled.
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}
