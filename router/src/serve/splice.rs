//! Where Facts go in a JSON body: which bytes give way, and to what. All other bytes stay as they came.

use switchboard_shared::definition::{
    ArchivedFactsConflict, ArchivedFactsObject, ArchivedFactsOwner,
};
use switchboard_shared::snapshot::ArchivedPayload;

use super::json::place::{ObjectPlace, Place};
use super::json::{Document, JsonError};
use super::served::Served;

/// Why Facts cannot be put into a client's body: 400.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SpliceError {
    /// The client wrote a member where a Fact goes, and the Arm says that this is refused.
    #[error("the body has a member where the router puts its own")]
    Taken,
    /// What should be an object is none.
    #[error("the body has something else where an object is needed")]
    NoObject,
    /// The body, or a member that stands twice.
    #[error("{0}")]
    Json(#[from] JsonError),
}

impl SpliceError {
    /// Stable label for answers and metrics.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Taken => "facts_member_taken",
            Self::NoObject => "facts_no_object",
            Self::Json(error) => error.reason(),
        }
    }
}

/// Decides all edits that put the Facts of `served` where `into` says.
///
/// # Errors
/// See [`SpliceError`]; `served` must not be used then.
pub fn place(
    document: &Document<'_>,
    into: &ArchivedFactsObject,
    payload: &ArchivedPayload,
    served: &mut Served,
) -> Result<(), SpliceError> {
    let refuses = into.conflict == ArchivedFactsConflict::Refuse;
    let is_shared = into.owner == ArchivedFactsOwner::Shared;
    match document.place(&into.pointer)? {
        Place::Object(object) if is_shared => merge(document, object, into, payload, served),
        Place::Object(object) => {
            if refuses {
                return Err(SpliceError::Taken);
            }
            let mark = served.mark();
            write_object(served, into, payload);
            served.edit(document.object_range(object), mark);
            Ok(())
        }
        Place::Missing { within, names } => {
            let mark = served.mark();
            let depth = names.split('/').count() - 1;
            for (number, name) in names.split('/').skip(1).enumerate() {
                if number > 0 {
                    served.append(b"{");
                }
                served.append_name(name);
                served.append(b":");
            }
            write_object(served, into, payload);
            for _ in 1..depth {
                served.append(b"}");
            }
            insert(served, within, mark);
            Ok(())
        }
        Place::Other { value, is_null, is_last } => {
            if !is_last || is_shared && !is_null {
                return Err(SpliceError::NoObject);
            }
            if refuses && !is_null {
                return Err(SpliceError::Taken);
            }
            let mark = served.mark();
            write_object(served, into, payload);
            served.edit(value, mark);
            Ok(())
        }
    }
}

/// Each Fact takes the place of the client's member of its name, or is added in front of the others.
fn merge(
    document: &Document<'_>,
    object: ObjectPlace,
    into: &ArchivedFactsObject,
    payload: &ArchivedPayload,
    served: &mut Served,
) -> Result<(), SpliceError> {
    for place in 0..served.len() {
        let Some(name) = name_of(served, place, payload) else { continue };
        if let Some(value) = document.member_value(object, name)? {
            if into.conflict == ArchivedFactsConflict::Refuse {
                return Err(SpliceError::Taken);
            }
            let mark = served.mark();
            served.append_value(place, into);
            served.edit(value, mark);
        }
    }
    let mark = served.mark();
    for place in 0..served.len() {
        let Some(name) = name_of(served, place, payload) else { continue };
        if document.member_value(object, name)?.is_none() {
            if served.mark() > mark {
                served.append(b",");
            }
            write_member(served, name, place, into);
        }
    }
    if served.mark() > mark {
        insert(served, object, mark);
    }
    Ok(())
}

/// What was appended since `mark` stands first in the object.
fn insert(served: &mut Served, object: ObjectPlace, mark: usize) {
    if object.members > 0 {
        served.append(b",");
    }
    let behind_brace = object.start + 1;
    served.edit(behind_brace..behind_brace, mark);
}

fn write_object(served: &mut Served, into: &ArchivedFactsObject, payload: &ArchivedPayload) {
    served.append(b"{");
    for place in 0..served.len() {
        let Some(name) = name_of(served, place, payload) else { continue };
        if place > 0 {
            served.append(b",");
        }
        write_member(served, name, place, into);
    }
    served.append(b"}");
}

fn write_member(served: &mut Served, name: &str, place: usize, into: &ArchivedFactsObject) {
    // A Fact's name has nothing that JSON would escape.
    for part in [&b"\""[..], name.as_bytes(), b"\":"] {
        served.append(part);
    }
    served.append_value(place, into);
}

fn name_of<'a>(served: &Served, place: usize, payload: &'a ArchivedPayload) -> Option<&'a str> {
    served.item(place).map(|item| payload.fact(item.fact).name.as_str())
}
