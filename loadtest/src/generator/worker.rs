//! What the connections of one thread share: schedule, draws, tally, timeouts.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use super::connection;
use super::feed::{Feed, Front, Recorded};
use super::link::{Answer, Link, Slot};
use super::{Checks, Finished, Part, Plan, Source};
use crate::http1::framing::Asked;
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
    draws: RefCell<Option<Draws>>,
    second: RefCell<Second>,
    seconds: Sender<Second>,
    recorder: RefCell<Option<Recorder>>,
    feed: RefCell<Option<Feed>>,
    busy: RefCell<Busy>,
    slots: Vec<Rc<Slot>>,
    connections_alive: Cell<usize>,
    in_flight: Cell<usize>,
    links_opened: Cell<u64>,
    thread: u16,
    stop: StopSignal,
}

/// A request that is to be sent.
#[derive(Debug)]
pub struct Job {
    /// Its permission.
    pub ticket: Ticket,
    /// What is sent, unless it is drawn from the scenario.
    recorded: Option<Box<Recorded>>,
}

/// What a request is.
#[derive(Debug)]
pub enum What {
    /// One of the scenario's.
    Drawn(Drawn),
    /// One that was recorded.
    Recorded {
        /// The Objective that it was sent for.
        objective: String,
        /// The Unit that it was sent for.
        unit: String,
        /// What its method asks for.
        asked: Asked,
    },
}

/// A request that was sent.
#[derive(Debug)]
pub struct Sent {
    /// Its permission.
    pub ticket: Ticket,
    /// What was sent.
    pub what: What,
    /// When.
    pub at: Instant,
    /// Number of its connection and its place there; zero where there was no connection.
    pub place: (u64, u64),
}

/// How much of the measured window the thread spent on its core.
#[derive(Debug, Default)]
struct Busy {
    before: Option<(Instant, Duration)>,
    share: Option<f64>,
}

