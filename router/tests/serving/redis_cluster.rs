//! Facts from a real Redis Cluster of three nodes, also while slots move and a node dies.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use switchboard_router::config::Facts;
use switchboard_router::facts::cluster::slots::slot_of;
use switchboard_shared::definition::FactsInto;

use crate::client::{Client, post};
use crate::redis_server::{Redis, USERS, at, free_port};
use crate::redis_tls::{Authority, with_tls};
use crate::router::{Router, with_facts};
use crate::upstream::Upstream;

/// Nodes that serve a third of the slots each, and one that serves none.
struct Cluster {
    nodes: Vec<Redis>,
    ids: Vec<String>,
}

impl Cluster {
    fn start() -> Self {
        Self::start_with(None)
    }

    fn start_with(authority: Option<&Authority>) -> Self {
        let start = |_| {
            // The cluster's own port: by default it is 10 000 above the node's, and may be no port at all.
            let bus = free_port().to_string();
            let mut options = vec![
                "--cluster-enabled",
                "yes",
                "--cluster-port",
                &bus,
                "--cluster-require-full-coverage",
                "no",
                "--cluster-node-timeout",
                "1000",
            ];
            let tls = authority.map(|authority| authority.options(free_port(), "no"));
            if let Some(tls) = &tls {
                options.extend(["--tls-cluster", "yes"]);
                options.extend(tls.iter().map(String::as_str));
            }
            Redis::start(&options)
        };
        let nodes: Vec<Redis> = (0..4).map(start).collect();
        let ids = nodes.iter().map(|node| node.said(&["CLUSTER", "MYID"])).collect();
        let cluster = Self { nodes, ids };
        for (number, (first, last)) in
            [(0, 5460), (5461, 10_922), (10_923, 16_383)].into_iter().enumerate()
        {
            let range = ["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()];
            assert_eq!(cluster.nodes[number].said(&range), "OK");
        }
        for (number, node) in cluster.nodes.iter().enumerate().skip(1) {
            let epoch = (number + 1).to_string();
            assert_eq!(node.said(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]), "OK");
            let seed = &cluster.nodes[0];
            let bus = seed.option("--cluster-port");
            let plain = seed.port.to_string();
            let port = authority.map_or(plain.as_str(), |_| seed.option("--tls-port"));
            let meet = ["CLUSTER", "MEET", "127.0.0.1", port, bus];
            assert_eq!(node.said(&meet), "OK");
        }
        cluster.wait_until(|node| {
            let about = node.said(&["CLUSTER", "INFO"]);
            about.contains("cluster_state:ok")
                && about.contains("cluster_slots_assigned:16384")
                && about.contains("cluster_known_nodes:4")
        });
        cluster
    }

