//! A real worker on a real ring, raw clients before it, scripted model servers behind it.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests run on ordinary threads"
)]
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod cache;
mod client;
mod redis_server;
mod router;
mod upstream;

mod bodies;
mod copies;
mod facts;
mod failing_over;
mod framing;
mod kafka;
mod leaving;
mod objectives;
mod redis;
mod redis_cluster;
mod redis_near;
mod redis_replica;
mod redis_tls;
