//! The commands on one connection and whom their replies are for: strictly in order.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Instant;

use switchboard_shared::limits::FACT_BYTES_MAX;
use switchboard_shared::snapshot::{ArchivedFact, syntax::UNIT_PLACE};

use super::lookup::{Answer, Cut, Lookup};
use super::resp::{self, NoResp, Reply};
use crate::limits::{
    FACT_COMMAND_BYTES_MAX, FACT_LOOKUPS_MAX, FACT_LOOKUPS_POOLED_MAX, FACT_SKIP_BYTES_MAX,
};
use crate::net::buffer::Buffer;

/// What was sent and not answered, and what is to be sent.
#[derive(Default)]
pub struct Pipeline {
    /// In the order of sending. A reply belongs to the front, whoever still waits for it.
    pending: VecDeque<Pending>,
    outgoing: Buffer,
    /// Bytes of a value above the limit that are still to be dropped.
    skip: usize,
    spare: Vec<Rc<Lookup>>,
}

struct Pending {
    lookup: Rc<Lookup>,
    answered: usize,
    count: usize,
}

/// What the replies of one read meant.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Delivered {
    /// Lookups whose last reply came in time.
    pub in_time: u32,
    /// Replies that nobody waited for any more.
    pub late: u32,
}

impl Pipeline {
    /// Asks for some Facts of one Unit, in one go. `None`: too many wait already, or none is asked for.
    pub fn ask<'a>(
        &mut self,
        facts: impl Iterator<Item = &'a ArchivedFact>,
        unit: &str,
        deadline: Instant,
    ) -> Option<Rc<Lookup>> {
        let is_full =
            self.pending.len() >= FACT_LOOKUPS_MAX || self.outgoing.len() >= FACT_COMMAND_BYTES_MAX;
        if is_full {
            return None;
        }
        let lookup = self.take(deadline);
        let mut count = 0;
        for fact in facts {
            if lookup.expect() {
                write_command(self.outgoing.tail(), fact, unit);
                count += 1;
            }
        }
        if count == 0 {
            self.spare.push(lookup);
            return None;
        }
        self.pending.push_back(Pending { lookup: Rc::clone(&lookup), answered: 0, count });
        self.check_invariants();
        Some(lookup)
    }

    /// Takes all whole replies from the front of `input`.
    ///
    /// # Errors
    /// What is no reply, or one that nobody asked for: the connection must end.
    pub fn deliver(&mut self, input: &mut Buffer) -> Result<Delivered, NoResp> {
        let mut delivered = Delivered::default();
        loop {
            let skipped = self.skip.min(input.len());
            input.consume(skipped);
            self.skip -= skipped;
            if self.skip > 0 {
                return Ok(delivered);
            }
            let read = resp::read(input.filled(), FACT_BYTES_MAX, FACT_SKIP_BYTES_MAX)?;
            let Some((reply, taken)) = read else { return Ok(delivered) };
            let front = self.pending.front_mut().ok_or(NoResp)?;
            if let Reply::Oversized { skip } = reply {
                self.skip = skip;
            }
            let was_due = front.lookup.due().is_some();
            front.lookup.answer(front.answered, meaning(reply));
            front.answered += 1;
            let is_last = front.answered == front.count;
            delivered.late += u32::from(!was_due);
            delivered.in_time += u32::from(was_due && is_last);
            input.consume(taken);
            if is_last && let Some(Pending { lookup, .. }) = self.pending.pop_front() {
                self.give_back(lookup);
            }
            self.check_invariants();
        }
    }

    /// Ends the wait of every lookup that is due; tells how many these were and when the next one is.
    pub fn expire(&mut self, now: Instant) -> (u32, Option<Instant>) {
        let (mut late, mut next) = (0, None::<Instant>);
        for pending in &self.pending {
            match pending.lookup.due() {
                Some(due) if due <= now => late += u32::from(pending.lookup.cut(Cut::Late)),
                Some(due) => next = Some(next.map_or(due, |next| next.min(due))),
                None => {}
            }
        }
        (late, next)
    }

    /// The connection is gone: nothing that was asked will be answered.
    pub fn lose(&mut self) {
        while let Some(Pending { lookup, .. }) = self.pending.pop_front() {
            lookup.cut(Cut::Lost);
            self.give_back(lookup);
        }
        self.outgoing.clear();
        self.skip = 0;
    }

    /// Lookups that are not answered yet, whoever still waits for them.
    pub fn unanswered(&self) -> usize {
        self.pending.len()
    }

    /// Swaps what is to be sent with an empty buffer.
    pub fn take_outgoing(&mut self, empty: &mut Buffer) {
        debug_assert!(empty.is_empty(), "nothing is lost");
        std::mem::swap(&mut self.outgoing, empty);
    }

    /// Whether something is to be sent.
    pub fn has_outgoing(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// A lookup that nobody else holds.
    pub fn take(&mut self, deadline: Instant) -> Rc<Lookup> {
        match self.spare.pop() {
            Some(lookup) => {
                lookup.begin(deadline);
                lookup
            }
            None => Lookup::new(deadline),
        }
    }

    /// Lets go of a lookup; the last of its two holders keeps it for the next request.
    pub fn give_back(&mut self, lookup: Rc<Lookup>) {
        if Rc::strong_count(&lookup) == 1 && self.spare.len() < FACT_LOOKUPS_POOLED_MAX {
            self.spare.push(lookup);
        }
    }

    fn check_invariants(&self) {
        debug_assert!(self.pending.len() <= FACT_LOOKUPS_MAX, "bounded");
        debug_assert!(
            self.pending.iter().all(|pending| pending.answered < pending.count),
            "an answered lookup does not wait"
        );
        debug_assert!(
            self.spare.iter().all(|lookup| Rc::strong_count(lookup) == 1),
            "nobody holds a spare lookup"
        );
    }
}

fn write_command(out: &mut Vec<u8>, fact: &ArchivedFact, unit: &str) {
    let (before, after) = fact.key.split_once(UNIT_PLACE).unwrap_or((&fact.key, ""));
    let key: &[&[u8]] = &[before.as_bytes(), unit.as_bytes(), after.as_bytes()];
    match fact.hash_field.as_ref() {
        None => resp::write(out, &[&[b"GET"], key]),
        Some(field) => resp::write(out, &[&[b"HGET"], key, &[field.as_bytes()]]),
    }
}

fn meaning(reply: Reply<'_>) -> Result<Option<&[u8]>, Answer> {
    match reply {
        Reply::Value(value) => Ok(Some(value)),
        Reply::Absent => Ok(None),
        Reply::Error(class) => Err(Answer::Failed(class)),
        Reply::Status(_) | Reply::Number | Reply::Oversized { .. } => Err(Answer::Unfit),
    }
}

#[cfg(test)]
mod tests;
