//! The real binary, stub routers that speak the push protocol, and stub model servers.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use switchboard_shared::{
    push::{Active, Frame, FrameReader, Health, Hello, Micros, PROTOCOL, Refused, Stats, Step},
    snapshot::{Expectations, FORMAT, Snapshot, SnapshotId, SnapshotVersion, TrustedKeys},
};
use tempfile::TempDir;

/// Only so that a broken test ends.
const SAFETY: Duration = Duration::from_secs(60);

const BINARY: &str = env!("CARGO_BIN_EXE_switchboard-control");

/// A folder with a key, a registry and sockets; `serve` runs in it, or not.
pub(crate) struct Stage {
    folder: TempDir,
    serve: Option<Serve>,
}

struct Serve {
    child: Child,
    address: String,
    log: Arc<Mutex<String>>,
}

impl Drop for Serve {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Waits until `condition` gives something.
pub(crate) fn wait_for<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(begin.elapsed() < SAFETY, "{what} did not happen");
        thread::sleep(Duration::from_millis(10));
    }
}

impl Stage {
    /// With a key, and nothing running.
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        fs::create_dir(folder.path().join("sockets")).expect("a folder");
        let stage = Self { folder, serve: None };
        let made = stage.command(&["keygen", "--secret", "signing.key"]);
        assert!(made.status.success(), "{made:?}");
        stage
    }

    /// With `serve` running.
    pub(crate) fn serving() -> Self {
        let mut stage = Self::new();
        stage.start(&[], &[]);
        stage
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn sockets(&self) -> PathBuf {
        self.path("sockets")
    }

    pub(crate) fn trusted(&self) -> TrustedKeys {
        let text = fs::read_to_string(self.path("signing.key.pub")).expect("the public key");
        TrustedKeys::new([text.trim().parse().expect("a public key")]).expect("one key")
    }

    /// Starts `serve` with further arguments and variables; waits until it listens.
    pub(crate) fn start(&mut self, arguments: &[&str], variables: &[(&str, &str)]) {
        self.kill();
        let mut child = Command::new(BINARY)
            .current_dir(self.folder.path())
            .args(["serve", "--listen", "127.0.0.1:0", "--database", "registry.db"])
            .args(["--sockets", "sockets", "--signing-key", "signing.key"])
            .args(arguments)
            .envs(variables.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let mut lines = BufReader::new(child.stderr.take().expect("piped"));
        let log = Arc::new(Mutex::new(String::new()));
        let mut address = None;
        let mut line = String::new();
        while address.is_none() {
            line.clear();
            let count = lines.read_line(&mut line).expect("a readable log");
            log.lock().expect("unpoisoned").push_str(&line);
            assert!(count > 0, "serve ended: {}", log.lock().expect("unpoisoned"));
            if let Some((_, rest)) = line.split_once("serving listen=") {
                address = rest.split_whitespace().next().map(str::to_owned);
            }
        }
        let rest = Arc::clone(&log);
        thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                rest.lock().expect("unpoisoned").push_str(&format!("{line}\n"));
            }
        });
        let address = address.expect("the loop ends with one");
        self.serve = Some(Serve { child, address, log });
    }

    /// Like `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.serve = None;
    }

    /// Waits until `serve` has ended by itself.
    pub(crate) fn wait_for_end(&mut self) {
        let serve = self.serve.as_mut().expect("it was started");
        wait_for("the end of serve", || serve.child.try_wait().expect("a child"));
        self.serve = None;
    }

    /// Sends SIGTERM and gives the exit code.
    pub(crate) fn terminate(&mut self) -> Option<i32> {
        let mut serve = self.serve.take().expect("it was started");
        let killed = Command::new("kill").arg(serve.child.id().to_string()).status();
        assert!(killed.expect("kill runs").success());
        wait_for("the end of serve", || serve.child.try_wait().expect("a child")).code()
    }

    pub(crate) fn log(&self) -> String {
        let serve = self.serve.as_ref().expect("it runs");
        serve.log.lock().expect("unpoisoned").clone()
    }

    pub(crate) fn address(&self) -> &str {
        &self.serve.as_ref().expect("it runs").address
    }

    pub(crate) fn token(&self) -> String {
        let text = fs::read_to_string(self.path("registry.db.token")).expect("the token");
        text.trim().to_owned()
    }

    /// Runs a command of the binary in the stage's folder.
    pub(crate) fn command(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(BINARY);
        command.current_dir(self.folder.path()).args(arguments);
        command.env_remove("SWITCHBOARD_TOKEN").env_remove("SWITCHBOARD_TOKEN_FILE");
        if let Some(serve) = &self.serve {
            command.env("SWITCHBOARD_CONTROL_URL", format!("http://{}", serve.address));
            command.env("SWITCHBOARD_TOKEN_FILE", "registry.db.token");
        }
        command.output().expect("the binary runs")
    }

    /// Runs a command that must succeed, and gives its output.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments);
        let (out, error) = texts(&output);
        assert!(output.status.success(), "{arguments:?}: {out}{error}");
        out
    }

    /// The JSON of a command that must succeed.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.run(&[arguments, &["--json"]].concat())).expect("JSON")
    }

    /// Applies one rule file.
    pub(crate) fn apply(&self, text: &str) -> Output {
        fs::write(self.path("rules.yaml"), text).expect("a writable folder");
        self.command(&["apply", "-f", "rules.yaml", "--json"])
    }

    /// Applies one rule file that must become active; gives its version.
    pub(crate) fn activate(&self, text: &str) -> u64 {
        let output = self.apply(text);
        let (out, error) = texts(&output);
        assert!(output.status.success(), "{out}{error}\n{}", self.log());
        let report: Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!(report["ended"], "active", "{report}");
        report["version"].as_u64().expect("a version")
    }

    /// One raw HTTP request on a connection of its own: status, head and body.
    pub(crate) fn http(&self, head: &str, body: &[u8]) -> (u16, String, Vec<u8>) {
        let mut stream = TcpStream::connect(self.address()).expect("it listens");
        stream.set_read_timeout(Some(SAFETY)).expect("a timeout");
        let head = head.replace('\n', "\r\n");
        let request =
            format!("{head}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(request.as_bytes()).expect("it takes a head");
        // A server that has seen enough hangs up.
        drop(stream.write_all(body));
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer));
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8(answer[..end].to_vec()).expect("a textual head");
        let status = head[9..12].parse().expect("a status");
        (status, head, answer[end + 4..].to_vec())
    }

    /// A GET from this host.
    pub(crate) fn get(&self, path: &str) -> (u16, Vec<u8>) {
        let (status, _, body) = self.http(&format!("GET {path} HTTP/1.1\nhost: localhost"), b"");
        (status, body)
    }
}

