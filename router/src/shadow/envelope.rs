//! From a request's copy to the bytes of its records, as `docs/shadow.md` has them.

use std::borrow::Cow;
use std::ops::Range;
use std::time::{Duration, Instant};

use serde::Serialize;
use switchboard_shared::definition::SampleBy;
use switchboard_shared::snapshot::{
    ArchivedArm, ArchivedObjective, ArchivedPayload, ArchivedShadowTarget,
};

use super::copied::{BodyCopy, Copied, Framing, Subject};
use super::exposures::Sameness;
use super::members::{self, Filtered};
use super::owned::Kind;
use crate::http1::{BodyDecoder, ResponseFraming};

/// The one class of traffic that this build knows.
const TRAFFIC_CLASS: &str = "live";

/// Writes records for one router.
pub(super) struct Envelopes {
    /// `feed.name`
    pub(super) router: String,
    /// Of all record ids of this process.
    pub(super) id_prefix: u64,
}

/// The two clocks, read together: a worker reads only the monotonic one.
#[derive(Clone, Copy)]
pub(super) struct Clocks {
    /// Monotonic.
    pub(super) now: Instant,
    /// Since the unix epoch.
    pub(super) unix: Duration,
}

impl Clocks {
    /// The wall clock's microseconds at an earlier moment.
    pub(super) fn unix_us(&self, then: Instant) -> u64 {
        let past = self.now.saturating_duration_since(then);
        micros(self.unix.saturating_sub(past))
    }
}

/// What a copy is about, with its names.
pub(super) struct Told<'a> {
    pub(super) copied: &'a Copied,
    pub(super) subject: &'a Subject,
    pub(super) objective: &'a ArchivedObjective,
    payload: &'a ArchivedPayload,
}

impl<'a> Told<'a> {
    /// `None`: the worker set no subject, or one of another Snapshot; neither happens.
    pub(super) fn of(copied: &'a Copied) -> Option<Self> {
        let subject = copied.subject.as_ref()?;
        let payload = subject.active.0.snapshot.payload();
        let objective = payload.objective(subject.objective)?;
        Some(Self { copied, subject, objective, payload })
    }

    /// The candidate's `name@version`.
    pub(super) fn candidate(&self, target: &ArchivedShadowTarget) -> &'a str {
        self.payload.models.get(target.model.get()).map_or("", |model| model.id.as_str())
    }

    fn arm(&self) -> &'a ArchivedArm {
        self.objective.arm(self.subject.decision.arm)
    }

    fn rule(&self) -> Option<&'a str> {
        let rule = self.subject.decision.rule?;
        Some(self.objective.rule(rule).name.as_str())
    }

    fn request_id(&self) -> Cow<'a, str> {
        text(self.copied.text(&self.copied.parts.id))
    }

    /// The Unit that a target's records are keyed by.
    pub(super) fn unit(&self, target: &ArchivedShadowTarget) -> Option<UnitText<'a>> {
        let attribute = target.unit()?;
        let value = self.copied.unit(attribute)?;
        let attribute = self.objective.context.get(attribute.get())?.name.as_str();
        Some(UnitText { attribute, value })
    }

    /// The experiment's Unit.
    pub(super) fn exposed_unit(&self) -> Option<UnitText<'a>> {
        let rule = self.objective.rule(self.subject.decision.rule?);
        let attribute = self.objective.experiment(rule)?.unit.to_native();
        let value = self.copied.unit(attribute)?;
        let attribute = self.objective.context.get(attribute.get())?.name.as_str();
        Some(UnitText { attribute, value })
    }

    fn decided_arm(&self) -> &'a str {
        self.objective.arm(self.subject.decided_arm).name.as_str()
    }

    /// Whether the Unit met the Arm that owns its Slot.
    fn is_treated(&self) -> bool {
        !self.subject.decision.reason.is_fallout() && self.subject.served.status != 0
    }

    /// What makes its Exposure the same as another one.
    pub(super) fn sameness(&self, unit: &UnitText<'a>) -> Sameness<'a> {
        Sameness {
            objective: self.objective.token.as_str(),
            experiment: self.rule().unwrap_or_default(),
            arm: self.decided_arm(),
            is_treated: self.is_treated(),
            unit: unit.value,
        }
    }
}

/// A Unit, and the attribute that named it.
#[derive(Clone, Copy, Serialize)]
pub(super) struct UnitText<'a> {
    attribute: &'a str,
    pub(super) value: &'a str,
}

