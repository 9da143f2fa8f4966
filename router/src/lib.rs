//! The data plane: one pinned io_uring executor per core, nothing shared on a request's way.

pub mod activation;
pub mod active;
pub mod args;
pub mod config;
pub mod cores;
pub mod counters;
pub mod feed;
pub mod http1;
pub mod limits;
pub mod log;
pub mod net;
pub mod state;
pub mod status;
pub mod trusted;

#[cfg(test)]
mod samples;
