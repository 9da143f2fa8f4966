//! One connection: a request, its answer, a close that does not lose it.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use super::pages::{self, Page, Sources};
use super::request::{self, Method};
use crate::limits::{ADMIN_HEAD_BYTES_MAX, ADMIN_LINGER, ADMIN_PATIENCE};
use crate::net::clock;

/// Answers one request. A client that is too slow, leaves or talks nonsense costs nobody else anything,
/// so that its errors end here.
pub(super) fn serve(stream: &TcpStream, sources: &Sources) {
    let deadline = clock::now() + ADMIN_PATIENCE;
    // However it ends: the connection is over.
    let _over = exchange(stream, sources, deadline);
}

fn exchange(mut stream: &TcpStream, sources: &Sources, deadline: Instant) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    let (page, method) = read(stream, sources, deadline)?;
    let answer = page.to_bytes(method);
    let mut rest = answer.as_slice();
    while !rest.is_empty() {
        stream.set_write_timeout(Some(left(deadline)?))?;
        match stream.write(rest) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(length) => rest = &rest[length..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    linger(stream)
}

fn read(
    mut stream: &TcpStream,
    sources: &Sources,
    deadline: Instant,
) -> io::Result<(Page, Method)> {
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    loop {
        match request::parse(&head) {
            Ok(Some(request)) => return Ok((pages::page(request.path, sources), request.method)),
            Ok(None) => {}
            Err(error) => return Ok((Page::refusal(error), Method::Get)),
        }
        stream.set_read_timeout(Some(left(deadline)?))?;
        let room = piece.len().min(ADMIN_HEAD_BYTES_MAX - head.len());
        match stream.read(&mut piece[..room]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => head.extend_from_slice(&piece[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Waits a moment for the client's end. Closing over bytes that were not read makes the kernel reset
/// the connection, and a reset overtakes the answer (RFC 9112 §9.6).
fn linger(mut stream: &TcpStream) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    let deadline = clock::now() + ADMIN_LINGER;
    let mut piece = [0; 1024];
    loop {
        stream.set_read_timeout(Some(left(deadline)?))?;
        if stream.read(&mut piece)? == 0 {
            return Ok(());
        }
    }
}

/// Until the deadline: never zero, which would mean no timeout.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(clock::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}
