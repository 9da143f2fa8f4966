//! A client of the admin listener.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the admin listener listens");
    // Only so that a test that fails does not hang.
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    stream
}

/// Sends a request as it is and reads the answer to its end; `None` if there is none.
pub(crate) fn ask(address: SocketAddr, request: &[u8]) -> Option<Answer> {
    let mut stream = connect(address);
    stream.write_all(request).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    Some(Answer { status, head: head.into(), body: body.into() })
}

/// The answer to a plain GET.
pub(crate) fn get(address: SocketAddr, path: &str) -> Answer {
    let request = format!("GET {path} HTTP/1.1\r\nHost: router\r\n\r\n");
    ask(address, request.as_bytes()).unwrap_or_else(|| panic!("no answer for {path}"))
}
