use std::num::NonZeroU64;

use proptest::prelude::*;
use switchboard_shared::snapshot::{Digest, SnapshotVersion};

use super::*;

fn id(version: u64) -> SnapshotId {
    let version = NonZeroU64::new(version).expect("not zero").get();
    SnapshotId {
        version: SnapshotVersion::new(version).expect("not zero"),
        digest: Digest::of(&version.to_le_bytes()),
    }
}

fn target(version: u64) -> Target {
    Target { id: id(version), file: Arc::from(version.to_le_bytes().as_slice()) }
}

fn identity(running: Option<u64>) -> Identity {
    Identity {
        router: "r".to_owned(),
        group: "g".to_owned(),
        build: "b".to_owned(),
        formats: vec![FORMAT],
        running: running.map(id),
    }
}

fn boot(process: i32) -> Boot {
    Boot { process: Some(process), ..Boot::default() }
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(name)
}

/// A fleet with these routers, each of which runs what it says.
fn fleet(routers: &[(&str, Option<u64>)]) -> Fleet {
    let mut fleet = Fleet::new("g".to_owned());
    for (name, running) in routers {
        assert!(fleet.found(&path(name)));
        assert_eq!(fleet.connected(&path(name), identity(*running), boot(1), 0), []);
    }
    fleet
}

fn refused() -> Reply {
    Reply::Refused { step: "prepare", reason: "r".to_owned(), detail: "d".to_owned() }
}

fn active(version: u64) -> Reply {
    Reply::Active { running: id(version), slowest_swap_us: 3 }
}

fn participants(effects: &[Effect]) -> Vec<Outcome> {
    let [Effect::PhaseOver(participants), ..] = effects else {
        panic!("{effects:?} ends no phase")
    };
    participants.iter().map(|participant| participant.outcome.clone()).collect()
}

const DONE: Outcome = Outcome::Done { slowest_swap_us: None };

#[test]
fn nobody_is_told_to_activate_before_everyone_has_answered() {
    let mut fleet = fleet(&[("a", None), ("b", None)]);
    let tell = |name| Effect::Tell(path(name), Order::Prepare(target(1)));
    assert_eq!(fleet.prepare(target(1)), [tell("a"), tell("b")]);
    assert_eq!(fleet.replied(&path("b"), Reply::Prepared(id(1)), 0), []);
    let over = fleet.replied(&path("a"), Reply::Prepared(id(1)), 0);
    assert_eq!(participants(&over), [DONE, DONE]);
    let tell = |name| Effect::Tell(path(name), Order::Activate(id(1)));
    assert_eq!(fleet.activate(), [tell("a"), tell("b")]);
    assert_eq!(fleet.replied(&path("a"), active(1), 0), []);
    let over = fleet.replied(&path("b"), active(1), 0);
    let done = Outcome::Done { slowest_swap_us: Some(3) };
    assert_eq!(participants(&over), [done.clone(), done]);
    assert!(fleet.status().iter().all(|router| router.standing == Standing::Current));
}

#[test]
fn a_round_without_routers_is_over_at_once() {
    let mut fleet = fleet(&[]);
    assert_eq!(fleet.prepare(target(1)), [Effect::PhaseOver(vec![])]);
    assert_eq!(fleet.activate(), [Effect::PhaseOver(vec![])]);
}

#[test]
fn a_router_that_is_lost_after_it_prepared_is_not_told_to_activate_but_catches_up() {
    let mut fleet = fleet(&[("a", None), ("b", None)]);
    fleet.prepare(target(1));
    fleet.replied(&path("a"), Reply::Prepared(id(1)), 0);
    fleet.replied(&path("b"), Reply::Prepared(id(1)), 0);
    assert_eq!(fleet.lost(&path("a"), "gone"), []);
    assert_eq!(fleet.connected(&path("a"), identity(None), boot(1), 0), []);
    assert_eq!(fleet.activate(), [Effect::Tell(path("b"), Order::Activate(id(1)))]);
    let over = fleet.replied(&path("b"), active(1), 0);
    assert_eq!(over.last(), Some(&Effect::Tell(path("a"), Order::Prepare(target(1)))));
    let next = fleet.replied(&path("a"), Reply::Prepared(id(1)), 0);
    assert_eq!(next, [Effect::Tell(path("a"), Order::Activate(id(1)))]);
}

