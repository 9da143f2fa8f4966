//! How the contract behaves, seen from outside: one file per behaviour, one program to link.

mod archived;
mod experiments;
mod explaining;
mod keys;
mod opening;
mod predicates;
mod refusing;
mod roundtrip;
mod sample;
mod shadow;
mod vectors;
mod versions;
