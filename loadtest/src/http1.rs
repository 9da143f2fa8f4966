//! HTTP/1.1 bytes: how a body is framed, and where it ends. Pure, no sockets.
//!
//! Both sides of the load tester use it: the model server reads requests, the generator answers.
//!
//! Why not monoio-http's client codec: on the same server (64 connections, 600 B POST, 1 KiB answer)
//! a bare loop over it cost 10.3 to 11.7 us of CPU per answer, the whole generator over this module,
//! with its templates, labels, checks and histograms, 9.6 to 9.7. The codec also waits for the body of
//! an answer to HEAD, takes an answer that ends with its connection for an empty one, refuses
//! trailers, and holds back a chunk until it is whole, which would falsify times between tokens.

pub mod body;
pub mod framing;
