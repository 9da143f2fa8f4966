//! Facts from a real Redis server: delayed, killed, stopped, loading, behind a password.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use switchboard_router::config::{Config, FactsSource};
use switchboard_shared::definition::FactsInto;

use crate::client::{Client, post};
use crate::router::{Router, with_facts};
use crate::upstream::Upstream;

/// A server of its own on a port of its own, with nothing of the host's configuration.
struct Redis {
    child: Child,
    folder: tempfile::TempDir,
    port: u16,
    options: Vec<String>,
}

impl Redis {
    fn start(options: &[&str]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = tempfile::tempdir().unwrap();
        let options: Vec<String> = options.iter().map(|one| (*one).to_owned()).collect();
        let child = spawn(folder.path(), port, &options, &[]);
        let redis = Self { child, folder, port, options };
        redis.wait_until_it_answers();
        redis
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("redis.sock")
    }

    fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    fn wait_until_it_answers(&self) {
        for _ in 0..3000 {
            if UnixStream::connect(self.socket()).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("redis-server does not answer");
    }

    /// One command over the Unix socket; any reply will do that begins with `expected`.
    fn command(&self, before: &[&[&str]], command: &[&str], expected: &str) {
        let mut stream = UnixStream::connect(self.socket()).unwrap();
        let mut reply = [0; 4096];
        for words in before.iter().copied().chain([command]) {
            let mut text = format!("*{}\r\n", words.len());
            for word in words {
                text += &format!("${}\r\n{word}\r\n", word.len());
            }
            stream.write_all(text.as_bytes()).unwrap();
            let count = stream.read(&mut reply).unwrap();
            let reply = String::from_utf8_lossy(&reply[..count]);
            let is_last = std::ptr::eq(words, command);
            assert!(!is_last || reply.starts_with(expected), "{words:?}: {reply}");
        }
    }

    fn know(&self, user: &str, country: &str) {
        self.command(&[], &["SET", &format!("country:{user}"), country], "+OK");
        self.command(&[], &["HSET", &format!("depth:{user}"), "d", "3"], ":");
    }

    /// Sets both Facts of every user to what tells which one it is.
    fn know_all_users(&self) {
        let mut stream = UnixStream::connect(self.socket()).unwrap();
        let mut replies = BufReader::new(stream.try_clone().unwrap()).lines();
        for user in 0..USERS {
            write!(stream, "SET country:u{user} u{user}\r\nHSET depth:u{user} d {user}\r\n")
                .unwrap();
            for expected in ["+OK", ":1"] {
                assert_eq!(replies.next().unwrap().unwrap(), expected);
            }
        }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn restart(&mut self, more: &[&str]) {
        self.child = spawn(self.folder.path(), self.port, &self.options, more);
    }

    fn signal(&self, signal: libc::c_int) {
        let pid = libc::pid_t::try_from(self.child.id()).unwrap();
        // SAFETY: no memory is involved; the child has not been waited for, so the id is still its own.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _may_have_ended = self.child.kill();
        let _may_have_ended = self.child.wait();
    }
}

fn spawn(folder: &Path, port: u16, options: &[String], more: &[&str]) -> Child {
    Command::new("redis-server")
        .args([
            "--port",
            &port.to_string(),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
        ])
        .arg("--unixsocket")
        .arg(folder.join("redis.sock"))
        .arg("--dir")
        .arg(folder)
        .args(options)
        .args(more)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("redis-server is there: `make setup` installs it")
}

fn at(address: impl ToString) -> impl FnOnce(&mut Config) {
    let address = address.to_string();
    move |config| {
        config.facts.source = FactsSource::Redis;
        config.facts.address = address;
        config.facts.budget = Duration::from_millis(200);
    }
}

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

const USERS: u64 = 1000;

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

/// How an answer was reached; the client never gets an error.
fn asked(router: &Router) -> Option<String> {
    let mut client = Client::connect(router.address);
    client.send(post("FEED", "x-user-id: u1\r\n", "{}"));
    let answer = client.answer();
    assert_eq!(answer.status, 200);
    match answer.header("x-switchboard-facts") {
        Some("hit" | "partial") => {
            assert!(answer.text().contains("\"country\":\"DE\""), "{}", answer.text());
        }
        _ => assert_eq!(answer.text(), "stable{}"),
    }
    answer.header("x-switchboard-facts").map(str::to_owned)
}

/// Asks until Facts are served again; the time it took is told, not judged.
fn until_it_recovers(router: &Router, what: &str) {
    let began = Instant::now();
    for _ in 0..10_000 {
        if asked(router).as_deref() == Some("hit") {
            eprintln!("back {:?} after it was {what}", began.elapsed());
            return;
        }
        thread::sleep(Duration::from_millis(3));
    }
    panic!("never back after it was {what}");
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