/// How long a connection waits for records that were not read yet.
const FEED_REST: Duration = Duration::from_millis(1);

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
                plan.load.clone(),
                span,
                (thread, threads),
                plan.requests_max,
            )),
            draws: RefCell::new(match &plan.source {
                Source::Scenario(scenario) => Some(Draws::new(scenario, usize::from(part.thread))),
                Source::Records => None,
            }),
            second: RefCell::new(Second::at(Duration::ZERO, plan.warmup)),
            feed: RefCell::new(part.feed),
            busy: RefCell::default(),
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
            self.busy.borrow_mut().note(now, self.span);
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
        self.publish_second(now + Duration::from_secs(2));
        let busy = self.busy.borrow().share(now);
        drop(self.recorder.take()); // its last lines
        let stopped = self.stop.is_set();
        // After the last record nothing is due any more.
        let is_over = stopped || self.feed.borrow().is_some();
        let unsent = if is_over { 0 } else { self.schedule.borrow().overdue(now) };
        Finished { tally: self.tally.take(), unsent, busy }
    }

    /// The next request; `None` when the connection should end.
    pub async fn take(&self) -> Option<Job> {
        while !self.stop.is_set() {
            let front = self.feed.borrow_mut().as_mut().map(Feed::front);
            match front {
                None => return self.take_ticket(Instant::now(), None),
                Some(Front::Ready(offset)) => {
                    return self.take_ticket(Instant::now(), Some(offset));
                }
                Some(Front::Ended) => return None,
                Some(Front::NotRead) => self.timer.sleep(FEED_REST).await,
            }
        }
        None
    }

    /// A request that is due already; none in the future, and none that was recorded.
    pub fn take_due(&self, now: Instant) -> Option<Job> {
        if self.stop.is_set() || self.feed.borrow().is_some() {
            return None;
        }
        let is_due = self.schedule.borrow().is_due(now);
        if is_due { self.take_ticket(now, None) } else { None }
    }

    fn take_ticket(&self, now: Instant, recorded: Option<Duration>) -> Option<Job> {
        let ticket = self.schedule.borrow_mut().take(now, recorded)?;
        let recorded = self.feed.borrow_mut().as_mut().and_then(Feed::take).map(Box::new);
        Some(Job { ticket, recorded })
    }

    /// Appends a request to `wire`.
    pub fn render(&self, job: &Job, wire: &mut Vec<u8>) -> What {
        if let Some(recorded) = &job.recorded {
            wire.extend_from_slice(&recorded.wire);
            let Recorded { objective, unit, asked, .. } = &**recorded;
            return What::Recorded {
                objective: objective.clone(),
                unit: unit.clone(),
                asked: *asked,
            };
        }
        match (&self.plan.source, &mut *self.draws.borrow_mut()) {
            (Source::Scenario(scenario), Some(draws)) => {
                What::Drawn(draws.render(scenario, job.ticket.number, wire))
            }
            _ => unreachable!("each job of a record feed has its record"),
        }
    }

    /// What the request's method asks for.
    pub fn asked(&self, what: &What) -> Asked {
        match (what, &self.plan.source) {
            (What::Recorded { asked, .. }, _) => *asked,
            (What::Drawn(drawn), Source::Scenario(scenario)) => {
                scenario.requests[drawn.request].asked
            }
            (What::Drawn(_), Source::Records) => Asked::Whole,
        }
    }

    /// What its answer must hold.
    pub fn checks(&self, what: &What) -> &Checks {
        match (what, &self.plan.source) {
            (What::Drawn(drawn), Source::Scenario(scenario)) => {
                scenario.requests[drawn.request].checks.as_ref().unwrap_or(&self.plan.checks)
            }
            _ => &self.plan.checks,
        }
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
    pub fn end(&self, sent: &Sent, result: Result<Answer, Failure>) {
        self.in_flight.set(self.in_flight.get() - 1);
        let done = result.as_ref().map_or_else(|_| Instant::now(), |answer| answer.done);
        let times = Times { due: sent.ticket.due, sent: sent.at, done };
        let failure = match &result {
            Ok(answer) => check(answer, self.checks(&sent.what)).err(),
            Err(failure) => Some(*failure),
        };
        self.tell_second(sent, times, (result.is_ok(), failure));
        if let Some(recorder) = &mut *self.recorder.borrow_mut() {
            self.write_record(recorder, sent, times, (&result, failure));
        }
        let tally = &mut *self.tally.borrow_mut();
        tally.last_done = tally.last_done.max(Some(done));
        let in_window =
            |at: Instant| at >= self.span.measured_from && self.span.end.is_none_or(|end| at < end);
        tally.answers_in_window += u64::from(result.is_ok() && in_window(done));
        tally.sent_in_window += u64::from(in_window(sent.at));
        tally.due_and_sent += u64::from(in_window(times.due));
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
            let user = match &sent.what {
                What::Drawn(drawn) => Some(drawn.user),
                What::Recorded { .. } => None,
            };
            tally.decisions.count(answer.seen, user, nanoseconds, failure);
            count_stream(tally, &answer, times.due);
        }
    }

    fn end_late_requests(&self, now: Instant) {
        for slot in &self.slots {
            if slot.deadline.get().is_some_and(|deadline| now >= deadline) {
                slot.end(Failure::Timeout);
            }
        }
    }

    fn tell_second(&self, sent: &Sent, times: Times, (whole, failure): (bool, Option<Failure>)) {
        self.publish_second(times.done);
        let mut second = self.second.borrow_mut();
        second.requests += 1;
        second.failures += u64::from(failure.is_some());
        // What was due in the warm-up and came later is in no histogram: those of the window add up
        // to the run's.
        if whole && (second.is_warmup || self.is_measured(sent.ticket)) {
            record(&mut second.latency, times.done.saturating_duration_since(times.due));
        }
    }

    fn publish_second(&self, now: Instant) {
        let age = now.saturating_duration_since(self.span.start);
        let mut second = self.second.borrow_mut();
        let end = match second.is_warmup {
            true => (second.start + Duration::from_secs(1)).min(self.plan.warmup),
            false => second.start + Duration::from_secs(1),
        };
        if age >= end {
            let passed = std::mem::replace(&mut *second, Second::at(age, self.plan.warmup));
            drop(self.seconds.send(passed)); // nobody listens: then nobody misses it
            if let Some(recorder) = &mut *self.recorder.borrow_mut() {
                recorder.flush();
            }
        }
    }

    fn write_record(
        &self,
        recorder: &mut Recorder,
        sent: &Sent,
        times: Times,
        (result, failure): (&Result<Answer, Failure>, Option<Failure>),
    ) {
        let tally = self.tally.borrow();
        let answer = result.as_ref().ok();
        let seen = answer.map(|answer| answer.seen).unwrap_or_default();
        let name = |label| tally.decisions.labels.name(label);
        let between = |from: Instant, to: Instant| {
            to.saturating_duration_since(from).as_nanos() as f64 / 1000.0
        };
        let mut user = String::new();
        let asked = match (&sent.what, &self.plan.source) {
            (What::Recorded { objective, unit, .. }, _) => {
                user.push_str(unit);
                Some(objective.as_str())
            }
            (What::Drawn(drawn), Source::Scenario(scenario)) => {
                users::name(drawn.user, &mut user);
                scenario.requests[drawn.request].objective.as_deref()
            }
            (What::Drawn(_), Source::Records) => None,
        };
        recorder.add(&Record {
            number: sent.ticket.number,
            user: &user,
            asked,
            objective: name(seen.objective),
            arm: name(seen.arm),
            snapshot: name(seen.snapshot),
            reason: name(seen.reason),
            model_server: name(seen.model_server),
            status: answer.map(|answer| answer.status),
            failure: failure.map(Failure::name),
            due_us: between(self.span.start, times.due),
            sent_us: between(self.span.start, times.sent),
            latency_us: between(times.due, times.done),
            done_us: between(self.span.start, times.done),
            body_bytes: answer.map_or(0, |answer| answer.body_bytes),
            events: answer.and_then(|answer| answer.stream).map_or(0, |stream| stream.events),
            connection: sent.place.0,
            sequence: sent.place.1,
        });
    }
}

