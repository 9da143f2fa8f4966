//! One request, head to last byte. Read this first; its steps are one file each.

pub mod answer;
pub mod body;
pub mod context;
pub mod edit;
pub mod fault;
pub mod forward;
pub mod json;
pub mod objective;
pub mod pump;
pub mod relay;
pub mod request;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;

use switchboard_shared::decide::{self, Decision, Reason};
use switchboard_shared::snapshot::ObjectiveIndex;

use self::answer::Answering;
use self::body::Body;
use self::fault::{Fault, UnknownToken};
use self::json::{Document, Found};
use self::objective::{MODEL_PREFIX, Named};
use self::request::{Request, RequestClocks, RequestId};
use crate::http1::{HeadError, HeaderKind, Next, RequestFraming, RequestView};
use crate::net::buffer::Buffer;
use crate::net::clock;
use crate::worker::Worker;
use crate::worker::connection::Client;
use crate::worker::scratch::Scratch;
use crate::worker::view::View;

/// Serves the request whose head is read and at the front of the client's input.
pub async fn serve(worker: &Rc<Worker>, client: &mut Client, scratch: &mut Scratch) -> Next {
    let counters = &worker.counters;
    counters.requests.add(1);
    counters.requests_active.raise();
    let head_bytes = scratch.server.head().bytes();
    let next = serve_counted(worker, client, scratch).await;
    counters.requests_active.lower();
    counters.bytes_received.add(head_bytes as u64 + scratch.server.body_received());
    next
}

async fn serve_counted(worker: &Rc<Worker>, client: &mut Client, scratch: &mut Scratch) -> Next {
    let started = clock::now();
    worker.earn_retry();
    let head_bytes = scratch.server.head().bytes();
    let mut draft = Draft { started, head_bytes, input_bytes: head_bytes, about: None };
    match prepare(worker, client, scratch, &mut draft).await {
        Ok(mut request) => {
            if let Some(total) = request.clocks.total {
                client.link.watch_total(worker.tick(), total);
            }
            let next = forward::forward(worker, client, scratch, &mut request).await;
            if !client.link.has_left() {
                worker.record(&request);
            }
            client.input.consume(request.input_bytes());
            if let Body::Read(buffer) = request.body {
                worker.buffers.put_back(buffer);
            }
            next
        }
        Err(fault) => {
            let subject = draft.about.as_ref().and_then(About::subject);
            let next = answer_fault(worker, client, scratch, &fault, subject).await;
            client.input.consume(draft.input_bytes);
            next
        }
    }
}

/// What is known of a request before its Arm is.
struct Draft {
    started: Instant,
    head_bytes: usize,
    /// How many bytes of the input belong to this request as far as it was read.
    input_bytes: usize,
    /// The Objective, once it is found.
    about: Option<About>,
}

struct About {
    view: Rc<View>,
    objective: ObjectiveIndex,
}

impl About {
    fn subject(&self) -> Option<&str> {
        self.view.objective(self.objective).map(|objective| objective.token.as_str())
    }
}

