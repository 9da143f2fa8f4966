//! The only code that knows the runtime: ring, sockets, buffers, clock.
//!
//! Everything here moves bytes and decides nothing. Another runtime would replace this folder.

pub mod affinity;
pub mod buffer;
pub mod clock;
pub mod descriptors;
pub mod hangup;
pub mod listener;
pub mod peer;
pub mod ring;
pub mod signal;
pub mod slice;
mod socket;
pub mod stream;
pub mod task;
