//! A Snapshot: any file is opened or refused; a payload that our own key signed, too, and what opens can be evaluated.
#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_shared::context::Context;
use switchboard_shared::decide::{decide, explain};
use switchboard_shared::snapshot::{
    Expectations, SecretKey, Snapshot, SnapshotVersion, TrustedKeys, sign,
};

fuzz_target!(|input: &[u8]| {
    let Some((bytes, how)) = switchboard_fuzz::split(input) else { return };
    let key = SecretKey::from_seed(&[7; 32]);
    let trusted = TrustedKeys::new([key.public()]).expect("one good key");
    if how == 1 {
        // A whole file, as it comes from a socket or a disk.
        assert!(
            Snapshot::open(bytes, &trusted, Expectations::of_group("test")).is_err()
                || bytes.len() > 128
        );
        return;
    }
    // Past the signature: a payload that no builder makes.
    let file = sign(bytes, SnapshotVersion::FIRST, 1, &key);
    let Ok(snapshot) = Snapshot::open(&file, &trusted, Expectations::of_group("test")) else {
        return;
    };
    let payload = snapshot.payload();
    for objective in payload.objectives.iter() {
        let context = Context::with_defaults(objective);
        let decision = decide(payload, objective, &context);
        objective.arm(decision.arm);
        let _explained = format!("{:?}", explain(payload, objective, &context));
    }
});
