//! A read replica beside the primary: it stands in for it, and answers what the primary is slow with.

use std::time::Duration;

use switchboard_router::config::ReadFrom;
use switchboard_shared::definition::FactsInto;

use crate::cache::{Cache, bulk, redis};
use crate::client::{Client, post};
use crate::redis_server::{Redis, asked, at, until_it_recovers};
use crate::router::{Router, with_facts};
use crate::upstream::Upstream;

#[test]
fn a_replica_answers_while_the_primary_is_stopped_or_dead() {
    let mut primary = Redis::start(&[]);
    let port = primary.port.to_string();
    let replica = Redis::start(&["--replicaof", "127.0.0.1", &port]);
    primary.know("u1", "DE");
    for _ in 0..3000 {
        if replica.said(&["GET", "country:u1"]) == "DE" {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let (stable, heavy) = (Upstream::echoing("stable"), Upstream::echoing("heavy"));
    let definition = with_facts(stable.address, heavy.address, FactsInto::default());
    let settings = at(primary.address());
    let router = Router::with(&definition, |config| {
        settings(config);
        config.facts.replica_address = replica.address().to_string();
        config.facts.hedge_after = Some(Duration::from_millis(20));
        config.facts.hedge_percent_max = 50;
    });
    router.wait_for(2, |worker| worker.facts_connected.get());
    until_it_recovers(&router, "started");

    primary.signal(libc::SIGSTOP);
    // Hedged at first, and once the primary is given up the replica is asked at once.
    router.wait_for(1, |worker| {
        let _facts = asked(&router);
        worker.facts_hedges_won.get().min(1)
    });
    router.wait_for(1, |worker| {
        let _facts = asked(&router);
        worker.facts_connected.get()
    });
    let hedges = router.counted(|worker| worker.facts_hedges.get());
    for _ in 0..100 {
        assert_eq!(asked(&router).as_deref(), Some("hit"));
    }
    assert_eq!(router.counted(|worker| worker.facts_hedges.get()), hedges, "there is but one");
    primary.signal(libc::SIGCONT);
    router.wait_for(2, |worker| worker.facts_connected.get());

    primary.kill();
    router.wait_for(1, |worker| worker.facts_connected.get());
    for _ in 0..100 {
        assert_eq!(asked(&router).as_deref(), Some("hit"));
    }
}

#[test]
fn the_one_to_read_from_is_asked_first_and_the_other_one_stands_in() {
    let (primary, mut replica) = (Redis::start(&[]), Redis::start(&[]));
    primary.know("u1", "primary");
    replica.know("u1", "replica");
    let (stable, heavy) = (Upstream::echoing("stable"), Upstream::echoing("heavy"));
    let definition = with_facts(stable.address, heavy.address, FactsInto::default());
    let settings = at(primary.address());
    let router = Router::with(&definition, |config| {
        settings(config);
        config.facts.replica_address = replica.address().to_string();
        config.facts.read_from = ReadFrom::Replica;
    });
    router.wait_for(2, |worker| worker.facts_connected.get());
    let ask = || {
        let mut client = Client::connect(router.address);
        client.send(post("FEED", "x-user-id: u1\r\n", "{}"));
        client.answer().text()
    };
    assert!(ask().contains(r#""country":"replica""#));
    replica.kill();
    router.wait_for(1, |worker| worker.facts_connected.get());
    assert!(ask().contains(r#""country":"primary""#));
}

#[test]
fn a_slow_primary_does_not_get_its_load_doubled() {
    let slow = Cache::start(|_| (Duration::from_millis(60), bulk("1")));
    let other = Cache::answering(|_| bulk("1"));
    let (stable, heavy) = (Upstream::echoing("stable"), Upstream::echoing("heavy"));
    let definition = with_facts(stable.address, heavy.address, FactsInto::default());
    let settings = redis(&slow);
    let router = Router::with(&definition, |config| {
        settings(config);
        config.facts.replica_address = other.address.to_string();
        config.facts.hedge_after = Some(Duration::from_millis(1));
        config.facts.hedge_percent_max = 10;
    });
    router.wait_for(2, |worker| worker.facts_connected.get());
    let mut client = Client::connect(router.address);
    for _ in 0..50 {
        client.send(post("FEED", "x-user-id: u1\r\n", "{}"));
        assert_eq!(client.answer().header("x-switchboard-facts"), Some("hit"));
    }
    let hedges = router.counted(|worker| worker.facts_hedges.get());
    assert!((1..=6).contains(&hedges), "a tenth, and the one to begin with: {hedges}");
    assert_eq!(router.counted(|worker| worker.facts_hedges_refused.get()), 50 - hedges);
    assert_eq!(other.asked.load(std::sync::atomic::Ordering::SeqCst) as u64, 2 * hedges);
}
