//! Behaviour of the control plane, from outside: one binary, a file per subject.

mod allocation;
mod export;
mod rules;
mod schema;
