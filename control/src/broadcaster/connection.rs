//! One router's socket: kept connected, one order at a time, every wait bounded.

use std::{
    collections::BTreeMap,
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use switchboard_shared::{
    limits::SMALL_FRAME_BYTES_MAX,
    push::{Frame, FrameError, FrameReader, PROTOCOL, Step},
    snapshot::SnapshotId,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
    time::{sleep, timeout},
};

use super::fleet::{Boot, Heartbeat, Identity, Order, Reply, Target};

/// How long a router may take.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// To be connected to, and to say who it is.
    pub hello: Duration,
    /// To answer an order: it verifies up to 64 MiB off its network cores.
    pub answer: Duration,
    /// Before it is connected to again, at first; each failure doubles it.
    pub reconnect_min: Duration,
    /// And at most.
    pub reconnect_max: Duration,
    /// And at most after it hung or spoke nonsense: a Snapshot is up to 64 MiB to send again.
    pub misbehaved_max: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            hello: Duration::from_secs(2),
            answer: Duration::from_secs(15),
            reconnect_min: Duration::from_millis(100),
            reconnect_max: Duration::from_secs(1),
            misbehaved_max: Duration::from_secs(5),
        }
    }
}

/// What happened at a socket.
#[derive(Debug)]
pub(super) enum Event {
    /// A router said who it is; it takes orders from here on.
    Connected { identity: Identity, boot: Boot, orders: mpsc::Sender<Order> },
    /// It answered an order.
    Replied(Reply),
    /// It is alive.
    Heard(Heartbeat),
    /// It is gone.
    Lost(String),
}

