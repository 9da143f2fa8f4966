//! The near-cache: what was asked for a moment ago is not asked for again.

use std::sync::atomic::Ordering;
use std::time::Duration;

use switchboard_router::config::Config;
use switchboard_shared::definition::FactsInto;

use crate::cache::{Cache, bulk, redis};
use crate::client::{Answer, Client, post};
use crate::router::{Router, with_facts};
use crate::upstream::Upstream;

const HOUR: Duration = Duration::from_secs(3600);

/// A router with a near-cache of which nothing is forgotten while a test runs.
fn router(cache: &Cache, change: impl FnOnce(&mut Config)) -> (Upstream, Upstream, Router) {
    let (stable, heavy) = (Upstream::echoing("stable"), Upstream::echoing(""));
    let definition = with_facts(stable.address, heavy.address, FactsInto::default());
    let settings = redis(cache);
    let router = Router::with(&definition, |config| {
        settings(config);
        config.facts.near_bytes_max = 1 << 20;
        config.facts.near_ttl = HOUR;
        config.facts.near_absent_ttl = HOUR;
        change(config);
    });
    router.wait_for(1, |worker| worker.facts_connected.get());
    (stable, heavy, router)
}

fn ask(router: &Router, user: &str) -> Answer {
    let mut client = Client::connect(router.address);
    client.send(post("FEED", &format!("x-user-id: {user}\r\n"), "{}"));
    client.answer()
}

/// The user in a key such as `country:u1`; of nobody nothing is known.
fn reply(key: &str) -> Vec<u8> {
    match key.split_once(':').unwrap() {
        (_, "nobody") => b"$-1\r\n".to_vec(),
        ("country", user) => bulk(user),
        _ => bulk("1"),
    }
}

#[test]
fn a_fact_that_was_told_a_moment_ago_is_not_asked_for_again() {
    let cache = Cache::answering(reply);
    let (_stable, _heavy, router) = router(&cache, |_| ());
    for (user, asked) in [("u1", 2), ("u1", 2), ("u2", 4), ("u1", 4), ("nobody", 6), ("nobody", 6)]
    {
        let answer = ask(&router, user);
        let expected = match user {
            "nobody" => "stable{}".to_owned(),
            user => format!(r#"{{"facts":{{"country":"{user}","depth":1}}}}"#),
        };
        assert_eq!(answer.text(), expected);
        assert_eq!(cache.asked.load(Ordering::SeqCst), asked, "{user}");
    }
    assert_eq!(router.counted(|worker| worker.facts_near_hits.get()), 6);
    assert!(router.counted(|worker| worker.facts_near_bytes.get()) > 0);
}

#[test]
fn without_a_near_cache_each_request_asks() {
    let cache = Cache::answering(reply);
    let (_stable, _heavy, router) = router(&cache, |config| config.facts.near_bytes_max = 0);
    for asked in [2, 4, 6] {
        ask(&router, "u1");
        assert_eq!(cache.asked.load(Ordering::SeqCst), asked);
    }
}

#[test]
fn requests_for_the_same_user_share_one_question() {
    let cache = Cache::start(|key| (Duration::from_millis(100), reply(key)));
    let (_stable, _heavy, router) = router(&cache, |config| {
        config.facts.budget = Duration::from_secs(1);
    });
    let address = router.address;
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(move || {
                let mut client = Client::connect(address);
                client.send(post("FEED", "x-user-id: u1\r\n", "{}"));
                assert_eq!(client.answer().text(), r#"{"facts":{"country":"u1","depth":1}}"#);
            });
        }
    });
    assert_eq!(cache.asked.load(Ordering::SeqCst), 2);
    let shared = router.counted(|worker| worker.facts_near_shared.get());
    assert_eq!(shared + router.counted(|worker| worker.facts_near_hits.get()), 14);
}

#[test]
fn whoever_shares_a_question_waits_no_longer_than_his_own_budget() {
    let cache = Cache::start(|key| (Duration::from_millis(800), reply(key)));
    let (_stable, _heavy, router) = router(&cache, |config| {
        config.facts.budget = Duration::from_millis(200);
    });
    let address = router.address;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || {
                let mut client = Client::connect(address);
                client.send(post("FEED", "x-user-id: u1\r\n", "{}"));
                let answer = client.answer();
                assert_eq!(answer.header("x-switchboard-facts"), Some("late"));
                assert_eq!(answer.text(), "stable{}");
            });
        }
    });
    // It comes when nobody waits any more, and serves the next one.
    router.wait_for(2, |worker| worker.facts_replies_unheard.get());
    assert_eq!(ask(&router, "u1").text(), r#"{"facts":{"country":"u1","depth":1}}"#);
    assert_eq!(cache.asked.load(Ordering::SeqCst), 2);
}
