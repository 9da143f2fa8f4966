//! Errors as `application/problem+json` (RFC 9457).

use std::error::Error;

use axum::{
    Json,
    http::{HeaderValue, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    deploy::{DeployError, ExplainError, Report},
    registry::RegistryError,
    rules::RuleFault,
};

/// What went wrong.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
pub struct Problem {
    /// The HTTP status.
    pub status: u16,
    /// The status in words.
    pub title: String,
    /// A stable label.
    pub reason: String,
    /// For people.
    pub detail: String,
    /// Every fault, where rules are at fault.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<RuleFault>,
    /// How far the change came, where it has a version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Box<Report>>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, reason: &str, detail: impl Into<String>) -> Self {
        Self {
            status: status.as_u16(),
            title: status.canonical_reason().unwrap_or_default().to_owned(),
            reason: reason.to_owned(),
            detail: detail.into(),
            faults: Vec::new(),
            report: None,
        }
    }

    pub(super) fn token_missing() -> Self {
        let detail = "this needs the header `authorization: Bearer TOKEN`";
        Self::new(StatusCode::UNAUTHORIZED, "token_missing", detail)
    }

    pub(super) fn token_wrong() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "token_wrong", "this is not the token of this server")
    }

    /// A version that failed on its way.
    pub(super) fn failed(status: StatusCode, reason: &str, report: Report) -> Self {
        let detail = report.reason.clone().unwrap_or_default();
        Self { report: Some(Box::new(report)), ..Self::new(status, reason, detail) }
    }

    /// Ours or the disk's: the log has the chain, the caller gets what helps.
    fn internal(reason: &str, error: &(dyn Error + 'static)) -> Self {
        let detail = chain(error);
        tracing::error!(reason, detail, "failed");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, reason, detail)
    }
}

/// The whole chain of causes in one line.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(&self)).into_response();
        let headers = response.headers_mut();
        let kind = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, kind);
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        }
        response
    }
}

impl From<DeployError> for Problem {
    fn from(error: DeployError) -> Self {
        let detail = error.to_string();
        match error {
            DeployError::Rules(faults) => {
                Self { faults, ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, "rules", detail) }
            }
            DeployError::Busy => Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail),
            DeployError::NothingActive => Self::new(StatusCode::CONFLICT, "nothing_active", detail),
            DeployError::NothingBefore { .. } => {
                Self::new(StatusCode::CONFLICT, "nothing_before", detail)
            }
            DeployError::NeverActive { .. } => {
                Self::new(StatusCode::CONFLICT, "never_active", detail)
            }
            DeployError::NoLongerActive { .. } => {
                Self::new(StatusCode::CONFLICT, "no_longer_active", detail)
            }
            DeployError::Registry(error) => error.into(),
            DeployError::Build(error) => Self::internal("build", &error),
            DeployError::Open(error) => Self::internal("open", &error),
            DeployError::Key(error) => Self::internal("key", &error),
            DeployError::Export(error) => Self::internal("export", &error),
            DeployError::Interrupted => Self::internal("interrupted", &DeployError::Interrupted),
        }
    }
}

impl From<RegistryError> for Problem {
    fn from(error: RegistryError) -> Self {
        match &error {
            RegistryError::NoVersion { .. } => {
                Self::new(StatusCode::NOT_FOUND, "no_version", error.to_string())
            }
            RegistryError::Open { .. }
            | RegistryError::Migrate(_)
            | RegistryError::Sql { .. }
            | RegistryError::Damaged { .. }
            | RegistryError::NotInState { .. }
            | RegistryError::Exhausted { .. } => Self::internal("registry", &error),
        }
    }
}

impl From<ExplainError> for Problem {
    fn from(error: ExplainError) -> Self {
        let (status, reason) = match &error {
            ExplainError::NothingActive => (StatusCode::CONFLICT, "nothing_active"),
            ExplainError::NoObjective { .. } => (StatusCode::NOT_FOUND, "no_objective"),
            ExplainError::NoAttribute { .. } => (StatusCode::BAD_REQUEST, "no_attribute"),
            ExplainError::BadAttribute { source, .. } => (StatusCode::BAD_REQUEST, source.reason()),
        };
        Self::new(status, reason, error.to_string())
    }
}

pub(super) async fn no_such_path(uri: Uri) -> Problem {
    let path: String = uri.path().chars().take(200).collect();
    Problem::new(StatusCode::NOT_FOUND, "no_such_path", format!("there is nothing at {path}"))
}

pub(super) async fn no_such_method() -> Problem {
    let detail = "this path does not take that method";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "no_such_method", detail)
}