#[derive(Serialize)]
struct ShadowEnvelope<'a> {
    schema: &'static str,
    id: String,
    time_unix_us: u64,
    router: &'a str,
    traffic_class: &'static str,
    objective: &'a str,
    snapshot: u64,
    target: TargetText<'a>,
    unit: Option<UnitText<'a>>,
    decision: DecisionText<'a>,
    /// Each value as it was served, written anew.
    facts: Option<serde_json::Value>,
    request: RequestText<'a>,
    response: Option<ResponseText<'a>>,
    timing: Timing,
}

#[derive(Serialize)]
struct TargetText<'a> {
    model: &'a str,
    sample: u16,
    by: &'static str,
}

#[derive(Serialize)]
struct DecisionText<'a> {
    arm: &'a str,
    model: &'a str,
    reason: &'static str,
    rule: Option<&'a str>,
    slot: Option<u16>,
    decided_arm: &'a str,
}

type HeaderText<'a> = (Cow<'a, str>, Cow<'a, str>);

#[derive(Serialize)]
struct RequestText<'a> {
    id: Cow<'a, str>,
    method: Cow<'a, str>,
    target: Cow<'a, str>,
    headers: Vec<HeaderText<'a>>,
    model_place: Option<(usize, usize)>,
    body: &'static str,
    body_bytes: usize,
}

#[derive(Serialize)]
struct ResponseText<'a> {
    status: u16,
    headers: Vec<HeaderText<'a>>,
    body: &'static str,
    body_bytes: usize,
    body_bytes_total: Option<u64>,
    complete: bool,
}

#[derive(Serialize)]
struct Timing {
    overhead_us: Option<u64>,
    first_byte_us: Option<u64>,
    total_us: u64,
}

#[derive(Serialize)]
struct ExposureEnvelope<'a> {
    schema: &'static str,
    id: String,
    time_unix_us: u64,
    router: &'a str,
    traffic_class: &'static str,
    objective: &'a str,
    snapshot: u64,
    unit: UnitText<'a>,
    experiment: Option<&'a str>,
    arm: &'a str,
    slot: Option<u16>,
    served_arm: &'a str,
    reason: &'static str,
    treated: bool,
    status: u16,
    request_id: Cow<'a, str>,
}

/// A body as a record shows it.
struct Shown<'a> {
    how: &'static str,
    bytes: Cow<'a, [u8]>,
    total: Option<u64>,
}

impl Envelopes {
    /// Writes a target's record into `out`.
    pub(super) fn write_shadow(
        &self,
        told: &Told<'_>,
        target: &ArchivedShadowTarget,
        sequence: u64,
        clocks: Clocks,
        out: &mut Vec<u8>,
    ) {
        let Told { copied, subject, objective, .. } = told;
        let request = show(target, &copied.request_body);
        let response = if target.captures_response {
            show(target, &copied.response_body)
        } else {
            Shown { how: "none", bytes: Cow::Borrowed(&[]), total: None }
        };
        let served = &subject.served;
        let has_answer = served.status != 0;
        let is_untouched = request.how == "whole";
        let place = subject.model_place.as_ref().filter(|_| is_untouched);
        let envelope = ShadowEnvelope {
            schema: Kind::Shadow.schema(),
            id: self.id(sequence),
            time_unix_us: clocks.unix_us(subject.started),
            router: &self.router,
            traffic_class: TRAFFIC_CLASS,
            objective: &objective.token,
            snapshot: subject.active.0.snapshot.version().get(),
            target: TargetText {
                model: told.candidate(target),
                sample: target.sample.to_native(),
                by: match target.by.to_native() {
                    SampleBy::Unit => "unit",
                    SampleBy::Random => "random",
                },
            },
            unit: told.unit(target),
            decision: DecisionText {
                arm: &told.arm().name,
                model: &told.payload.model(told.arm()).id,
                reason: subject.decision.reason.label(),
                rule: told.rule(),
                slot: subject.decision.slot.map(switchboard_shared::slot::Slot::get),
                decided_arm: told.decided_arm(),
            },
            facts: serde_json::from_slice(copied.text(&copied.parts.facts)).ok(),
            request: RequestText {
                id: told.request_id(),
                method: text(copied.text(&copied.parts.method)),
                target: text(copied.text(&copied.parts.target)),
                headers: headers(copied, &copied.parts.request_headers),
                model_place: place.map(|place| (place.start, place.end)),
                body: request.how,
                body_bytes: request.bytes.len(),
            },
            response: has_answer.then(|| ResponseText {
                status: served.status,
                headers: headers(copied, &copied.parts.response_headers),
                body: response.how,
                body_bytes: response.bytes.len(),
                body_bytes_total: response.total,
                complete: copied.is_complete,
            }),
            timing: Timing {
                overhead_us: has_answer.then(|| micros(served.overhead)),
                first_byte_us: has_answer.then(|| micros(served.upstream)),
                total_us: micros(subject.ended.saturating_duration_since(subject.started)),
            },
        };
        write(&envelope, out);
        out.push(b'\n');
        out.extend_from_slice(&request.bytes);
        if has_answer {
            out.extend_from_slice(&response.bytes);
        }
    }

