//! The only code that knows the runtime: ring, sockets, buffers, clock.
//!
//! Everything here moves bytes and decides nothing. Another runtime would replace this folder.

pub mod affinity;
pub mod clock;
pub mod peer;
pub mod signal;
