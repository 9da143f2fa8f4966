//! What the connections of one thread share: schedule, draws, tally, timeouts.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use super::connection;
use super::link::{Answer, Link, Slot};
use super::{Finished, Part, Plan};
use crate::net::timer::Timer;
use crate::recorder::records::{Record, Recorder};
use crate::recorder::{Failure, Second, Tally, Times, record};
use crate::scenario::{Drawn, Draws, users};
use crate::schedule::{Schedule, Span, Ticket};
use crate::signal::StopSignal;

/// One generator thread at work.
pub struct Worker {
    /// What to do.
    pub plan: Arc<Plan>,
    /// The thread's timer.
    pub timer: Timer,
    /// The run's moments.
    pub span: Span,
    /// What was measured. Never borrowed over an await.
    pub tally: RefCell<Tally>,
    schedule: RefCell<Schedule>,
    draws: RefCell<Draws>,
    second: RefCell<Second>,
    seconds: Sender<Second>,
    recorder: RefCell<Option<Recorder>>,
    slots: Vec<Rc<Slot>>,
    connections_alive: Cell<usize>,
    in_flight: Cell<usize>,
    links_opened: Cell<u64>,
    thread: u16,
    stop: StopSignal,
}

/// A request that was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Its permission.
    pub ticket: Ticket,
    /// What was sent.
    pub drawn: Drawn,
    /// When.
    pub at: Instant,
    /// Number of its connection and its place there; zero where there was no connection.
    pub place: (u64, u64),
}

/// How long requests under way may go on after the run was stopped by a signal.
const STOP_GRACE: Duration = Duration::from_secs(1);

impl Worker {
    /// Starts the thread's connections; call it inside the thread's ring.
    pub(super) fn start(part: Part, span: Span) -> io::Result<Rc<Self>> {
        let plan = part.plan;
        let (thread, threads) = (u64::from(part.thread), u64::from(plan.threads));
        let own = u64::from(plan.connections).saturating_sub(thread).div_ceil(threads).max(1);
        let slots: Vec<_> = (0..own).map(|_| Rc::new(Slot::default())).collect();
        let worker = Rc::new(Self {
            timer: Timer::start()?,
            span,
            tally: RefCell::default(),
            schedule: RefCell::new(Schedule::new(
                plan.load,
                span,
                (thread, threads),
                plan.requests_max,
            )),
            draws: RefCell::new(Draws::new(&plan.scenario, usize::from(part.thread))),
            second: RefCell::new(Second::new(0)),
            seconds: part.seconds,
            recorder: RefCell::new(part.recorder),
            connections_alive: Cell::new(slots.len()),
            in_flight: Cell::new(0),
            links_opened: Cell::new(0),
            thread: part.thread,
            stop: part.stop,
            slots,
            plan,
        });
        for slot in &worker.slots {
            let (worker, slot) = (Rc::clone(&worker), Rc::clone(slot));
            monoio::spawn(async move {
                connection::drive(&worker, &slot).await;
                worker.connections_alive.set(worker.connections_alive.get() - 1);
            });
        }
        Ok(worker)
    }

    /// Sweeps until the run is over.
    pub(super) async fn run(&self) {
        let (tick_min, tick_max) = (Duration::from_millis(1), Duration::from_millis(10));
        let tick = (self.plan.timeout / 4).clamp(tick_min, tick_max);
        let mut grace_ends = None;
        while self.connections_alive.get() > 0 {
            self.timer.sleep(tick).await;
            let now = Instant::now();
            self.end_late_requests(now);
            self.publish_second(now);
            if !self.stop.is_set() {
                continue;
            }
            if self.in_flight.get() == 0 {
                return; // connections that only wait for their next request
            }
            if now >= *grace_ends.get_or_insert(now + STOP_GRACE) {
                for slot in &self.slots {
                    slot.end(Failure::Unfinished);
                }
            }
        }
    }

    /// What the thread hands back.
    pub(super) fn finish(&self) -> Finished {
        let now = Instant::now();
        self.publish_second(now + Duration::from_secs(1));
        drop(self.recorder.take()); // its last lines
        let stopped = self.stop.is_set();
        let unsent = if stopped { 0 } else { self.schedule.borrow().overdue(now) };
        Finished { tally: self.tally.take(), unsent }
    }

    /// The next request; `None` when the connection should end.
    pub fn take(&self, now: Instant) -> Option<Ticket> {
        if self.stop.is_set() {
            return None;
        }
        self.schedule.borrow_mut().take(now)
    }

    /// A request that is due already; none in the future.
    pub fn take_due(&self, now: Instant) -> Option<Ticket> {
        match self.plan.load {
            crate::schedule::Load::Constant { .. } if self.schedule.borrow().overdue(now) == 0 => {
                None
            }
            _ => self.take(now),
        }
    }

    /// Appends a request to `wire`.
    pub fn render(&self, ticket: Ticket, wire: &mut Vec<u8>) -> Drawn {
        self.draws.borrow_mut().render(&self.plan.scenario, ticket.number, wire)
    }

