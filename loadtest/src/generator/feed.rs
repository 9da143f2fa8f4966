//! Recorded requests on their way to one generator thread.

use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use crate::http1::framing::Asked;

/// A request that is sent as it was recorded.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Recorded {
    /// Head and body.
    pub wire: Vec<u8>,
    /// What its method asks for.
    pub asked: Asked,
    /// How long after the run's start it is due, where the recorded pace is kept.
    pub offset: Duration,
    /// The Objective that it was sent for.
    pub objective: String,
    /// The Unit that it was sent for; empty where there was none.
    pub unit: String,
}

/// One thread's end of the queue.
#[derive(Debug)]
pub struct Feed {
    arriving: Receiver<Recorded>,
    next: Option<Recorded>,
}

/// What stands at the front.
#[derive(Debug)]
pub enum Front {
    /// A request that is due this long after the start.
    Ready(Duration),
    /// The reader has not come that far.
    NotRead,
    /// The last one was taken.
    Ended,
}

impl Feed {
    /// The queue's end.
    pub fn new(arriving: Receiver<Recorded>) -> Self {
        Self { arriving, next: None }
    }

    /// Looks at the front.
    pub fn front(&mut self) -> Front {
        if self.next.is_none() {
            match self.arriving.try_recv() {
                Ok(recorded) => self.next = Some(recorded),
                Err(TryRecvError::Empty) => return Front::NotRead,
                Err(TryRecvError::Disconnected) => return Front::Ended,
            }
        }
        self.next.as_ref().map_or(Front::Ended, |recorded| Front::Ready(recorded.offset))
    }

    /// Takes what [`Self::front`] showed.
    pub fn take(&mut self) -> Option<Recorded> {
        self.next.take()
    }
}
