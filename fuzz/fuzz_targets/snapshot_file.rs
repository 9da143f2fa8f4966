//! A Snapshot file of unknown origin: never taken, since nobody else has the key.

#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_shared::snapshot::{Expectations, SecretKey, Snapshot, TrustedKeys};

fuzz_target!(|file: &[u8]| {
    let key = SecretKey::from_seed(&[1; 32]).public();
    let trusted = TrustedKeys::new([key]).expect("one good key");
    let opened = Snapshot::open(file, &trusted, Expectations::of_group("default"));
    assert!(opened.is_err(), "a forged signature");
});
