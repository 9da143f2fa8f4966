//! The real binary against itself: the generator drives the model server over real sockets.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails its test")]
#![expect(clippy::print_stdout, reason = "the measured numbers belong into the test's output")]

mod behaviour;
mod capacity;
mod checks;
mod http;
mod open_loop;
mod others;
mod process;
mod replay;
mod report;
mod scenario;
mod streaming;
