//! What may end a connection's pending operation from outside: a clock, or the client's leaving.
//!
//! Neither races the operation. A sweep every [`crate::limits::WORKER_TICK`] compares the clocks of
//! all connections and *shuts* the socket that waits too long; so does the report of a hang-up. The
//! operation then completes in the ordinary way, and its owner asks the link why. A request costs a
//! few stores here, and no timer.

use std::cell::Cell;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use crate::net::stream::{self, Handle, Shut};

/// A clock that can fire.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Clock {
    /// The request's head took too long.
    Head,
    /// The client paused within the request's body for too long.
    BodyIdle,
    /// The client took no bytes of the answer for too long.
    ClientWrite,
    /// No request came on a kept connection.
    KeepAlive,
    /// The endpoint did not begin to answer.
    FirstByte,
    /// The endpoint paused within its answer for too long.
    ResponseIdle,
    /// The whole request took too long.
    Total,
}

impl Clock {
    /// A stable label for answers and metrics.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Head => "head",
            Self::BodyIdle => "body_idle",
            Self::ClientWrite => "client_write",
            Self::KeepAlive => "keep_alive",
            Self::FirstByte => "first_byte",
            Self::ResponseIdle => "response_idle",
            Self::Total => "total",
        }
    }
}

#[derive(Clone, Copy)]
struct Alarm {
    at: Instant,
    clock: Clock,
}

/// One client connection, as the sweep and the hang-up watch see it.
pub struct Link {
    client: Handle,
    upstream: Cell<Option<RawFd>>,
    upstream_is_shut: Cell<bool>,
    client_alarm: Cell<Option<Alarm>>,
    write_alarm: Cell<Option<Instant>>,
    upstream_alarm: Cell<Option<Alarm>>,
    total_alarm: Cell<Option<Alarm>>,
    fired: Cell<Option<Clock>>,
    is_idle: Cell<bool>,
    /// When a silent client's buffer is given back.
    rests_at: Cell<Option<Instant>>,
    hung_up: Cell<bool>,
    is_whole: Cell<bool>,
    has_more: Cell<bool>,
    answers_all: Cell<bool>,
    has_left: Cell<bool>,
}

impl Link {
    /// For a connection with this client.
    #[must_use]
    pub fn new(client: Handle) -> Self {
        Self {
            client,
            upstream: Cell::new(None),
            upstream_is_shut: Cell::new(false),
            client_alarm: Cell::new(None),
            write_alarm: Cell::new(None),
            upstream_alarm: Cell::new(None),
            total_alarm: Cell::new(None),
            fired: Cell::new(None),
            is_idle: Cell::new(false),
            rests_at: Cell::new(None),
            hung_up: Cell::new(false),
            is_whole: Cell::new(false),
            has_more: Cell::new(false),
            answers_all: Cell::new(false),
            has_left: Cell::new(false),
        }
    }

    /// A new request begins on the connection.
    pub fn begin(&self) {
        self.fired.set(None);
        self.is_whole.set(false);
        self.has_more.set(false);
        self.total_alarm.set(None);
    }

    /// From now on `clock` watches what the client does.
    pub fn watch_client(&self, clock: Clock, now: Instant, span: Duration) {
        self.client_alarm.set(Some(Alarm { at: now + span, clock }));
    }

    /// Nothing is awaited from the client.
    pub fn unwatch_client(&self) {
        self.client_alarm.set(None);
    }

    /// From now on the client must take a piece of the answer within `span`.
    pub fn watch_write(&self, now: Instant, span: Duration) {
        self.write_alarm.set(Some(now + span));
    }

    /// The client took the piece.
    pub fn unwatch_write(&self) {
        self.write_alarm.set(None);
    }

    /// From now on `clock` watches what the endpoint does.
    pub fn watch_upstream(&self, clock: Clock, now: Instant, span: Duration) {
        self.upstream_alarm.set(Some(Alarm { at: now + span, clock }));
    }

