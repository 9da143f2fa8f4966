//! The data plane: one pinned io_uring executor per core, nothing shared on a request's way.
//!
//! In reading order: [`serve`] is one request's way, [`worker`] one core; [`http1`] knows bytes,
//! [`upstream`] endpoints, [`facts`] what is looked up for a Unit, [`net`] the runtime.

pub mod activation;
pub mod active;
pub mod admin;
pub mod announce;
pub mod args;
pub mod config;
pub mod cores;
pub mod counters;
pub mod facts;
pub mod feed;
pub mod http1;
pub mod limits;
pub mod log;
pub mod net;
pub mod serve;
pub mod shadow;
pub mod state;
pub mod status;
pub mod stop;
pub mod trusted;
pub mod upstream;
pub mod worker;

#[cfg(test)]
mod samples;
