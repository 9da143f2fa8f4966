//! How the contract behaves, seen from outside: one file per behaviour, one program to link.

mod roundtrip;
mod sample;