    /// Writes an Exposure into `out`.
    pub(super) fn write_exposure(
        &self,
        told: &Told<'_>,
        unit: UnitText<'_>,
        sequence: u64,
        clocks: Clocks,
        out: &mut Vec<u8>,
    ) {
        let Told { subject, objective, .. } = told;
        let envelope = ExposureEnvelope {
            schema: Kind::Exposure.schema(),
            id: self.id(sequence),
            time_unix_us: clocks.unix_us(subject.started),
            router: &self.router,
            traffic_class: TRAFFIC_CLASS,
            objective: &objective.token,
            snapshot: subject.active.0.snapshot.version().get(),
            unit,
            experiment: told.rule(),
            arm: told.decided_arm(),
            slot: subject.decision.slot.map(switchboard_shared::slot::Slot::get),
            served_arm: &told.arm().name,
            reason: subject.decision.reason.label(),
            treated: told.is_treated(),
            status: subject.served.status,
            request_id: told.request_id(),
        };
        write(&envelope, out);
    }

    fn id(&self, sequence: u64) -> String {
        format!("{:016x}-{sequence:016x}", self.id_prefix)
    }
}

fn write(envelope: &impl Serialize, out: &mut Vec<u8>) {
    let written = serde_json::to_writer(out, envelope);
    debug_assert!(written.is_ok(), "texts and numbers into memory cannot fail");
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

/// Header values and targets may hold bytes that are no UTF-8; they become U+FFFD.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn headers<'a>(copied: &'a Copied, place: &Range<usize>) -> Vec<HeaderText<'a>> {
    copied.headers(place).map(|(name, value)| (text(name), text(value))).collect()
}

fn show<'a>(target: &ArchivedShadowTarget, body: &'a BodyCopy) -> Shown<'a> {
    let (bytes, mut total) = match body.framing {
        Framing::Plain => (Cow::Borrowed(body.bytes.as_slice()), Some(body.total)),
        Framing::Chunked => (Cow::Owned(without_chunks(&body.bytes)), None),
    };
    let is_cut = (body.bytes.len() as u64) < body.total;
    if !is_cut {
        total = Some(bytes.len() as u64);
    }
    match members::filter(&target.members, (!is_cut).then(|| bytes.as_ref())) {
        Filtered::Whole if bytes.is_empty() => Shown { how: "none", bytes, total },
        Filtered::Whole => Shown { how: if is_cut { "cut" } else { "whole" }, bytes, total },
        Filtered::Edited(edited) => Shown { how: "edited", bytes: Cow::Owned(edited), total },
        Filtered::Withheld => Shown { how: "withheld", bytes: Cow::Borrowed(&[]), total },
    }
}

/// The data of a body in clean chunked coding, as far as it was copied.
fn without_chunks(mut framed: &[u8]) -> Vec<u8> {
    let mut data = Vec::with_capacity(framed.len());
    let mut decoder = BodyDecoder::for_response(ResponseFraming::Chunked);
    while !framed.is_empty() && !decoder.is_complete() {
        // The worker's own decoder let these bytes through.
        let Ok(step) = decoder.decode(framed) else { break };
        data.extend_from_slice(framed.get(step.data).unwrap_or_default());
        framed = framed.get(step.consumed..).unwrap_or_default();
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_taken_off_as_far_as_they_were_copied() {
        assert_eq!(without_chunks(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"), b"abcde");
        assert_eq!(without_chunks(b"3\r\nabc\r\n5\r\nde"), b"abcde");
        assert_eq!(without_chunks(b"3\r"), b"");
    }
}