pub(crate) fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// How a stub router answers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Manner {
    /// As it should.
    Good,
    /// Refuses every Snapshot.
    Refuses,
    /// Takes the connection and says nothing.
    Mute,
    /// Takes a Snapshot and never answers.
    Hangs,
    /// Says who it is, then garbage.
    Garbage,
    /// Says that it prepared something else.
    Lies,
    /// Hangs up in the middle of its answer.
    Tears,
}

/// A router as far as the push socket goes.
pub(crate) struct StubRouter {
    shared: Arc<StubState>,
    socket: PathBuf,
}

struct StubState {
    name: String,
    group: String,
    trusted: TrustedKeys,
    manner: Mutex<Manner>,
    running: Mutex<Option<SnapshotId>>,
    /// `prepare N` and `activate N`, in order.
    orders: Mutex<Vec<String>>,
    stop: AtomicBool,
}

impl StubRouter {
    pub(crate) fn start(stage: &Stage, name: &str, manner: Manner) -> Self {
        Self::running(stage, name, "default", manner, None)
    }

    pub(crate) fn running(
        stage: &Stage,
        name: &str,
        group: &str,
        manner: Manner,
        running: Option<SnapshotId>,
    ) -> Self {
        let socket = stage.sockets().join(format!("{name}.sock"));
        let listener = UnixListener::bind(&socket).expect("a free socket");
        listener.set_nonblocking(true).expect("a listener");
        let shared = Arc::new(StubState {
            name: name.to_owned(),
            group: group.to_owned(),
            trusted: stage.trusted(),
            manner: Mutex::new(manner),
            running: Mutex::new(running),
            orders: Mutex::new(Vec::new()),
            stop: AtomicBool::new(false),
        });
        let state = Arc::clone(&shared);
        thread::spawn(move || {
            while !state.stop.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => state.talk(stream),
                    Err(_) => thread::sleep(Duration::from_millis(5)),
                }
            }
        });
        Self { shared, socket }
    }

    pub(crate) fn behave(&self, manner: Manner) {
        *self.shared.manner.lock().expect("unpoisoned") = manner;
    }

    pub(crate) fn runs(&self) -> Option<SnapshotId> {
        *self.shared.running.lock().expect("unpoisoned")
    }

    pub(crate) fn version(&self) -> Option<u64> {
        self.runs().map(|id| id.version.get())
    }

    pub(crate) fn orders(&self) -> Vec<String> {
        self.shared.orders.lock().expect("unpoisoned").clone()
    }
}

