//! What leaves for the model server: the client's head without what concerned the client's connection, and the
//! client's body, byte for byte but for the spliced places.

use std::ops::Range;

use arrayvec::ArrayVec;
use switchboard_shared::limits::FACTS_PER_ARM_MAX;
use switchboard_shared::snapshot::ArchivedModelVersion;

use super::request::Request;
use super::served::{Edit, Served};
use crate::http1::write::{self, RequestEdit};
use crate::http1::{
    FieldValue, Fields, HeaderKind, HeaderSet, RequestFraming, RequestPath, RequestView,
};
use crate::limits::COPY_BYTES_MAX;
use crate::net::buffer::Buffer;
use crate::worker::Worker;

/// A request as it leaves, kept until its answer has begun so that it can be sent again.
pub struct Outbound {
    /// The head, and a short body behind it.
    pub head: Buffer,
    /// A body that is worth its own vector; empty if the head's buffer holds it.
    pub body: Buffer,
}

impl Outbound {
    /// Gives the buffers back.
    pub fn recycle(self, worker: &Worker) {
        worker.buffers.put_back(self.head);
        worker.buffers.put_back(self.body);
    }
}

/// Renders a request for its Arm. `input` holds the client's head, and the body if that is `Held`.
pub fn render(
    worker: &Worker,
    request: &Request,
    head: &RequestView<'_>,
    input: &Buffer,
    fields: &mut Fields,
) -> Outbound {
    let model = request.arm().map(|arm| request.view.active.snapshot.payload().model(arm));
    let edits = edits(request, model);
    let whole = request.body.whole(input);
    let framing = match whole {
        Some(body) => whole_framing(request, body, &edits),
        None => request.framing,
    };
    request.write_forward_fields(fields);
    let edit = RequestEdit {
        path: path(request, model, head),
        host: head.host().and_then(|host| FieldValue::new(host).ok()).unwrap_or(FieldValue::EMPTY),
        framing,
        dropped: if edits.is_empty() { CONTROLS } else { DIGESTS.and(CONTROLS) },
        fields,
    };
    let mut outbound = Outbound { head: worker.buffers.take(), body: Buffer::default() };
    write::request_head(outbound.head.tail(), head, &edit);
    if let Some(body) = whole {
        if body.len() <= COPY_BYTES_MAX {
            splice_into(&mut outbound.head, body, &edits);
        } else {
            outbound.body = worker.buffers.take();
            splice_into(&mut outbound.body, body, &edits);
        }
    }
    outbound
}

/// What speaks to the router stays here: a model server could not tell a client's from the router's.
const CONTROLS: HeaderSet = HeaderSet::of(&[HeaderKind::Switchboard]);

/// Digests of a body that was edited are wrong (JS-01).
const DIGESTS: HeaderSet = HeaderSet::of(&[HeaderKind::BodyDigest]);

/// The Model version's own path, else what the client meant for the model server.
fn path<'a>(
    request: &Request,
    model: Option<&'a ArchivedModelVersion>,
    head: &RequestView<'a>,
) -> RequestPath<'a> {
    let set = model.and_then(|model| model.path.as_ref()).map(|path| path.as_bytes());
    let rest = head.path().get(request.path_prefix_bytes..).filter(|rest| !rest.is_empty());
    RequestPath::new(set.or(rest).unwrap_or(b"/")).unwrap_or(RequestPath::ROOT)
}

/// What changes in a body, in order: one for each Fact, one around them, and the model's name with its quotes.
type Edits<'a> = ArrayVec<Edit<'a>, { FACTS_PER_ARM_MAX + 4 }>;

/// The Facts' edits, and the model's name in place of the Objective's. Where the Facts take that place, too, or
/// what it lies in, they have it.
fn edits<'a>(request: &'a Request, model: Option<&'a ArchivedModelVersion>) -> Edits<'a> {
    let facts = request.facts.as_deref();
    let mut edits: Edits<'_> = facts.into_iter().flat_map(Served::edits).collect();
    let Some((place, model)) = request.model_literal.as_ref().zip(model) else { return edits };
    let is_free = edits.iter().all(|edit| edit.end <= place.start || place.end <= edit.start);
    if is_free {
        // A served name's syntax has neither quotes nor backslashes.
        let Range { start, end } = *place;
        let name = model.served_name.as_bytes();
        let quoted = [(start, start, &b"\""[..]), (start, end, name), (end, end, &b"\""[..])];
        let at = edits.iter().position(|edit| edit.start >= end).unwrap_or(edits.len());
        for (start, end, text) in quoted.into_iter().rev() {
            let inserted = edits.try_insert(at, Edit { start, end, text });
            debug_assert!(inserted.is_ok(), "there is room for all that can be");
        }
    }
    edits
}

/// No body and none announced stays so: `Content-Length: 0` on a GET would be an invention.
fn whole_framing(request: &Request, body: &[u8], edits: &Edits<'_>) -> RequestFraming {
    let removed: usize = edits.iter().map(|edit| edit.end - edit.start).sum();
    let added: usize = edits.iter().map(|edit| edit.text.len()).sum();
    let length = body.len() - removed + added;
    if length == 0 && request.framing == RequestFraming::None {
        return RequestFraming::None;
    }
    RequestFraming::Length(u64::try_from(length).unwrap_or(u64::MAX))
}

fn splice_into(out: &mut Buffer, body: &[u8], edits: &Edits<'_>) {
    let mut copied = 0;
    for edit in edits {
        debug_assert!(edit.start >= copied, "edits are in order and disjoint");
        out.extend(body.get(copied..edit.start).unwrap_or_default());
        out.extend(edit.text);
        copied = edit.end;
    }
    out.extend(body.get(copied..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// JS-04
    #[test]
    fn a_splice_changes_only_its_place() {
        let body = br#"{"x": [1e400, 0.10],"model" : "objective/A" ,"b":{}}"#;
        let start = body.windows(13).position(|window| window == b"\"objective/A\"").unwrap();
        let edits: Edits<'_> = [
            Edit { start: 1, end: 1, text: b"\"f\":1," },
            Edit { start, end: start + 13, text: b"\"m-1\"" },
        ]
        .into_iter()
        .collect();
        let mut out = Buffer::default();
        splice_into(&mut out, body, &edits);
        assert_eq!(out.filled(), br#"{"f":1,"x": [1e400, 0.10],"model" : "m-1" ,"b":{}}"#);
    }
}
