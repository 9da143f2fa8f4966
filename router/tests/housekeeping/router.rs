//! A router without its data path: fake workers hold what is active, the feed is real.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use switchboard_router::activation::Activation;
use switchboard_router::admin::{self, Admin, Sources};
use switchboard_router::config;
use switchboard_router::cores::WorkerIndex;
use switchboard_router::counters::Counters;
use switchboard_router::feed::{self, Feed, Stage};
use switchboard_router::state::State;
use switchboard_router::status::Status;
use switchboard_router::upstream::survey::{Survey, Surveyed};

use crate::samples;

pub(crate) const WORKERS: u16 = 2;

/// Dropping it is a crash: the feed stops, the folder stays until the end of the test.
pub(crate) struct Router {
    pub(crate) activation: Arc<Activation>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) status: Arc<Status>,
    /// Held back, the last worker does not swap.
    pub(crate) holds_back: Arc<AtomicBool>,
    socket: PathBuf,
    feed: Option<Feed>,
    admin: Option<Admin>,
    workers: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

impl Router {
    /// Starts from what is in the folder.
    pub(crate) fn start(folder: &Path) -> Self {
        Self::start_with(folder, Vec::new())
    }

    pub(crate) fn start_with(folder: &Path, allowed_uids: Vec<u32>) -> Self {
        let (publisher, activation) = Activation::new(usize::from(WORKERS));
        let counters = Counters::new(usize::from(WORKERS));
        let status = Status::new();
        let survey = Survey::new(usize::from(WORKERS));
        let mut stage = Stage::new(
            samples::trusted(),
            samples::GROUP.into(),
            State::open(&folder.join("state")).expect("a state folder"),
            publisher,
            counters.feed().expect("the feed's counters"),
            Arc::clone(&status),
        );
        stage.start();
        let (stop, holds_back) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let workers = (0..WORKERS)
            .map(|worker| {
                let (activation, stop) = (Arc::clone(&activation), Arc::clone(&stop));
                let holds_back = Arc::clone(&holds_back);
                let survey = Arc::clone(&survey);
                std::thread::spawn(move || {
                    let mut reader = activation.reader(WorkerIndex(worker));
                    let surveyed = Surveyed::new(survey, WorkerIndex(worker));
                    while !stop.load(Ordering::Relaxed) {
                        let is_held = worker + 1 == WORKERS && holds_back.load(Ordering::Relaxed);
                        if !is_held {
                            let _held = reader.current();
                            surveyed.answer(Box::default);
                        }
                        std::thread::park_timeout(Duration::from_millis(1));
                    }
                })
            })
            .collect();
        let socket = folder.join("run/router.sock");
        let settings = config::Feed { name: "host-1".into(), socket: socket.clone(), allowed_uids };
        let feed = feed::listen(&settings, stage, Arc::clone(&counters), None).expect("a feed");
        let feed = Some(feed);
        let sources = Sources {
            status: Arc::clone(&status),
            counters: Arc::clone(&counters),
            activation: Arc::clone(&activation),
            survey: Arc::clone(&survey),
        };
        let admin = admin::listen(([127, 0, 0, 1], 0).into(), sources, None);
        let admin = Some(admin.expect("an admin listener"));
        Self { activation, counters, status, holds_back, socket, feed, admin, workers, stop }
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Where the admin listener is.
    pub(crate) fn admin(&self) -> SocketAddr {
        self.admin.as_ref().expect("it runs until the router is dropped").address()
    }

    /// The version that every worker evaluates; 0 before the first.
    pub(crate) fn version(&self) -> u64 {
        self.activation.published().map_or(0, |active| active.snapshot.version().get())
    }

    /// One of the feed's counters, as the heartbeat has it.
    pub(crate) fn counted(&self, name: &str) -> u64 {
        let totals = self.counters.totals();
        totals.iter().find(|(total, _)| total == name).unwrap_or_else(|| panic!("no {name}")).1
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        if let Some(feed) = self.feed.take() {
            feed.stop();
        }
        if let Some(admin) = self.admin.take() {
            admin.stop();
        }
        self.stop.store(true, Ordering::Relaxed);
        for worker in self.workers.drain(..) {
            worker.join().expect("a fake worker does nothing that can panic");
        }
    }
}
