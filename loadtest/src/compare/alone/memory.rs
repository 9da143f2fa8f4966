//! What idle keep-alive connections cost the router in user space.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::Memory;
use crate::accounting::Sample;
use crate::compare::CompareError;
use crate::compare::peer::Peer;
use crate::compare::process::Process;
use crate::compare::site::Site;

/// Enough that the pages of one weigh nothing.
const CONNECTIONS: usize = 5_000;

/// Several times the router's own span after which a silent connection gives its buffer back.
const SETTLE_SPAN: Duration = Duration::from_secs(3);

/// Each connection asks once, is answered, and stays.
pub(super) fn measure(site: &Site<'_>) -> Result<Memory, CompareError> {
    let running = site.start(Peer::Router)?;
    let Some(pid) = running.process.as_ref().map(Process::pid) else {
        return Err(CompareError::unfit(Peer::Router, "it has no process".to_owned()));
    };
    let idle_bytes = settled_bytes(pid)?;
    let request = site.request();
    let failed = |error| CompareError::file(format!("http://{}", running.address))(error);
    let mut connections = Vec::with_capacity(CONNECTIONS);
    for _ in 0..CONNECTIONS {
        connections.push(ask_and_stay(&running.address, &request).map_err(failed)?);
    }
    let filled_bytes = settled_bytes(pid)?;
    Ok(Memory { idle_bytes, filled_bytes, connections: connections.len() as u64 })
}

/// Resident memory after it has stopped to change.
fn settled_bytes(pid: u32) -> Result<u64, CompareError> {
    let start = Instant::now();
    let mut last = (Instant::now(), 0);
    loop {
        let sample = Sample::of(pid)?;
        let bytes = sample.usage_until(pid, &sample).resident_bytes;
        if bytes != last.1 {
            last = (Instant::now(), bytes);
        }
        if last.0.elapsed() >= SETTLE_SPAN || start.elapsed() >= 4 * SETTLE_SPAN {
            return Ok(bytes);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn ask_and_stay(address: &str, request: &str) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    while !is_whole(&answer) {
        match stream.read(&mut piece)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => answer.extend_from_slice(&piece[..length]),
        }
    }
    Ok(stream)
}

/// Whether an answer with `content-length` has come to its end.
fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    length.and_then(|length| length.parse().ok()).is_some_and(|length: usize| body.len() >= length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_with_its_last_byte() {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc";
        assert!(is_whole(answer));
        for end in 0..answer.len() {
            assert!(!is_whole(&answer[..end]), "{end}");
        }
    }
}
