//! A real Redis server of a test, and what tests ask of a router in front of it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use switchboard_router::config::{Config, FactsSource};

use crate::client::{Client, post};
use crate::router::Router;

/// Users that [`Redis::know_all_users`] knows: `u0` and so on.
pub(crate) const USERS: u64 = 1000;

/// A server of its own on a port of its own, with nothing of the host's configuration.
pub(crate) struct Redis {
    child: Child,
    folder: tempfile::TempDir,
    pub(crate) port: u16,
    options: Vec<String>,
}

impl Redis {
    pub(crate) fn start(options: &[&str]) -> Self {
        let port = free_port();
        let folder = tempfile::tempdir().unwrap();
        let options: Vec<String> = options.iter().map(|one| (*one).to_owned()).collect();
        let child = spawn(folder.path(), port, &options, &[]);
        let redis = Self { child, folder, port, options };
        redis.wait_until_it_answers();
        redis
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("redis.sock")
    }

    pub(crate) fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    pub(crate) fn wait_until_it_answers(&self) {
        for _ in 0..3000 {
            if UnixStream::connect(self.socket()).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("redis-server does not answer");
    }

    /// One command over the Unix socket; any reply will do that begins with `expected`.
    pub(crate) fn command(&self, before: &[&[&str]], command: &[&str], expected: &str) {
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

    /// What it says to a command: all lines of the reply, without those that only tell lengths.
    pub(crate) fn said(&self, words: &[&str]) -> String {
        let mut stream = UnixStream::connect(self.socket()).unwrap();
        let mut text = format!("*{}\r\n", words.len());
        for word in words {
            text += &format!("${}\r\n{word}\r\n", word.len());
        }
        stream.write_all(text.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let lines = reply.lines().filter(|line| !line.starts_with(['$', '*']));
        lines.map(|line| line.trim_start_matches('+')).collect::<Vec<_>>().join("\n")
    }

    /// The value of an option that it was started with.
    pub(crate) fn option(&self, name: &str) -> &str {
        let place = self.options.iter().position(|option| option == name).unwrap();
        &self.options[place + 1]
    }

    pub(crate) fn know(&self, user: &str, country: &str) {
        self.command(&[], &["SET", &format!("country:{user}"), country], "+OK");
        self.command(&[], &["HSET", &format!("depth:{user}"), "d", "3"], ":");
    }

    /// Sets both Facts of every user to what tells which one it is.
    pub(crate) fn know_all_users(&self) {
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

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn restart(&mut self, more: &[&str]) {
        self.child = spawn(self.folder.path(), self.port, &self.options, more);
    }

    pub(crate) fn signal(&self, signal: libc::c_int) {
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

/// A port that nobody listens on now.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
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

pub(crate) fn at(address: impl ToString) -> impl FnOnce(&mut Config) {
    let address = address.to_string();
    move |config| {
        config.facts.source = FactsSource::Redis;
        config.facts.address = address;
        config.facts.budget = Duration::from_millis(200);
    }
}

/// How an answer was reached; the client never gets an error.
pub(crate) fn asked(router: &Router) -> Option<String> {
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
pub(crate) fn until_it_recovers(router: &Router, what: &str) {
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
