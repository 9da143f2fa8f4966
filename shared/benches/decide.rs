//! Looking an Objective up and deciding, over 10 000 Objectives × 8 Rules. Target: below 300 ns.
//!
//! "Any objective" walks all of them in a scattered order, so that no cache knows the next one: the
//! worst case. Most traffic of most hosts is about few Objectives; "one objective" is that case.
//! The figures include finding the Objective and filling the Context.

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
    let numbers = (0..10_000_u32).filter_map(|one| u16::try_from(one * 7_919 % 10_000).ok());
    let (even, odd): (Vec<u16>, Vec<u16>) = numbers.partition(|number| number % 2 == 0);
    let users: Vec<String> = (0..10_007).map(|one| format!("user-{one}")).collect();

    let mut group = criterion.benchmark_group("decide");
    group.throughput(Throughput::Elements(1));
    for (hashes, numbers) in [("one experiment", even), ("a layer and an experiment", odd)] {
        let tokens: Vec<String> = numbers.into_iter().map(fleet::token).collect();
        for (which, tokens) in [("one objective", &tokens[..1]), ("any objective", &tokens)] {
            let mut requests = tokens.iter().cycle().zip(users.iter().cycle());
            group.bench_function(format!("8 rules, {hashes}, {which}"), |bencher| {
                bencher.iter(|| {
                    let (token, user) = requests.next().expect("an endless cycle");
                    decide_one(&snapshot, black_box(token), &request(black_box(user)))
                });
            });
        }
        group.bench_function(format!("find any objective with {hashes}"), |bencher| {
            let mut tokens = tokens.iter().cycle();
            bencher.iter(|| {
                let token = tokens.next().expect("an endless cycle");
                snapshot.objective(black_box(token).as_bytes()).is_some()
            });
        });
    }
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
