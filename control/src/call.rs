//! One HTTP/1.1 call on its own connection: to a model server from the gate, to `serve` from the
//! command line.

use std::{io, time::Duration};

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::{
    Request, StatusCode,
    body::{Bytes, Incoming},
    client::conn::http1::{SendRequest, handshake},
};
use hyper_util::rt::TokioIo;
use switchboard_shared::address::Address;
use tokio::{
    net::{TcpStream, UnixStream},
    time::timeout,
};

/// How long and how large an answer may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// From connecting to the answer's last byte.
    pub(crate) total: Duration,
    /// Of the answer's body.
    pub(crate) body_bytes_max: usize,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Its status.
    pub(crate) status: StatusCode,
    /// Its whole body.
    pub(crate) body: Bytes,
}

/// Why a call brought no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// Nobody listens there, or the name does not resolve.
    #[error("cannot connect")]
    Connect(#[source] io::Error),
    /// What answers there does not speak HTTP/1.1, or hung up.
    #[error("no HTTP answer")]
    Http(#[source] hyper::Error),
    /// The body broke off.
    #[error("the answer broke off")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A body above the limit.
    #[error("an answer of more than {body_bytes_max} bytes")]
    TooLarge {
        /// The limit.
        body_bytes_max: usize,
    },
    /// Not whole in time.
    #[error("no answer within {total:?}")]
    TimedOut {
        /// The limit.
        total: Duration,
    },
}

/// Only connects: all that can be asked where no path is known.
pub(crate) async fn connect(address: &Address<'_>, total: Duration) -> Result<(), CallError> {
    let connected = timeout(total, async {
        match address {
            Address::Unix(path) => UnixStream::connect(path).await.map(drop),
            Address::Socket(address) => TcpStream::connect(address).await.map(drop),
            Address::Host { name, port } => TcpStream::connect((*name, *port)).await.map(drop),
        }
    });
    match connected.await {
        Ok(connected) => connected.map_err(CallError::Connect),
        Err(_) => Err(CallError::TimedOut { total }),
    }
}

/// Sends one request and reads the whole answer. The request has a path as its target, and a Host.
pub(crate) async fn call(
    address: &Address<'_>,
    request: Request<Full<Bytes>>,
    limits: Limits,
) -> Result<Answer, CallError> {
    let Limits { total, body_bytes_max } = limits;
    match timeout(total, exchange(address, request, body_bytes_max)).await {
        Ok(answer) => answer,
        Err(_) => Err(CallError::TimedOut { total }),
    }
}

async fn exchange(
    address: &Address<'_>,
    request: Request<Full<Bytes>>,
    body_bytes_max: usize,
) -> Result<Answer, CallError> {
    send(&mut open(address).await?, request, body_bytes_max).await
}

/// Sends one request on an open connection and reads the whole answer.
pub(crate) async fn send(
    sender: &mut SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
    body_bytes_max: usize,
) -> Result<Answer, CallError> {
    sender.ready().await.map_err(CallError::Http)?;
    let response = sender.send_request(request).await.map_err(CallError::Http)?;
    let status = response.status();
    Ok(Answer { status, body: whole(response.into_body(), body_bytes_max).await? })
}

/// Reads a whole body.
pub(crate) async fn whole(body: Incoming, body_bytes_max: usize) -> Result<Bytes, CallError> {
    match Limited::new(body, body_bytes_max).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(CallError::TooLarge { body_bytes_max }),
        Err(error) => Err(CallError::Broken(error)),
    }
}

/// What `Host` says to an endpoint at this address, as rule files write it.
pub(crate) fn host(address: &str) -> &str {
    if address.starts_with("unix:") { "localhost" } else { address }
}

/// Connects and is ready to send.
pub(crate) async fn open(address: &Address<'_>) -> Result<SendRequest<Full<Bytes>>, CallError> {
    match address {
        Address::Unix(path) => {
            start(UnixStream::connect(path).await.map_err(CallError::Connect)?).await
        }
        Address::Socket(address) => {
            start(TcpStream::connect(address).await.map_err(CallError::Connect)?).await
        }
        Address::Host { name, port } => {
            start(TcpStream::connect((*name, *port)).await.map_err(CallError::Connect)?).await
        }
    }
}

async fn start<S>(stream: S) -> Result<SendRequest<Full<Bytes>>, CallError>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(CallError::Http)?;
    // Ends when the sender is dropped; what it has to say, the sender says too.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}
