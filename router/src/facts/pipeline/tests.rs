use std::time::Duration;

use switchboard_shared::definition::{Definition, Fact, FactKind};
use switchboard_shared::snapshot::{
    Expectations, SecretKey, Snapshot, SnapshotVersion, TrustedKeys, build,
};

use super::*;
use crate::net::clock;

pub(in crate::facts) fn snapshot() -> Snapshot {
    let fact = |name: &str, field: Option<&str>| Fact {
        name: name.into(),
        kind: FactKind::Text,
        key: format!("{name}:{{unit}}"),
        hash_field: field.map(str::to_owned),
        default: None,
        fresh_for_ms: field.map(|_| 300),
    };
    let definition = Definition {
        group: "test".into(),
        facts: vec![fact("a", None), fact("b", Some("f"))],
        ..Definition::default()
    };
    let key = SecretKey::from_seed(&[7; 32]);
    let file = build(&definition, SnapshotVersion::new(1).unwrap(), 0, &key).unwrap();
    let trusted = TrustedKeys::new([key.public()]).unwrap();
    Snapshot::open(&file, &trusted, Expectations::of_group("test")).unwrap()
}

pub(in crate::facts) fn found(lookup: &Lookup, place: usize) -> Option<String> {
    let values = lookup.values();
    match values.get(place) {
        (Answer::Found(_), bytes) => Some(String::from_utf8(bytes.to_vec()).unwrap()),
        _ => None,
    }
}

/// Asks for some Facts of a Unit.
fn ask(
    pipeline: &mut Pipeline,
    places: std::ops::Range<usize>,
    unit: &str,
    deadline: Instant,
    sending: Sending,
) -> Rc<Lookup> {
    let snapshot = snapshot();
    let lookup = Lookup::new(clock::now(), deadline);
    for place in places.clone() {
        assert!(lookup.expect_of_cache(&snapshot.payload().facts[place], unit));
    }
    let count = places.len();
    assert!(pipeline.send(&lookup, &(0..count).collect::<Vec<_>>(), sending));
    lookup
}

fn first(pipeline: &mut Pipeline, unit: &str, deadline: Instant) -> Rc<Lookup> {
    ask(pipeline, 0..1, unit, deadline, Sending::First)
}

fn deliver(pipeline: &mut Pipeline, bytes: &[u8]) -> Result<Delivered, NoResp> {
    let mut input = Buffer::default();
    input.extend(bytes);
    let pool = LookupPool::default();
    let delivered = pipeline.deliver(&mut input, &pool, None, clock::now())?;
    assert!(input.is_empty(), "all of it was a whole reply");
    Ok(delivered)
}

fn soon() -> Instant {
    clock::now() + Duration::from_secs(1)
}

#[test]
fn commands_leave_in_one_piece_and_replies_come_in_their_order() {
    let mut pipeline = Pipeline::default();
    let one = ask(&mut pipeline, 0..2, "u1", soon(), Sending::First);
    let two = first(&mut pipeline, "u2", soon());
    assert_eq!((&*one.key(0), &*one.key(1)), (&b"a:u1"[..], &b"b:u1"[..]));
    let mut sent = Buffer::default();
    pipeline.take_outgoing(&mut sent);
    let expected = "*2\r\n$3\r\nGET\r\n$4\r\na:u1\r\n*3\r\n$4\r\nHGET\r\n$4\r\nb:u1\r\n$1\r\nf\r\n\
                    *2\r\n$3\r\nGET\r\n$4\r\na:u2\r\n";
    assert_eq!(sent.filled(), expected.as_bytes());
    let delivered = deliver(&mut pipeline, b"$1\r\nx\r\n-WRONGTYPE no\r\n$-1\r\n").unwrap();
    assert_eq!((delivered.in_time, delivered.late), (2, 0));
    assert_eq!((found(&one, 0), one.due()), (Some("x".into()), None));
    assert_eq!(*one.values().get(1).0, Answer::Failed(ErrorClass::WrongType));
    assert_eq!(*two.values().get(0).0, Answer::Absent);
    assert_eq!(deliver(&mut pipeline, b"$1\r\nx\r\n").unwrap_err(), NoResp, "nobody asked for it");
}

/// RD-01
#[test]
fn a_late_reply_is_taken_and_goes_to_nobody_else() {
    let start = clock::now();
    let at = |millis| start + Duration::from_millis(millis);
    let (mut pipeline, pool) = (Pipeline::default(), LookupPool::default());
    let late = first(&mut pipeline, "late", at(10));
    let gone = first(&mut pipeline, "gone", at(30));
    let kept = first(&mut pipeline, "kept", at(20));
    assert_eq!(pipeline.expire(at(9)), (0, Some(at(10))));
    assert_eq!(pipeline.expire(at(10)), (1, Some(at(20))));
    assert_eq!(pipeline.expire(at(10)), (0, Some(at(20))), "it is counted once");
    pool.give_back(late); // its request goes on without
    pool.give_back(gone); // its client left
    assert_eq!(pipeline.unanswered(), 3);
    let torn = b"$4\r\nLATE\r\n$4\r\nGONE\r\n$4\r\nKEPT\r\n";
    let mut input = Buffer::default();
    for byte in torn {
        input.extend(&[*byte]);
        pipeline.deliver(&mut input, &pool, None, start).unwrap();
    }
    assert_eq!(found(&kept, 0).as_deref(), Some("KEPT"));
    // What is used again knows nothing of what it was.
    for _ in 0..3 {
        let next = pool.take(start, at(50));
        assert!(next.expect());
        assert_eq!((found(&next, 0), next.is_awaiting(0)), (None, true));
    }
}