    fn wait_until(&self, holds: impl Fn(&Redis) -> bool) {
        for _ in 0..3000 {
            if self.nodes.iter().all(&holds) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the cluster does not come to terms");
    }

    fn owner(slot: u16) -> usize {
        [5460, 10_922, 16_383].iter().position(|last| slot <= *last).unwrap()
    }

    fn know_all_users(&self) {
        (0..3).for_each(|node| self.know_all_users_of(node));
    }

    /// Those of every user's Facts that a node has the slots of.
    fn know_all_users_of(&self, node: usize) {
        let mut commands = Vec::new();
        for user in 0..USERS {
            for (key, command) in [
                (format!("country:u{user}"), format!("SET country:u{user} u{user}\r\n")),
                (format!("depth:u{user}"), format!("HSET depth:u{user} d {user}\r\n")),
            ] {
                if Self::owner(slot_of(key.as_bytes())) == node {
                    commands.push(command);
                }
            }
        }
        let mut stream = TcpStream::connect(self.nodes[node].address()).unwrap();
        stream.write_all(commands.concat().as_bytes()).unwrap();
        let replies = BufReader::new(stream).lines().take(commands.len());
        assert!(replies.map(Result::unwrap).all(|reply| reply == "+OK" || reply == ":1"));
    }

    /// Moves a slot with its keys, as `redis-cli --cluster reshard` does; half of the keys are still at the old node in
    /// the middle of it.
    fn migrate(&self, slot: u16, from: usize, to: usize) {
        let slot = slot.to_string();
        let (source, target) = (&self.nodes[from], &self.nodes[to]);
        let set = |node: &Redis, how: &str, id: &str| {
            assert_eq!(node.said(&["CLUSTER", "SETSLOT", &slot, how, id]), "OK");
        };
        set(target, "IMPORTING", &self.ids[from]);
        set(source, "MIGRATING", &self.ids[to]);
        loop {
            let key = source.said(&["CLUSTER", "GETKEYSINSLOT", &slot, "1"]);
            let Some(key) = key.lines().last().filter(|key| !key.is_empty()) else { break };
            let port = target.port.to_string();
            assert_eq!(source.said(&["MIGRATE", "127.0.0.1", &port, key, "0", "5000"]), "OK");
        }
        for node in [target, source] {
            set(node, "NODE", &self.ids[to]);
        }
    }
}

/// Every user's Facts, once; tells how many requests had them.
fn ask_for_all(router: &Router) -> u64 {
    let mut client = Client::connect(router.address);
    let mut hits = 0;
    for user in 0..USERS {
        hits += u64::from(ask(&mut client, user));
    }
    hits
}

/// Whether a user's Facts came. Nobody else's ever do, and no client gets an error.
fn ask(client: &mut Client, user: u64) -> bool {
    client.send(post("FEED", &format!("x-user-id: u{user}\r\n"), "{}"));
    let answer = client.answer();
    assert_eq!(answer.status, 200);
    match answer.header("x-switchboard-facts") {
        Some("hit") => {
            let own = format!("heavy{{\"facts\":{{\"country\":\"u{user}\",\"depth\":{user}}}}}");
            assert_eq!(answer.text(), own);
            true
        }
        note => {
            assert!(matches!(note, Some("failed" | "unavailable" | "late")), "{note:?}");
            assert_eq!(answer.text(), "stable{}");
            false
        }
    }
}

fn until_all_come(router: &Router) {
    for _ in 0..600 {
        if ask_for_all(router) == USERS {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("the cluster is never whole again");
}

/// A router that begins at this node and is connected to all, and the model servers behind it.
fn started_at(
    cluster: &Cluster,
    node: usize,
    change: impl FnOnce(&mut Facts),
) -> (Router, [Upstream; 2]) {
    let models = [Upstream::echoing("stable"), Upstream::echoing("heavy")];
    let definition = with_facts(models[0].address, models[1].address, FactsInto::default());
    let settings = at(cluster.nodes[node].address());
    let router = Router::with(&definition, |config| {
        settings(config);
        config.facts.cluster = true;
        change(&mut config.facts);
    });
    router.wait_for(3, |worker| worker.facts_connected.get());
    (router, models)
}

#[test]
fn each_fact_is_asked_of_the_node_that_has_it() {
    let cluster = Cluster::start();
    cluster.know_all_users();
    // knows all the others, and has nothing itself
    let (router, _models) = started_at(&cluster, 3, |_| ());
    assert_eq!(ask_for_all(&router), USERS);
    assert_eq!(router.counted(|worker| worker.facts_redirects.get()), 0, "none had to be told");
}

#[test]
fn a_cluster_behind_tls_is_found_by_its_encrypted_ports() {
    let authority = Authority::new();
    authority.sign("server", "IP:127.0.0.1");
    let cluster = Cluster::start_with(Some(&authority));
    cluster.know_all_users();
    let (stable, heavy) = (Upstream::echoing("stable"), Upstream::echoing("heavy"));
    let definition = with_facts(stable.address, heavy.address, FactsInto::default());
    let address = format!("127.0.0.1:{}", cluster.nodes[0].option("--tls-port"));
    let settings = with_tls(address, authority.file("ca.crt"));
    let router = Router::with(&definition, |config| {
        settings(config);
        config.facts.cluster = true;
    });
    router.wait_for(3, |worker| worker.facts_connected.get());
    assert_eq!(ask_for_all(&router), USERS);
}

/// RD-03: `MOVED` and `ASK` are followed once, within the budget.
#[test]
fn slots_that_move_under_load_cost_no_client_an_error_and_mix_nobody_up() {
    let cluster = Cluster::start();
    cluster.know_all_users();
    let (router, _models) = started_at(&cluster, 0, |facts| facts.budget = Duration::from_secs(1));
    until_all_come(&router);
    let mut moved = HashSet::new();
    let (is_over, asked, hit) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for part in 0..4_u64 {
            let (address, is_over, asked, hit) = (router.address, &is_over, &asked, &hit);
            scope.spawn(move || {
                let mut client = Client::connect(address);
                for user in (0..).map(|round| (round * 7 + part) % USERS) {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    asked.fetch_add(1, Ordering::Relaxed);
                    hit.fetch_add(usize::from(ask(&mut client, user)), Ordering::Relaxed);
                }
            });
        }
        // The slots of a hundred users go from node to node, the last one had none before; and those of more, as long as
        // nobody happened to ask for what had just moved.
        for user in 0..USERS {
            let slot = slot_of(format!("country:u{user}").as_bytes());
            if moved.insert(slot) {
                cluster.migrate(slot, Cluster::owner(slot), 3);
            }
            let redirects = router.counted(|worker| worker.facts_redirects.get());
            if user >= 100 && redirects >= 10 && hit.load(Ordering::Relaxed) >= 100 {
                break;
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let (asked, hit) = (asked.into_inner(), hit.into_inner());
    let redirects = router.counted(|worker| worker.facts_redirects.get());
    let looks = router.counted(|worker| worker.facts_cluster_looks.get());
    eprintln!(
        "{hit} of {asked} with Facts while slots moved, {redirects} redirects, {looks} looks"
    );
    assert!(redirects > 0 && hit > 0, "they moved while they were asked for");
    until_all_come(&router);
    let before = router.counted(|worker| worker.facts_redirects.get());
    assert_eq!(ask_for_all(&router), USERS);
    let after = router.counted(|worker| worker.facts_redirects.get());
    assert_eq!(after, before, "the map is as it is");
}

#[test]
fn a_dead_node_costs_only_its_own_keys_and_comes_back_by_itself() {
    let mut cluster = Cluster::start();
    cluster.know_all_users();
    let (router, _models) = started_at(&cluster, 0, |_| ());
    until_all_come(&router);
    let needs_it = |user: u64| {
        ["country", "depth"]
            .into_iter()
            .any(|fact| Cluster::owner(slot_of(format!("{fact}:u{user}").as_bytes())) == 1)
    };
    cluster.nodes[1].kill();
    router.wait_for(2, |worker| worker.facts_connected.get());
    let mut client = Client::connect(router.address);
    for user in 0..USERS {
        assert_eq!(ask(&mut client, user), !needs_it(user), "u{user}");
    }
    cluster.nodes[1].restart(&[]);
    cluster.nodes[1].wait_until_it_answers();
    cluster.wait_until(|node| node.said(&["CLUSTER", "INFO"]).contains("cluster_state:ok"));
    cluster.know_all_users_of(1); // its memory was all that it had
    until_all_come(&router);
}