impl Busy {
    fn note(&mut self, now: Instant, span: Span) {
        if self.before.is_none() && now >= span.measured_from {
            self.before = Some((now, thread_cpu_time()));
        }
        if self.share.is_none() && span.end.is_some_and(|end| now >= end) {
            self.share = Some(self.share(now));
        }
    }

    fn share(&self, now: Instant) -> f64 {
        let Some((since, before)) = self.before else { return 0.0 };
        let passed = now.saturating_duration_since(since).as_secs_f64();
        let used = thread_cpu_time().saturating_sub(before).as_secs_f64();
        self.share.unwrap_or(if passed > 0.0 { used / passed } else { 0.0 })
    }
}

fn thread_cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Whether an answer is what it should be.
fn check(answer: &Answer, checks: &Checks) -> Result<(), Failure> {
    let statuses = &checks.statuses;
    let is_expected = match statuses.is_empty() {
        true => (200..400).contains(&answer.status),
        false => statuses.contains(&answer.status),
    };
    let is_cut = answer
        .stream
        .is_some_and(|stream| stream.is_cut || (checks.stream_done && !stream.is_done));
    match (is_expected, answer.headers_hold, is_cut) {
        (false, ..) => Err(Failure::Status),
        (true, false, _) => Err(Failure::Header),
        (true, true, true) => Err(Failure::Truncated),
        (true, true, false) => Ok(()),
    }
}

fn count_stream(tally: &mut Tally, answer: &Answer, due: Instant) {
    let Some(stream) = answer.stream else { return };
    tally.streams += 1;
    tally.streams_done += u64::from(stream.is_done);
    tally.events += stream.events;
    tally.tokens += stream.tokens;
    let moments = [
        (stream.first_event, &mut tally.first_event),
        (stream.first_token, &mut tally.first_token),
    ];
    for (moment, histogram) in moments {
        if let Some(moment) = moment {
            record(histogram, moment.saturating_duration_since(due));
        }
    }
}
