//! Facts from a real Redis server: delayed, killed, stopped, loading, behind a password.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use switchboard_router::config::Workers;
use switchboard_shared::definition::FactsInto;

use crate::client::{Client, post};
use crate::redis_server::{Redis, USERS, asked, at, until_it_recovers};
use crate::router::{Router, with_facts};
use crate::upstream::Upstream;

/// Passes bytes on in both directions; each piece of an answer waits for a random time first.
fn delaying_proxy(to: SocketAddr, delay_max: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for (client, seed) in listener.incoming().flatten().zip(1..) {
            let Ok(server) = TcpStream::connect(to) else { continue };
            for stream in [&client, &server] {
                stream.set_nodelay(true).unwrap();
            }
            let (from_client, to_client) = (client.try_clone().unwrap(), client);
            let (from_server, to_server) = (server.try_clone().unwrap(), server);
            thread::spawn(move || copy(from_client, to_server, Duration::ZERO, seed));
            thread::spawn(move || copy(from_server, to_client, delay_max, seed));
        }
    });
    address
}

/// Each piece waits for its own time, and for those before it.
fn copy(mut from: TcpStream, mut to: TcpStream, delay_max: Duration, seed: u64) {
    let (sender, pieces) = std::sync::mpsc::channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        for (at, piece) in pieces {
            thread::sleep(at.saturating_duration_since(Instant::now()));
            if to.write_all(&piece).is_err() {
                break;
            }
        }
        let _may_be_closed = to.shutdown(std::net::Shutdown::Both);
    });
    let (mut bytes, mut random) = ([0; 65536], next(next(seed)));
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        random = next(random);
        let part = u32::try_from(random >> 33 & 0xfff).unwrap();
        let at = Instant::now() + delay_max * part / 0x1000;
        if sender.send((at, bytes[..count].to_vec())).is_err() {
            break;
        }
    }
}

fn next(random: u64) -> u64 {
    random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f)
}

/// RD-01: replies come around the end of the budget, clients leave in the middle, and no request ever carries
/// another user's Fact; each one that came too late is a Fallout with the client's own body.
#[test]
fn no_request_of_twenty_thousand_carries_anothers_fact() {
    const CLIENTS: u64 = 16;
    const EACH: u64 = 1250;
    let redis = Redis::start(&[]);
    redis.know_all_users();
    let budget = Duration::from_millis(10);
    let proxy = delaying_proxy(redis.address(), budget * 3 / 2);
    let (stable, heavy) = (Upstream::echoing("stable"), Upstream::echoing("heavy"));
    let settings = at(proxy);
    let router =
        Router::with(&with_facts(stable.address, heavy.address, FactsInto::default()), |config| {
            settings(config);
            config.facts.budget = budget;
            // Many in a row are late here, and the next is asked for all the same.
            config.facts.late_in_a_row_max = 10_000;
        });
    router.wait_for(1, |worker| worker.facts_connected.get());
    let noise = Noise::watch();
    let (hits, fallouts) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
    let threads = (0..CLIENTS).map(|number| {
        let (hits, fallouts, address) = (Arc::clone(&hits), Arc::clone(&fallouts), router.address);
        thread::spawn(move || {
            let mut random = next(number + 1);
            let mut client = Client::connect(address);
            for _ in 0..EACH {
                random = next(random);
                let user = random >> 33 & 0xffff;
                let user = user % USERS;
                client.send(post("FEED", &format!("x-user-id: u{user}\r\n"), "{}"));
                if random >> 55 & 15 == 0 {
                    client = Client::connect(address); // the old one leaves without its answer
                    continue;
                }
                let answer = client.answer();
                assert_eq!(answer.status, 200);
                if answer.header("x-switchboard-arm") == Some("heavy") {
                    let own =
                        format!("heavy{{\"facts\":{{\"country\":\"u{user}\",\"depth\":{user}}}}}");
                    assert_eq!(answer.text(), own);
                    hits.fetch_add(1, Ordering::Relaxed);
                } else {
                    assert_eq!(answer.text(), "stable{}");
                    let note = answer.header("x-switchboard-facts");
                    assert!(matches!(note, Some("late" | "unavailable")), "{note:?}");
                    fallouts.fetch_add(1, Ordering::Relaxed);
                }
            }
        })
    });
    for thread in threads.collect::<Vec<_>>() {
        thread.join().unwrap();
    }
    let (hits, fallouts) = (hits.load(Ordering::Relaxed), fallouts.load(Ordering::Relaxed));
    assert!(hits > 1000 && fallouts > 1000, "both happen: {hits} and {fallouts}");
    let unheard = router.counted(|worker| worker.facts_replies_unheard.get());
    eprintln!("{hits} with Facts, {fallouts} Fallouts, {unheard} replies that nobody waited for");
    noise.stop_and_print();
    print_waits(&router);
}

