//! The monotonic clock, and waiting by it.

use std::future::Future;
use std::time::{Duration, Instant};

/// Now, monotonic. The one place that reads the clock, so that whatever decides by time gets it as
/// an argument.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is net/clock.rs, where time comes from")]
pub fn now() -> Instant {
    Instant::now()
}

/// Completes after `span`, to about a millisecond.
pub async fn sleep(span: Duration) {
    monoio::time::sleep(span).await;
}

/// The future's output, or `None` after `span`. The future is dropped then, so it must not be a
/// read or write of a connection that lives on.
pub async fn within<F: Future>(span: Duration, future: F) -> Option<F::Output> {
    monoio::time::timeout(span, future).await.ok()
}
