//! Where requests go: one core's endpoints, their pooled connections and their health.
//!
//! Policies (`balance`, `health`, `budget`) are pure; `pool` moves the bytes.

pub mod balance;
pub mod budget;
pub mod health;
pub mod pool;
