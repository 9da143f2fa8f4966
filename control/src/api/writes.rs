//! What changes something.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    Shared,
    body::{RulesBody, SmallBody},
    problem::Problem,
};
use crate::{
    deploy::{Ended, Report, Wait},
    rules::{RuleFile, Unmentioned},
};

/// Longest name of an actor in the audit log.
const ACTOR_CHARACTERS_MAX: usize = 128;

/// Rule files to plan or apply.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RulesRequest {
    /// All of them together; at most 16 MiB.
    pub files: Vec<RulesFile>,
    /// Whether objects that the files do not mention are removed.
    #[serde(default)]
    pub prune: bool,
    /// Whether to answer only once the change is active or has failed. A plan ends at once.
    #[serde(default = "yes")]
    pub wait: bool,
}

/// One rule file.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RulesFile {
    /// As the caller knows it; errors begin with it.
    pub name: String,
    /// YAML.
    pub text: String,
}

/// Which version to restore.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RollbackRequest {
    /// `None`: the one that was active before with other content.
    #[serde(default)]
    pub version: Option<u64>,
    /// Whether to answer only once the change is active or has failed.
    #[serde(default = "yes")]
    pub wait: bool,
}

const fn yes() -> bool {
    true
}

impl RulesRequest {
    pub(super) fn into_parts(self) -> (Vec<RuleFile>, Unmentioned, Wait) {
        let files = self.files.into_iter();
        let files = files.map(|file| RuleFile { name: file.name, text: file.text }).collect();
        let unmentioned = if self.prune { Unmentioned::Prune } else { Unmentioned::Keep };
        let wait = if self.wait { Wait::ForEnd } else { Wait::ForVersion };
        (files, unmentioned, wait)
    }
}

/// Applies rule files: validates, stores, gates, signs and activates them as one new version.
#[utoipa::path(
    post,
    path = "/v1/apply",
    request_body = RulesRequest,
    security(("token" = [])),
    responses(
        (status = 200, description = "active, or nothing to change", body = Report),
        (status = 202, description = "assigned; it goes on", body = Report),
        (status = 401, description = "no token, or a wrong one", body = Problem),
        (status = 409, description = "a router refused it", body = Problem),
        (status = 422, description = "faults in the rules, or the gate did not let it leave", body = Problem),
        (status = 503, description = "too many changes wait", body = Problem),
    )
)]
pub(super) async fn apply(
    State(shared): State<Shared>,
    headers: HeaderMap,
    RulesBody(request): RulesBody<RulesRequest>,
) -> Result<Response, Problem> {
    let (files, unmentioned, wait) = request.into_parts();
    let report = shared.deployer.apply(files, unmentioned, actor(&headers), wait).await?;
    answer(report)
}

/// Makes an older version's content a new version.
#[utoipa::path(
    post,
    path = "/v1/rollback",
    request_body = RollbackRequest,
    security(("token" = [])),
    responses(
        (status = 200, description = "active, or nothing to change", body = Report),
        (status = 202, description = "assigned; it goes on", body = Report),
        (status = 401, description = "no token, or a wrong one", body = Problem),
        (status = 404, description = "no such version", body = Problem),
        (status = 409, description = "nothing to go back to, or a router refused it", body = Problem),
        (status = 422, description = "the gate did not let it leave", body = Problem),
    )
)]
pub(super) async fn rollback(
    State(shared): State<Shared>,
    headers: HeaderMap,
    SmallBody(request): SmallBody<RollbackRequest>,
) -> Result<Response, Problem> {
    let deployer = &shared.deployer;
    let wait = if request.wait { Wait::ForEnd } else { Wait::ForVersion };
    let report = deployer.rollback(request.version, actor(&headers), wait).await?;
    answer(report)
}

fn answer(report: Report) -> Result<Response, Problem> {
    match report.ended {
        Ended::Unchanged | Ended::Active => Ok(Json(report).into_response()),
        Ended::Pending => Ok((StatusCode::ACCEPTED, Json(report)).into_response()),
        Ended::FailedValidation => {
            Err(Problem::failed(StatusCode::UNPROCESSABLE_ENTITY, "validation", report))
        }
        Ended::FailedRefused => Err(Problem::failed(StatusCode::CONFLICT, "refused", report)),
    }
}

/// Who the caller says it is. The token proves that it may; the name is for people.
fn actor(headers: &HeaderMap) -> String {
    let named = headers.get("x-switchboard-actor").and_then(|name| name.to_str().ok());
    let named = named.map(str::trim).filter(|name| !name.is_empty()).unwrap_or("token");
    named.chars().filter(|character| !character.is_control()).take(ACTOR_CHARACTERS_MAX).collect()
}