#[test]
fn a_router_that_comes_during_a_round_gets_what_is_decided() {
    let mut fleet = fleet(&[("a", Some(1))]);
    fleet.retarget(target(1));
    fleet.prepare(target(2));
    assert!(fleet.found(&path("b")));
    let effects = fleet.connected(&path("b"), identity(None), boot(1), 0);
    assert_eq!(effects, [Effect::Tell(path("b"), Order::Prepare(target(1)))]);
    fleet.replied(&path("a"), Reply::Prepared(id(2)), 0);
    fleet.activate();
    fleet.replied(&path("a"), active(2), 0);
    // It still prepares the old one, which is no longer wanted.
    let effects = fleet.replied(&path("b"), Reply::Prepared(id(1)), 0);
    assert_eq!(effects, [Effect::Tell(path("b"), Order::Prepare(target(2)))]);
}

#[test]
fn a_round_waits_for_a_router_that_is_catching_up() {
    let mut fleet = fleet(&[("a", None)]);
    let effects = fleet.retarget(target(1));
    assert_eq!(effects, [Effect::Tell(path("a"), Order::Prepare(target(1)))]);
    assert_eq!(fleet.prepare(target(2)), []);
    let effects = fleet.replied(&path("a"), Reply::Prepared(id(1)), 0);
    assert_eq!(effects, [Effect::Tell(path("a"), Order::Activate(id(1)))]);
    let effects = fleet.replied(&path("a"), active(1), 0);
    assert_eq!(effects, [Effect::Tell(path("a"), Order::Prepare(target(2)))]);
    let over = fleet.replied(&path("a"), Reply::Prepared(id(2)), 0);
    assert_eq!(participants(&over), [DONE]);
}

#[test]
fn what_was_refused_is_not_pushed_again_in_the_same_life() {
    let mut fleet = fleet(&[("a", None)]);
    fleet.retarget(target(1));
    assert_eq!(fleet.replied(&path("a"), refused(), 0), []);
    let heartbeat = Heartbeat {
        running: None,
        uptime_ms: 0,
        health: switchboard_shared::push::Health::Good,
        counters: BTreeMap::new(),
    };
    assert_eq!(fleet.heard(&path("a"), heartbeat, 1), []);
    assert_eq!(fleet.status()[0].standing, Standing::Refused);
    // The connection is lost and comes back: the same life.
    fleet.lost(&path("a"), "gone");
    assert_eq!(fleet.connected(&path("a"), identity(None), boot(1), 2), []);
    // Another life.
    fleet.lost(&path("a"), "gone");
    let effects = fleet.connected(&path("a"), identity(None), boot(2), 3);
    assert_eq!(effects, [Effect::Tell(path("a"), Order::Prepare(target(1)))]);
    fleet.replied(&path("a"), refused(), 4);
    // A newer version.
    let effects = fleet.retarget(target(2));
    assert_eq!(effects, [Effect::Tell(path("a"), Order::Prepare(target(2)))]);
}

#[test]
fn a_router_is_never_taken_back() {
    let mut fleet = fleet(&[("a", Some(9))]);
    assert_eq!(fleet.retarget(target(5)), []);
    assert_eq!(fleet.status()[0].standing, Standing::Ahead);
}

#[test]
fn a_router_that_is_away_keeps_its_name_and_one_that_failed_its_error() {
    let mut fleet = fleet(&[("a", None)]);
    fleet.retarget(target(1));
    fleet.lost(&path("a"), "it hung");
    let away = fleet.status().remove(0);
    assert_eq!((away.standing, away.router.as_deref()), (Standing::Away, Some("r")));
    fleet.connected(&path("a"), identity(None), boot(1), 0);
    let back = fleet.status().remove(0);
    assert_eq!((back.standing, back.error.as_deref()), (Standing::Behind, Some("it hung")));
    fleet.replied(&path("a"), Reply::Prepared(id(1)), 0);
    fleet.replied(&path("a"), active(1), 0);
    let good = fleet.status().remove(0);
    assert_eq!((good.standing, good.error), (Standing::Current, None));
}

