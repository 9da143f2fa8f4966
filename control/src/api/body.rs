//! JSON bodies: bounded in size and time, and refused with the place of the mistake.

use std::time::Duration;

use axum::{
    body::to_bytes,
    extract::{FromRequest, Request},
    http::{StatusCode, header},
};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::{RULES_BYTES_MAX, SMALL_BYTES_MAX, problem::Problem};

/// From a request's head to its body's last byte.
const BODY_TIME_MAX: Duration = Duration::from_secs(30);

/// A body that carries rule files.
pub(super) struct RulesBody<T>(pub(super) T);

/// Any other body.
pub(super) struct SmallBody<T>(pub(super) T);

impl<S: Sync, T: DeserializeOwned> FromRequest<S> for RulesBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        read(request, RULES_BYTES_MAX).await.map(Self)
    }
}

impl<S: Sync, T: DeserializeOwned> FromRequest<S> for SmallBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        read(request, SMALL_BYTES_MAX).await.map(Self)
    }
}

async fn read<T: DeserializeOwned>(request: Request, bytes_max: usize) -> Result<T, Problem> {
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).map(str::trim);
    // A form of another site's page cannot say this without asking us first (CORS).
    if !kind.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json")) {
        let detail = "the body must be application/json";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "content_type", detail));
    }
    let too_large = || {
        let detail = format!("the body has more than {bytes_max} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail)
    };
    let declared = request.headers().get(header::CONTENT_LENGTH);
    let declared = declared.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX) > bytes_max) {
        return Err(too_large());
    }
    let bytes = match timeout(BODY_TIME_MAX, to_bytes(request.into_body(), bytes_max)).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(_)) => return Err(too_large()),
        Err(_) => {
            let detail = format!("the body did not come within {BODY_TIME_MAX:?}");
            return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "body_too_slow", detail));
        }
    };
    serde_json::from_slice(&bytes).map_err(|error| {
        let detail = format!("the body is not as the API document says: {error}");
        Problem::new(StatusCode::BAD_REQUEST, "body", detail)
    })
}
