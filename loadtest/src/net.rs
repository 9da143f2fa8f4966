//! The only code that knows the runtime: ring, pinned threads, sockets, timer.

pub mod address;
pub mod buffer;
pub mod cores;
pub mod listener;
pub mod ring;
pub mod stream;
pub mod timer;
