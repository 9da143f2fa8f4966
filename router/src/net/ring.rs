//! Starting a core's ring with the cheapest flags that the kernel knows.

use std::future::Future;
use std::io;

use monoio::{IoUringDriver, RuntimeBuilder};

use crate::limits::RING_ENTRIES;

/// How a ring was set up, best first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RingMode {
    /// `SINGLE_ISSUER | COOP_TASKRUN | DEFER_TASKRUN` (Linux 6.1): completions are run only when
    /// the core asks for them.
    Deferred,
    /// `COOP_TASKRUN` (Linux 5.19): no inter-processor interrupt per completion.
    Cooperative,
    /// No flags.
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
/// What the kernel said to the plainest ring: io_uring absent, forbidden, or out of locked memory.
pub fn run<F: Future>(start: impl FnOnce(RingMode) -> F) -> io::Result<F::Output> {
    let mut refused = io::Error::from(io::ErrorKind::Unsupported);
    for mode in RingMode::BEST_FIRST {
        let runtime = RuntimeBuilder::<IoUringDriver>::new()
            .with_entries(RING_ENTRIES)
            .uring_builder(mode.builder())
            .enable_timer()
            .build();
        match runtime {
            Ok(mut runtime) => return Ok(runtime.block_on(start(mode))),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}