    /// The whole request may take `span` from now.
    pub fn watch_total(&self, now: Instant, span: Duration) {
        self.total_alarm.set(Some(Alarm { at: now + span, clock: Clock::Total }));
    }

    /// The request is at the endpoint behind `upstream` now.
    pub fn attach(&self, upstream: RawFd) {
        self.upstream.set(Some(upstream));
        self.upstream_is_shut.set(false);
        if self.has_left.get() || self.fired.get().is_some() {
            self.shut_upstream();
        }
    }

    /// No endpoint works on the request any more.
    pub fn detach(&self) {
        self.upstream.set(None);
        self.upstream_alarm.set(None);
    }

    /// Whether a clock or the client's leaving has ended the connection to the last endpoint.
    #[must_use]
    pub fn upstream_is_shut(&self) -> bool {
        self.upstream_is_shut.get()
    }

    /// Which clock ended something, if one did.
    #[must_use]
    pub fn fired(&self) -> Option<Clock> {
        self.fired.get()
    }

    /// Whether the client is gone, so that nobody waits for the answer.
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.has_left.get()
    }

    /// The request is read to its last byte; `bytes_behind` of further requests are here already.
    ///
    /// A client that closes its side after that is gone, and its call is cancelled, unless it had sent
    /// further requests: then all of them are answered first.
    pub fn request_is_whole(&self, bytes_behind: usize) {
        self.is_whole.set(true);
        self.has_more.set(bytes_behind > 0);
        if self.hung_up.get() {
            self.judge_hang_up();
        }
    }

    /// The client closed its side, or the connection broke.
    pub fn hang_up(&self) {
        self.hung_up.set(true);
        if self.is_whole.get() {
            self.judge_hang_up();
        }
    }

    fn judge_hang_up(&self) {
        if self.has_more.get() || self.client.unread() > 0 {
            self.answers_all.set(true);
        }
        if !self.answers_all.get() {
            self.has_left.set(true);
            self.shut_upstream();
        }
    }

    fn shut_upstream(&self) {
        if let Some(upstream) = self.upstream.get() {
            self.upstream_is_shut.set(true);
            stream::shut(upstream, Shut::Both);
        }
    }

    /// The connection waits for a request.
    pub fn rest(&self) {
        self.is_idle.set(true);
    }

    /// The wait is over, one way or another.
    pub fn wake(&self) {
        self.is_idle.set(false);
        self.rests_at.set(None);
        self.client_alarm.set(None);
    }

    /// The wait for a request is nudged after `span`, so that what serving needs can be given back.
    pub fn rest_after(&self, now: Instant, span: Duration) {
        self.rests_at.set(Some(now + span));
    }

    /// Ends the connection if it waits for a request and none is here; bytes that came first are read
    /// and served.
    pub fn close_if_idle(&self) {
        if self.is_idle.get() {
            self.client.shut(Shut::Read);
        }
    }

    /// Lets the clocks fire that are due.
    pub fn sweep(&self, now: Instant) {
        if let Some(clock) = due(&self.client_alarm, now) {
            self.fired.set(Some(clock));
            self.client.shut(Shut::Read);
        }
        if self.write_alarm.get().is_some_and(|at| now >= at) {
            self.write_alarm.set(None);
            self.fired.set(Some(Clock::ClientWrite));
            self.client.shut(Shut::Both);
        }
        if let Some(clock) = due(&self.upstream_alarm, now) {
            self.fired.set(Some(clock));
            self.shut_upstream();
        }
        if let Some(clock) = due(&self.total_alarm, now) {
            self.fired.set(Some(clock));
            self.shut_upstream();
        }
        if self.rests_at.get().is_some_and(|at| now >= at) {
            self.rests_at.set(None);
            self.client.nudge();
        }
    }
}

fn due(alarm: &Cell<Option<Alarm>>, now: Instant) -> Option<Clock> {
    let clock = alarm.get().filter(|alarm| now >= alarm.at)?.clock;
    alarm.set(None);
    Some(clock)
}
