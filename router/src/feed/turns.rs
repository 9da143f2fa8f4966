//! The feed's thread: waits for any of its sockets, and gives each its turn.
//!
//! One thread and no locks: Activations of several controllers happen one after the other, and the
//! version alone decides which one stays.

use std::io::{self, ErrorKind};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use switchboard_shared::push::Frame;

use super::controller::{Controller, End};
use super::heartbeat::Heartbeat;
use super::socket::Socket;
use super::stage::Stage;
use crate::limits::{ACCEPT_REST, CONTROLLERS_MAX, HEARTBEAT, PIECE_BYTES};
use crate::log::{self, Chain};
use crate::net::{clock, peer};

/// Everything that the feed's thread owns.
pub(super) struct Turns {
    pub(super) socket: Socket,
    /// Readable or closed when the feed has to stop.
    pub(super) stop: UnixStream,
    pub(super) stage: Stage,
    pub(super) heartbeat: Heartbeat,
    /// What the router calls itself.
    pub(super) name: String,
    /// Users that may push.
    pub(super) users: Vec<u32>,
    pub(super) controllers: Vec<Controller>,
    /// No accept before this: the last one failed for lack of descriptors.
    pub(super) rests_until: Option<Instant>,
}

/// Which sockets have something to do.
struct Ready {
    stop: bool,
    listener: bool,
    controllers: Vec<PollFlags>,
}

impl Turns {
    /// Runs until it is told to stop.
    pub(super) fn run(mut self) {
        let mut piece = vec![0; PIECE_BYTES];
        let mut next_heartbeat = clock::now() + HEARTBEAT;
        loop {
            let ready = match self.wait(next_heartbeat) {
                Ok(ready) if ready.stop => return,
                Ok(ready) => ready,
                Err(error) => {
                    // Only a bug of ours can make poll(2) fail; without it there is no feed.
                    log::warn("feed cannot wait for its sockets", &[("error", &error)]);
                    return;
                }
            };
            let now = clock::now();
            self.serve(&ready.controllers, &mut piece, now);
            if ready.listener {
                self.accept(now);
            }
            if now >= next_heartbeat {
                next_heartbeat = now + HEARTBEAT;
                self.beat(now);
            }
        }
    }

    fn wait(&self, next_heartbeat: Instant) -> io::Result<Ready> {
        let now = clock::now();
        let is_resting = self.rests_until.is_some_and(|until| now < until);
        let listens = if is_resting { PollFlags::empty() } else { PollFlags::IN };
        let mut sockets = vec![
            PollFd::new(&self.stop, PollFlags::IN),
            PollFd::new(&self.socket.listener, listens),
        ];
        for controller in &self.controllers {
            let mut wanted = PollFlags::empty();
            wanted.set(PollFlags::IN, controller.wants_input());
            wanted.set(PollFlags::OUT, controller.wants_output());
            sockets.push(PollFd::new(&controller.stream, wanted));
        }
        let dues = self.controllers.iter().filter_map(Controller::due);
        let due =
            dues.chain(self.rests_until.filter(|_| is_resting)).fold(next_heartbeat, Instant::min);
        // Rounded up: a poll that returns a moment early would spin until the moment has come.
        let patience = due.saturating_duration_since(now) + Duration::from_millis(1);
        let patience = Timespec::try_from(patience).map_err(io::Error::other)?;
        match poll(&mut sockets, Some(&patience)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready = sockets.iter().map(PollFd::revents);
        let stop = ready.next().is_some_and(|flags| !flags.is_empty());
        let listener = ready.next().is_some_and(|flags| !flags.is_empty());
        Ok(Ready { stop, listener, controllers: ready.collect() })
    }

    fn serve(&mut self, ready: &[PollFlags], piece: &mut [u8], now: Instant) {
        let mut turns = ready.iter();
        let mut index = 0;
        let mut is_changed = false;
        while let Some(controller) = self.controllers.get_mut(index) {
            let flags = turns.next().copied().unwrap_or(PollFlags::empty());
            let held = controller.prepared();
            let newest = self.stage.newest();
            let outcome = take_turn(controller, flags, piece, now, &mut self.stage);
            let was_activated = self.stage.newest() != newest;
            is_changed |= was_activated || controller.prepared() != held || outcome.is_err();
            if was_activated {
                let others = self.controllers.iter_mut().enumerate();
                others
                    .filter(|(other, _)| *other != index)
                    .for_each(|(_, other)| other.forget_prepared());
            }
            match outcome {
                Ok(()) => index += 1,
                Err(end) => {
                    self.controllers.remove(index);
                    self.bury(&end);
                }
            }
        }
        if is_changed {
            self.stage.tidy(self.controllers.iter().filter_map(Controller::prepared));
        }
    }

    fn bury(&self, end: &End) {
        self.stage.counters.controllers_active.lower();
        if end.is_bad_frame() {
            self.stage.counters.frames_refused.add(1);
            log::warn("controller disconnected", &[("reason", &Chain(end))]);
        } else {
            log::info("controller disconnected", &[("reason", &Chain(end))]);
        }
    }

    fn accept(&mut self, now: Instant) {
        match self.socket.listener.accept() {
            Ok((stream, _)) => self.admit(stream, now),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => {
                log::warn("feed cannot accept", &[("error", &error)]);
                self.rests_until = Some(now + ACCEPT_REST);
            }
        }
    }

    fn admit(&mut self, stream: UnixStream, now: Instant) {
        let counters = &self.stage.counters;
        let user = match peer::user_of(&stream) {
            Ok(user) if self.users.contains(&user) => user,
            Ok(user) => {
                counters.controllers_refused.add(1);
                log::warn("controller refused: user may not push", &[("uid", &user)]);
                return;
            }
            Err(error) => {
                counters.controllers_refused.add(1);
                log::warn("controller refused: user unknown", &[("error", &error)]);
                return;
            }
        };
        if self.controllers.len() >= CONTROLLERS_MAX {
            counters.controllers_refused.add(1);
            log::warn("controller refused: too many", &[("uid", &user)]);
            return;
        }
        let greeted = Controller::greet(stream, &self.name, &self.stage)
            .and_then(|mut controller| controller.write(now).map(|()| controller));
        match greeted {
            Ok(controller) => {
                counters.controllers_accepted.add(1);
                counters.controllers_active.raise();
                log::info("controller connected", &[("uid", &user)]);
                self.controllers.push(controller);
            }
            Err(end) => log::info("controller disconnected", &[("reason", &Chain(&end))]),
        }
    }

    /// Once per `HEARTBEAT`.
    fn beat(&mut self, now: Instant) {
        self.stage.beat(now);
        let names = self.heartbeat.counters();
        let stats = Frame::Stats(self.heartbeat.stats(&names));
        let mut index = 0;
        while let Some(controller) = self.controllers.get_mut(index) {
            match controller.heartbeat(&stats).and_then(|()| controller.write(now)) {
                Ok(()) => index += 1,
                Err(end) => {
                    self.controllers.remove(index);
                    self.bury(&end);
                }
            }
        }
    }
}

fn take_turn(
    controller: &mut Controller,
    flags: PollFlags,
    piece: &mut [u8],
    now: Instant,
    stage: &mut Stage,
) -> Result<(), End> {
    if flags.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
        controller.read(piece, now, stage)?;
    }
    if controller.wants_output() {
        controller.write(now)?;
    }
    controller.check_due(now)
}
