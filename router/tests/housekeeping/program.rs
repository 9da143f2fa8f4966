//! The program itself: flags, settings, signals, restart.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::controller::Controller;
use crate::get::{ask, get};
use crate::samples;

const PROGRAM: &str = env!("CARGO_BIN_EXE_switchboard-router");

/// A running router; killed if the test fails.
struct Program {
    child: Child,
    lines: mpsc::Receiver<String>,
    admin: SocketAddr,
    socket: PathBuf,
}

impl Program {
    /// Starts one whose files are all in `folder`.
    fn start(folder: &Path, drain_wait: &str) -> Self {
        let socket = folder.join("router.sock");
        let state = folder.join("state");
        let (key, group) = (samples::key().public(), samples::GROUP);
        let settings = format!(
            "group = {group:?}\ntrusted_keys = [\"{key}\"]\nlisten = [\"127.0.0.1:0\"]\n\
             state_dir = {state:?}\nadmin.listen = \"127.0.0.1:0\"\nfeed.socket = {socket:?}\n\
             cores.workers = 1\ndrain = {{ wait = {drain_wait:?}, max = \"30s\" }}\n"
        );
        let config = folder.join("router.toml");
        fs::write(&config, settings).unwrap();
        let mut child = Command::new(PROGRAM)
            .arg("--config")
            .arg(config)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = mpsc::channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok())
        });
        let admin = SocketAddr::from(([0, 0, 0, 0], 0));
        let mut program = Self { child, lines, admin, socket };
        let line = program.line("event=\"admin listening\"");
        program.admin = line.rsplit_once("address=").unwrap().1.parse().unwrap();
        program.line("event=\"feed listening\"");
        program
    }

    /// The next line on standard error that has this text.
    fn line(&self, text: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(Duration::from_secs(60));
            let line = line.unwrap_or_else(|_| panic!("no line with {text}"));
            if line.contains(text) {
                return line;
            }
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn wait(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    fn ready(&self) -> u16 {
        get(self.admin, "/readyz").status
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Both fail if it has ended, as it should have.
        let _killed = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn run(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn a_router_starts_drains_and_serves_from_disk_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(folder.path(), "3s");
    assert_eq!(program.ready(), 503);
    let definition = samples::definition(&["FEED"], &["127.0.0.1:9"]);
    let mut controller = Controller::connect(&program.socket);
    let said = controller.prepare(&samples::file(&definition, 5));
    let id = samples::snapshot(&definition, 5).id();
    assert_eq!(said, crate::controller::Said::Prepared(id));
    let said = controller.activate(id);
    assert_eq!(said, crate::controller::Said::Active { running: id, swaps: 1 });
    assert_eq!(program.ready(), 200);

    program.signal(Signal::HUP);
    program.line("event=\"SIGHUP changes nothing\"");
    assert_eq!(program.ready(), 200);

    program.signal(Signal::TERM);
    program.line("event=\"stopping: not ready from now on\"");
    // Within the three seconds of `drain.wait` it still answers.
    let answer = ask(program.admin, b"GET /readyz HTTP/1.1\r\n\r\n");
    assert_eq!(answer.map(|answer| answer.status), Some(503));
    let socket = program.socket.clone();
    assert_eq!(program.wait().code(), Some(0));
    assert!(!socket.exists());

    let program = Program::start(folder.path(), "1ms");
    assert_eq!(program.ready(), 200);
    assert_eq!(Controller::connect(&program.socket).running, Some(id));
    program.signal(Signal::INT);
    assert_eq!(program.wait().code(), Some(0));
}

#[test]
fn a_second_signal_stops_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(folder.path(), "168h");
    program.signal(Signal::TERM);
    program.line("event=\"stopping: not ready from now on\"");
    program.signal(Signal::TERM);
    program.line("event=\"stopped at once: requests were cut\"");
    assert_eq!(program.wait().code(), Some(1));
}

#[test]
fn a_killed_router_leaves_nothing_that_stops_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(folder.path(), "1ms");
    program.signal(Signal::KILL);
    let socket = program.socket.clone();
    program.wait();
    assert!(socket.exists());
    assert_eq!(Program::start(folder.path(), "1ms").ready(), 503);
}

#[test]
fn two_routers_do_not_share_a_state_folder() {
    let folder = tempfile::tempdir().unwrap();
    let _program = Program::start(folder.path(), "1ms");
    let config = folder.path().join("router.toml");
    let output = run(&["--config", config.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("another router has this state folder"));
}

#[test]
fn a_bad_setting_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("router.toml");
    fs::write(&config, "[clocks]\nhead = 10\n").unwrap();
    let output = run(&["--config", config.to_str().unwrap(), "--check"]);
    assert_eq!(output.status.code(), Some(1));
    let path = config.display();
    let expected =
        format!("switchboard-router: {path}:2:8: invalid type: integer `10`, expected a string\n");
    assert_eq!(text(&output.stderr), expected);
}

#[test]
fn check_looks_at_the_keys_and_binds_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("router.toml");
    fs::write(&config, "").unwrap();
    let config = config.to_str().unwrap();
    let key = samples::key().public().to_string();
    let output = run(&["--config", config, "--trusted-key", &key, "--check"]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), "ok\n"));
    let output = run(&["--config", config, "--trusted-key", "/nonexistent", "--check"]);
    assert_eq!(output.status.code(), Some(1));
    let expected = "switchboard-router: cannot read trusted key file /nonexistent: No such file";
    assert!(text(&output.stderr).starts_with(expected));
}

#[test]
fn the_core_map_and_the_example_print_and_exit() {
    let output = run(&["--print-core-map=json", "--workers", "1"]);
    let map: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(map["workers"].as_array().unwrap().len(), 1);
    let output = run(&["--print-core-map", "--workers", "1"]);
    assert!(text(&output.stdout).starts_with("worker 0 "));
    let output = run(&["--print-example-config"]);
    let example = switchboard_router::config::reference::example();
    assert_eq!(text(&output.stdout), example);
}
