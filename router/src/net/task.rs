//! Tasks of one core: spawning, and running two at once inside one.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// Runs the future on this core until it ends; nobody waits for it.
pub fn spawn(future: impl Future<Output = ()> + 'static) {
    monoio::spawn(future);
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