impl Drop for StubRouter {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        drop(fs::remove_file(&self.socket));
    }
}

impl StubState {
    fn manner(&self) -> Manner {
        *self.manner.lock().expect("unpoisoned")
    }

    /// One connection, until it ends or the stub does.
    fn talk(&self, mut stream: UnixStream) {
        stream.set_nonblocking(false).expect("a stream");
        stream.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout");
        if self.manner() == Manner::Mute {
            while !self.stop.load(Ordering::Relaxed) && self.manner() == Manner::Mute {
                thread::sleep(Duration::from_millis(5));
            }
            return;
        }
        let running = *self.running.lock().expect("unpoisoned");
        let hello = Frame::Hello(Hello {
            protocol: PROTOCOL,
            router: &self.name,
            group: &self.group,
            build: "stub",
            formats: vec![FORMAT],
            running,
        });
        drop(stream.write_all(&hello.to_bytes().expect("a small frame")));
        if self.manner() == Manner::Garbage {
            drop(stream.write_all(&[0xff; 64]));
        }
        let mut reader = FrameReader::new();
        let mut prepared = None;
        let mut piece = vec![0; 64 << 10];
        let begin = Instant::now();
        while !self.stop.load(Ordering::Relaxed) {
            match stream.read(&mut piece) {
                Ok(0) => return,
                Ok(count) => reader.push(&piece[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    let stats = Frame::Stats(Stats {
                        running: *self.running.lock().expect("unpoisoned"),
                        uptime_ms: u64::try_from(begin.elapsed().as_millis()).expect("short"),
                        health: Health::Good,
                        counters: vec![],
                    });
                    if stream.write_all(&stats.to_bytes().expect("a small frame")).is_err() {
                        return;
                    }
                }
                Err(_) => return,
            }
            while let Some(frame) = reader.next_frame().expect("control speaks the protocol") {
                match self.answer(&frame, &mut prepared) {
                    Some(bytes) => drop(stream.write_all(&bytes)),
                    None if self.manner() == Manner::Tears => return,
                    None => {}
                }
                if self.manner() == Manner::Tears {
                    return;
                }
            }
        }
    }

    #[expect(clippy::panic, reason = "a stub is a part of its test")]
    fn answer(&self, frame: &Frame<'_>, prepared: &mut Option<SnapshotId>) -> Option<Vec<u8>> {
        let note = |order: String| self.orders.lock().expect("unpoisoned").push(order);
        let answer = match frame {
            Frame::Prepare(file) => {
                let expected = Expectations::of_group("default");
                let snapshot = Snapshot::open(file, &self.trusted, expected).expect("well signed");
                let id = snapshot.id();
                note(format!("prepare {}", id.version));
                match self.manner() {
                    Manner::Refuses => Frame::Refused(Refused {
                        step: Step::Prepare,
                        version: Some(id.version.get()),
                        reason: "semantic",
                        detail: "not to my taste",
                    }),
                    Manner::Hangs => return None,
                    Manner::Lies => {
                        let version = SnapshotVersion::new(id.version.get() + 1).expect("not zero");
                        Frame::Prepared(SnapshotId { version, digest: id.digest })
                    }
                    Manner::Tears => {
                        let bytes = Frame::Prepared(id).to_bytes().expect("a small frame");
                        return Some(bytes[..bytes.len() / 2].to_vec());
                    }
                    Manner::Good | Manner::Mute | Manner::Garbage => {
                        *prepared = Some(id);
                        Frame::Prepared(id)
                    }
                }
            }
            Frame::Activate(id) => {
                note(format!("activate {}", id.version));
                assert_eq!(*prepared, Some(*id), "only what was prepared is activated");
                *self.running.lock().expect("unpoisoned") = Some(*id);
                Frame::Active(Active { running: *id, swaps: vec![Micros(7), Micros(12)] })
            }
            other => panic!("control sent {other:?}"),
        };
        Some(answer.to_bytes().expect("a small frame"))
    }
}

/// A model server that answers every request with one status.
pub(crate) struct StubModel {
    pub(crate) address: String,
    status: Arc<AtomicUsize>,
    asked: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
}

impl StubModel {
    pub(crate) fn start(status: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        listener.set_nonblocking(true).expect("a listener");
        let status = Arc::new(AtomicUsize::new(status));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let (says, hears, ends) = (Arc::clone(&status), Arc::clone(&asked), Arc::clone(&stop));
        thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                let Ok((mut stream, _)) = listener.accept() else {
                    thread::sleep(Duration::from_millis(5));
                    continue;
                };
                stream.set_nonblocking(false).expect("a stream");
                let mut line = String::new();
                drop(BufReader::new(&stream).read_line(&mut line));
                hears.lock().expect("unpoisoned").push(line.trim().to_owned());
                let status = says.load(Ordering::Relaxed);
                let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 2\r\n\r\nok");
                drop(stream.write_all(answer.as_bytes()));
            }
        });
        Self { address, status, asked, stop }
    }

    pub(crate) fn answers(&self, status: usize) {
        self.status.store(status, Ordering::Relaxed);
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("unpoisoned").clone()
    }
}

impl Drop for StubModel {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// One Objective over one Shard, split between two Arms.
pub(crate) fn rules(model: &StubModel, stable: u16, heavy: u16) -> String {
    format!(
        r#"kind: Objective
token: RECOMMEND
context: {{ user_id: {{ from: "header:x-user-id", type: string }} }}
default: stable
arms: {{ stable: {{ model: ranker@1 }}, heavy: {{ model: ranker@2 }} }}
rules:
  - {{ name: staff, when: 'user_id == "boss"', arm: heavy }}
  - {{ name: trial, experiment: {{ unit: user_id, salt: trial-1, split: {{ stable: {stable}, heavy: {heavy} }} }} }}
---
{{ kind: Model, name: ranker, version: "1", shard: light, validation: {{ ready: /ready }} }}
---
{{ kind: Model, name: ranker, version: "2", shard: light, validation: {{ ready: /ready }} }}
---
{{ kind: Shard, name: light, endpoints: [{{ address: "{}" }}] }}
"#,
        model.address
    )
}

/// Whether a path exists with this mode.
pub(crate) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;

    fs::metadata(path).expect("it exists").permissions().mode() & 0o777
}
