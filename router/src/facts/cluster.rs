//! A Redis Cluster: which node has which key, a connection to each node, and commands that have to go elsewhere.
//!
//! A lookup whose keys lie on several nodes asks them at once. The map of slots is read on a connection of its own, when the core
//! starts, when a node says that it is not as it was, when a node is lost, and every `CLUSTER_LOOK_EVERY`.

pub mod slots;
pub mod topology;

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

use arrayvec::ArrayVec;
use slab::Slab;
use switchboard_shared::limits::FACTS_PER_ARM_MAX;

use self::topology::Range;
use super::breaker::Breaker;
use super::link::{Link, Shared};
use super::lookup::Lookup;
use super::pipeline::{Redirect, Sending};
use super::supply::Server;
use super::wire::{Wire, WireError};
use crate::limits::{
    CLUSTER_LOOK_EVERY, CLUSTER_LOOK_PAUSE, CLUSTER_NODE_KEPT, CLUSTER_NODES_MAX, CLUSTER_SLOTS,
};
use crate::net::{clock, task};

/// One core's view of a cluster.
pub struct Cluster {
    shared: Rc<Shared>,
    itself: Weak<Self>,
    nodes: RefCell<Slab<Node>>,
    /// For each slot the key of its node.
    owners: RefCell<Vec<NodeKey>>,
    to_look: task::Doorbell,
    random: Cell<u64>,
}

/// Of a node in the table; one that left may be followed by another under the same key, once no slot has it.
type NodeKey = u16;

/// The owner of a slot that no node serves.
const NOBODY: NodeKey = NodeKey::MAX;

const _: () = assert!(CLUSTER_NODES_MAX < NOBODY as usize, "each node has a key");

struct Node {
    address: SocketAddr,
    host: Rc<str>,
    link: Rc<Link>,
    /// When somebody last said that it is one of the cluster's.
    named: Instant,
}

impl Cluster {
    /// Reads the map and connects to its nodes in the background, from now until the core ends.
    pub fn start(shared: Rc<Shared>, seed: u64) -> Rc<Self> {
        let cluster = Rc::new_cyclic(|itself| Self {
            shared,
            itself: Weak::clone(itself),
            nodes: RefCell::default(),
            owners: RefCell::new(vec![NOBODY; usize::from(CLUSTER_SLOTS)]),
            to_look: task::Doorbell::default(),
            random: Cell::new(seed),
        });
        task::spawn(follow(Rc::clone(&cluster)));
        cluster
    }

    /// Asks for Facts of a lookup, those on one node in one go. `false`: some node cannot be asked, and none was.
    pub fn send(&self, lookup: &Rc<Lookup>, places: &[usize], now: Instant) -> bool {
        let nodes = self.nodes.borrow();
        let owners = self.owners.borrow();
        let mut keys = ArrayVec::<NodeKey, FACTS_PER_ARM_MAX>::new();
        for place in places.iter().copied() {
            let slot = slots::slot_of(&lookup.key(place));
            let owner = owners.get(usize::from(slot)).copied().unwrap_or(NOBODY);
            let is_up = nodes.get(usize::from(owner)).is_some_and(|node| node.link.is_up());
            if !is_up || keys.try_push(owner).is_err() {
                return false;
            }
        }
        for (position, key) in keys.iter().enumerate() {
            if keys.iter().take(position).any(|before| before == key) {
                continue;
            }
            let same = keys.iter().zip(places).filter(|(owner, _)| *owner == key);
            let of_node: ArrayVec<usize, FACTS_PER_ARM_MAX> =
                same.map(|(_, place)| *place).collect();
            let node = nodes.get(usize::from(*key));
            let is_sent =
                node.is_some_and(|node| node.link.send(lookup, &of_node, Sending::First, now));
            if !is_sent {
                of_node.iter().for_each(|place| lookup.lost(*place));
            }
        }
        true
    }

    /// The cluster is not as it was: its map is read soon.
    pub(super) fn look_again(&self) {
        self.to_look.ring();
    }

    /// Sends a command to the node that it has to go to, once, and as long as its lookup waits.
    pub(super) fn redirect(&self, redirect: &Redirect, from: &str, now: Instant) {
        let Redirect { lookup, place, is_ask, slot, node } = redirect;
        self.shared.counters.facts_redirects.add(1);
        let key = self.find(node, from).and_then(|(address, host)| self.node(address, &host, now));
        if let Some(owner) = self.owners.borrow_mut().get_mut(usize::from(*slot))
            && let Some(key) = key.filter(|_| !*is_ask)
        {
            *owner = key; // the whole map follows
        }
        let sending = if *is_ask { Sending::Ask } else { Sending::Moved };
        let link = key.and_then(|key| {
            self.nodes.borrow().get(usize::from(key)).map(|node| Rc::clone(&node.link))
        });
        if !link.is_some_and(|link| link.send(lookup, &[*place], sending, now)) {
            self.shared.refuse(lookup, *place, now);
        }
    }

