//! A control plane's end of the push socket.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use switchboard_shared::push::{Frame, FrameReader, Health, Step};
use switchboard_shared::snapshot::SnapshotId;

/// What a router said.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Said {
    Hello {
        router: String,
        group: String,
        running: Option<SnapshotId>,
    },
    Prepared(SnapshotId),
    Refused {
        step: Step,
        version: Option<u64>,
        reason: String,
    },
    Active {
        running: SnapshotId,
        swaps: usize,
    },
    Stats {
        running: Option<SnapshotId>,
        health: Health,
        counters: Vec<(String, u64)>,
    },
    /// The connection is closed.
    Gone,
}

pub(crate) struct Controller {
    stream: UnixStream,
    frames: FrameReader,
    /// What HELLO told.
    pub(crate) running: Option<SnapshotId>,
}

impl Controller {
    /// Connects and reads HELLO.
    pub(crate) fn connect(socket: &Path) -> Self {
        let mut controller = Self::connect_unheard(socket);
        match controller.next() {
            Said::Hello { running, .. } => controller.running = running,
            other => panic!("{other:?} instead of HELLO"),
        }
        controller
    }

    pub(crate) fn connect_unheard(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).expect("a router listens");
        // Only so that a test that fails does not hang.
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        Self { stream, frames: FrameReader::new(), running: None }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the router reads");
    }

    /// The next frame, or `Gone`.
    pub(crate) fn next(&mut self) -> Said {
        loop {
            if let Some(frame) = self.frames.next_frame().expect("a router's frames are good") {
                return said(&frame);
            }
            let mut piece = [0; 4096];
            match self.stream.read(&mut piece) {
                Ok(0) => return Said::Gone,
                Ok(length) => self.frames.push(&piece[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Said::Gone,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// The next frame that is no heartbeat.
    pub(crate) fn answer(&mut self) -> Said {
        loop {
            match self.next() {
                Said::Stats { .. } => {}
                other => return other,
            }
        }
    }

    pub(crate) fn prepare(&mut self, file: &[u8]) -> Said {
        self.send(&Frame::Prepare(file).to_bytes().expect("a frame"));
        self.answer()
    }

    pub(crate) fn activate(&mut self, id: SnapshotId) -> Said {
        self.send(&Frame::Activate(id).to_bytes().expect("a frame"));
        self.answer()
    }

    /// Prepares and activates, and expects both to work.
    pub(crate) fn push(&mut self, file: &[u8]) -> SnapshotId {
        let Said::Prepared(id) = self.prepare(file) else { panic!("not prepared") };
        let active = self.activate(id);
        assert_eq!(active, Said::Active { running: id, swaps: crate::router::WORKERS.into() });
        id
    }

    /// Why PREPARE is refused.
    pub(crate) fn refusal(&mut self, file: &[u8]) -> String {
        match self.prepare(file) {
            Said::Refused { step: Step::Prepare, reason, .. } => reason,
            other => panic!("{other:?} instead of a refusal"),
        }
    }
}

fn said(frame: &Frame<'_>) -> Said {
    match frame {
        Frame::Hello(hello) => Said::Hello {
            router: hello.router.into(),
            group: hello.group.into(),
            running: hello.running,
        },
        Frame::Prepared(id) => Said::Prepared(*id),
        Frame::Refused(refused) => {
            assert!(!refused.detail.is_empty());
            Said::Refused {
                step: refused.step,
                version: refused.version,
                reason: refused.reason.into(),
            }
        }
        Frame::Active(active) => {
            Said::Active { running: active.running, swaps: active.swaps.len() }
        }
        Frame::Stats(stats) => Said::Stats {
            running: stats.running,
            health: stats.health,
            counters: stats
                .counters
                .iter()
                .map(|counter| (counter.name.into(), counter.value))
                .collect(),
        },
        Frame::Prepare(_) | Frame::Activate(_) => panic!("a router pushes nothing"),
    }
}
