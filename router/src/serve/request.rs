//! One request on its way: what was read from it, and what was decided.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rkyv::option::ArchivedOption;
use rkyv::rend::u32_le;
use switchboard_shared::decide::{Decision, Reason};
use switchboard_shared::definition::ArchivedTimeouts;
use switchboard_shared::snapshot::{ArchivedArm, ArchivedObjective, ArmIndex, ObjectiveIndex};

use super::body::Body;
use super::copy::RequestCopy;
use super::served::Served;
use crate::http1::{FieldValue, Fields, Method, RequestFraming};
use crate::worker::Worker;
use crate::worker::view::View;

/// A request whose Arm is decided.
pub struct Request {
    /// What it is evaluated by, to its end.
    pub view: Rc<View>,
    /// Its business goal.
    pub objective: ObjectiveIndex,
    /// Who answers, and why. A Fallout changes it.
    pub decision: Decision,
    /// The Arm that was decided on first.
    pub decided_arm: ArmIndex,
    /// Its body.
    pub body: Body,
    /// Where the body names the Objective: the literal that is replaced by the model's name.
    pub model_literal: Option<std::ops::Range<usize>>,
    /// The Facts that the model server gets, and what they change in the request.
    pub facts: Option<Box<Served>>,
    /// How asking for Facts went, for the client's information; `None`: the Arm needs none.
    pub facts_note: Option<&'static str>,
    /// How much of the path's front named the Objective.
    pub path_prefix_bytes: usize,
    /// The bytes of its head.
    pub head_bytes: usize,
    /// Its method.
    pub method: Method,
    /// How its body came.
    pub framing: RequestFraming,
    /// Its id, where the client sent none.
    pub made_id: Option<RequestId>,
    /// Its clocks.
    pub clocks: RequestClocks,
    /// When its head was complete.
    pub started: Instant,
    /// How it went, as far as it is known.
    pub served: Cell<Outcome>,
    /// Its copy for the shadow core, if one was drawn.
    pub copy: RequestCopy,
}

/// How a request went.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Of the endpoint's answer; 0: none came.
    pub status: u16,
    /// From sending the request to the answer's head.
    pub upstream: Duration,
    /// What the router added: before sending, and after the head where the rest was there.
    pub overhead: Duration,
}

/// The clocks of one request: the Arm's setting, else the Objective's, else the router's.
#[derive(Clone, Copy, Debug)]
pub struct RequestClocks {
    /// Connecting.
    pub connect: Duration,
    /// Until the answer's first byte.
    pub first_byte: Duration,
    /// Longest gap within the answer.
    pub response_idle: Duration,
    /// Longest gap within the request's body.
    pub body_idle: Duration,
    /// The whole request.
    pub total: Option<Duration>,
}

impl RequestClocks {
    /// What holds for an Arm of an Objective.
    pub fn of(worker: &Worker, objective: &ArchivedObjective, arm: &ArchivedArm) -> Self {
        let outer = &worker.config.clocks;
        let span = |of: fn(&ArchivedTimeouts) -> &ArchivedOption<u32_le>| {
            let milliseconds = of(&arm.timeouts).as_ref().or(of(&objective.timeouts).as_ref())?;
            Some(Duration::from_millis(u64::from(milliseconds.to_native())))
        };
        Self {
            connect: span(|own| &own.connect_ms).unwrap_or(outer.connect),
            first_byte: span(|own| &own.first_byte_ms).unwrap_or(outer.first_byte),
            response_idle: span(|own| &own.response_idle_ms).unwrap_or(outer.response_idle),
            body_idle: span(|own| &own.body_idle_ms).unwrap_or(outer.body_idle),
            total: match span(|own| &own.total_ms) {
                Some(Duration::ZERO) => None,
                Some(total) => Some(total),
                None => outer.total,
            },
        }
    }
}

impl Request {
    /// Its Objective in the Snapshot that it holds.
    pub fn objective(&self) -> Option<&ArchivedObjective> {
        self.view.objective(self.objective)
    }

    /// The Arm that answers.
    pub fn arm(&self) -> Option<&ArchivedArm> {
        self.objective().map(|objective| objective.arm(self.decision.arm))
    }

