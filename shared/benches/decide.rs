//! Looking an Objective up and deciding, over 10 000 Objectives × 8 Rules. Target: below 300 ns.
//!
//! Objectives come in a scattered order, so that neither the caches nor the branch predictor know
//! the next one; a router that serves one Objective over and over is faster.

#[path = "../tests/support/fleet.rs"]
mod fleet;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use switchboard_shared::{
    context::{Context, Value},
    decide::{Decision, decide},
    slot::{Slot, SlotKey, Unit},
    snapshot::{
        AttributeIndex, Expectations, SecretKey, Snapshot, SnapshotVersion, TrustedKeys, build,
    },
};

/// One request of the usual kind, in the order of the attributes.
fn request(user: &str) -> [Value<'_>; 5] {
    [
        Value::Text(user),
        Value::Text("DE"),
        Value::Number(42.0),
        Value::Boolean(false),
        Value::Text("2.5.1"),
    ]
}

fn decide_one(snapshot: &Snapshot, token: &str, values: &[Value<'_>]) -> Option<Decision> {
    let objective = snapshot.objective(token.as_bytes())?;
    let mut context = Context::with_defaults(objective);
    for (place, value) in values.iter().enumerate() {
        context.set(AttributeIndex::new(place)?, *value);
    }
    Some(decide(snapshot.payload(), objective, &context))
}

fn bench(criterion: &mut Criterion) {
    let key = SecretKey::from_seed(&[1; 32]);
    let trusted = TrustedKeys::new([key.public()]).expect("one good key");
    let definition = fleet::definition();
    let file = build(&definition, SnapshotVersion::FIRST, 0, &key).expect("a good Definition");
    let expected = Expectations::of_group("bench");
    let snapshot = Snapshot::open(&file, &trusted, expected).expect("what was built");

    // 7 919 is prime: a walk of that stride meets each of the 10 000 once.
    let tokens: Vec<String> = (0..10_000_u32)
        .map(|one| one * 7_919 % 10_000)
        .filter_map(|one| one.try_into().ok())
        .map(fleet::token)
        .collect();
    let users: Vec<String> = (0..10_007).map(|one| format!("user-{one}")).collect();
    let mut next = {
        let mut requests = tokens.iter().cycle().zip(users.iter().cycle());
        move || requests.next().expect("an endless cycle")
    };

    let mut group = criterion.benchmark_group("decide");
    group.throughput(Throughput::Elements(1));
    group.bench_function("find the objective", |bencher| {
        bencher.iter(|| snapshot.objective(black_box(next().0).as_bytes()).is_some());
    });
    group.bench_function("find and decide by eight rules", |bencher| {
        bencher.iter(|| {
            let (token, user) = next();
            decide_one(&snapshot, black_box(token), &request(black_box(user)))
        });
    });
    group.bench_function("find and decide by the first rule", |bencher| {
        bencher.iter(|| {
            let token = black_box(next().0);
            let user = "staff-1-1"; // of one Objective; in the others the search is as long
            decide_one(&snapshot, token, &request(black_box(user)))
        });
    });
    group.bench_function("the same objective by eight rules", |bencher| {
        bencher.iter(|| decide_one(&snapshot, &tokens[7], &request(black_box(next().1))));
    });
    group.finish();

    let mut group = criterion.benchmark_group("slot");
    let slot_key = SlotKey::derive("heavy-trial-2026-11");
    group.bench_function("of a short unit", |bencher| {
        bencher.iter(|| Unit::text(black_box("user-12345")).map(|unit| Slot::of(&slot_key, &unit)));
    });
    group.finish();

    let mut group = criterion.benchmark_group("snapshot");
    group.sample_size(10);
    group.throughput(Throughput::Bytes(file.len() as u64));
    group.bench_function("build", |bencher| {
        bencher.iter(|| build(&definition, SnapshotVersion::FIRST, 0, &key));
    });
    group.bench_function("open", |bencher| {
        bencher.iter(|| Snapshot::open(black_box(&file), &trusted, expected).is_ok());
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
