//! Switchboard's control plane: rules in, signed Snapshots out.
//!
//! In reading order, along a change's way: [`rules`] files are read and compiled into a Definition,
//! the [`plan`] tells what that would change, the [`registry`] stores it under a version, which goes
//! through its [`lifecycle`]: the [`gate`] asks the model servers, and the [`broadcaster`] takes the
//! signed Snapshot to the routers. [`deploy`] is what drives all of them,
//! and the [`api`] what people and pipelines talk to. [`shadow`] is a program of its own beside them: it replays what
//! routers recorded to a candidate, and compares.

pub mod api;
pub mod broadcaster;
mod call;
pub mod cli;
pub mod client;
mod clock;
mod crash;
pub mod deploy;
pub mod gate;
pub mod lifecycle;
pub mod plan;
pub mod registry;
pub mod rules;
pub mod shadow;
