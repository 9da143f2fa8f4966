//! What a request needs while it is served, reused so that steady traffic allocates nothing.

use std::cell::RefCell;

use crate::http1::{ClientExchange, Fields, HeadLimits, ServerConnection};
use crate::limits::SCRATCHES_POOLED_MAX;
use crate::serve::json::JsonScratch;

/// One request's state machines and tables. Idle connections hold none.
pub struct Scratch {
    /// The client's connection, as far as bytes go.
    pub server: ServerConnection,
    /// The exchange with an endpoint, as far as bytes go.
    pub exchange: ClientExchange,
    /// Space for reading a JSON body.
    pub json: JsonScratch,
    /// Decoded query parameters.
    pub text: Vec<u8>,
    /// Header lines that the router adds.
    pub fields: Fields,
}

/// A core's spare scratches.
#[derive(Default)]
pub struct ScratchPool {
    #[expect(clippy::vec_box, reason = "they are moved between tasks as one pointer")]
    free: RefCell<Vec<Box<Scratch>>>,
}

impl ScratchPool {
    /// A scratch whose connection awaits a head.
    #[must_use]
    pub fn take(&self, limits: HeadLimits) -> Box<Scratch> {
        let pooled = self.free.borrow_mut().pop();
        pooled.unwrap_or_else(|| {
            Box::new(Scratch {
                server: ServerConnection::new(limits),
                exchange: ClientExchange::new(),
                json: JsonScratch::default(),
                text: Vec::new(),
                fields: Fields::new(),
            })
        })
    }

    /// Takes a scratch back, unless there are plenty. Its connection must await a head.
    pub fn put_back(&self, scratch: Box<Scratch>) {
        let mut free = self.free.borrow_mut();
        if free.len() < SCRATCHES_POOLED_MAX && !scratch.json.has_grown() {
            free.push(scratch);
        }
    }
}
