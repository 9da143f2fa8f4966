//! What a candidate would have answered: Shadow records in, results and a comparison out.
//!
//! In reading order, along a record's way: [`worker`] takes it from Kafka ([`kafka`]) when there is room, [`request`]
//! makes a request of it, [`replay`] brings that to the [`candidate`] (over [`connections`], to the endpoint that
//! [`endpoints`] chooses, when [`pace`] lets it), [`compare`] sets the answer beside the primary's, and [`result`] is
//! the record of that. Once Kafka has the result, [`progress`] tells how far the topic is done, and [`report`] counts it.
//!
//! `docs/shadow-worker.md` is the operator's page.

pub mod candidate;
pub mod compare;
mod connections;
mod endpoints;
pub mod kafka;
pub mod limits;
mod pace;
mod progress;
pub mod replay;
pub mod report;
mod request;
pub mod result;
pub mod worker;