/// Steps 2 to 4 of a request's way: Objective, Context, decision.
async fn prepare(
    worker: &Rc<Worker>,
    client: &mut Client,
    scratch: &mut Scratch,
    draft: &mut Draft,
) -> Result<Request, Fault> {
    let view = worker.view().ok_or(Fault::NoSnapshot)?;
    let naming = find_objective(&view, client, scratch)?;
    draft.about = naming.objective.map(|objective| About { view: Rc::clone(&view), objective });
    let objective = naming.objective.and_then(|index| view.objective(index));
    let own_max = objective.and_then(|objective| objective.body_bytes_max.as_ref());
    let bytes_max = own_max.map_or(worker.config.limits.body_bytes_max, |bytes| bytes.to_native());
    let reads_body = objective.is_none_or(context::needs_body);
    let framing = scratch.server.head().framing();
    let server = &mut scratch.server;
    server.limit_body(bytes_max)?;
    if reads_body && framing != RequestFraming::None {
        refuse_encoded(&server.head().view(client.input.filled()))?;
    }
    let arrived = client.input.len().saturating_sub(draft.head_bytes);
    if server.continue_due(arrived) {
        answer::go_on(worker, &mut client.writer).await?;
    }
    let mut body = body::arrived(server, &client.input, draft.head_bytes)?;
    let needs_all = reads_body || body::is_kept_for_replay(objective, framing);
    if matches!(body, Body::Streams) && needs_all {
        let held_max = bytes_max.min(worker.config.limits.body_buffer_bytes_max);
        body = Body::Read(body::read_whole(worker, client, server, held_max).await?);
    }
    if let Body::Held(place) = &body {
        draft.input_bytes = place.end;
    }
    decide(worker, client, scratch, draft, Read { view, naming, body, reads_body })
}

/// The Objective as far as it is known without the body.
struct Naming {
    objective: Option<ObjectiveIndex>,
    path_prefix_bytes: usize,
}

fn find_objective(view: &View, client: &Client, scratch: &Scratch) -> Result<Naming, Fault> {
    let head = scratch.server.head().view(client.input.filled());
    let (token, path_prefix_bytes) = match objective::named(&head) {
        Named::Header(token) => (token, 0),
        Named::Path { token, prefix_bytes } => (token, prefix_bytes),
        Named::Perhaps if head.head().framing() == RequestFraming::None => {
            return Err(Fault::ObjectiveMissing);
        }
        Named::Perhaps => return Ok(Naming { objective: None, path_prefix_bytes: 0 }),
    };
    let objective = find(view, token)?;
    Ok(Naming { objective: Some(objective), path_prefix_bytes })
}

fn find(view: &View, token: &[u8]) -> Result<ObjectiveIndex, Fault> {
    let unknown = || Fault::ObjectiveUnknown(UnknownToken::of(token));
    view.active.snapshot.find(token).ok_or_else(unknown)
}

fn refuse_encoded(head: &RequestView<'_>) -> Result<(), Fault> {
    match head.value(HeaderKind::ContentEncoding) {
        Some(coding) if !coding.eq_ignore_ascii_case(b"identity") => Err(Fault::BodyEncoded),
        _ => Ok(()),
    }
}

/// A request of which everything is read that the decision may need.
struct Read {
    view: Rc<View>,
    naming: Naming,
    body: Body,
    reads_body: bool,
}

/// What was decided, and where the body names the Objective, if it does.
struct Decided {
    objective: ObjectiveIndex,
    decision: Decision,
    model_literal: Option<std::ops::Range<usize>>,
}

