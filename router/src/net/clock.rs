//! The monotonic clock, and waiting by it.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::ring::TimerId;
use super::ring::reactor::Reactor;

/// Now, monotonic. The one place that reads the clock, so that whatever decides by time gets it as
/// an argument.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is net/clock.rs, where time comes from")]
pub fn now() -> Instant {
    Instant::now()
}

/// Completes after `span`: not before, and as soon after as the core's present turn ends.
///
/// # Panics
/// Outside a core's ring.
pub async fn sleep(span: Duration) {
    let reactor = Reactor::current().expect("only tasks of a core sleep");
    let mut sleep = Sleep { reactor, at: now() + span, timer: None };
    poll_fn(|context| sleep.poll(context)).await;
}

/// The future's output, or `None` after `span`. The future is dropped then, so it must not be a
/// write of a connection that lives on.
pub async fn within<F: Future>(span: Duration, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut slept = pin!(sleep(span));
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => slept.as_mut().poll(context).map(|()| None),
    })
    .await
}

struct Sleep {
    reactor: Rc<Reactor>,
    at: Instant,
    timer: Option<TimerId>,
}

impl Sleep {
    fn poll(&mut self, context: &Context<'_>) -> Poll<()> {
        match self.timer {
            None => self.timer = Some(self.reactor.set_timer(self.at, context)),
            Some(timer) if self.reactor.keep_timer(timer, context) => {}
            Some(_) => {
                self.timer = None;
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(timer) = self.timer.take() {
            self.reactor.give_up_timer(timer);
        }
    }
}
