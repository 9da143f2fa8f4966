//! One JSON line per request, for tests that check every single answer.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use serde::Serialize;

use crate::limits::{RECORD_BATCH_BYTES, RECORD_BATCHES_MAX};

/// One request and its answer.
#[derive(Debug, Serialize)]
pub struct Record<'a> {
    /// Number of the request in its run.
    pub number: u64,
    /// Name of the user.
    pub user: &'a str,
    /// The Objective that was asked for.
    pub asked: Option<&'a str>,
    /// `x-switchboard-objective` of the answer.
    pub objective: &'a str,
    /// `x-switchboard-arm`
    pub arm: &'a str,
    /// `x-switchboard-snapshot`
    pub snapshot: &'a str,
    /// `x-switchboard-reason`
    pub reason: &'a str,
    /// `x-model-server`
    pub model_server: &'a str,
    /// `None` where there is no whole answer.
    pub status: Option<u16>,
    /// Name of the failure, if any.
    pub failure: Option<&'static str>,
    /// When it was due, from the start of the run.
    pub due_us: f64,
    /// When it was sent, from the start of the run.
    pub sent_us: f64,
    /// From due to done.
    pub latency_us: f64,
    /// From the start of the run to done.
    pub done_us: f64,
    /// Bytes of the answer's body.
    pub body_bytes: u64,
    /// Server-sent events.
    pub events: u64,
    /// Number of the connection in its run; a new one after each reconnect.
    pub connection: u64,
    /// Which request of its connection it is; the first is 1.
    pub sequence: u64,
}

/// Why the records are not whole.
#[derive(Debug, thiserror::Error)]
pub enum RecordsError {
    /// The file cannot be made.
    #[error("cannot create {path}")]
    Create {
        /// Which one.
        path: PathBuf,
        /// What the host says.
        #[source]
        source: io::Error,
    },
    /// The disk is full, for instance; lines are missing from here on.
    #[error("cannot write the records")]
    Write(#[source] io::Error),
    /// The writer has panicked.
    #[error("the writer of the records has died")]
    Died,
}

/// A thread's way to the file.
#[derive(Debug)]
pub struct Recorder {
    batch: Vec<u8>,
    left: Arc<AtomicU64>,
    batches: SyncSender<Vec<u8>>,
}

/// The file and the thread that writes it.
#[derive(Debug)]
pub struct Records {
    left: Arc<AtomicU64>,
    batches: SyncSender<Vec<u8>>,
    writer: JoinHandle<io::Result<()>>,
}

impl Records {
    /// Starts the file; it will hold at most `records_max` lines.
    ///
    /// # Errors
    /// `Create`.
    pub fn create(path: &Path, records_max: u64) -> Result<Self, RecordsError> {
        let failed = |source| RecordsError::Create { path: path.to_owned(), source };
        let file = File::create(path).map_err(failed)?;
        let (batches, arriving) = sync_channel(RECORD_BATCHES_MAX);
        let writer = std::thread::Builder::new()
            .name("records".to_owned())
            .spawn(move || write(file, &arriving))
            .map_err(failed)?;
        Ok(Self { left: Arc::new(AtomicU64::new(records_max)), batches, writer })
    }

    /// A way to the file for one thread.
    pub fn recorder(&self) -> Recorder {
        let (left, batches) = (Arc::clone(&self.left), self.batches.clone());
        Recorder { batch: Vec::with_capacity(RECORD_BATCH_BYTES), left, batches }
    }

    /// Ends the file; every [`Recorder`] must be gone, or this waits for it.
    ///
    /// # Errors
    /// `Write`, `Died`.
    pub fn finish(self) -> Result<(), RecordsError> {
        drop(self.batches);
        self.writer.join().map_err(|_| RecordsError::Died)?.map_err(RecordsError::Write)
    }
}

impl Recorder {
    /// Adds one line, unless the file has as many as it may.
    pub fn add(&mut self, record: &Record<'_>) {
        let counted = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if counted.is_err() || serde_json::to_writer(&mut self.batch, record).is_err() {
            return;
        }
        self.batch.push(b'\n');
        if self.batch.len() + 1024 > RECORD_BATCH_BYTES {
            self.hand_over();
        }
    }

    /// Lets whoever follows the file see what there is so far.
    pub fn flush(&mut self) {
        if !self.batch.is_empty() {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let next = Vec::with_capacity(RECORD_BATCH_BYTES);
        // A writer that is gone has met an error, which `finish` tells.
        drop(self.batches.send(std::mem::replace(&mut self.batch, next)));
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.flush();
    }
}

fn write(mut file: File, batches: &Receiver<Vec<u8>>) -> io::Result<()> {
    batches.iter().try_for_each(|batch| file.write_all(&batch))
}
