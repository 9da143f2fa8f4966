//! A worker's side: copies in the making, their budget, and the ring to the shadow core.

use std::cell::{Cell, RefCell};

use rtrb::{Consumer, Producer, PushError, RingBuffer};
use switchboard_shared::context::Context;
use switchboard_shared::decide::{Decision, Reason};
use switchboard_shared::snapshot::ArchivedObjective;

use super::copied::{BodyCopy, Copied};
use super::draw::{self, Targets};
use crate::config::{ExposureMode, ShadowSettings};
use crate::counters::{NotCopied, WorkerCounters};

/// A worker's end of its two rings: full copies go out, emptied ones come back.
pub struct RingEnd {
    out: Producer<Box<Copied>>,
    back: Consumer<Box<Copied>>,
}

/// The shadow core's end.
pub(super) struct CoreEnd {
    from: Consumer<Box<Copied>>,
    back: Producer<Box<Copied>>,
}

/// A pair of rings of `capacity` copies each.
pub(super) fn ring(capacity: usize) -> (RingEnd, CoreEnd) {
    let (out, from) = RingBuffer::new(capacity);
    let (home, back) = RingBuffer::new(capacity);
    (RingEnd { out, back }, CoreEnd { from, back: home })
}

impl CoreEnd {
    /// The next copy, if there is one and it can be given back afterwards.
    pub(super) fn take(&mut self) -> Option<Box<Copied>> {
        if self.back.is_full() {
            return None;
        }
        self.from.pop().ok()
    }

    /// Gives a copy back to its worker, which knows what it weighed.
    pub(super) fn give_back(&mut self, mut copied: Box<Copied>) {
        let charged = copied.charged;
        copied.clear();
        copied.charged = charged;
        let given = self.back.push(copied);
        debug_assert!(given.is_ok(), "`take` looked whether there is room");
    }
}

/// What a worker copies into.
pub struct Copies {
    ring: Option<RefCell<RingEnd>>,
    #[expect(clippy::vec_box, reason = "they go through the ring as one pointer")]
    free: RefCell<Vec<Box<Copied>>>,
    held_bytes: Cell<usize>,
    held_bytes_max: usize,
    request_bytes_max: usize,
    response_bytes_max: usize,
    exposures: ExposureMode,
}

impl Copies {
    pub(super) fn new(ring: Option<RingEnd>, settings: &ShadowSettings) -> Self {
        Self {
            ring: ring.map(RefCell::new),
            free: RefCell::default(),
            held_bytes: Cell::new(0),
            held_bytes_max: settings.buffer_bytes_max,
            request_bytes_max: settings.request_bytes_max,
            response_bytes_max: settings.response_bytes_max,
            exposures: settings.exposures,
        }
    }

    /// Starts a copy if a shadow target draws the request, or if it is an Exposure: for almost all requests
    /// it is neither, and this costs two loads.
    pub fn begin(
        &self,
        counters: &WorkerCounters,
        objective: &ArchivedObjective,
        context: &Context<'_>,
        decision: &Decision,
        random: impl FnMut() -> u64,
    ) -> Option<Box<Copied>> {
        let is_exposed =
            self.exposures != ExposureMode::Off && decision.reason == Reason::Experiment;
        if objective.shadow.is_empty() && !is_exposed {
            return None;
        }
        let targets = draw::draw(objective, context, decision.arm, random);
        if targets.is_empty() && !is_exposed {
            return None;
        }
        if self.ring.is_none() {
            count_drawn(counters, targets, u64::from(is_exposed));
            count_lost(counters, NotCopied::NoShadowCore, targets, u64::from(is_exposed));
            return None;
        }
        let mut copied = self.take();
        (copied.targets, copied.is_exposed) = (targets, is_exposed);
        for (_, target) in targets_of(objective, targets) {
            copied.captures_response |= target.captures_response;
            if let Some(attribute) = target.unit()
                && let Some(unit) = context.unit(attribute)
            {
                copied.write_unit(attribute, unit.as_str());
            }
        }
        if is_exposed
            && let Some(rule) = decision.rule
            && let Some(experiment) = objective.experiment(objective.rule(rule))
            && let Some(unit) = context.unit(experiment.unit.to_native())
        {
            copied.write_unit(experiment.unit.to_native(), unit.as_str());
        }
        Some(copied)
    }