    /// Whether results of this request count.
    pub fn is_measured(&self, ticket: Ticket) -> bool {
        ticket.due >= self.span.measured_from
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// `Connect`.
    pub async fn connect(&self, slot: &Rc<Slot>) -> Result<Link, Failure> {
        let opened = self.links_opened.get();
        self.links_opened.set(opened + 1);
        let number = (u64::from(self.thread) << 40) | opened;
        let (target, timeout) = (&self.plan.target, self.plan.timeout);
        let link = Link::connect(target, timeout, &self.timer, slot, number).await?;
        self.tally.borrow_mut().connections_opened += 1;
        Ok(link)
    }

    /// Notes that requests go out.
    pub fn begin(&self, slot: &Slot, requests: usize) {
        slot.deadline.set(Some(Instant::now() + self.plan.timeout));
        self.in_flight.set(self.in_flight.get() + requests);
    }

    /// Notes one request's end.
    pub fn end(&self, sent: Sent, result: Result<Answer, Failure>) {
        self.in_flight.set(self.in_flight.get() - 1);
        let done = result.as_ref().map_or_else(|_| Instant::now(), |answer| answer.done);
        let times = Times { due: sent.ticket.due, sent: sent.at, done };
        let failure = match &result {
            Ok(answer) => self.check(answer).err(),
            Err(failure) => Some(*failure),
        };
        self.tell_second(times, (result.is_ok(), failure));
        if let Some(recorder) = &mut *self.recorder.borrow_mut() {
            self.write_record(recorder, sent, times, (&result, failure));
        }
        let tally = &mut *self.tally.borrow_mut();
        tally.last_done = tally.last_done.max(Some(done));
        let in_window =
            |at: Instant| at >= self.span.measured_from && self.span.end.is_none_or(|end| at < end);
        tally.answers_in_window += u64::from(result.is_ok() && in_window(done));
        tally.sent_in_window += u64::from(in_window(sent.at));
        if !self.is_measured(sent.ticket) {
            return;
        }
        if let Some(failure) = failure {
            tally.fail(failure);
        }
        if let Ok(answer) = result {
            tally.answer(answer.status, times);
            let latency = done.saturating_duration_since(times.due);
            let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
            tally.decisions.count(answer.seen, nanoseconds, failure);
            tally.events += answer.events;
            if let Some(first) = answer.first_event {
                record(&mut tally.first_event, first.saturating_duration_since(times.due));
            }
        }
    }

    fn check(&self, answer: &Answer) -> Result<(), Failure> {
        let statuses = &self.plan.checks.statuses;
        let expected = if statuses.is_empty() {
            (200..400).contains(&answer.status)
        } else {
            statuses.contains(&answer.status)
        };
        match (expected, answer.headers_hold) {
            (false, _) => Err(Failure::Status),
            (true, false) => Err(Failure::Header),
            (true, true) => Ok(()),
        }
    }

    fn end_late_requests(&self, now: Instant) {
        for slot in &self.slots {
            if slot.deadline.get().is_some_and(|deadline| now >= deadline) {
                slot.end(Failure::Timeout);
            }
        }
    }

    fn tell_second(&self, times: Times, (whole, failure): (bool, Option<Failure>)) {
        let mut second = self.second.borrow_mut();
        second.requests += 1;
        second.failures += u64::from(failure.is_some());
        if whole {
            record(&mut second.latency, times.done.saturating_duration_since(times.due));
        }
    }

    fn publish_second(&self, now: Instant) {
        let current = now.saturating_duration_since(self.span.start).as_secs();
        let mut second = self.second.borrow_mut();
        if second.second < current {
            let passed = std::mem::replace(&mut *second, Second::new(current));
            drop(self.seconds.send(passed)); // nobody listens: then nobody misses it
            if let Some(recorder) = &mut *self.recorder.borrow_mut() {
                recorder.flush();
            }
        }
    }

    fn write_record(
        &self,
        recorder: &mut Recorder,
        sent: Sent,
        times: Times,
        (result, failure): (&Result<Answer, Failure>, Option<Failure>),
    ) {
        let tally = self.tally.borrow();
        let answer = result.as_ref().ok();
        let seen = answer.map(|answer| answer.seen).unwrap_or_default();
        let name = |label| tally.decisions.labels.name(label);
        let microseconds =
            |from: Instant| times.done.saturating_duration_since(from).as_nanos() as f64 / 1000.0;
        let mut user = String::new();
        users::name(sent.drawn.user, &mut user);
        recorder.add(&Record {
            number: sent.ticket.number,
            user: &user,
            asked: self.plan.scenario.requests[sent.drawn.request].objective.as_deref(),
            objective: name(seen.objective),
            arm: name(seen.arm),
            snapshot: name(seen.snapshot),
            reason: name(seen.reason),
            model_server: name(seen.model_server),
            status: answer.map(|answer| answer.status),
            failure: failure.map(Failure::name),
            latency_us: microseconds(times.due),
            done_us: microseconds(self.span.start),
            body_bytes: answer.map_or(0, |answer| answer.body_bytes),
            events: answer.map_or(0, |answer| answer.events),
            connection: sent.place.0,
            sequence: sent.place.1,
        });
    }
}
