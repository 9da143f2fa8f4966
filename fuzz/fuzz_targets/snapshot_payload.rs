//! A payload that a trusted key has signed, whatever is in it: refused, or safe to evaluate.

#![no_main]

use ed25519_dalek::{Signer as _, SigningKey};
use libfuzzer_sys::fuzz_target;
use switchboard_shared::context::{Context, Value};
use switchboard_shared::decide::decide;
use switchboard_shared::definition::ValueKind;
use switchboard_shared::snapshot::{Expectations, SecretKey, Snapshot, TrustedKeys};

const SEED: [u8; 32] = [1; 32];

fuzz_target!(|payload: &[u8]| {
    let trusted = TrustedKeys::new([SecretKey::from_seed(&SEED).public()]).expect("one good key");
    let file = signed(payload);
    let Ok(snapshot) = Snapshot::open(&file, &trusted, Expectations::of_group("default")) else { return };
    let payload = snapshot.payload();
    for objective in payload.objectives.iter() {
        let found = snapshot.objective(objective.token.as_bytes()).expect("every token is found");
        assert_eq!(found.token, objective.token);
        let mut context = Context::with_defaults(objective);
        let decision = decide(payload, objective, &context);
        payload.model(objective.arm(decision.arm));
        for (index, attribute) in objective.attributes() {
            let value = match attribute.kind.to_native() {
                ValueKind::Text => Value::Text("1.2.3"),
                ValueKind::Number => Value::Number(7.0),
                ValueKind::Boolean => Value::Boolean(true),
            };
            context.set(index, value);
        }
        let decision = decide(payload, objective, &context);
        payload.shard(payload.model(objective.arm(decision.arm)));
    }
});

/// A file as docs/snapshot-format.md tells it, with any payload.
fn signed(payload: &[u8]) -> Vec<u8> {
    let key = SigningKey::from_bytes(&SEED);
    let key_id = blake3::hash(key.verifying_key().as_bytes());
    let mut file = b"SWBDSNAP".to_vec();
    file.extend(1_u16.to_le_bytes()); // format
    file.extend(0_u16.to_le_bytes()); // flags
    file.extend(1_u64.to_le_bytes()); // version
    file.extend(0_u64.to_le_bytes()); // created
    file.extend(&key_id.as_bytes()[..8]);
    file.extend((payload.len() as u64).to_le_bytes());
    file.extend(blake3::hash(payload).as_bytes());
    let message = [b"switchboard 2026-11 snapshot signature v1\0".as_slice(), &file].concat();
    file.extend(key.sign(&message).to_bytes());
    file.extend(payload);
    file
}