/// Orders that wait at one connection: the fleet gives one at a time.
const ORDERS_WAITING: usize = 2;
/// Bytes of one read.
const READ_BYTES: usize = 16 << 10;

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
enum LinkError {
    #[error("cannot connect: {0}")]
    Connect(io::Error),
    #[error("it did not say who it is within {0:?}")]
    NoHello(Duration),
    #[error("it did not answer within {0:?}")]
    NoAnswer(Duration),
    #[error("it closed the connection")]
    Closed,
    #[error("it closed the connection within a frame")]
    Torn,
    #[error("cannot read from it: {0}")]
    Read(io::Error),
    #[error("cannot write to it: {0}")]
    Write(io::Error),
    #[error("it sent garbage: {0}")]
    Garbage(FrameError),
    #[error("it sent a frame of more than {SMALL_FRAME_BYTES_MAX} bytes")]
    TooLong,
    #[error("it speaks version {0} of the push protocol, not {PROTOCOL}")]
    Protocol(u16),
    #[error("it sent {0} where that has no place")]
    OutOfTurn(&'static str),
    #[error("it answered for version {found}, not for {expected}")]
    OtherVersion { found: u64, expected: u64 },
    #[error("the Snapshot does not fit a frame: {0}")]
    Frame(FrameError),
}

impl LinkError {
    /// Whether the router did what none should; else it, or its host, is only busy or gone.
    const fn is_misbehaviour(&self) -> bool {
        match self {
            Self::NoHello(_)
            | Self::NoAnswer(_)
            | Self::Torn
            | Self::Garbage(_)
            | Self::TooLong
            | Self::Protocol(_)
            | Self::OutOfTurn(_)
            | Self::OtherVersion { .. }
            | Self::Frame(_) => true,
            Self::Connect(_) | Self::Closed | Self::Read(_) | Self::Write(_) => false,
        }
    }
}

/// Keeps the socket connected until the receiver of its events is gone.
pub(super) async fn keep(
    socket: PathBuf,
    patience: Patience,
    events: mpsc::Sender<(PathBuf, Event)>,
) {
    let mut pause = patience.reconnect_min;
    loop {
        let mut greeted = false;
        let ended = live(&socket, patience, &events, &mut greeted).await;
        let Some(error) = ended else { return };
        if events.send((socket.clone(), Event::Lost(error.to_string()))).await.is_err() {
            return;
        }
        let pause_max = match error.is_misbehaviour() {
            true => patience.misbehaved_max,
            false if greeted => patience.reconnect_min,
            false => patience.reconnect_max,
        };
        pause = pause.min(pause_max);
        sleep(pause).await;
        pause *= 2;
    }
}

/// One connection, from connecting to its end. `None`: nobody wants to know any more.
async fn live(
    socket: &Path,
    patience: Patience,
    events: &mpsc::Sender<(PathBuf, Event)>,
    greeted: &mut bool,
) -> Option<LinkError> {
    let greeting = timeout(patience.hello, greet(socket)).await;
    let (identity, boot, incoming, outgoing) = match greeting {
        Ok(Ok(greeting)) => greeting,
        Ok(Err(error)) => return Some(error),
        Err(_) => return Some(LinkError::NoHello(patience.hello)),
    };
    *greeted = true;
    let (orders, waiting) = mpsc::channel(ORDERS_WAITING);
    let connected = Event::Connected { identity, boot, orders };
    events.send((socket.to_owned(), connected)).await.ok()?;
    let (replies, answered) = mpsc::channel(ORDERS_WAITING);
    tokio::select! {
        error = listen(socket, incoming, replies, events) => error,
        error = tell(socket, outgoing, waiting, answered, patience.answer, events) => error,
    }
}

/// A socket's read half and what came of the next frame so far.
struct Incoming {
    half: OwnedReadHalf,
    frames: FrameReader,
    /// What one read brings; on the heap, as it lives across waits.
    piece: Vec<u8>,
    /// Since the last whole frame.
    pending_bytes: usize,
}

async fn greet(socket: &Path) -> Result<(Identity, Boot, Incoming, OwnedWriteHalf), LinkError> {
    let stream = UnixStream::connect(socket).await.map_err(LinkError::Connect)?;
    let process = stream.peer_cred().ok().and_then(|peer| peer.pid());
    let metadata = std::fs::symlink_metadata(socket).map_err(LinkError::Connect)?;
    let bound_ns = metadata.ctime().wrapping_mul(1_000_000_000).wrapping_add(metadata.ctime_nsec());
    let boot = Boot { process, inode: metadata.ino(), bound_ns };
    let (half, outgoing) = stream.into_split();
    let (frames, piece) = (FrameReader::new(), vec![0; READ_BYTES]);
    let mut incoming = Incoming { half, frames, piece, pending_bytes: 0 };
    loop {
        if let Some(frame) = incoming.frames.next_frame().map_err(LinkError::Garbage)? {
            let identity = identity(&frame)?;
            return Ok((identity, boot, incoming, outgoing));
        }
        incoming.read().await?;
    }
}

fn identity(frame: &Frame<'_>) -> Result<Identity, LinkError> {
    let Frame::Hello(hello) = frame else { return Err(LinkError::OutOfTurn(name_of(frame))) };
    if hello.protocol != PROTOCOL {
        return Err(LinkError::Protocol(hello.protocol));
    }
    Ok(Identity {
        router: hello.router.to_owned(),
        group: hello.group.to_owned(),
        build: hello.build.to_owned(),
        formats: hello.formats.clone(),
        running: hello.running,
    })
}

impl Incoming {
    async fn read(&mut self) -> Result<(), LinkError> {
        let count = self.half.read(&mut self.piece).await.map_err(LinkError::Read)?;
        if count == 0 {
            let torn = self.frames.is_within_frame();
            return Err(if torn { LinkError::Torn } else { LinkError::Closed });
        }
        self.pending_bytes += count;
        // Routers send small frames only, so a large one is not even gathered.
        if self.pending_bytes > SMALL_FRAME_BYTES_MAX + READ_BYTES {
            return Err(LinkError::TooLong);
        }
        self.frames.push(self.piece.get(..count).unwrap_or_default());
        Ok(())
    }
}

/// Reads until the connection ends.
async fn listen(
    socket: &Path,
    mut incoming: Incoming,
    replies: mpsc::Sender<Reply>,
    events: &mpsc::Sender<(PathBuf, Event)>,
) -> Option<LinkError> {
    loop {
        let heard = match incoming.frames.next_frame() {
            Ok(None) => {
                if let Err(error) = incoming.read().await {
                    return Some(error);
                }
                continue;
            }
            Ok(Some(frame)) => hear(&frame),
            Err(error) => return Some(LinkError::Garbage(error)),
        };
        incoming.pending_bytes = 0;
        match heard {
            Ok(Heard::Heartbeat(heartbeat)) => {
                events.send((socket.to_owned(), Event::Heard(heartbeat))).await.ok()?;
            }
            Ok(Heard::Reply(reply)) => {
                if replies.try_send(reply).is_err() {
                    return Some(LinkError::OutOfTurn("an answer"));
                }
            }
            Err(error) => return Some(error),
        }
    }
}

enum Heard {
    Heartbeat(Heartbeat),
    Reply(Reply),
}

fn hear(frame: &Frame<'_>) -> Result<Heard, LinkError> {
    Ok(match frame {
        Frame::Stats(stats) => Heard::Heartbeat(Heartbeat {
            running: stats.running,
            uptime_ms: stats.uptime_ms,
            health: stats.health,
            counters: stats
                .counters
                .iter()
                .map(|counter| (counter.name.to_owned(), counter.value))
                .collect::<BTreeMap<_, _>>(),
        }),
        Frame::Prepared(id) => Heard::Reply(Reply::Prepared(*id)),
        Frame::Active(active) => {
            let slowest = active.swaps.iter().map(|swap| swap.0).max().unwrap_or_default();
            Heard::Reply(Reply::Active { running: active.running, slowest_swap_us: slowest })
        }
        Frame::Refused(refused) => Heard::Reply(Reply::Refused {
            step: match refused.step {
                Step::Prepare => "prepare",
                Step::Activate => "activate",
            },
            reason: refused.reason.to_owned(),
            detail: refused.detail.to_owned(),
        }),
        Frame::Hello(_) | Frame::Prepare(_) | Frame::Activate(_) => {
            return Err(LinkError::OutOfTurn(name_of(frame)));
        }
    })
}

/// Writes orders and waits for their answers.
async fn tell(
    socket: &Path,
    mut outgoing: OwnedWriteHalf,
    mut orders: mpsc::Receiver<Order>,
    mut replies: mpsc::Receiver<Reply>,
    patience: Duration,
    events: &mpsc::Sender<(PathBuf, Event)>,
) -> Option<LinkError> {
    loop {
        let order = tokio::select! {
            order = orders.recv() => order?,
            _ = replies.recv() => return Some(LinkError::OutOfTurn("an answer")),
        };
        let answered = timeout(patience, async {
            let frame = match &order {
                Order::Prepare(target) => Frame::Prepare(&target.file),
                Order::Activate(id) => Frame::Activate(*id),
            };
            let bytes = frame.to_bytes().map_err(LinkError::Frame)?;
            outgoing.write_all(&bytes).await.map_err(LinkError::Write)?;
            replies.recv().await.ok_or(LinkError::Closed)
        });
        let reply = match answered.await {
            Ok(Ok(reply)) => reply,
            Ok(Err(error)) => return Some(error),
            Err(_) => return Some(LinkError::NoAnswer(patience)),
        };
        if let Err(error) = fits(&order, &reply) {
            return Some(error);
        }
        events.send((socket.to_owned(), Event::Replied(reply))).await.ok()?;
    }
}

/// A router that answers something else than it was asked is not believed.
fn fits(order: &Order, reply: &Reply) -> Result<(), LinkError> {
    let same = |found: SnapshotId, expected: SnapshotId| {
        let (found_number, expected_number) = (found.version.get(), expected.version.get());
        let other = LinkError::OtherVersion { found: found_number, expected: expected_number };
        if found == expected { Ok(()) } else { Err(other) }
    };
    match (order, reply) {
        (Order::Prepare(Target { id, .. }), Reply::Prepared(found)) => same(*found, *id),
        (Order::Activate(id), Reply::Active { running, .. }) => same(*running, *id),
        (Order::Prepare(_) | Order::Activate(_), Reply::Refused { .. }) => Ok(()),
        (Order::Prepare(_), Reply::Active { .. }) => Err(LinkError::OutOfTurn("ACTIVE")),
        (Order::Activate(_), Reply::Prepared(_)) => Err(LinkError::OutOfTurn("PREPARED")),
    }
}

const fn name_of(frame: &Frame<'_>) -> &'static str {
    match frame {
        Frame::Hello(_) => "HELLO",
        Frame::Prepare(_) => "PREPARE",
        Frame::Prepared(_) => "PREPARED",
        Frame::Refused(_) => "REFUSED",
        Frame::Activate(_) => "ACTIVATE",
        Frame::Active(_) => "ACTIVE",
        Frame::Stats(_) => "STATS",
    }
}
