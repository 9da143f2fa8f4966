//! One request, head to last byte. Read this first; its steps are one file each.

pub mod answer;
pub mod body;
pub mod context;
pub mod copy;
pub mod edit;
pub mod facts;
pub mod fault;
pub mod forward;
pub mod json;
pub mod objective;
pub mod pump;
pub mod relay;
pub mod request;
pub mod served;
pub mod splice;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;

use switchboard_shared::decide::{self, Decision};
use switchboard_shared::slot::Unit;
use switchboard_shared::snapshot::{ArchivedFact, ObjectiveIndex};

use self::answer::Answering;
use self::body::Body;
use self::copy::RequestCopy;
use self::fault::{Fault, UnknownToken};
use self::json::{Document, Found};
use self::objective::{MODEL_PREFIX, Named};
use self::request::{Request, RequestClocks, RequestId};
use crate::facts::Asked;
use crate::http1::{HeadError, HeaderKind, Next, RequestFraming, RequestView};
use crate::net::clock;
use crate::shadow::copied::Copied;
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
    let mut draft = Draft {
        started,
        head_bytes,
        input_bytes: head_bytes,
        facts_due: Cell::default(),
        about: None,
    };
    match prepare(worker, client, scratch, &mut draft).await {
        Ok(mut request) => {
            if let Some(total) = request.clocks.total {
                client.link.watch_total(worker.tick(), total);
            }
            let next = forward::forward(worker, client, scratch, &mut request).await;
            copy::finish(worker, &request, &client.input);
            if !client.link.has_left() {
                worker.record(&request);
            }
            client.input.consume(request.input_bytes());
            if let Body::Read(buffer) = request.body {
                worker.buffers.put_back(buffer);
            }
            if let Some(served) = request.facts {
                worker.put_back_served(served);
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
    /// When its budget for Facts is spent, once some were asked for.
    facts_due: Cell<Option<Instant>>,
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

/// Steps 2 to 5 of a request's way: Objective, Context, decision, Facts.
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
    let held_max = bytes_max.min(worker.config.limits.body_buffer_bytes_max);
    if matches!(body, Body::Streams) && reads_body {
        body = Body::Read(body::read_whole(worker, client, server, held_max).await?);
    }
    if let Body::Held(place) = &body {
        draft.input_bytes = place.end;
    }
    let mut read = Read { view, naming, body, reads_body };
    let step = match decide(worker, client, scratch, draft, &mut read, None)? {
        Step::AsksFirst(asked) => {
            worker.facts.wait(&asked, &worker.counters).await;
            let step = decide(worker, client, scratch, draft, &mut read, Some(&asked));
            worker.facts.give_back(asked);
            step?
        }
        decided @ Step::Decided(..) => decided,
    };
    // Nothing is asked first twice.
    let Step::Decided(mut request, asked) = step else { return Err(Fault::NoSnapshot) };
    let needs_body = facts::needs_body(&request);
    if needs_body && framing != RequestFraming::None {
        refuse_encoded(&scratch.server.head().view(client.input.filled()))?;
    }
    let needs_all = needs_body || body::is_kept_for_replay(request.objective(), framing);
    if matches!(request.body, Body::Streams) && needs_all {
        let server = &mut scratch.server;
        request.body = Body::Read(body::read_whole(worker, client, server, held_max).await?);
    }
    if let Some(asked) = asked {
        facts::enrich(worker, client, scratch, &mut request, asked).await?;
    }
    Ok(request)
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

/// How far one evaluation came.
#[expect(clippy::large_enum_variant, reason = "it is taken apart where it is returned")]
enum Step {
    /// Rules ask for Facts: once their answers are here, decide again.
    AsksFirst(Asked),
    /// The Arm is decided, and its Facts are asked for, if it needs some.
    Decided(Request, Option<Asked>),
}

fn decide(
    worker: &Worker,
    client: &Client,
    scratch: &mut Scratch,
    draft: &Draft,
    read: &mut Read,
    rule_facts: Option<&Asked>,
) -> Result<Step, Fault> {
    let Read { view, naming, body, reads_body } = read;
    let reads_body = *reads_body;
    let Scratch { server, json, text, .. } = scratch;
    let head = server.head().view(client.input.filled());
    if reads_body {
        body.skip_byte_order_mark(&client.input);
    }
    // An empty body that was announced is no JSON (JS-05); no body at all leaves the Context to its defaults.
    let is_announced = head.head().framing() != RequestFraming::None;
    let bytes = body.whole(&client.input).filter(|_| reads_body && is_announced);
    let evaluation = Evaluation { worker, draft, view, rule_facts };
    let (objective, evaluated, model_literal) = match bytes {
        None => {
            let objective = naming.objective.ok_or(Fault::ObjectiveMissing)?;
            (objective, evaluation.run(objective, &head, None, text)?, None)
        }
        Some(bytes) => json.read(bytes, |document| {
            let (objective, model_literal) = match naming.objective {
                Some(objective) => (objective, None),
                None => named_by_model(view, document)?,
            };
            let evaluated = evaluation.run(objective, &head, Some(document), text)?;
            Ok::<_, Fault>((objective, evaluated, model_literal))
        })??,
    };
    let (decision, asked, copied) = match evaluated {
        Evaluated::AsksFirst(asked) => return Ok(Step::AsksFirst(asked)),
        Evaluated::Decided(decision, asked, copied) => (decision, asked, copied),
    };
    let archived =
        view.objective(objective).ok_or(Fault::ObjectiveUnknown(UnknownToken::default()))?;
    worker.counters.decisions.add(decision.reason, 1);
    worker.counters.unit_missing.add(u64::from(decision.unit_missing));
    let request = Request {
        clocks: RequestClocks::of(worker, archived, archived.arm(decision.arm)),
        objective,
        decision,
        decided_arm: decision.arm,
        body: std::mem::replace(body, Body::Streams),
        model_literal,
        facts: None,
        facts_note: None,
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
        copy: RequestCopy::new(copied),
        view: Rc::clone(view),
    };
    copy::head_is_read(&request, &head);
    Ok(Step::Decided(request, asked))
}

/// What one evaluation of an Objective came to.
enum Evaluated {
    AsksFirst(Asked),
    Decided(Decision, Option<Asked>, Option<Box<Copied>>),
}

/// What evaluating needs beside the request.
struct Evaluation<'e> {
    worker: &'e Worker,
    draft: &'e Draft,
    view: &'e View,
    /// What was asked for the Rules, whose answers are here.
    rule_facts: Option<&'e Asked>,
}

impl Evaluation<'_> {
    /// Reads the Context and decides; asks for Facts as soon as it is known which.
    fn run(
        &self,
        objective: ObjectiveIndex,
        head: &RequestView<'_>,
        document: Option<&Document<'_>>,
        text: &mut Vec<u8>,
    ) -> Result<Evaluated, Fault> {
        let payload = self.view.active.snapshot.payload();
        let objective =
            payload.objective(objective).ok_or(Fault::ObjectiveUnknown(UnknownToken::default()))?;
        let values = match self.rule_facts {
            Some(Asked::Lookup(lookup)) => Some(lookup.values()),
            Some(Asked::NoUnit | Asked::Unavailable) | None => None,
        };
        let mut context = context::read(objective, head, document, text)?;
        let unit = objective.unit.as_ref().and_then(|unit| context.unit(unit.to_native()));
        if !objective.rule_facts.is_empty() {
            let Some(asked) = self.rule_facts else {
                let facts =
                    objective.rule_facts.iter().map(|one| payload.fact(one.fact.to_native()));
                return Ok(Evaluated::AsksFirst(self.ask(facts, unit.as_ref())));
            };
            facts::set_attributes(payload, objective, asked, values.as_ref(), &mut context);
        }
        let decision = decide::decide(payload, objective, &context);
        let arm = objective.arm(decision.arm);
        let asked = (!arm.facts.is_empty())
            .then(|| self.ask(payload.facts(arm).map(|(_, fact)| fact), unit.as_ref()));
        let random = || self.worker.random();
        let (copies, counters) = (&self.worker.copies, &self.worker.counters);
        let copied = copies.begin(counters, objective, &context, &decision, random);
        Ok(Evaluated::Decided(decision, asked, copied))
    }

    /// One budget for all that a request asks for.
    fn ask<'a>(
        &self,
        facts: impl Iterator<Item = &'a ArchivedFact>,
        unit: Option<&Unit<'_>>,
    ) -> Asked {
        let now = clock::now();
        let source = &self.worker.facts;
        let due =
            self.draft.facts_due.get().unwrap_or_else(|| source.deadline(self.draft.started, now));
        self.draft.facts_due.set(Some(due));
        source.ask(facts, unit, now, due)
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