#[test]
fn a_value_above_the_limit_is_dropped_without_losing_step() {
    let mut pipeline = Pipeline::default();
    let huge = first(&mut pipeline, "huge", soon());
    let next = first(&mut pipeline, "next", soon());
    let bytes = FACT_BYTES_MAX + 1;
    deliver(&mut pipeline, format!("${bytes}\r\n").as_bytes()).unwrap();
    for _ in 0..bytes {
        deliver(&mut pipeline, b"x").unwrap();
    }
    deliver(&mut pipeline, b"\r\n$2\r\nok\r\n").unwrap();
    assert_eq!(*huge.values().get(0).0, Answer::Unfit);
    assert_eq!(found(&next, 0).as_deref(), Some("ok"));
}

#[test]
fn a_lost_connection_ends_every_wait_and_starts_clean() {
    let (mut pipeline, pool) = (Pipeline::default(), LookupPool::default());
    let one = ask(&mut pipeline, 0..2, "u1", soon(), Sending::First);
    deliver(&mut pipeline, b"$1\r\nx\r\n").unwrap();
    pipeline.lose(&pool, None);
    assert_eq!((one.due(), one.values().cut()), (None, Some(Cut::Lost)));
    assert_eq!(found(&one, 0).as_deref(), Some("x"), "what was there stays");
    assert!(!pipeline.has_outgoing());
    assert_eq!(deliver(&mut pipeline, b"$1\r\ny\r\n").unwrap_err(), NoResp);
    assert!(one.is_awaiting(1));
}

#[test]
fn waiting_commands_are_bounded() {
    let mut pipeline = Pipeline::default();
    let lookup = first(&mut pipeline, "u", soon());
    for _ in 1..FACT_COMMANDS_MAX {
        assert!(pipeline.send(&lookup, &[0], Sending::First));
    }
    assert!(!pipeline.send(&lookup, &[0], Sending::First));
}

#[test]
fn the_first_of_two_servers_counts_and_an_error_only_if_it_is_the_last() {
    let hedged = || {
        let (mut slow, mut quick) = (Pipeline::default(), Pipeline::default());
        let lookup = first(&mut slow, "u1", soon());
        assert!(quick.send(&lookup, &[0], Sending::Hedge));
        (slow, quick, lookup)
    };
    let (mut slow, mut quick, lookup) = hedged();
    assert_eq!(deliver(&mut quick, b"$1\r\nx\r\n").unwrap().hedges_won, 1);
    let unheard = deliver(&mut slow, b"$1\r\ny\r\n").unwrap();
    assert_eq!((unheard.late, found(&lookup, 0)), (1, Some("x".into())));

    let (mut slow, mut quick, lookup) = hedged();
    deliver(&mut quick, b"-LOADING x\r\n").unwrap();
    assert!(lookup.due().is_some(), "the other one may know it");
    assert_eq!(deliver(&mut slow, b"$1\r\ny\r\n").unwrap().in_time, 1);
    assert_eq!(found(&lookup, 0).as_deref(), Some("y"));

    let (mut slow, mut quick, lookup) = hedged();
    deliver(&mut slow, b"-LOADING x\r\n").unwrap();
    deliver(&mut quick, b"-BUSY x\r\n").unwrap();
    assert_eq!(*lookup.values().get(0).0, Answer::Failed(ErrorClass::Busy));

    let pool = LookupPool::default();
    let (mut slow, mut quick, lookup) = hedged();
    slow.lose(&pool, None);
    assert!(lookup.due().is_some(), "the other one is still there");
    quick.lose(&pool, None);
    assert_eq!(lookup.values().cut(), Some(Cut::Lost));
}

/// RD-03
#[test]
fn a_command_is_redirected_once_and_only_while_somebody_waits() {
    let mut pipeline = Pipeline::default();
    let lookup = first(&mut pipeline, "u1", soon());
    let delivered = deliver(&mut pipeline, b"-MOVED 1 h:1\r\n").unwrap();
    assert!(delivered.is_moved && lookup.is_awaiting(0) && !lookup.is_asked(0));
    let [Redirect { is_ask: false, slot: 1, place: 0, node, .. }] = &*delivered.redirects else {
        panic!("{delivered:?}")
    };
    assert_eq!(&**node, "h:1");
    // Where it goes then: ASKING is for nobody.
    let mut other = Pipeline::default();
    assert!(other.send(&lookup, &[0], Sending::Ask));
    let mut sent = Buffer::default();
    other.take_outgoing(&mut sent);
    assert!(sent.filled().starts_with(b"*1\r\n$6\r\nASKING\r\n*2\r\n$3\r\nGET\r\n"));
    let again = deliver(&mut other, b"+OK\r\n-MOVED 1 h:2\r\n").unwrap();
    assert!(again.redirects.is_empty());
    assert_eq!(*lookup.values().get(0).0, Answer::Failed(ErrorClass::Moved));

    let late = first(&mut pipeline, "u2", clock::now());
    pipeline.expire(clock::now());
    let delivered = deliver(&mut pipeline, b"-ASK 1 h:1\r\n").unwrap();
    assert!(delivered.redirects.is_empty() && late.due().is_none());
}
