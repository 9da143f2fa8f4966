use std::time::Duration;

use switchboard_shared::definition::{Definition, Fact, FactKind};
use switchboard_shared::snapshot::{
    Expectations, SecretKey, Snapshot, SnapshotVersion, TrustedKeys, build,
};

use super::*;
use crate::net::clock;

fn snapshot() -> Snapshot {
    let fact = |name: &str, field: Option<&str>| Fact {
        name: name.into(),
        kind: FactKind::Text,
        key: format!("{name}:{{unit}}"),
        hash_field: field.map(str::to_owned),
        default: None,
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

fn found(lookup: &Lookup, place: usize) -> Option<String> {
    let values = lookup.values();
    match values.get(place) {
        (Answer::Found(_), bytes) => Some(String::from_utf8(bytes.to_vec()).unwrap()),
        _ => None,
    }
}

fn deliver(pipeline: &mut Pipeline, bytes: &[u8]) -> Result<Delivered, NoResp> {
    let mut input = Buffer::default();
    input.extend(bytes);
    let delivered = pipeline.deliver(&mut input)?;
    assert!(input.is_empty(), "all of it was a whole reply");
    Ok(delivered)
}

#[test]
fn commands_leave_in_one_piece_and_replies_come_in_their_order() {
    let snapshot = snapshot();
    let facts = || snapshot.payload().facts.iter();
    let due = clock::now() + Duration::from_secs(1);
    let mut pipeline = Pipeline::default();
    let one = pipeline.ask(facts(), "u1", due).unwrap();
    let two = pipeline.ask(facts().take(1), "u2", due).unwrap();
    let mut sent = Buffer::default();
    pipeline.take_outgoing(&mut sent);
    let expected = "*2\r\n$3\r\nGET\r\n$4\r\na:u1\r\n*3\r\n$4\r\nHGET\r\n$4\r\nb:u1\r\n$1\r\nf\r\n\
                    *2\r\n$3\r\nGET\r\n$4\r\na:u2\r\n";
    assert_eq!(sent.filled(), expected.as_bytes());
    let delivered = deliver(&mut pipeline, b"$1\r\nx\r\n-WRONGTYPE no\r\n$-1\r\n").unwrap();
    assert_eq!(delivered, Delivered { in_time: 2, late: 0 });
    assert_eq!((found(&one, 0), one.due()), (Some("x".into()), None));
    assert_eq!(*one.values().get(1).0, Answer::Failed(resp::ErrorClass::WrongType));
    assert_eq!(*two.values().get(0).0, Answer::Absent);
    assert_eq!(deliver(&mut pipeline, b"$1\r\nx\r\n"), Err(NoResp), "nobody asked for it");
}

/// RD-01
#[test]
fn a_late_reply_is_taken_and_goes_to_nobody_else() {
    let snapshot = snapshot();
    let facts = || snapshot.payload().facts.iter().take(1);
    let start = clock::now();
    let at = |millis| start + Duration::from_millis(millis);
    let mut pipeline = Pipeline::default();
    let late = pipeline.ask(facts(), "late", at(10)).unwrap();
    let gone = pipeline.ask(facts(), "gone", at(30)).unwrap();
    let kept = pipeline.ask(facts(), "kept", at(20)).unwrap();
    assert_eq!(pipeline.expire(at(9)), (0, Some(at(10))));
    assert_eq!(pipeline.expire(at(10)), (1, Some(at(20))));
    pipeline.give_back(late); // its request goes on without
    pipeline.give_back(gone); // its client left
    assert_eq!(pipeline.unanswered(), 3);
    let torn = b"$4\r\nLATE\r\n$4\r\nGONE\r\n$4\r\nKEPT\r\n";
    let mut input = Buffer::default();
    for byte in torn {
        input.extend(&[*byte]);
        pipeline.deliver(&mut input).unwrap();
    }
    assert_eq!(found(&kept, 0).as_deref(), Some("KEPT"));
    // What is used again knows nothing of what it was.
    for unit in ["next", "and", "more"] {
        let next = pipeline.ask(facts(), unit, at(50)).unwrap();
        assert_eq!((found(&next, 0), *next.values().get(0).0 == Answer::Awaited), (None, true));
    }
}

#[test]
fn a_value_above_the_limit_is_dropped_without_losing_step() {
    let snapshot = snapshot();
    let facts = || snapshot.payload().facts.iter().take(1);
    let due = clock::now() + Duration::from_secs(1);
    let mut pipeline = Pipeline::default();
    let huge = pipeline.ask(facts(), "huge", due).unwrap();
    let next = pipeline.ask(facts(), "next", due).unwrap();
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
    let snapshot = snapshot();
    let facts = || snapshot.payload().facts.iter();
    let due = clock::now() + Duration::from_secs(1);
    let mut pipeline = Pipeline::default();
    let one = pipeline.ask(facts(), "u1", due).unwrap();
    deliver(&mut pipeline, b"$1\r\nx\r\n").unwrap();
    pipeline.lose();
    assert_eq!((one.due(), one.values().cut()), (None, Some(Cut::Lost)));
    assert_eq!(found(&one, 0).as_deref(), Some("x"), "what was there stays");
    assert!(!pipeline.has_outgoing());
    assert_eq!(deliver(&mut pipeline, b"$1\r\ny\r\n"), Err(NoResp));
    assert_eq!(*one.values().get(1).0, Answer::Awaited);
}

#[test]
fn waiting_lookups_are_bounded() {
    let snapshot = snapshot();
    let facts = || snapshot.payload().facts.iter().take(1);
    let due = clock::now() + Duration::from_secs(1);
    let mut pipeline = Pipeline::default();
    for _ in 0..FACT_LOOKUPS_MAX {
        assert!(pipeline.ask(facts(), "u", due).is_some());
    }
    assert!(pipeline.ask(facts(), "u", due).is_none());
}
