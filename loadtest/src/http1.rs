//! HTTP/1.1 bytes: how a body is framed, and where it ends. Pure, no sockets.
//!
//! Both sides of the load tester use it: the model server reads requests, the generator answers.

pub mod body;
pub mod framing;
