//! The step between the decision and the model server: the Arm's Facts are awaited within their budget and put
//! where they go, or the request leaves its Arm. A client never gets an error because of the cache.

use std::rc::Rc;

use switchboard_shared::context::Context;
use switchboard_shared::decide::Reason;
use switchboard_shared::definition::{ArchivedFactsInto, ArchivedFactsObject};
use switchboard_shared::snapshot::{ArchivedArm, ArchivedObjective, ArchivedPayload};

use super::body::Body;
use super::fault::Fault;
use super::request::Request;
use super::served::Served;
use super::splice::{self, SpliceError};
use crate::facts::Asked;
use crate::facts::lookup::{Answer, Values};
use crate::facts::value;
use crate::limits::FACT_LINES_BYTES_MAX;
use crate::worker::Worker;
use crate::worker::connection::Client;
use crate::worker::scratch::Scratch;

/// Sets the attributes that are Facts. One that is late, failed, of another type, or missing without a default
/// stays absent: unknown to every Rule (Kleene).
pub fn set_attributes<'a>(
    payload: &'a ArchivedPayload,
    objective: &'a ArchivedObjective,
    asked: &Asked,
    values: Option<&'a Values<'a>>,
    context: &mut Context<'a>,
) {
    for (place, rule_fact) in objective.rule_facts.iter().enumerate() {
        let index = rule_fact.attribute.to_native();
        let fact = payload.fact(rule_fact.fact.to_native());
        let Some(attribute) = objective.context.get(index.get()) else { continue };
        let (answer, bytes) = match (asked, values) {
            (Asked::Lookup(_), Some(values)) => values.get(place),
            (Asked::NoUnit, _) => (&Answer::Absent, &[][..]),
            (Asked::Lookup(_) | Asked::Unavailable, _) => continue,
        };
        let value = match answer {
            Answer::Found(_) => {
                value::typed(fact.kind.to_native(), bytes).and_then(value::Typed::to_value)
            }
            Answer::Absent => fact.default.as_ref().map(Into::into),
            Answer::Awaited | Answer::Failed(_) | Answer::Unfit => None,
        };
        if let Some(value) = value.and_then(|value| attribute.accept(value).ok()) {
            context.set(index, value);
        }
    }
}

/// Whether a request on this Arm has its body edited for Facts.
pub fn edits_body(arm: &ArchivedArm) -> bool {
    !arm.facts.is_empty() && matches!(arm.facts_into, ArchivedFactsInto::Body(_))
}

/// Whether one of the two Arms that a request may end on needs its whole body for Facts: its own, and the default
/// Arm, on which it lands with defaults.
pub fn needs_body(request: &Request) -> bool {
    request.objective().is_some_and(|objective| {
        edits_body(objective.arm(request.decision.arm))
            || edits_body(objective.arm(objective.default_arm()))
    })
}

/// Waits for the Facts of the request's Arm and puts them where they go. Late, failed, of another type or missing:
/// the default Arm, with the client's original body, and with the defaults of its own Facts if it has some.
///
/// # Errors
/// The body cannot take them, which is the client's fault.
pub async fn enrich(
    worker: &Worker,
    client: &mut Client,
    scratch: &mut Scratch,
    request: &mut Request,
    asked: Asked,
) -> Result<(), Fault> {
    worker.facts.wait(&asked, &worker.counters).await;
    let mut served = worker.take_served();
    let collected = collect(request, &asked, &mut served);
    worker.facts.give_back(asked);
    let placed = collected.and_then(|()| write_lines(request, &mut served));
    if let Err(reason) = placed {
        worker.put_back_served(served);
        request.facts_note = Some(note(reason));
        request.fall_out(worker, reason);
        return stand_in(worker, client, scratch, request);
    }
    request.facts_note = Some(if served.has_defaults() { "partial" } else { "hit" });
    put(client, scratch, request, served)
}

/// Serves the defaults of the default Arm's own Facts: it has no others, and nothing is looked up for it.
///
/// # Errors
/// The body cannot take them, which is the client's fault.
pub fn stand_in(
    worker: &Worker,
    client: &mut Client,
    scratch: &mut Scratch,
    request: &mut Request,
) -> Result<(), Fault> {
    if let Some(served) = request.facts.take() {
        worker.put_back_served(served);
    }
    let Some(arm) = request.arm().filter(|arm| !arm.facts.is_empty()) else { return Ok(()) };
    let mut served = worker.take_served();
    for fact in request.view.active.snapshot.payload().facts(arm) {
        let taken = served.take_default(fact, Reason::FactsMissing);
        debug_assert!(taken.is_ok(), "the default Arm's Facts have defaults");
    }
    let _left_out_where_it_does_not_fit = write_lines(request, &mut served);
    put(client, scratch, request, served)
}

/// On the default Arm nothing can be missing: there its defaults stand in for what did not come.
fn collect(request: &Request, asked: &Asked, served: &mut Served) -> Result<(), Reason> {
    let (Some(objective), Some(arm)) = (request.objective(), request.arm()) else { return Ok(()) };
    let is_default = request.decision.arm == objective.default_arm();
    let payload = request.view.active.snapshot.payload();
    for (place, fact) in payload.facts(arm).enumerate() {
        match served.take(fact, asked, place) {
            Err(reason) if is_default => served.take_default(fact, reason)?,
            taken => taken?,
        }
    }
    Ok(())
}

fn write_lines(request: &Request, served: &mut Served) -> Result<(), Reason> {
    let Some(ArchivedFactsInto::Headers) = request.arm().map(|arm| &arm.facts_into) else {
        return Ok(());
    };
    let payload = request.view.active.snapshot.payload();
    for place in 0..served.len() {
        let Some(fact) = served.item(place).map(|item| item.fact) else { continue };
        if !served.push_line(&payload.fact(fact).name, place, FACT_LINES_BYTES_MAX) {
            return Err(Reason::FactsWrongType);
        }
    }
    Ok(())
}

/// Decides the edits of the body, if the Facts go there, and hands them to the request.
fn put(
    client: &mut Client,
    scratch: &mut Scratch,
    request: &mut Request,
    mut served: Box<Served>,
) -> Result<(), Fault> {
    let view = Rc::clone(&request.view); // else the body could not be borrowed
    let objective = view.objective(request.objective);
    let edited = match objective.map(|one| &one.arm(request.decision.arm).facts_into) {
        Some(ArchivedFactsInto::Body(into)) => {
            request.body.skip_byte_order_mark(&client.input);
            let payload = view.active.snapshot.payload();
            edit(&request.body, client, scratch, into, payload, &mut served)
        }
        Some(ArchivedFactsInto::Headers) | None => Ok(()),
    };
    request.facts = Some(served);
    edited.map_err(Fault::from)
}

fn edit(
    body: &Body,
    client: &Client,
    scratch: &mut Scratch,
    into: &ArchivedFactsObject,
    payload: &ArchivedPayload,
    served: &mut Served,
) -> Result<(), SpliceError> {
    let bytes = body.whole(&client.input).unwrap_or_default();
    scratch.json.read(bytes, |document| splice::place(document, into, payload, served))?
}

/// What the client is told of a Fallout's reason in `x-switchboard-facts`.
fn note(reason: Reason) -> &'static str {
    let label = reason.label();
    label.strip_prefix("facts_").unwrap_or(label)
}
