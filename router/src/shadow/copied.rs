//! One request's copy, on its way from a worker to the shadow core and, emptied, back.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use arrayvec::ArrayVec;
use switchboard_shared::decide::Decision;
use switchboard_shared::limits::SHADOW_TARGETS_MAX;
use switchboard_shared::snapshot::{ArmIndex, AttributeIndex, ObjectiveIndex};

use super::draw::Targets;
use crate::counters::NotCopied;
use crate::limits::COPY_KEPT_BYTES_MAX;
use crate::serve::request::Outcome;
use crate::worker::view::KeptActive;

/// Attributes that one request can be drawn by: one per target, and the experiment's.
const UNITS_MAX: usize = SHADOW_TARGETS_MAX + 1;

/// What was decided about the request.
pub struct Subject {
    /// What it was evaluated by. The inner pointer's count is shared by all cores, the outer one's only by
    /// this worker and the shadow core.
    pub active: Arc<KeptActive>,
    /// Its Objective.
    pub objective: ObjectiveIndex,
    /// Who answered, and why.
    pub decision: Decision,
    /// The Arm before a Fallout.
    pub decided_arm: ArmIndex,
    /// Where the body names the Objective instead of a model.
    pub model_place: Option<Range<usize>>,
    /// When its head was complete.
    pub started: Instant,
    /// When its answer was over.
    pub ended: Instant,
    /// How it went.
    pub served: Outcome,
}

/// How a body's bytes were copied.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Framing {
    /// The body's bytes and nothing else.
    #[default]
    Plain,
    /// In chunked coding, which the shadow core takes off.
    Chunked,
}

/// A body's bytes, as far as they were copied.
#[derive(Debug, Default)]
pub struct BodyCopy {
    /// As `framing` says.
    pub bytes: Vec<u8>,
    /// Their form.
    pub framing: Framing,
    /// How many bytes there were, copied or not, in the same form.
    pub total: u64,
}

/// A request's copy. Its allocations are kept from use to use.
#[derive(Default)]
pub struct Copied {
    /// What was decided; set when the request is over.
    pub subject: Option<Subject>,
    /// Which targets want it.
    pub targets: Targets,
    /// Whether it is an Exposure.
    pub is_exposed: bool,
    /// Whether the answer's body is wanted.
    pub captures_response: bool,
    /// Whether the client got the whole answer.
    pub is_complete: bool,
    /// Whether all of the request's body came.
    pub is_whole: bool,
    /// Why it will not be handed over as a shadow record.
    pub failed: Option<NotCopied>,
    /// The request's body.
    pub request_body: BodyCopy,
    /// The answer's body.
    pub response_body: BodyCopy,
    /// The request's method, target, id and header lines, and the answer's header lines.
    pub parts: Parts,
    units: ArrayVec<(AttributeIndex, Range<usize>), UNITS_MAX>,
    text: Vec<u8>,
    /// What it counts for in its worker's budget.
    pub(super) charged: usize,
}

/// Where the short texts are. A header line is `name:value` and a line feed.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// `POST`
    pub method: Range<usize>,
    /// Path and query.
    pub target: Range<usize>,
    /// `x-request-id`
    pub id: Range<usize>,
    /// The request's.
    pub request_headers: Range<usize>,
    /// The answer's.
    pub response_headers: Range<usize>,
    /// The Facts as they were served, as a JSON object; empty: none were.
    pub facts: Range<usize>,
}

impl Copied {
    /// Appends a short text; several of them in a row make one part.
    pub fn write(&mut self, text: &[u8]) -> Range<usize> {
        let start = self.text.len();
        self.text.extend_from_slice(text);
        start..self.text.len()
    }

    /// Appends a header line to what was appended last.
    pub fn write_header(&mut self, name: &[u8], value: &[u8]) {
        self.text.extend_from_slice(name);
        self.text.push(b':');
        self.text.extend_from_slice(value);
        self.text.push(b'\n');
    }

    /// Where the next text will stand.
    pub fn text_end(&self) -> usize {
        self.text.len()
    }

    /// A short text.
    pub fn text(&self, place: &Range<usize>) -> &[u8] {
        self.text.get(place.clone()).unwrap_or_default()
    }

    /// Header lines, as names and values.
    pub fn headers<'a>(
        &'a self,
        place: &Range<usize>,
    ) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let lines = self.text(place).split(|byte| *byte == b'\n');
        lines.filter_map(|line| {
            let colon = memchr::memchr(b':', line)?;
            Some((line.get(..colon)?, line.get(colon + 1..)?))
        })
    }

    /// Notes the Unit that an attribute names.
    pub fn write_unit(&mut self, attribute: AttributeIndex, unit: &str) {
        if self.unit(attribute).is_none() && !self.units.is_full() {
            let place = self.write(unit.as_bytes());
            self.units.push((attribute, place));
        }
    }

    /// The Unit that an attribute names.
    pub fn unit(&self, attribute: AttributeIndex) -> Option<&str> {
        let (_, place) = self.units.iter().find(|(known, _)| *known == attribute)?;
        std::str::from_utf8(self.text(place)).ok()
    }

    /// Whether anything of it is still wanted.
    pub fn is_wanted(&self) -> bool {
        self.is_exposed || !self.targets.is_empty()
    }

    /// Forgets everything but its allocations, and of those the large ones, too.
    pub(super) fn clear(&mut self) {
        let Self { text, request_body, response_body, .. } = std::mem::take(self);
        let empty = |mut bytes: Vec<u8>| {
            bytes.clear();
            if bytes.capacity() > COPY_KEPT_BYTES_MAX { Vec::new() } else { bytes }
        };
        self.text = empty(text);
        self.request_body.bytes = empty(request_body.bytes);
        self.response_body.bytes = empty(response_body.bytes);
    }

    /// Gives up the shadow record; what else it is stays.
    pub(super) fn fail(&mut self, why: NotCopied) {
        if self.failed.is_none() {
            self.failed = Some(why);
            self.request_body.bytes.clear();
            self.response_body.bytes.clear();
        }
    }
}
