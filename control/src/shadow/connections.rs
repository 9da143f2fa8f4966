//! Kept connections to the candidate, and one exchange over one of them with its times.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use http_body_util::Full;
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    client::conn::http1::SendRequest,
    header::{self, HeaderValue},
};
use switchboard_shared::address::Address;
use tokio::time::timeout;

use super::limits::IDLE_CONNECTIONS_MAX;
use crate::call::{self, CallError, Limits};

/// What the candidate said, and how long it took.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    /// Coded (`content-encoding`), so that its bytes are not what they stand for.
    pub(super) encoded: bool,
    pub(super) body: Bytes,
    /// From sending the request, on a connection that stands, to the answer's head.
    pub(super) first_byte: Duration,
    /// From there to its last byte.
    pub(super) total: Duration,
}

/// One endpoint's connections.
#[derive(Debug)]
pub(super) struct Connections {
    address: String,
    host: HeaderValue,
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
}

impl Connections {
    /// To an address that [`Address::parse`] takes.
    pub(super) fn new(address: &str) -> Self {
        let host = HeaderValue::from_str(call::host(address))
            .unwrap_or(HeaderValue::from_static("localhost"));
        Self { address: address.to_owned(), host, idle: Mutex::default() }
    }

    /// The endpoint's address.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Sends a request and reads the whole answer. A kept connection that its server has closed meanwhile is no error:
    /// the request goes out again on a new one.
    pub(super) async fn exchange(
        &self,
        mut request: Request<Full<Bytes>>,
        limits: Limits,
    ) -> Result<Answer, CallError> {
        request.headers_mut().insert(header::HOST, self.host.clone());
        let Limits { total, body_bytes_max } = limits;
        let exchanged = timeout(total, async {
            while let Some(mut kept) = self.take() {
                if kept.ready().await.is_err() {
                    continue;
                }
                let begin = Instant::now();
                match kept.send_request(request.clone()).await {
                    Ok(response) => {
                        return self.receive(kept, response, begin, body_bytes_max).await;
                    }
                    Err(error) if error.is_canceled() => {} // nothing of it was sent
                    Err(_) => break, // perhaps the request is what ends connections: only once more
                }
            }
            let address =
                Address::parse(&self.address).map_err(|_| CallError::Connect(invalid()))?;
            let mut fresh = call::open(&address).await?;
            let begin = Instant::now();
            let response = fresh.send_request(request).await.map_err(CallError::Http)?;
            self.receive(fresh, response, begin, body_bytes_max).await
        });
        exchanged.await.unwrap_or(Err(CallError::TimedOut { total }))
    }

    async fn receive(
        &self,
        connection: SendRequest<Full<Bytes>>,
        response: Response<Incoming>,
        begin: Instant,
        body_bytes_max: usize,
    ) -> Result<Answer, CallError> {
        let first_byte = begin.elapsed();
        let status = response.status();
        let encoding = response.headers().get(header::CONTENT_ENCODING);
        let encoded = encoding.is_some_and(|encoding| encoding != "identity");
        let body = call::whole(response.into_body(), body_bytes_max).await?;
        let total = begin.elapsed();
        self.keep(connection);
        Ok(Answer { status, encoded, body, first_byte, total })
    }

    fn take(&self) -> Option<SendRequest<Full<Bytes>>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(connection) = idle.pop() {
            if !connection.is_closed() {
                return Some(connection);
            }
        }
        None
    }

    /// A connection that ends after its answer is dropped by the next [`Self::take`].
    fn keep(&self, connection: SendRequest<Full<Bytes>>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_CONNECTIONS_MAX && !connection.is_closed() {
            idle.push(connection);
        }
    }
}

fn invalid() -> std::io::Error {
    std::io::Error::from(std::io::ErrorKind::InvalidInput)
}
