//! Starts and stops the binary, and speaks to it byte by byte.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_switchboard-loadtest");

/// Keeps a broken test from hanging; no test waits for it.
const SAFETY: Duration = Duration::from_secs(60);

/// A running model server, stopped when dropped.
pub(crate) struct Upstream {
    child: Child,
    pub(crate) address: String,
}

impl Upstream {
    pub(crate) fn start(flags: &[&str]) -> Self {
        Self::start_on("127.0.0.1:0", flags)
    }

    pub(crate) fn start_on(listen: &str, flags: &[&str]) -> Self {
        let mut child = Command::new(BINARY)
            .args(["upstream", "--listen", listen, "--name", "m1"])
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").unwrap().to_owned();
        Self { child, address }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(SAFETY)).unwrap();
        stream
    }

    /// Sends bytes on a new connection and reads until the server closes it.
    pub(crate) fn raw(&self, request: &[u8]) -> String {
        let mut stream = self.connect();
        stream.write_all(request).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8(answer).unwrap()
    }

    /// Asks once on a connection of its own; returns status and JSON body.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: t\r\nconnection: close\r\ncontent-length: {length}"
        );
        let answer = self.raw(format!("{head}\r\n\r\n{body}").as_bytes());
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap())
    }

    pub(crate) fn stats(&self) -> Value {
        self.ask("GET", "/__control/stats", "").1
    }

    /// Asks for the stats until they satisfy `wanted`.
    pub(crate) fn wait_for(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let start = std::time::Instant::now();
        loop {
            let stats = self.stats();
            if wanted(&stats) {
                return stats;
            }
            assert!(start.elapsed() < SAFETY, "never came: {stats}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// What one run said.
pub(crate) struct Report {
    pub(crate) json: Value,
    pub(crate) code: i32,
}

impl Report {
    pub(crate) fn number(&self, pointer: &str) -> f64 {
        let value = self.json.pointer(pointer);
        value.and_then(Value::as_f64).unwrap_or_else(|| panic!("no number at {pointer}"))
    }
}

/// Runs the generator to its end and reads its JSON.
pub(crate) fn run(flags: &[&str]) -> Report {
    report(&command(flags).output().unwrap())
}

/// A generator that was not started yet; its JSON goes to standard output.
pub(crate) fn command(flags: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(["run", "--json", "-"]).args(flags);
    command
}

pub(crate) fn report(output: &Output) -> Report {
    let code = output.status.code().unwrap();
    let json = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    Report { json, code }
}
