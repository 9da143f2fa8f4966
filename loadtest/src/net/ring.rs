//! One io_uring per thread, with the flags that a shared-nothing thread may set.

use std::io;

use monoio::{IoUringDriver, Runtime, RuntimeBuilder};

use crate::limits::RING_ENTRIES;

/// A thread's executor. It has no timer of its own: see [`super::timer`].
pub type Ring = Runtime<IoUringDriver>;

/// Makes the calling thread's ring; it must be used by this thread only.
///
/// `SINGLE_ISSUER | COOP_TASKRUN | DEFER_TASKRUN` first, then fewer flags for older kernels.
///
/// # Errors
/// What the kernel says where it has no io_uring, or where it is forbidden.
pub fn ring() -> io::Result<Ring> {
    let mut deferred = io_uring::IoUring::builder();
    deferred.setup_single_issuer().setup_coop_taskrun().setup_defer_taskrun();
    let mut cooperative = io_uring::IoUring::builder();
    cooperative.setup_coop_taskrun();
    let plain = io_uring::IoUring::builder();

    let mut refusal = None;
    for builder in [deferred, cooperative, plain] {
        let attempt = RuntimeBuilder::<IoUringDriver>::new()
            .uring_builder(builder)
            .with_entries(RING_ENTRIES)
            .build();
        match attempt {
            Ok(ring) => return Ok(ring),
            Err(error) => refusal = Some(error),
        }
    }
    Err(refusal.unwrap_or_else(|| io::Error::from(io::ErrorKind::Unsupported)))
}
