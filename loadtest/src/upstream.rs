//! A model server for tests, demos and benchmarks: it answers as it is told, and tells what it got.

pub mod answer;
pub mod behaviour;
pub mod chat;
pub mod connection;
pub mod control;
pub mod counters;
pub mod echo;
pub mod latency;
pub mod model;
pub mod request;
pub mod serve;
