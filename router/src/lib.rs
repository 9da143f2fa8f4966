//! The data plane: one pinned io_uring executor per core, nothing shared on a request's way.

pub mod args;
pub mod config;
pub mod cores;
pub mod http1;
pub mod limits;
pub mod net;
