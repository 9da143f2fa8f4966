//! The commands on one connection and whom their replies are for: strictly in order.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Instant;

use switchboard_shared::limits::FACT_BYTES_MAX;

use super::lookup::{Answer, Cut, Lookup, LookupPool, Taken};
use super::near::Near;
use super::resp::{self, Elsewhere, ErrorClass, NoResp, Reply};
use crate::limits::{FACT_COMMAND_BYTES_MAX, FACT_COMMANDS_MAX, FACT_SKIP_BYTES_MAX};
use crate::net::buffer::Buffer;

/// What was sent and not answered, and what is to be sent.
#[derive(Default)]
pub struct Pipeline {
    /// In the order of sending. A reply belongs to the front, whoever still waits for it.
    pending: VecDeque<Pending>,
    outgoing: Buffer,
    /// Bytes of a value above the limit that are still to be dropped.
    skip: usize,
}

/// Why a command is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sending {
    /// This server is the one to ask.
    First,
    /// Another one was asked and is slow.
    Hedge,
    /// Another node said that this one has the key.
    Moved,
    /// Another node said that this one gets the key's slot.
    Ask,
}

struct Pending {
    /// `None`: the reply to `ASKING`, which is for nobody.
    lookup: Option<Rc<Lookup>>,
    place: usize,
    sending: Sending,
    /// Its lookup was counted as late.
    is_late: bool,
}

/// What the replies of one read meant.
#[derive(Debug, Default)]
pub struct Delivered {
    /// Lookups whose last reply came in time.
    pub in_time: u32,
    /// Replies that nobody waited for any more.
    pub late: u32,
    /// Hedged commands that were answered before the ones that they stood in for.
    pub hedges_won: u32,
    /// Whether a node said that the cluster is not as it was.
    pub is_moved: bool,
    /// Commands that have to go to another node.
    pub redirects: Vec<Redirect>,
}

/// A command that has to go to another node of a cluster. It was answered once without a value, and is not again.
#[derive(Debug)]
pub struct Redirect {
    /// Whose it is.
    pub lookup: Rc<Lookup>,
    /// Which of its Facts.
    pub place: usize,
    /// Whether the slot only is on its way there.
    pub is_ask: bool,
    /// The slot.
    pub slot: u16,
    /// `HOST:PORT`.
    pub node: Box<str>,
}

impl Pipeline {
    /// Asks for Facts of one lookup, in one go. `false`: too many commands wait already.
    pub fn send(&mut self, lookup: &Rc<Lookup>, places: &[usize], sending: Sending) -> bool {
        let is_full = self.pending.len() >= FACT_COMMANDS_MAX
            || self.outgoing.len() >= FACT_COMMAND_BYTES_MAX;
        if is_full {
            return false;
        }
        for place in places.iter().copied() {
            if sending == Sending::Ask {
                resp::write(self.outgoing.tail(), &[&[b"ASKING"]]);
                self.pending.push_back(Pending { lookup: None, place, sending, is_late: false });
            }
            self.outgoing.extend(&lookup.command(place));
            lookup.sent(place);
            let lookup = Some(Rc::clone(lookup));
            self.pending.push_back(Pending { lookup, place, sending, is_late: false });
        }
        true
    }

    /// Takes all whole replies from the front of `input`; the near-cache hears of each one.
    ///
    /// # Errors
    /// What is no reply, or one that nobody asked for: the connection must end.
    pub fn deliver(
        &mut self,
        input: &mut Buffer,
        pool: &LookupPool,
        near: Option<&Near>,
        now: Instant,
    ) -> Result<Delivered, NoResp> {
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
            let front = self.pending.pop_front().ok_or(NoResp)?;
            if let Reply::Oversized { skip } = reply {
                self.skip = skip;
            }
            if let Some(lookup) = front.lookup {
                hand_over(
                    &mut delivered,
                    lookup,
                    (front.place, front.sending),
                    reply,
                    (pool, near, now),
                );
            }
            input.consume(taken);
        }
    }

    /// Ends the wait of every lookup that is due; tells how many these were and when the next one is.
    pub fn expire(&mut self, now: Instant) -> (u32, Option<Instant>) {
        let (mut late, mut next) = (0, None::<Instant>);
        let mut counted: Option<&Rc<Lookup>> = None;
        for pending in &mut self.pending {
            let Some(lookup) = pending.lookup.as_ref().filter(|_| !pending.is_late) else {
                continue;
            };
            if !lookup.is_awaiting(pending.place) {
                continue; // another server was quicker
            }
            let due = lookup.deadline();
            if due > now {
                next = Some(next.map_or(due, |next| next.min(due)));
                continue;
            }
            pending.is_late = true;
            lookup.cut(Cut::Late);
            // All its commands are one lookup.
            if counted.is_none_or(|counted| !Rc::ptr_eq(counted, lookup)) {
                late += 1;
                counted = Some(lookup);
            }
        }
        (late, next)
    }

    /// The connection is gone: nothing that was asked will be answered.
    pub fn lose(&mut self, pool: &LookupPool, near: Option<&Near>) {
        while let Some(Pending { lookup, place, .. }) = self.pending.pop_front() {
            let Some(lookup) = lookup else { continue };
            lookup.lost(place);
            if let Some(near) = near.filter(|_| !lookup.is_asked(place)) {
                near.lost(&lookup, place, pool);
            }
            pool.give_back(lookup);
        }
        self.outgoing.clear();
        self.skip = 0;
    }

    /// Commands that are not answered yet, whoever still waits for them.
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
}

fn hand_over(
    delivered: &mut Delivered,
    lookup: Rc<Lookup>,
    (place, sending): (usize, Sending),
    reply: Reply<'_>,
    (pool, near, now): (&LookupPool, Option<&Near>, Instant),
) {
    let is_waited_for = lookup.due().is_some();
    if let Reply::Elsewhere(Elsewhere { is_ask, slot, node }) = reply {
        delivered.is_moved |= !is_ask;
        let was_redirected = matches!(sending, Sending::Moved | Sending::Ask);
        if is_waited_for && !was_redirected {
            lookup.unsent(place);
            let node = node.into();
            delivered.redirects.push(Redirect { lookup, place, is_ask, slot, node });
            return;
        }
    }
    delivered.is_moved |= matches!(reply, Reply::Error(ErrorClass::Moved));
    let meaning = meaning(reply);
    let taken = lookup.answer(place, meaning.clone());
    // An error is not told to others as long as another server may give a value.
    if let Some(near) = near.filter(|_| meaning.is_ok() || !lookup.is_asked(place)) {
        near.settle(&lookup, place, &meaning, pool, now);
    }
    match taken {
        Taken::No => delivered.late += 1,
        Taken::Yes => delivered.hedges_won += u32::from(sending == Sending::Hedge),
        Taken::Last => {
            delivered.in_time += 1;
            delivered.hedges_won += u32::from(sending == Sending::Hedge);
        }
    }
    pool.give_back(lookup);
}

fn meaning(reply: Reply<'_>) -> Result<Option<&[u8]>, Answer> {
    match reply {
        Reply::Value(value) => Ok(Some(value)),
        Reply::Absent => Ok(None),
        Reply::Error(class) => Err(Answer::Failed(class)),
        Reply::Elsewhere(_) => Err(Answer::Failed(ErrorClass::Moved)),
        Reply::Status(_) | Reply::Number | Reply::Oversized { .. } => Err(Answer::Unfit),
    }
}

#[cfg(test)]
pub(super) mod tests;
