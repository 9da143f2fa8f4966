use super::*;
use crate::facts::lookup::{Cut, Taken};
use crate::facts::pipeline::tests::{found, snapshot};
use crate::limits::FACT_LOOKUPS_POOLED_MAX;
use crate::net::clock;

const TTL: Duration = Duration::from_millis(1000);
const ABSENT_TTL: Duration = Duration::from_millis(100);

fn near(bytes_max: u64) -> Near {
    Near::new(bytes_max, TTL, ABSENT_TTL)
}

/// A lookup of the first Fact of a user.
fn lookup(unit: &str) -> Rc<Lookup> {
    let snapshot = snapshot();
    let now = clock::now();
    let lookup = Lookup::new(now, now + TTL);
    assert!(lookup.expect_of_cache(&snapshot.payload().facts[0], unit));
    lookup
}

#[test]
fn what_the_cache_said_holds_for_its_time_and_no_longer() {
    let (near, pool, start) = (near(1 << 20), LookupPool::default(), clock::now());
    near.settle(&lookup("u1"), 0, &Ok(Some(b"DE")), &pool, start);
    near.settle(&lookup("u2"), 0, &Ok(None), &pool, start);
    near.settle(&lookup("u3"), 0, &Err(Answer::Unfit), &pool, start);
    let nano = Duration::from_nanos(1);
    for (unit, after, expected) in [
        ("u1", TTL - nano, Look::Answered),
        ("u1", TTL, Look::Unknown),
        ("u2", ABSENT_TTL - nano, Look::Answered),
        ("u2", ABSENT_TTL, Look::Unknown),
        ("u3", Duration::ZERO, Look::Unknown),
        ("u4", Duration::ZERO, Look::Unknown),
    ] {
        let asking = lookup(unit);
        assert_eq!(near.look(&asking, 0, start + after), expected, "{unit} after {after:?}");
        let is_known = unit == "u1" && expected == Look::Answered;
        assert_eq!(found(&asking, 0).as_deref(), is_known.then_some("DE"));
        assert_eq!(asking.due().is_none(), expected == Look::Answered);
    }
}

/// The second Fact of the Snapshot is fresh for 300 ms.
#[test]
fn a_fact_is_never_older_than_it_may_be() {
    let (near, pool, start) = (near(1 << 20), LookupPool::default(), clock::now());
    let lookup = || {
        let now = clock::now();
        let lookup = Lookup::new(now, now + TTL);
        assert!(lookup.expect_of_cache(&snapshot().payload().facts[1], "u1"));
        lookup
    };
    near.settle(&lookup(), 0, &Ok(Some(b"DE")), &pool, start);
    for (after, expected) in [(299, Look::Answered), (300, Look::Unknown)] {
        let now = start + Duration::from_millis(after);
        assert_eq!(near.look(&lookup(), 0, now), expected, "after {after} ms");
    }
    near.settle(&lookup(), 0, &Ok(None), &pool, start);
    assert_eq!(near.look(&lookup(), 0, start + ABSENT_TTL), Look::Unknown, "nor longer kept");
}

#[test]
fn who_asks_for_the_same_is_told_the_same() {
    let (near, pool, now) = (near(1 << 20), LookupPool::default(), clock::now());
    let first = lookup("u1");
    assert_eq!(near.look(&first, 0, now), Look::Unknown);
    near.departed(&first, 0);
    let others = [lookup("u1"), lookup("u1"), lookup("u2")];
    let looks = others.each_ref().map(|other| near.look(other, 0, now));
    assert_eq!(looks, [Look::Shared, Look::Shared, Look::Unknown]);
    assert!(others[0].is_shared() && !others[2].is_shared());
    others[1].cut(Cut::Late);
    near.settle(&first, 0, &Ok(Some(b"DE")), &pool, now);
    let told = others.each_ref().map(|other| found(other, 0));
    assert_eq!(told, [Some("DE".into()), None, None]);
    assert_eq!(first.answer(0, Ok(Some(b"DE"))), Taken::Last);
}

#[test]
fn who_waits_for_a_lost_answer_waits_no_longer() {
    let (near, pool, now) = (near(1 << 20), LookupPool::default(), clock::now());
    let (first, other) = (lookup("u1"), lookup("u1"));
    near.departed(&first, 0);
    assert_eq!(near.look(&other, 0, now), Look::Shared);
    near.lost(&first, 0, &pool);
    assert_eq!((other.due(), other.values().cut()), (None, Some(Cut::Lost)));
    assert_eq!(near.look(&lookup("u1"), 0, now), Look::Unknown, "the next one asks anew");
}

#[test]
fn it_never_holds_more_than_its_bytes() {
    let (near, pool, now) = (near(64 * 1024), LookupPool::default(), clock::now());
    for user in 0..FACT_LOOKUPS_POOLED_MAX * 4 {
        near.settle(&lookup(&format!("u{user}")), 0, &Ok(Some(&[b'x'; 100])), &pool, now);
        assert!(near.bytes() <= 64 * 1024);
    }
    assert!(near.bytes() > 32 * 1024, "and it uses them");
    near.settle(&lookup("huge"), 0, &Ok(Some(&[b'x'; 65_536])), &pool, now);
    assert!(near.bytes() <= 64 * 1024);
}
