//! Tasks of one core: spawning, and running two at once inside one.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Poll, Waker};
use std::time::Duration;

use async_task::Runnable;

thread_local! {
    /// What this core's tasks have to do next.
    static READY: RefCell<VecDeque<Runnable>> = RefCell::default();
}

/// Runs the future on this core until it ends; nobody waits for it.
pub fn spawn(future: impl Future<Output = ()> + 'static) {
    let (runnable, task) = async_task::spawn_local(future, schedule);
    runnable.schedule();
    task.detach();
}

fn schedule(runnable: Runnable) {
    READY.with(|ready| ready.borrow_mut().push_back(runnable));
}

/// Polls every task that is ready, and those that they wake, but at most `polls_max`. Tells whether some
/// are still ready.
pub(super) fn run_ready(polls_max: usize) -> bool {
    for _ in 0..polls_max {
        // Taken out first: a task that runs may make others ready.
        let next = READY.with(|ready| ready.borrow_mut().pop_front());
        match next {
            Some(runnable) => drop(runnable.run()),
            None => return false,
        }
    }
    READY.with(|ready| !ready.borrow().is_empty())
}

/// Forgets what was ready, at the end of a core.
pub(super) fn clear() {
    let ready = READY.with(|ready| std::mem::take(&mut *ready.borrow_mut()));
    drop(ready);
}

/// Wakes one task of the same core. A ring while nobody waits is kept for the next wait.
#[derive(Default)]
pub struct Doorbell {
    has_rung: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Doorbell {
    /// Wakes who waits, or who waits next.
    pub fn ring(&self) {
        self.has_rung.set(true);
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }

    /// Waits for a ring. The wait may be dropped.
    pub async fn wait(&self) {
        poll_fn(|context| {
            if self.has_rung.take() {
                return Poll::Ready(());
            }
            *self.waker.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// Runs `future` to its end; calls `alarm` once if that takes longer than `span`. The alarm is what makes it end.
pub async fn with_alarm<F: Future>(span: Duration, alarm: impl FnOnce(), future: F) -> F::Output {
    let mut future = pin!(future);
    let mut timer = pin!(super::clock::sleep(span));
    let mut alarm = Some(alarm);
    poll_fn(|context| {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(output);
        }
        if alarm.is_some()
            && timer.as_mut().poll(context).is_ready()
            && let Some(alarm) = alarm.take()
        {
            alarm();
        }
        Poll::Pending
    })
    .await
}

/// Runs both to their end, inside the caller's task.
pub async fn both<A: Future, B: Future>(a: A, b: B) -> (A::Output, B::Output) {
    let (mut a, mut b) = (pin!(a), pin!(b));
    let (mut a_output, mut b_output) = (None, None);
    poll_fn(|context| {
        if a_output.is_none()
            && let Poll::Ready(output) = a.as_mut().poll(context)
        {
            a_output = Some(output);
        }
        if b_output.is_none()
            && let Poll::Ready(output) = b.as_mut().poll(context)
        {
            b_output = Some(output);
        }
        match (a_output.take(), b_output.take()) {
            (Some(a), Some(b)) => Poll::Ready((a, b)),
            (a, b) => {
                (a_output, b_output) = (a, b);
                Poll::Pending
            }
        }
    })
    .await
}