    /// What a node calls another one: `HOST:PORT` without brackets, or without a host for its own.
    fn find(&self, text: &str, from: &str) -> Option<(SocketAddr, Rc<str>)> {
        let (host, port) = text.rsplit_once(':')?;
        let port: u16 = port.parse().ok()?;
        let host = if host.is_empty() { from } else { host };
        if let Ok(address) = host.parse::<IpAddr>() {
            return Some((SocketAddr::new(address, port), host.into()));
        }
        let nodes = self.nodes.borrow();
        let (_, node) =
            nodes.iter().find(|(_, node)| &*node.host == host && node.address.port() == port)?;
        Some((node.address, Rc::clone(&node.host)))
    }

    /// The node at an address, which is connected to if it is new. `None`: there are too many.
    fn node(&self, address: SocketAddr, host: &Rc<str>, now: Instant) -> Option<NodeKey> {
        let mut nodes = self.nodes.borrow_mut();
        if let Some((key, node)) = nodes.iter_mut().find(|(_, node)| node.address == address) {
            node.named = now;
            return NodeKey::try_from(key).ok();
        }
        if nodes.len() >= CLUSTER_NODES_MAX {
            return None;
        }
        let server = Server::Node { address, host: Rc::clone(host) };
        let link =
            Link::start(&self.shared, server, Some(Weak::clone(&self.itself)), self.next_random());
        let key = nodes.insert(Node { address, host: Rc::clone(host), link, named: now });
        NodeKey::try_from(key).ok()
    }

    /// Takes a map over; nodes that nobody names any more are left.
    fn apply(&self, ranges: &[Range], now: Instant) {
        let mut owners = vec![NOBODY; usize::from(CLUSTER_SLOTS)];
        for range in ranges {
            let Some(key) = self.node(range.address, &range.host, now) else { continue };
            let slots = usize::from(range.first)..=usize::from(range.last);
            owners.get_mut(slots).unwrap_or_default().fill(key);
        }
        let mut nodes = self.nodes.borrow_mut();
        nodes.retain(|key, node| {
            let is_owner = owners.iter().any(|owner| usize::from(*owner) == key);
            let is_kept = is_owner || now.saturating_duration_since(node.named) < CLUSTER_NODE_KEPT;
            if !is_kept {
                node.link.end();
            }
            is_kept
        });
        *self.owners.borrow_mut() = owners;
    }

    /// Whether each slot has a node that may be asked.
    fn is_whole(&self) -> bool {
        let nodes = self.nodes.borrow();
        let is_up =
            |owner: &NodeKey| nodes.get(usize::from(*owner)).is_some_and(|node| node.link.is_up());
        // Slots of one node stand side by side.
        self.owners.borrow().chunk_by(|a, b| a == b).filter_map(|run| run.first()).all(is_up)
    }

    /// Whom to ask for the map: a node that is up, another one each round, or where the settings begin.
    fn teller(&self, round: usize) -> Server {
        let nodes = self.nodes.borrow();
        let up = || nodes.iter().filter(|(_, node)| node.link.is_up());
        match up().nth(round % (up().count() + 1)) {
            Some((_, Node { address, host, .. })) => {
                Server::Node { address: *address, host: Rc::clone(host) }
            }
            None => Server::Primary,
        }
    }

    fn next_random(&self) -> u64 {
        let random = self.random.get().wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        self.random.set(random);
        random
    }
}

/// Reads the map again and again.
async fn follow(cluster: Rc<Cluster>) {
    let (mut round, mut breaker) = (0, Breaker::default());
    loop {
        match look(&cluster, round).await {
            Ok(ranges) => {
                cluster.apply(&ranges, clock::now());
                cluster.shared.counters.facts_cluster_looks.add(1);
                breaker = Breaker::default();
                clock::sleep(CLUSTER_LOOK_PAUSE).await;
                let patience =
                    if cluster.is_whole() { CLUSTER_LOOK_EVERY } else { Duration::from_secs(1) };
                let _rung = clock::within(patience, cluster.to_look.wait()).await;
            }
            Err(error) => {
                cluster.shared.counters.facts_connect_failures.add(1);
                cluster.shared.supply.report(&error);
                let pause = breaker.lost(None, clock::now(), cluster.next_random() >> 33);
                clock::sleep(pause).await;
            }
        }
        round += 1;
    }
}

async fn look(cluster: &Cluster, round: usize) -> Result<Vec<Range>, WireError> {
    let supply = &cluster.shared.supply;
    let server = cluster.teller(round);
    let mut wire = Wire::open(supply, &server).await?;
    let peer = wire.peer();
    let reply = wire.request(&[&[b"CLUSTER"], &[b"SLOTS"]], "CLUSTER SLOTS").await?;
    let ranges = topology::ranges(&reply, peer);
    if ranges.is_empty() {
        return Err(WireError::Refused { step: "CLUSTER SLOTS, as it has no slots" });
    }
    Ok(ranges)
}
