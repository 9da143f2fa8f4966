//! What leaves for the model server: the client's head without what concerned the client's connection, and the
//! client's body, byte for byte but for the spliced places.

use std::ops::Range;

use switchboard_shared::snapshot::ArchivedModelVersion;

use super::request::Request;
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
    let splice = request
        .model_literal
        .as_ref()
        .zip(model)
        .map(|(place, model)| Splice { place: place.clone(), name: &model.served_name });
    let whole = request.body.whole(input);
    let framing = match whole {
        Some(body) => whole_framing(request, body, splice.as_ref()),
        None => request.framing,
    };
    request.write_forward_fields(fields);
    let edit = RequestEdit {
        path: path(request, model, head),
        host: head.host().and_then(|host| FieldValue::new(host).ok()).unwrap_or(FieldValue::EMPTY),
        framing,
        dropped: if splice.is_some() { DIGESTS.and(CONTROLS) } else { CONTROLS },
        fields,
    };
    let mut outbound = Outbound { head: worker.buffers.take(), body: Buffer::default() };
    write::request_head(outbound.head.tail(), head, &edit);
    if let Some(body) = whole {
        if body.len() <= COPY_BYTES_MAX {
            splice_into(&mut outbound.head, body, splice.as_ref());
        } else {
            outbound.body = worker.buffers.take();
            splice_into(&mut outbound.body, body, splice.as_ref());
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

/// A place in the body, and the name whose JSON literal takes it.
struct Splice<'a> {
    place: Range<usize>,
    name: &'a str,
}

/// No body and none announced stays so: `Content-Length: 0` on a GET would be an invention.
fn whole_framing(request: &Request, body: &[u8], splice: Option<&Splice<'_>>) -> RequestFraming {
    let length = match splice {
        None => body.len(),
        Some(splice) => body.len() - splice.place.len() + splice.name.len() + 2,
    };
    if length == 0 && request.framing == RequestFraming::None {
        return RequestFraming::None;
    }
    RequestFraming::Length(u64::try_from(length).unwrap_or(u64::MAX))
}

fn splice_into(out: &mut Buffer, body: &[u8], splice: Option<&Splice<'_>>) {
    let Some(splice) = splice else { return out.extend(body) };
    out.extend(body.get(..splice.place.start).unwrap_or_default());
    // A served name's syntax has neither quotes nor backslashes.
    out.extend(b"\"");
    out.extend(splice.name.as_bytes());
    out.extend(b"\"");
    out.extend(body.get(splice.place.end..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// JS-04
    #[test]
    fn a_splice_changes_only_its_place() {
        let body = br#"{"x": [1e400, 0.10],"model" : "objective/A" ,"b":{}}"#;
        let start = body.windows(13).position(|window| window == b"\"objective/A\"").unwrap();
        let splice = Splice { place: start..start + 13, name: "m-1" };
        let mut out = Buffer::default();
        splice_into(&mut out, body, Some(&splice));
        assert_eq!(out.filled(), br#"{"x": [1e400, 0.10],"model" : "m-1" ,"b":{}}"#);
    }
}
