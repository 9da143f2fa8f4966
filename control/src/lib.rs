//! Switchboard's control plane: rules in, signed Snapshots out.
//!
//! In reading order, along a change's way: [`rules`] files are read and compiled into a Definition.

pub mod rules;