/// Told, not judged: on a busy host a thread may wait for its core longer than for the cache.
fn print_waits(router: &Router) {
    let waits = router.counted(|worker| worker.facts_wait.count());
    let overruns = router.counted(|worker| worker.facts_overrun.count());
    eprintln!("{waits} waits, of which {overruns} ended after their budget was spent:");
    for micros in [64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384] {
        let bound = Duration::from_micros(micros);
        let beyond = overruns - router.counted(|worker| worker.facts_overrun.count_up_to(bound));
        let part = 100.0 * f64::from(u32::try_from(waits - beyond).unwrap())
            / f64::from(u32::try_from(waits).unwrap());
        eprintln!("  within the budget and {micros:>6} µs: {part:7.3} % ({beyond} are not)");
    }
}

/// What the host does to a thread that only sleeps, while a test runs.
struct Noise {
    is_over: Arc<AtomicU64>,
    thread: thread::JoinHandle<Vec<Duration>>,
}

impl Noise {
    fn watch() -> Self {
        let is_over = Arc::<AtomicU64>::default();
        let stop = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            let mut late = Vec::new();
            let span = Duration::from_millis(9);
            while stop.load(Ordering::Relaxed) == 0 {
                let began = Instant::now();
                thread::sleep(span);
                late.push(began.elapsed().saturating_sub(span));
            }
            late.sort();
            late
        });
        Self { is_over, thread }
    }

    fn stop_and_print(self) {
        self.is_over.store(1, Ordering::Relaxed);
        let late = self.thread.join().unwrap();
        let at = |part: usize| late[(late.len() - 1) * part / 1000];
        eprintln!(
            "a thread that slept {} times was late by {:?} (p50), {:?} (p99), {:?} (p99.9)",
            late.len(),
            at(500),
            at(990),
            at(999)
        );
    }
}

/// Asks until nobody waits for the cache any more.
fn until_it_is_given_up(router: &Router) {
    for _ in 0..10_000 {
        if asked(router).as_deref() == Some("unavailable") {
            return;
        }
    }
    panic!("the cache is still waited for");
}

/// RD-02, RD-03
#[test]
fn a_cache_that_fails_costs_no_client_an_error_and_comes_back_by_itself() {
    let mut redis = Redis::start(&[]);
    redis.know("u1", "DE");
    let (stable, heavy) = (Upstream::echoing("stable"), Upstream::echoing("heavy"));
    let router = Router::with(
        &with_facts(stable.address, heavy.address, FactsInto::default()),
        at(redis.address()),
    );
    until_it_recovers(&router, "started");

    redis.signal(libc::SIGSTOP);
    until_it_is_given_up(&router);
    redis.signal(libc::SIGCONT);
    until_it_recovers(&router, "stopped");

    redis.command(&[], &["DEL", "country:u1"], ":");
    redis.command(&[], &["LPUSH", "country:u1", "x"], ":");
    assert_eq!(asked(&router).as_deref(), Some("wrong_type"));
    redis.command(&[], &["DEL", "country:u1"], ":");
    assert_eq!(asked(&router).as_deref(), Some("missing"));
    redis.know("u1", "DE");
    assert_eq!(asked(&router).as_deref(), Some("hit"));

    for _ in 0..2 {
        redis.kill();
        until_it_is_given_up(&router);
        redis.restart(&[]);
        redis.wait_until_it_answers();
        redis.know("u1", "DE");
        until_it_recovers(&router, "killed");
    }
    // Its data set takes a second to read, and until then every command gets -LOADING.
    for number in 0..500 {
        redis.know(&format!("more{number}"), "x");
    }
    redis.command(&[], &["SAVE"], "+OK");
    redis.kill();
    redis.restart(&["--key-load-delay", "1000"]);
    redis.wait_until_it_answers();
    until_it_recovers(&router, "loading");
}

