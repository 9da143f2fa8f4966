//! Bytes to heads and bodies, and back: HTTP/1.1 as RFC 9110 and RFC 9112 have it, without a socket or a clock.
//!
//! Bytes come in as slices and stay where they are: a head is kept as positions, a body as ranges. What two
//! readers might read in two ways is refused; docs/http.md lists each choice.
//!
//! In reading order: [`RequestHead`] and [`ResponseHead`] parse, [`BodyDecoder`] finds a body's bytes and its end,
//! [`ServerConnection`] and [`ClientExchange`] tell what a connection may do next, [`write`] makes what is sent.

#![warn(clippy::indexing_slicing)]

mod body;
mod bytes;
mod chunk;
mod client;
mod connection;
mod error;
mod framing;
mod header;
pub mod limits;
mod method;
mod request;
mod response;
mod scan;
mod server;
mod target;
mod value;
mod version;
pub mod write;

pub use body::{BodyDecoder, Decoded};
pub use chunk::{CHUNK_END, ChunkHeader, LAST_CHUNK};
pub use client::{ClientExchange, CloseReason, HeadStep, RequestSent, Reuse};
pub use error::{BodyError, HeadError, UpstreamError};
pub use framing::{RequestFraming, ResponseFraming};
pub use header::{Header, HeaderKind, HeaderSet};
pub use limits::{HeadLimits, HeadLimitsError};
pub use method::Method;
pub use request::{Progress, RequestHead, RequestView};
pub use response::{ResponseHead, ResponseView};
pub use server::{
    Answer, AnswerBody, AnswerEnd, ClientEnd, Next, Persistence, Recoding, ServerConnection,
};
pub use value::{FieldValue, FieldValueError, Fields, RequestPath, RequestPathError};
pub use version::Version;
