//! What of a JSON body goes into a record: `keep` and `drop`. Pure.

use serde_json::{Map, Value};
use switchboard_shared::definition::ArchivedMembers;

/// A body after its target's `keep` or `drop`.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Filtered {
    /// Nothing is asked for: the bytes as they came.
    Whole,
    /// The JSON, written anew.
    Edited(Vec<u8>),
    /// Nothing that could be told apart, so nothing is shown: no JSON, compressed, or cut.
    Withheld,
}

/// Applies `members` to a body; `None`: only its beginning is there. What cannot be read is withheld, never
/// shown by mistake.
pub(super) fn filter(members: &ArchivedMembers, body: Option<&[u8]>) -> Filtered {
    let pointers = match members {
        ArchivedMembers::All => return Filtered::Whole,
        ArchivedMembers::Keep(pointers) | ArchivedMembers::Drop(pointers) => pointers,
    };
    if body.is_some_and(<[u8]>::is_empty) {
        return Filtered::Whole;
    }
    let parsed = body.and_then(|body| serde_json::from_slice::<Value>(body).ok());
    let Some(mut value) = parsed else { return Filtered::Withheld };
    let pointers = pointers.iter().map(|pointer| pointer.as_str());
    let edited = match members {
        ArchivedMembers::Keep(_) => {
            let mut kept = Value::Object(Map::new());
            for pointer in pointers {
                if let Some(member) = value.pointer(pointer) {
                    put(&mut kept, pointer, member.clone());
                }
            }
            kept
        }
        ArchivedMembers::All | ArchivedMembers::Drop(_) => {
            pointers.for_each(|pointer| remove(&mut value, pointer));
            value
        }
    };
    serde_json::to_vec(&edited).map_or(Filtered::Withheld, Filtered::Edited)
}

/// A pointer's names (RFC 6901 §4).
fn names(pointer: &str) -> impl Iterator<Item = String> {
    pointer.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~"))
}

/// Puts a member where the pointer says, as a member of objects: an element of a list is kept under its
/// number.
fn put(root: &mut Value, pointer: &str, member: Value) {
    let mut place = root;
    for name in names(pointer) {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        let Value::Object(object) = place else { return };
        place = object.entry(name).or_insert(Value::Null);
    }
    *place = member;
}

fn remove(root: &mut Value, pointer: &str) {
    let Some((parent, _)) = pointer.rsplit_once('/') else { return };
    let Some(last) = names(pointer).last() else { return };
    match root.pointer_mut(parent) {
        Some(Value::Object(object)) => drop(object.remove(&last)),
        // The others keep their places: a gap would move what further pointers mean.
        Some(Value::Array(items)) => {
            if let Some(item) = last.parse::<usize>().ok().and_then(|place| items.get_mut(place)) {
                *item = Value::Null;
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use rkyv::rancor::Error;
    use rkyv::util::AlignedVec;
    use switchboard_shared::definition::Members;

    use super::*;

    fn filtered(members: &Members, body: &[u8]) -> Filtered {
        let bytes: AlignedVec = rkyv::to_bytes::<Error>(members).unwrap();
        let archived = rkyv::access::<ArchivedMembers, Error>(&bytes).unwrap();
        filter(archived, Some(body))
    }

    fn pointers(pointers: &[&str]) -> Vec<String> {
        pointers.iter().map(|pointer| (*pointer).to_owned()).collect()
    }

    fn edited(members: &Members, body: &str) -> String {
        match filtered(members, body.as_bytes()) {
            Filtered::Edited(bytes) => String::from_utf8(bytes).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn keep_shows_nothing_else() {
        let keep = Members::Keep(pointers(&["/context/country", "/k", "/absent/x", "/a~1b"]));
        let body = r#"{"k":10,"context":{"country":"DE","email":"a@b"},"secret":1,"a/b":[1]}"#;
        assert_eq!(edited(&keep, body), r#"{"a/b":[1],"context":{"country":"DE"},"k":10}"#);
        assert_eq!(edited(&keep, "[1,2]"), "{}");
    }

    #[test]
    fn drop_shows_everything_else() {
        let drop = Members::Drop(pointers(&["/context/email", "/messages/0", "/absent/x"]));
        let body = r#"{"context":{"country":"DE","email":"a@b"},"messages":["secret","b"]}"#;
        let left = r#"{"context":{"country":"DE"},"messages":[null,"b"]}"#;
        assert_eq!(edited(&drop, body), left);
    }

    #[test]
    fn what_cannot_be_read_is_withheld() {
        for members in [Members::Keep(pointers(&["/a"])), Members::Drop(pointers(&["/a"]))] {
            for body in [&b"\x1f\x8b\x08"[..], b"{\"a\":1", b"a=1&b=2", b"{} {}"] {
                assert_eq!(filtered(&members, body), Filtered::Withheld, "{body:?}");
            }
            assert_eq!(filtered(&members, b""), Filtered::Whole);
        }
        assert_eq!(filtered(&Members::All, b"\x1f\x8b"), Filtered::Whole);
    }
}
