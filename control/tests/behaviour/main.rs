//! Behaviour of the control plane, from outside: one binary, a file per subject.

mod allocation;
mod api;
mod changes;
mod crash;
mod export;
mod facts;
mod routers;
mod rules;
mod schema;
mod shadow;
mod stage;