    /// Appends to the request's body. One above the limit is given up as a whole (cases.md KF-02): a cut
    /// request is no use to a replay.
    pub fn append_request(&self, copied: &mut Copied, bytes: &[u8]) {
        if copied.failed.is_some() || copied.targets.is_empty() {
            return;
        }
        let length = copied.request_body.bytes.len().saturating_add(bytes.len());
        if length > self.request_bytes_max {
            return self.give_up(copied, NotCopied::TooLarge);
        }
        copied.request_body.total += bytes.len() as u64;
        self.append(copied, bytes, |copied| &mut copied.request_body);
    }

    /// Appends to the answer's body, up to the limit; what is beyond is counted.
    pub fn append_response(&self, copied: &mut Copied, bytes: &[u8]) {
        if copied.failed.is_some() || copied.targets.is_empty() {
            return;
        }
        copied.response_body.total += bytes.len() as u64;
        let room = self.response_bytes_max.saturating_sub(copied.response_body.bytes.len());
        let bytes = bytes.get(..room).unwrap_or(bytes);
        self.append(copied, bytes, |copied| &mut copied.response_body);
    }

    /// Gives a shadow record up; what else the copy is stays.
    pub fn give_up(&self, copied: &mut Copied, why: NotCopied) {
        self.held_bytes.set(self.held_bytes.get().saturating_sub(copied.charged));
        copied.charged = 0;
        copied.fail(why);
    }

    /// Whether a body of this length could be copied: asked before a byte of it is.
    #[must_use]
    pub fn fits(&self, request_bytes: u64) -> bool {
        usize::try_from(request_bytes).is_ok_and(|bytes| bytes <= self.request_bytes_max)
    }

    fn append(
        &self,
        copied: &mut Copied,
        bytes: &[u8],
        body: impl FnOnce(&mut Copied) -> &mut BodyCopy,
    ) {
        let held = self.held_bytes.get().saturating_add(bytes.len());
        if held > self.held_bytes_max {
            self.collect();
            if self.held_bytes.get().saturating_add(bytes.len()) > self.held_bytes_max {
                return self.give_up(copied, NotCopied::BuffersFull);
            }
        }
        self.held_bytes.set(self.held_bytes.get() + bytes.len());
        copied.charged += bytes.len();
        body(copied).bytes.extend_from_slice(bytes);
    }

    /// Hands a finished copy over. A full ring costs the record, never the client's time.
    pub fn offer(&self, counters: &WorkerCounters, mut copied: Box<Copied>) {
        count_drawn(counters, copied.targets, u64::from(copied.is_exposed));
        if let Some(why) = copied.failed {
            count_lost(counters, why, copied.targets, 0);
            copied.targets = Targets::NONE;
        }
        let Some(ring) = self.ring.as_ref().filter(|_| copied.is_wanted()) else {
            return self.put_back(copied);
        };
        let pushed = ring.borrow_mut().out.push(copied);
        if let Err(PushError::Full(copied)) = pushed {
            let exposures = u64::from(copied.is_exposed);
            count_lost(counters, NotCopied::RingFull, copied.targets, exposures);
            self.put_back(copied);
        }
    }

    fn take(&self) -> Box<Copied> {
        self.collect();
        self.free.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes back what the shadow core is done with.
    fn collect(&self) {
        let Some(ring) = &self.ring else { return };
        let mut ring = ring.borrow_mut();
        while let Ok(mut copied) = ring.back.pop() {
            self.held_bytes.set(self.held_bytes.get().saturating_sub(copied.charged));
            copied.charged = 0;
            self.free.borrow_mut().push(copied);
        }
    }

    fn put_back(&self, mut copied: Box<Copied>) {
        self.held_bytes.set(self.held_bytes.get().saturating_sub(copied.charged));
        copied.clear();
        self.free.borrow_mut().push(copied);
    }
}

/// What is drawn counts when its request is over: one that was refused before it was forwarded never does.
fn count_drawn(counters: &WorkerCounters, targets: Targets, exposures: u64) {
    counters.shadow_sampled.add(targets.count());
    counters.exposures.add(exposures);
}

fn count_lost(counters: &WorkerCounters, why: NotCopied, targets: Targets, exposures: u64) {
    counters.shadow_not_copied.add(why, targets.count());
    counters.exposures_not_copied.add(why, exposures);
}

/// The targets at these places.
pub(super) fn targets_of(
    objective: &ArchivedObjective,
    targets: Targets,
) -> impl Iterator<Item = (usize, &switchboard_shared::snapshot::ArchivedShadowTarget)> {
    objective.shadow.iter().enumerate().filter(move |(place, _)| targets.has(*place))
}