#[test]
fn a_router_of_other_formats_or_groups_is_left_alone() {
    let mut fleet = fleet(&[]);
    for (name, identity) in [
        ("a", Identity { formats: vec![FORMAT + 1], ..identity(None) }),
        ("b", Identity { group: "other".to_owned(), ..identity(None) }),
    ] {
        fleet.found(&path(name));
        assert_eq!(fleet.connected(&path(name), identity, boot(1), 0), []);
    }
    assert_eq!(fleet.retarget(target(1)), []);
    assert_eq!(fleet.prepare(target(2)), [Effect::PhaseOver(vec![])]);
    let standings: Vec<_> = fleet.status().iter().map(|router| router.standing).collect();
    assert_eq!(standings, [Standing::OtherFormat, Standing::ForeignGroup]);
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Connect(usize, Option<u64>),
    Lose(usize),
    Vanish(usize),
    /// As it was told; refusing or not.
    Answer(usize, bool),
    /// The deployer's next step: prepare, then activate or abandon.
    Next(bool),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let router = 0..3_usize;
    prop::collection::vec(
        prop_oneof![
            2 => (router.clone(), prop::option::of(1..3_u64)).prop_map(|(a, b)| Event::Connect(a, b)),
            1 => router.clone().prop_map(Event::Lose),
            1 => router.clone().prop_map(Event::Vanish),
            6 => (router, prop::bool::weighted(0.8)).prop_map(|(a, b)| Event::Answer(a, b)),
            3 => prop::bool::weighted(0.7).prop_map(Event::Next),
        ],
        0..80,
    )
}

/// A model of the other side: what each router was told and holds ready.
#[derive(Default)]
struct World {
    told: BTreeMap<PathBuf, Order>,
    prepared: BTreeMap<PathBuf, SnapshotId>,
    phases_over: usize,
}

impl World {
    fn see(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Tell(socket, order) => {
                    if let Order::Activate(id) = &order {
                        assert_eq!(self.prepared.get(&socket), Some(id), "prepared first");
                    }
                    let before = self.told.insert(socket, order);
                    assert_eq!(before, None, "one order at a time");
                }
                Effect::PhaseOver(_) => self.phases_over += 1,
            }
        }
    }

    fn forget(&mut self, socket: &Path) {
        self.told.remove(socket);
        self.prepared.remove(socket);
    }
}

proptest! {
    /// Whatever routers do: each has one order at a time, activates only what it has prepared on the
    /// same connection, and every phase ends exactly once when all have answered or are gone.
    #[test]
    fn every_phase_ends_and_no_order_is_out_of_turn(events in events()) {
        let names = ["a", "b", "c"].map(path);
        let mut fleet = Fleet::new("g".to_owned());
        let mut world = World::default();
        let mut version = 2;
        let (mut begun, mut connected) = (0, [false; 3]);
        for event in events {
            match event {
                Event::Connect(router, running) if !connected[router] => {
                    connected[router] = true;
                    fleet.found(&names[router]);
                    world.see(fleet.connected(&names[router], identity(running), boot(1), 0));
                }
                Event::Lose(router) if connected[router] => {
                    connected[router] = false;
                    world.forget(&names[router]);
                    world.see(fleet.lost(&names[router], "gone"));
                }
                Event::Vanish(router) => {
                    connected[router] = false;
                    world.forget(&names[router]);
                    world.see(fleet.vanished(&names[router]));
                }
                Event::Answer(router, well) => {
                    let socket = &names[router];
                    let Some(order) = world.told.remove(socket) else { continue };
                    let reply = match (&order, well) {
                        (_, false) => refused(),
                        (Order::Prepare(target), true) => {
                            world.prepared.insert(socket.clone(), target.id);
                            Reply::Prepared(target.id)
                        }
                        (Order::Activate(id), true) => active(id.version.get()),
                    };
                    world.see(fleet.replied(socket, reply, 0));
                }
                Event::Next(forward) if world.phases_over == begun => {
                    let prepared = fleet.round.as_ref().is_some_and(|one| one.phase == Phase::Prepared);
                    if !prepared {
                        version += 1;
                        begun += 1;
                        world.see(fleet.prepare(target(version)));
                    } else if forward {
                        begun += 1;
                        world.see(fleet.activate());
                    } else {
                        world.see(fleet.abandon());
                    }
                }
                Event::Connect(..) | Event::Lose(_) | Event::Next(_) => {}
            }
            prop_assert!(world.phases_over <= begun);
        }
        // All answer, again and again: nothing is left open, and nothing goes on for ever.
        for _ in 0..100 {
            let Some((socket, order)) = world.told.pop_first() else { break };
            let reply = match &order {
                Order::Prepare(target) => {
                    world.prepared.insert(socket.clone(), target.id);
                    Reply::Prepared(target.id)
                }
                Order::Activate(id) => active(id.version.get()),
            };
            world.see(fleet.replied(&socket, reply, 0));
        }
        prop_assert!(world.told.is_empty(), "orders without end");
        prop_assert_eq!(world.phases_over, begun);
    }
}
