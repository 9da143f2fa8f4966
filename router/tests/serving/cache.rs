//! A cache of a test: it speaks Redis' protocol, answers what the test says, and when.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use switchboard_router::config::{Config, FactsSource};

/// The reply to a GET or HGET of this key, in bytes, and how long it takes.
type Script = dyn Fn(&str) -> (Duration, Vec<u8>) + Send + Sync;

pub(crate) struct Cache {
    pub(crate) address: SocketAddr,
    /// Commands that asked for a value.
    pub(crate) asked: Arc<AtomicUsize>,
    is_stopped: Arc<AtomicBool>,
}

impl Cache {
    pub(crate) fn start(
        script: impl Fn(&str) -> (Duration, Vec<u8>) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::<AtomicUsize>::default();
        let is_stopped = Arc::<AtomicBool>::default();
        let script: Arc<Script> = Arc::new(script);
        let (counted, stop) = (Arc::clone(&asked), Arc::clone(&is_stopped));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let (script, counted) = (Arc::clone(&script), Arc::clone(&counted));
                thread::spawn(move || serve(stream, &*script, &counted));
            }
        });
        Self { address, asked, is_stopped }
    }

    /// Answers each key at once.
    pub(crate) fn answering(reply: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::start(move |key| (Duration::ZERO, reply(key)))
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        let _wakes_it = TcpStream::connect(self.address);
    }
}

/// Settings with this cache.
pub(crate) fn redis(cache: &Cache) -> impl FnOnce(&mut Config) + use<> {
    let address = cache.address.to_string();
    move |config| {
        config.facts.source = FactsSource::Redis;
        config.facts.address = address;
        // Not what is tested here, and this host may pause for longer than 10 ms.
        config.facts.budget = Duration::from_millis(500);
    }
}

/// A value as it comes over the wire.
pub(crate) fn bulk(value: impl AsRef<[u8]>) -> Vec<u8> {
    let value = value.as_ref();
    [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat()
}

fn serve(mut stream: TcpStream, script: &Script, asked: &AtomicUsize) {
    stream.set_nodelay(true).unwrap();
    let mut writer = stream.try_clone().unwrap();
    let (sender, replies) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        for (at, reply) in replies {
            thread::sleep(at.saturating_duration_since(Instant::now()));
            if writer.write_all(&reply).is_err() {
                return;
            }
        }
    });
    let (mut pending, mut bytes) = (Vec::new(), [0; 65536]);
    while let Ok(count @ 1..) = stream.read(&mut bytes) {
        pending.extend_from_slice(&bytes[..count]);
        while let Some(command) = take_command(&mut pending) {
            let words: Vec<&str> = command.iter().map(String::as_str).collect();
            let (delay, reply) = match words.as_slice() {
                ["PING"] => (Duration::ZERO, b"+PONG\r\n".to_vec()),
                ["AUTH", ..] | ["SELECT", _] => (Duration::ZERO, b"+OK\r\n".to_vec()),
                ["GET", key] | ["HGET", key, _] => {
                    asked.fetch_add(1, Ordering::SeqCst);
                    script(key)
                }
                other => panic!("the router sent {other:?}"),
            };
            if sender.send((Instant::now() + delay, reply)).is_err() {
                return;
            }
        }
    }
}

fn take_command(pending: &mut Vec<u8>) -> Option<Vec<String>> {
    let (mut place, mut words) = (0, Vec::new());
    let line = |place: &mut usize| {
        let length = pending[*place..].windows(2).position(|end| end == b"\r\n")?;
        let text = std::str::from_utf8(&pending[*place + 1..*place + length]).ok()?;
        *place += length + 2;
        text.parse::<usize>().ok()
    };
    for _ in 0..line(&mut place)? {
        let length = line(&mut place)?;
        let word = pending.get(place..place + length)?;
        words.push(String::from_utf8(word.to_vec()).unwrap());
        place += length + 2;
    }
    if pending.len() < place {
        return None;
    }
    pending.drain(..place);
    Some(words)
}
