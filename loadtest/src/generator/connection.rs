//! One connection's loop: take a ticket, wait until it is due, send, read, note.

use std::rc::Rc;
use std::time::{Duration, Instant};

use super::Reuse;
use super::link::{Expected, Link, Slot};
use super::worker::{Job, Sent, Worker};
use crate::recorder::{Failure, record};
use crate::schedule::Ticket;

/// How long a closed loop rests after it could not connect, lest it spins.
const CONNECT_REST: Duration = Duration::from_millis(10);

/// Sends requests until the schedule ends.
pub async fn drive(worker: &Rc<Worker>, slot: &Rc<Slot>) {
    let pipeline = usize::from(worker.plan.pipeline);
    let keep_alive = worker.plan.reuse == Reuse::KeepAlive;
    let mut jobs = Vec::with_capacity(pipeline);
    let mut link = None;
    let mut wire = Vec::new();
    while let Some(first) = worker.take().await {
        if keep_alive {
            ensure_link(worker, slot, &mut link).await; // while the request is not due yet
        }
        wait_until_due(worker, first.ticket).await;
        if !keep_alive {
            ensure_link(worker, slot, &mut link).await;
        }
        let Some(mut open) = link.take() else {
            fail_unsent(worker, slot, first);
            if worker.plan.load.is_closed() {
                worker.timer.sleep(CONNECT_REST).await;
            }
            continue;
        };
        jobs.push(first);
        while jobs.len() < pipeline
            && let Some(job) = worker.take_due(Instant::now())
        {
            jobs.push(job);
        }
        let usable;
        (usable, wire) = exchange(worker, slot, &mut open, &mut jobs, wire).await;
        if usable && keep_alive {
            link = Some(open);
        }
    }
}

async fn ensure_link(worker: &Worker, slot: &Rc<Slot>, link: &mut Option<Link>) {
    if link.as_ref().is_none_or(|open| open.is_stale(Instant::now())) {
        link.take(); // closed before the next one takes over its slot
        *link = worker.connect(slot).await.ok();
    }
}

async fn wait_until_due(worker: &Worker, ticket: Ticket) {
    if worker.plan.load.is_closed() {
        if ticket.due > ticket.taken {
            worker.timer.sleep_until(ticket.due).await; // the start of the run
        }
        return;
    }
    let ready = Instant::now();
    worker.timer.sleep_until(ticket.due).await;
    if worker.is_measured(ticket) {
        let tally = &mut *worker.tally.borrow_mut();
        record(&mut tally.lag, ready.max(ticket.due).elapsed());
        tally.waited_for_connection += u64::from(ticket.taken > ticket.due);
    }
}

fn fail_unsent(worker: &Worker, slot: &Slot, job: Job) {
    worker.begin(slot, 1);
    // It is drawn, or the users' turns would depend on the target's state.
    let what = worker.render(&job, &mut Vec::new());
    let sent = Sent { ticket: job.ticket, what, at: Instant::now(), place: (0, 0) };
    worker.end(&sent, Err(Failure::Connect));
    slot.deadline.set(None);
}

/// Writes the requests together and reads their answers in order. Tells whether the connection
/// can be used again, and gives the write buffer back.
async fn exchange(
    worker: &Worker,
    slot: &Slot,
    link: &mut Link,
    jobs: &mut Vec<Job>,
    mut wire: Vec<u8>,
) -> (bool, Vec<u8>) {
    wire.clear();
    let mut sent = Vec::with_capacity(jobs.len());
    for job in jobs.drain(..) {
        let what = worker.render(&job, &mut wire);
        link.requests += 1;
        let place = (link.number, link.requests);
        sent.push(Sent { ticket: job.ticket, what, at: Instant::now(), place });
    }
    if worker.plan.load.is_closed() {
        // A closed loop's request is due when it leaves, not when its connection was opened.
        for sent in &mut sent {
            sent.ticket.due = sent.at;
        }
    }
    worker.begin(slot, sent.len());
    let bytes = wire.len() as u64;
    let (_, wire) = link.write(wire).await; // a failure shows when the answer is read
    let mut usable = true;
    for sent in sent {
        if !usable {
            worker.end(&sent, Err(Failure::Reset));
            continue;
        }
        let expected = Expected {
            asked: worker.asked(&sent.what),
            checks: worker.checks(&sent.what),
            is_measured: worker.is_measured(sent.ticket),
        };
        let answer = link.read_answer(expected, &worker.tally).await;
        usable = answer.as_ref().is_ok_and(|answer| !answer.close);
        worker.end(&sent, answer);
        slot.deadline.set(Some(Instant::now() + worker.plan.timeout));
    }
    slot.deadline.set(None);
    let tally = &mut *worker.tally.borrow_mut();
    tally.bytes_sent += bytes;
    tally.bytes_received += link.take_received();
    (usable, wire)
}