fn decide(
    worker: &Worker,
    client: &Client,
    scratch: &mut Scratch,
    draft: &Draft,
    read: Read,
) -> Result<Request, Fault> {
    let Read { view, naming, mut body, reads_body } = read;
    let Scratch { server, json, text, .. } = scratch;
    let head = server.head().view(client.input.filled());
    if reads_body {
        skip_byte_order_mark(&mut body, &client.input);
    }
    // An empty body that was announced is no JSON (JS-05); no body at all leaves the Context to its defaults.
    let is_announced = head.head().framing() != RequestFraming::None;
    let bytes = body.whole(&client.input).filter(|_| reads_body && is_announced);
    let Decided { objective, decision, model_literal } = match bytes {
        None => {
            let objective = naming.objective.ok_or(Fault::ObjectiveMissing)?;
            let decision = evaluate(&view, objective, &head, None, text)?;
            Decided { objective, decision, model_literal: None }
        }
        Some(bytes) => json.read(bytes, |document| {
            let (objective, model_literal) = match naming.objective {
                Some(objective) => (objective, None),
                None => named_by_model(&view, document)?,
            };
            let decision = evaluate(&view, objective, &head, Some(document), text)?;
            Ok::<_, Fault>(Decided { objective, decision, model_literal })
        })??,
    };
    let archived =
        view.objective(objective).ok_or(Fault::ObjectiveUnknown(UnknownToken::default()))?;
    worker.counters.decisions.add(decision.reason, 1);
    worker.counters.unit_missing.add(u64::from(decision.unit_missing));
    let mut request = Request {
        clocks: RequestClocks::of(worker, archived, archived.arm(decision.arm)),
        objective,
        decision,
        decided_arm: decision.arm,
        body,
        model_literal,
        path_prefix_bytes: naming.path_prefix_bytes,
        head_bytes: draft.head_bytes,
        method: head.head().method(),
        framing: head.head().framing(),
        made_id: match head.value(HeaderKind::RequestId) {
            Some(_) => None,
            None => Some(RequestId::new(worker.next_request_id())),
        },
        started: draft.started,
        served: Cell::default(),
        view: Rc::clone(&view),
    };
    // No source of Facts is configured in this build, so an Arm that needs some falls out.
    if request.arm().is_some_and(|arm| !arm.facts.is_empty()) {
        request.fall_out(worker, Reason::FactsUnavailable);
    }
    Ok(request)
}

fn evaluate(
    view: &View,
    objective: ObjectiveIndex,
    head: &RequestView<'_>,
    document: Option<&Document<'_>>,
    text: &mut Vec<u8>,
) -> Result<Decision, Fault> {
    let payload = view.active.snapshot.payload();
    let objective =
        payload.objective(objective).ok_or(Fault::ObjectiveUnknown(UnknownToken::default()))?;
    let context = context::read(objective, head, document, text)?;
    Ok(decide::decide(payload, objective, &context))
}

/// RFC 8259 §8.1 lets us ignore it; in front of spliced JSON it would be an error.
fn skip_byte_order_mark(body: &mut Body, input: &Buffer) {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    let has_mark = body.whole(input).is_some_and(|bytes| bytes.starts_with(MARK));
    match body {
        Body::Held(place) if has_mark => place.start += MARK.len(),
        Body::Read(buffer) if has_mark => buffer.consume(MARK.len()),
        Body::Held(_) | Body::Read(_) | Body::Streams => {}
    }
}

/// An OpenAI client names the Objective as `"model": "objective/TOKEN"`.
fn named_by_model(
    view: &View,
    document: &Document<'_>,
) -> Result<(ObjectiveIndex, Option<std::ops::Range<usize>>), Fault> {
    let Some(Found::Text(model, place)) = document.find("/model")? else {
        return Err(Fault::ObjectiveMissing);
    };
    let token = model.strip_prefix(MODEL_PREFIX).ok_or(Fault::ObjectiveMissing)?;
    let objective = find(view, token.as_bytes())?;
    Ok((objective, Some(place)))
}

async fn answer_fault(
    worker: &Worker,
    client: &mut Client,
    scratch: &mut Scratch,
    fault: &Fault,
    subject: Option<&str>,
) -> Next {
    let Scratch { server, fields, .. } = scratch;
    if worker.is_draining() {
        server.close_after_this();
    }
    let server = RefCell::new(server);
    let Client { link, writer, .. } = client;
    let answering = Answering { writer, link, server: &server, fields };
    answer::problem(worker, answering, fault, subject).await
}

/// Answers a head that was refused; the connection ends.
pub async fn refuse_head(
    worker: &Worker,
    client: &mut Client,
    scratch: &mut Scratch,
    error: HeadError,
) -> Next {
    answer_fault(worker, client, scratch, &Fault::Head(error), None).await
}

/// Answers a head that did not come in time; the connection ends.
pub async fn head_too_slow(worker: &Worker, client: &mut Client, scratch: &mut Scratch) -> Next {
    answer_fault(worker, client, scratch, &Fault::HeadSlow, None).await
}