#[test]
fn a_password_a_user_a_database_and_a_unix_socket_are_used() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "s3 cret\n").unwrap();
    let redis = Redis::start(&[]);
    redis.command(
        &[],
        &[
            "ACL",
            "SETUSER",
            "app",
            "on",
            ">s3 cret",
            "~country:*",
            "~depth:*",
            "+@read",
            "+ping",
            "+select",
        ],
        "+OK",
    );
    redis.command(&[&["SELECT", "3"]], &["SET", "country:u1", "DE"], "+OK");
    redis.command(&[], &["ACL", "SETUSER", "default", ">s3 cret"], "+OK");
    let (stable, heavy) = (Upstream::echoing("stable"), Upstream::echoing("heavy"));
    let definition = with_facts(stable.address, heavy.address, FactsInto::default());
    let unix = format!("unix:{}", redis.socket().display());
    for address in [redis.address().to_string(), unix] {
        for user in ["app", ""] {
            let settings = at(&address);
            let router = Router::with(&definition, |config| {
                settings(config);
                config.facts.username = user.into();
                config.facts.password_file.clone_from(&secret);
                config.facts.database = 3;
            });
            router.wait_for(1, |worker| worker.facts_connected.get());
            assert_eq!(asked(&router).as_deref(), Some("partial"), "the default of depth");
        }
    }
}

#[test]
fn a_wrong_password_is_no_reason_to_fail_a_client() {
    let redis = Redis::start(&["--requirepass", "right"]);
    let (stable, heavy) = (Upstream::echoing("stable"), Upstream::echoing("heavy"));
    let settings = at(redis.address());
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "wrong").unwrap();
    let router =
        Router::with(&with_facts(stable.address, heavy.address, FactsInto::default()), |config| {
            settings(config);
            config.facts.password_file.clone_from(&secret);
        });
    for _ in 0..10_000 {
        if router.counted(|worker| worker.facts_connect_failures.get()) > 0 {
            break;
        }
        thread::sleep(Duration::from_millis(3));
    }
    assert_eq!(asked(&router).as_deref(), Some("unavailable"));
    assert_eq!(router.counted(|worker| worker.facts_connected.get()), 0);
}

/// RD-02: sixteen cores lose it together, again and again; each is back with one connection, and no client notices.
#[test]
fn a_cache_that_flaps_costs_no_client_an_error() {
    const WORKERS: u16 = 16;
    let mut redis = Redis::start(&[]);
    let (stable, heavy) = (Upstream::echoing("stable"), Upstream::echoing("heavy"));
    let settings = at(redis.address());
    let router =
        Router::with(&with_facts(stable.address, heavy.address, FactsInto::default()), |config| {
            settings(config);
            config.cores.workers = Workers::Count(WORKERS.try_into().unwrap());
        });
    for round in 0..3 {
        redis.know("u1", "DE");
        router.wait_for(WORKERS.into(), |worker| worker.facts_connected.get());
        let failures = router.counted(|worker| worker.facts_connect_failures.get());
        redis.kill();
        router.wait_for(0, |worker| worker.facts_connected.get());
        // It stays away until every core can have tried in vain, and nobody waits for it meanwhile.
        let tries = || router.counted(|worker| worker.facts_connect_failures.get()) - failures;
        while tries() < 2 * u64::from(WORKERS) {
            assert_eq!(asked(&router).as_deref(), Some("unavailable"), "round {round}");
        }
        redis.restart(&[]);
        redis.wait_until_it_answers();
    }
    router.wait_for(WORKERS.into(), |worker| worker.facts_connected.get());
    let connects = router.counted(|worker| worker.facts_connects.get());
    assert_eq!(connects, 4 * u64::from(WORKERS), "one connection of each core at a time");
}
