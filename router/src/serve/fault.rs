//! Why a request was not answered by a model, and what the client is told.

use std::fmt;
use std::time::Duration;

use arrayvec::ArrayString;
use switchboard_shared::{limits::NAME_BYTES_MAX, snapshot::syntax};

use super::context::Unreadable;
use super::json::JsonError;
use super::splice::SpliceError;
use crate::http1::{BodyError, HeadError, UpstreamError};
use crate::worker::link::Clock;

/// Whose fault something is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Whose {
    /// The client sent what cannot be served.
    Client,
    /// A model server did not do its part.
    Upstream,
    /// The router itself is not ready.
    Ours,
}

/// What kept a request from a model's answer. Nothing of an answer was sent yet.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub enum Fault {
    /// No Snapshot was activated yet.
    #[error("no snapshot is active yet")]
    NoSnapshot,
    /// Neither header nor path nor body names an Objective.
    #[error(
        "the request names no objective: set x-switchboard-objective, use /v1/objectives/…, or a JSON body's model"
    )]
    ObjectiveMissing,
    /// A token that the Snapshot does not have.
    #[error("the objective {0} does not exist")]
    ObjectiveUnknown(UnknownToken),
    /// The head.
    #[error("{0}")]
    Head(#[from] HeadError),
    /// The head did not come in time.
    #[error("the request's head took too long")]
    HeadSlow,
    /// The body's framing or size.
    #[error("{0}")]
    Body(#[from] BodyError),
    /// A content coding, where the body must be read.
    #[error("the body must be read here, so it must not be compressed")]
    BodyEncoded,
    /// The body did not come in time.
    #[error("the request's body took too long")]
    ClientSlow(Clock),
    /// An attribute or the JSON around it.
    #[error("{0}")]
    Context(#[from] Unreadable),
    /// The body cannot take the Facts.
    #[error("{0}")]
    Splice(#[from] SpliceError),
    /// The client closed its connection: nobody is told.
    #[error("the client left")]
    ClientLeft,
    /// One endpoint could not be connected to.
    #[error("the model server refuses connections")]
    Refused,
    /// One endpoint did not answer to connecting.
    #[error("the model server does not answer to connecting")]
    ConnectSlow,
    /// No endpoint of the Shard can be reached.
    #[error("no model server can be reached")]
    ShardDown {
        /// When the first of them may be tried again.
        retry_after: Duration,
    },
    /// One endpoint answered 429 or 503 and asked to be left alone.
    #[error("the model server asks to be left alone")]
    EndpointRests {
        /// For how long.
        retry_after: Duration,
    },
    /// The endpoint closed before it answered, or its answer is no HTTP.
    #[error("{0}")]
    Upstream(#[from] UpstreamError),
    /// A clock that watches the endpoint fired.
    #[error("the model server took too long")]
    UpstreamSlow(Clock),
}

/// A token as the client wrote it, if it has a token's form: nothing else of a client's is told back.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct UnknownToken(ArrayString<NAME_BYTES_MAX>);

impl UnknownToken {
    /// The token; what has no token's form is left out.
    #[must_use]
    pub fn of(token: &[u8]) -> Self {
        let text = std::str::from_utf8(token).ok().filter(|text| syntax::is_token(text));
        Self(text.and_then(|text| ArrayString::from(text).ok()).unwrap_or_default())
    }
}

impl fmt::Display for UnknownToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_str() {
            "" => formatter
                .write_str("that was named (its token is not of the form [A-Z][A-Z0-9_]{0,63})"),
            token => formatter.write_str(token),
        }
    }
}

impl From<JsonError> for Fault {
    fn from(error: JsonError) -> Self {
        Self::Context(error.into())
    }
}

impl Fault {
    /// An answer that ended before its end.
    pub const ANSWER_CUT: Self = Self::Upstream(UpstreamError::Body(BodyError::Truncated));

    /// The status of the answer.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::ObjectiveMissing | Self::Context(_) | Self::Splice(_) => 400,
            Self::ObjectiveUnknown(_) => 404,
            Self::HeadSlow | Self::ClientSlow(_) => 408,
            Self::BodyEncoded => 415,
            Self::Head(error) => error.status(),
            Self::Body(error) => error.status(),
            Self::ClientLeft => 499,
            Self::Upstream(_) => 502,
            Self::NoSnapshot
            | Self::Refused
            | Self::ConnectSlow
            | Self::ShardDown { .. }
            | Self::EndpointRests { .. } => 503,
            Self::UpstreamSlow(_) => 504,
        }
    }

    /// A stable label for the answer and for metrics.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NoSnapshot => "no_snapshot",
            Self::ObjectiveMissing => "objective_missing",
            Self::ObjectiveUnknown(_) => "objective_unknown",
            Self::Head(error) => error.reason(),
            Self::HeadSlow => "head_timeout",
            Self::Body(error) => error.reason(),
            Self::BodyEncoded => "body_encoded",
            Self::ClientSlow(_) => "body_timeout",
            Self::Context(error) => error.reason(),
            Self::Splice(error) => error.reason(),
            Self::ClientLeft => "client_closed",
            Self::Refused => "connect_refused",
            Self::ConnectSlow => "connect_timeout",
            Self::ShardDown { .. } => "shard_down",
            Self::EndpointRests { .. } => "endpoint_rests",
            Self::Upstream(error) => error.reason(),
            Self::UpstreamSlow(clock) => match clock {
                Clock::Total => "total_timeout",
                Clock::ResponseIdle => "response_idle_timeout",
                Clock::FirstByte
                | Clock::Head
                | Clock::BodyIdle
                | Clock::ClientWrite
                | Clock::KeepAlive => "first_byte_timeout",
            },
        }
    }

    /// Whose fault it is.
    #[must_use]
    pub fn whose(&self) -> Whose {
        match self {
            Self::NoSnapshot => Whose::Ours,
            Self::ObjectiveMissing
            | Self::ObjectiveUnknown(_)
            | Self::Head(_)
            | Self::HeadSlow
            | Self::Body(_)
            | Self::BodyEncoded
            | Self::ClientSlow(_)
            | Self::Context(_)
            | Self::Splice(_)
            | Self::ClientLeft => Whose::Client,
            Self::Refused
            | Self::ConnectSlow
            | Self::ShardDown { .. }
            | Self::EndpointRests { .. }
            | Self::Upstream(_)
            | Self::UpstreamSlow(_) => Whose::Upstream,
        }
    }

    /// When the client may try again, if that is worth saying.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::NoSnapshot => Some(Duration::from_secs(1)),
            Self::ShardDown { retry_after } | Self::EndpointRests { retry_after } => {
                Some((*retry_after).max(Duration::from_secs(1)))
            }
            _ => None,
        }
    }
}
