//! A client of the HTTP API, for the command line.

use std::time::Duration;

use http_body_util::Full;
use hyper::{Request, StatusCode, Uri, body::Bytes, header};
use serde::{Serialize, de::DeserializeOwned};
use switchboard_shared::address::Address;

use crate::{
    api::Problem,
    call::{self, CallError, Limits},
};

/// A change waits for its gate and its routers; the server bounds each of these.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(600);
/// An export of 10 000 Objectives, and some more.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// Talks to one server.
#[derive(Debug)]
pub struct Client {
    host: String,
    token: Option<String>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server's address is no plain `http://HOST:PORT`.
    #[error("--server {url} is not of the form http://HOST:PORT")]
    Url {
        /// What was given.
        url: String,
    },
    /// No answer came.
    #[error("cannot ask the control plane at {host}; does `switchboard-control serve` run there?")]
    Call {
        /// Who was asked.
        host: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A request that is none, such as a token with a line break.
    #[error("cannot make a request of this")]
    Request(#[from] hyper::http::Error),
    /// The server said no.
    #[error("{}: {}", .0.reason, .0.detail)]
    Problem(Box<Problem>),
    /// The server said what this build cannot read.
    #[error("{host} answered {status} with something else than this API's JSON")]
    Answer {
        /// Who was asked.
        host: String,
        /// The status.
        status: StatusCode,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
}

impl ClientError {
    /// What the rules' checks or the gate refused.
    #[must_use]
    pub fn refusal(&self) -> Option<&Problem> {
        match self {
            Self::Problem(problem) if problem.status == StatusCode::UNPROCESSABLE_ENTITY => {
                Some(problem)
            }
            _ => None,
        }
    }
}

impl Client {
    /// A client of `http://HOST:PORT`.
    ///
    /// # Errors
    /// `Url`.
    pub fn new(url: &str, token: Option<String>) -> Result<Self, ClientError> {
        let bad = || ClientError::Url { url: url.to_owned() };
        let uri: Uri = url.parse().map_err(|_| bad())?;
        let plain = uri.scheme_str() == Some("http") && matches!(uri.path(), "" | "/");
        let authority = uri.authority().filter(|_| plain).ok_or_else(bad)?;
        let host = match authority.port() {
            Some(_) => authority.as_str().to_owned(),
            None => format!("{authority}:80"),
        };
        Address::parse(&host).map_err(|_| bad())?;
        Ok(Self { host, token })
    }

    /// Asks for JSON.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        let (status, body) = self.send("GET", path, None).await?;
        self.read(status, &body)
    }

    /// Asks for text.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn get_text(&self, path: &str) -> Result<String, ClientError> {
        let (_, body) = self.send("GET", path, None).await?;
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    /// Sends JSON and reads the answer's.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let body =
            serde_json::to_vec(body).map_err(|source| self.unreadable(StatusCode::OK, source))?;
        let (status, body) = self.send("POST", path, Some(body)).await?;
        self.read(status, &body)
    }

    fn read<T: DeserializeOwned>(&self, status: StatusCode, body: &[u8]) -> Result<T, ClientError> {
        serde_json::from_slice(body).map_err(|source| self.unreadable(status, source))
    }

    fn unreadable(&self, status: StatusCode, source: serde_json::Error) -> ClientError {
        ClientError::Answer { host: self.host.clone(), status, source }
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<(StatusCode, Bytes), ClientError> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, &self.host)
            .header(header::USER_AGENT, concat!("switchboard-control/", env!("CARGO_PKG_VERSION")))
            .header("x-switchboard-actor", actor());
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let request = request.body(Full::new(Bytes::from(body.unwrap_or_default())))?;
        let address = Address::parse(&self.host)
            .map_err(|_| ClientError::Url { url: format!("http://{}", self.host) })?;
        let limits = Limits { total: ANSWER_TIME_MAX, body_bytes_max: ANSWER_BYTES_MAX };
        let answer = call::call(&address, request, limits).await.map_err(|source: CallError| {
            ClientError::Call { host: self.host.clone(), source: Box::new(source) }
        })?;
        if answer.status.is_success() {
            return Ok((answer.status, answer.body));
        }
        let problem: Problem = self.read(answer.status, &answer.body)?;
        Err(ClientError::Problem(Box::new(problem)))
    }
}

/// Who runs this, for the audit log: `user@host`.
fn actor() -> String {
    let user = std::env::var("USER").ok().filter(|user| !user.is_empty());
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = format!("{}@{}", user.as_deref().unwrap_or("somebody"), host.trim());
    name.chars().filter(char::is_ascii_graphic).collect()
}
