//! Asks a server one small question over HTTP, on a connection of its own.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The status of `GET path`.
///
/// # Errors
/// Nobody listens, or what answers is not HTTP.
pub fn status(address: &str, path: &str) -> io::Result<u16> {
    let answer = ask(address, "GET", path)?;
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    status.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The body of `METHOD path`.
///
/// # Errors
/// As of [`status`].
pub fn body(address: &str, method: &str, path: &str) -> io::Result<String> {
    let answer = ask(address, method, path)?;
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    body.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn ask(address: &str, method: &str, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
