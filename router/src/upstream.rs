//! Where requests go: one core's endpoints, their pooled connections and their health.
//!
//! Policies (`balance`, `health`, `rest`, `budget`) are pure; `pool` moves the bytes, `survey` tells how it is.

pub mod balance;
pub mod budget;
pub mod health;
pub mod pool;
pub mod rest;
pub mod survey;
