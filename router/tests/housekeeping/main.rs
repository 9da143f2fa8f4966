//! What the router does besides requests, over real sockets: feed, state folder, admin listener.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that meets what it does not expect fails"
)]

mod admin;
mod controller;
mod feed;
mod get;
mod privileged;
mod program;
mod router;
#[path = "../../src/samples.rs"]
mod samples;
