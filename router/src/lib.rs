//! The data plane: one pinned io_uring executor per core, nothing shared on a request's way.

pub mod http1;
