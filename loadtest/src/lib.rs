//! Switchboard's measuring side, as a library for its one binary `switchboard-loadtest`.
//!
//! A load run, in the order of its data:
//! - [`run`]: flags in, report out
//! - [`scenario`]: what is sent; [`schedule`]: when it is due
//! - [`generator`]: threads and connections that send it
//! - [`recorder`]: what one thread measured; [`accounting`]: CPU time of other processes
//! - [`report`]: what the run found out
//!
//! [`capacity`] searches for the rate that a target holds, [`replay`] sends recorded requests, and
//! [`compare`] runs it against several proxies.
//!
//! The other side and what both share:
//! - [`upstream`]: a model server for tests, demos and benchmarks
//! - [`http1`]: bytes of HTTP/1.1; [`net`]: the only code that knows the runtime
//! - [`text`], [`signal`], [`limits`]: what people write, what the host says, every maximum

pub mod capacity;
pub mod compare;
pub mod replay;
pub mod run;

pub mod scenario;
pub mod schedule;

pub mod generator;

pub mod accounting;
pub mod recorder;
pub mod report;

pub mod upstream;

pub mod http1;
pub mod net;

pub mod limits;
pub mod signal;
pub mod text;
