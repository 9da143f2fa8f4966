//! The hot path of `shared`, under an allocator that counts: 10 000 Objectives × 8 Rules.

#[path = "support/fleet.rs"]
mod fleet;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    collections::HashMap,
    hint::black_box,
};

use switchboard_shared::{
    context::{Context, Value},
    decide::{Reason, decide},
    snapshot::{Expectations, SecretKey, Snapshot, SnapshotVersion, TrustedKeys, build},
};

/// Counts what this thread allocates: the test program's other threads do not matter.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count() {
    // A thread that is being torn down has no counter any more; nor is it measured.
    ALLOCATIONS.try_with(|counter| counter.set(counter.get() + 1)).unwrap_or_default();
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps `GlobalAlloc`'s contract, and this passes it on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count();
        // SAFETY: the caller keeps `GlobalAlloc`'s contract, and this passes it on.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count();
        // SAFETY: the caller keeps `GlobalAlloc`'s contract, and this passes it on.
        unsafe { System.realloc(memory, layout, bytes) }
    }
}

/// Calls of the allocator, frees included, while `work` runs.
fn allocations_of<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = ALLOCATIONS.get();
    let result = work();
    (result, ALLOCATIONS.get() - before)
}

#[test]
fn ten_thousand_objectives_are_decided_without_one_allocation() {
    let key = SecretKey::from_seed(&[1; 32]);
    let trusted = TrustedKeys::new([key.public()]).expect("one good key");
    let file = build(&fleet::definition(), SnapshotVersion::FIRST, 0, &key).expect("good");
    let expected = Expectations::of_group("bench");
    let snapshot = Snapshot::open(&file, &trusted, expected).expect("what was built");
    let tokens: Vec<String> = (0..fleet::OBJECTIVES).map(fleet::token).collect();

    // The counter counts, else the zero below would mean nothing.
    assert_eq!(allocations_of(|| drop(black_box(Box::new(7_u64)))).1, 2);

    // Long pre-release, as the `semver` crate would allocate for it.
    let versions = ["2.4.0", "2.5.1-release-candidate.20261130+build.7", "no version"];
    let mut reasons: HashMap<Reason, u32> = HashMap::new();
    for (number, token) in tokens.iter().enumerate() {
        let user = format!("user-{number}");
        let request = || {
            let objective = snapshot.objective(token.as_bytes())?;
            let mut context = Context::with_defaults(objective);
            for (index, attribute) in objective.attributes() {
                let text = match attribute.name.as_str() {
                    "user_id" if number % 10 == 9 => continue,
                    "user_id" => user.as_str(),
                    "country" => "DE",
                    "age" => "42.5",
                    "beta" => "false",
                    _ => versions[number % 3],
                };
                context.set(index, attribute.parse_text(text).ok()?);
            }
            Some(decide(snapshot.payload(), objective, &context))
        };
        let (decision, allocations) = allocations_of(request);
        assert_eq!(allocations, 0, "{token}");
        *reasons.entry(decision.expect("a good request").reason).or_default() += 1;
    }
    // All ways through were taken: 9 000 users were bucketed, the others had no Unit.
    assert_eq!(reasons.get(&Reason::Experiment), Some(&9_000));
    assert_eq!(reasons.get(&Reason::NoUnit), Some(&1_000));
}

#[test]
fn a_number_becomes_a_unit_without_an_allocation() {
    use switchboard_shared::slot::{Slot, SlotKey, Unit};

    let key = SlotKey::derive("salt");
    let (slot, allocations) = allocations_of(|| {
        let unit = Unit::number(-9_007_199_254_740_992.0)?;
        Some(Slot::of(&key, &unit))
    });
    assert!(slot.is_some());
    assert_eq!(allocations, 0);
}

/// Not the hot path, but a value's refusal is: a hostile client must not make the router allocate.
#[test]
fn refusing_a_value_allocates_nothing() {
    let key = SecretKey::from_seed(&[1; 32]);
    let trusted = TrustedKeys::new([key.public()]).expect("one good key");
    let mut definition = fleet::definition();
    definition.objectives.truncate(1);
    let file = build(&definition, SnapshotVersion::FIRST, 0, &key).expect("good");
    let snapshot = Snapshot::open(&file, &trusted, Expectations::of_group("bench")).expect("good");
    let objective = snapshot.objective(fleet::token(0).as_bytes()).expect("the only one");
    let (refused, allocations) = allocations_of(|| {
        let number = objective.attributes().find(|(_, one)| one.name == "age")?.1;
        Some(number.parse_text("NaN").is_err() && number.accept(Value::Text("1")).is_err())
    });
    assert_eq!((refused, allocations), (Some(true), 0));
}