    /// An endpoint's answer to what was sent at `sent` has begun.
    pub fn answer_began(&self, status: u16, sent: Instant, now: Instant) {
        let overhead = sent.saturating_duration_since(self.started);
        let upstream = now.saturating_duration_since(sent);
        self.served.set(Outcome { status, upstream, overhead });
    }

    /// The rest of the answer was passed on without waiting for the endpoint.
    pub fn answer_was_there(&self, began: Instant, now: Instant) {
        let mut served = self.served.get();
        served.overhead += now.saturating_duration_since(began);
        self.served.set(served);
    }

    /// How many bytes of the client's input are its own.
    pub fn input_bytes(&self) -> usize {
        match &self.body {
            Body::Held(place) => place.end,
            Body::Read(_) | Body::Streams => self.head_bytes,
        }
    }

    /// Whether it may be sent again after an endpoint may have begun it (RFC 9110 §9.2.2).
    pub fn is_repeatable(&self) -> bool {
        self.method.is_idempotent()
            || self.objective().is_some_and(|objective| objective.idempotent)
    }

    /// Leaves its Arm for the Objective's default Arm, with that Arm's clocks. `false` if it is there
    /// already.
    pub fn fall_out(&mut self, worker: &Worker, reason: Reason) -> bool {
        let view = Rc::clone(&self.view);
        let Some(objective) = view.objective(self.objective) else { return false };
        if self.decision.arm == objective.default_arm() {
            return false;
        }
        worker.counters.fallouts.add(reason, 1);
        self.decision = self.decision.fall_out(objective, reason);
        self.clocks = RequestClocks::of(worker, objective, objective.arm(self.decision.arm));
        true
    }

    /// Writes the lines that tell the client what was decided.
    pub fn write_answer_fields(&self, worker: &Worker, fields: &mut Fields) {
        fields.clear();
        if worker.config.response_headers.decision {
            let active = &self.view.active;
            fields.push_lines(active.arm_headers(self.objective, self.decision.arm));
            if let Some(rule) = self.decision.rule {
                fields.push_lines(active.experiment_header(self.objective, rule));
            }
            if let Ok(reason) = FieldValue::new(self.decision.reason.label().as_bytes()) {
                fields.push("x-switchboard-reason", reason);
            }
            if let Some(note) = self.facts_note
                && let Ok(note) = FieldValue::new(note.as_bytes())
            {
                fields.push("x-switchboard-facts", note);
            }
        }
        self.push_id(fields);
    }

    /// Writes the lines that the model server gets.
    pub fn write_forward_fields(&self, fields: &mut Fields) {
        fields.clear();
        if let Some(facts) = &self.facts {
            fields.push_lines(facts.lines());
        }
        self.push_id(fields);
    }

    fn push_id(&self, fields: &mut Fields) {
        if let Some(id) = &self.made_id
            && let Ok(value) = FieldValue::new(id.as_bytes())
        {
            fields.push("x-request-id", value);
        }
    }
}

/// A request's id: 16 hexadecimal digits of the worker, 16 of its count.
#[derive(Clone, Copy, Debug)]
pub struct RequestId([u8; Self::BYTES]);

const HEXADECIMAL: &[u8; 16] = b"0123456789abcdef";

impl RequestId {
    const BYTES: usize = 16 + 1 + 16;

    /// From a worker's prefix and count.
    #[must_use]
    pub fn new((prefix, count): (u64, u64)) -> Self {
        let mut text = [b'-'; Self::BYTES];
        for (number, first) in [(prefix, 0), (count, 17)] {
            let mut left = number;
            for byte in text.iter_mut().skip(first).take(16).rev() {
                *byte = HEXADECIMAL.get((left & 0xF) as usize).copied().unwrap_or(b'0');
                left >>= 4;
            }
        }
        Self(text)
    }

    /// Its text.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_id_tells_worker_and_count() {
        let id = RequestId::new((0x0123_4567_89ab_cdef, 42));
        assert_eq!(id.as_bytes(), b"0123456789abcdef-000000000000002a");
    }
}
