//! A model server of a test: it records what it gets, byte for byte, and answers what the test says.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

/// One request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub(crate) fn count(&self, name: &str) -> usize {
        let is_it = |line: &&str| {
            line.split(':').next().is_some_and(|field| field.eq_ignore_ascii_case(name))
        };
        self.head.lines().skip(1).filter(is_it).count()
    }
}

/// What a model server does with a request.
type Script = dyn Fn(&Seen, &mut TcpStream) -> Then + Send + Sync;

/// What it does after its answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Then {
    KeepOpen,
    Close,
}

pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    seen: mpsc::Receiver<Seen>,
    pub(crate) connections: Arc<AtomicUsize>,
    /// Connections that the router closed.
    pub(crate) closed: Arc<AtomicUsize>,
    is_stopped: Arc<AtomicBool>,
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        let _wakes_it = TcpStream::connect(self.address);
    }
}

impl Upstream {
    pub(crate) fn start(
        script: impl Fn(&Seen, &mut TcpStream) -> Then + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, seen) = mpsc::channel();
        let connections = Arc::<AtomicUsize>::default();
        let closed = Arc::<AtomicUsize>::default();
        let is_stopped = Arc::<AtomicBool>::default();
        let script: Arc<Script> = Arc::new(script);
        let (counted, stop, closings) = (connections.clone(), is_stopped.clone(), closed.clone());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                counted.fetch_add(1, Ordering::SeqCst);
                let (script, sender, closings) = (script.clone(), sender.clone(), closings.clone());
                thread::spawn(move || {
                    serve(stream, &*script, &sender);
                    closings.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        Self { address, seen, connections, closed, is_stopped }
    }

    /// Answers each request with this, whole.
    pub(crate) fn answering(answer: &'static str) -> Self {
        Self::start(move |_, stream| {
            let _may_be_closed = stream.write_all(answer.as_bytes());
            Then::KeepOpen
        })
    }

    /// Answers with its name, and the request's body behind it.
    pub(crate) fn echoing(name: &'static str) -> Self {
        Self::start(move |seen, stream| {
            let length = name.len() + seen.body.len();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{name}");
            let _may_be_closed = stream.write_all(&[head.as_bytes(), &seen.body].concat());
            Then::KeepOpen
        })
    }

    /// The next request that arrived; waits for it.
    pub(crate) fn next(&self) -> Seen {
        self.seen.recv_timeout(std::time::Duration::from_secs(30)).expect("a request arrives")
    }

    /// How many requests arrived that `next` has not taken.
    pub(crate) fn left(&self) -> usize {
        self.seen.try_iter().count()
    }
}

fn serve(mut stream: TcpStream, script: &Script, sender: &mpsc::Sender<Seen>) {
    let mut pending = Vec::new();
    while let Some(seen) = read_request(&mut stream, &mut pending) {
        let _unread = sender.send(seen.clone());
        if script(&seen, &mut stream) == Then::Close {
            return;
        }
    }
}

fn read_request(stream: &mut TcpStream, pending: &mut Vec<u8>) -> Option<Seen> {
    let end = loop {
        if let Some(end) = pending.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        read_more(stream, pending)?;
    };
    let head = String::from_utf8(pending.drain(..end).collect()).ok()?;
    let mut seen = Seen { head, body: Vec::new() };
    if let Some(length) = seen.header("content-length") {
        let length: usize = length.parse().ok()?;
        while pending.len() < length {
            read_more(stream, pending)?;
        }
        seen.body = pending.drain(..length).collect();
    } else if seen.header("transfer-encoding").is_some() {
        loop {
            let end = loop {
                if let Some(end) = pending.windows(2).position(|window| window == b"\r\n") {
                    break end;
                }
                read_more(stream, pending)?;
            };
            let line: Vec<u8> = pending.drain(..end + 2).collect();
            let size = usize::from_str_radix(std::str::from_utf8(&line[..end]).ok()?, 16).ok()?;
            while pending.len() < size + 2 {
                read_more(stream, pending)?;
            }
            seen.body.extend(pending.drain(..size + 2).take(size));
            if size == 0 {
                break;
            }
        }
    }
    Some(seen)
}

fn read_more(stream: &mut TcpStream, pending: &mut Vec<u8>) -> Option<()> {
    let mut bytes = [0; 65536];
    let count = stream.read(&mut bytes).ok().filter(|count| *count > 0)?;
    pending.extend_from_slice(&bytes[..count]);
    Some(())
}
