//! What the router and the control plane agree on: words, bucketing, predicates, the signed
//! Snapshot, and the frames that push it. No I/O and no runtime.
//!
//! In reading order, along the data's way: a [`definition`] is built into a [`snapshot`], pushed in
//! [`push`] frames, opened by a router, and asked by [`decide`]. What a router copies of its requests is
//! read back through [`shadow_record`], and [`properties`] say how to reach it.

pub mod address;
pub mod allocation;
pub mod context;
pub mod decide;
pub mod definition;
pub mod limits;
pub mod predicate;
pub mod properties;
pub mod push;
pub mod shadow_record;
pub mod slot;
pub mod snapshot;
pub mod text_table;
