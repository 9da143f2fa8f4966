//! Reads records ahead of their replay, in a thread of its own.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;

use super::input::Input;
use super::record::{Form, Refusal};
use crate::generator::feed::Recorded;
use crate::recorder::{histogram, record};

/// The reading thread. It ends by itself: at the input's end, or when nobody takes its records.
#[derive(Debug)]
pub struct Reader {
    counts: Arc<Mutex<Counts>>,
    first: Receiver<()>,
}

/// What was read so far.
#[derive(Debug)]
pub struct Counts {
    /// Records that can be sent.
    pub records: u64,
    /// Those that cannot.
    pub refusals: Refusals,
    /// How long the recorded answers took.
    pub recorded_latency: Histogram<u64>,
    /// Why reading ended before the input did.
    pub failure: Option<io::Error>,
}

/// Lines that cannot be sent, by reason.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Refusals([u64; Refusal::ALL.len()]);

impl Refusals {
    /// Those that there are.
    pub fn by_reason(&self) -> BTreeMap<&'static str, u64> {
        let all = Refusal::ALL.into_iter().zip(self.0);
        all.filter(|(_, count)| *count > 0)
            .map(|(refusal, count)| (refusal.name(), count))
            .collect()
    }
}

impl fmt::Display for Refusals {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reasons = self.by_reason();
        if reasons.is_empty() {
            return formatter.write_str("the input is empty");
        }
        for (position, (reason, count)) in reasons.iter().enumerate() {
            let comma = if position > 0 { ", " } else { "" };
            write!(formatter, "{comma}{count} {reason}")?;
        }
        Ok(())
    }
}

impl Reader {
    /// Starts reading; record `n` goes to sender `n` modulo their number.
    ///
    /// # Errors
    /// No thread.
    pub fn start(input: Input, form: Form, senders: Vec<SyncSender<Recorded>>) -> io::Result<Self> {
        let counts = Arc::new(Mutex::new(Counts {
            records: 0,
            refusals: Refusals::default(),
            recorded_latency: histogram(),
            failure: None,
        }));
        let (tell_first, first) = channel();
        let reading = Reading { form, senders, counts: Arc::clone(&counts), tell_first };
        std::thread::Builder::new()
            .name("records".to_owned())
            .spawn(move || reading.read_all(input))?;
        Ok(Self { counts, first })
    }

    /// Waits until a record is there to be sent, or will never be.
    pub fn wait_for_first(&self) {
        self.first.recv().ok(); // an error is the reader's end
    }

    /// What was read so far. A failure is told once.
    pub fn counts(&self) -> Counts {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        Counts {
            records: counts.records,
            refusals: counts.refusals,
            recorded_latency: counts.recorded_latency.clone(),
            failure: counts.failure.take(),
        }
    }
}

struct Reading {
    form: Form,
    senders: Vec<SyncSender<Recorded>>,
    counts: Arc<Mutex<Counts>>,
    tell_first: Sender<()>,
}

impl Reading {
    fn read_all(self, mut input: Input) {
        let mut line = Vec::new();
        let mut first_time = None;
        let mut turn = 0;
        loop {
            let read = match input.next(&self.form, &mut line) {
                Ok(Some(Ok(read))) => read,
                Ok(Some(Err(refusal))) => {
                    self.refuse(refusal);
                    continue;
                }
                Ok(None) => return,
                Err(error) => {
                    self.with_counts(|counts| counts.failure = Some(error));
                    return;
                }
            };
            let start = *first_time.get_or_insert(read.time_unix_us);
            let mut recorded = read.recorded;
            recorded.offset = Duration::from_micros(read.time_unix_us.saturating_sub(start))
                .div_f64(self.form.speed);
            self.note(read.recorded_latency);
            let sent = self.senders[turn % self.senders.len()].send(recorded);
            turn += 1;
            self.tell_first.send(()).ok(); // nobody waits any more
            if sent.is_err() {
                return; // the run has ended
            }
        }
    }

    fn note(&self, latency: Option<Duration>) {
        self.with_counts(|counts| {
            counts.records += 1;
            if let Some(latency) = latency {
                record(&mut counts.recorded_latency, latency);
            }
        });
    }

    fn refuse(&self, refusal: Refusal) {
        self.with_counts(|counts| counts.refusals.0[refusal as usize] += 1);
    }

    fn with_counts(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
