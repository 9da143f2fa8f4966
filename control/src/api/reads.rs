//! What changes nothing.

use axum::{
    Json,
    extract::{
        Path, Query, State,
        rejection::{PathRejection, QueryRejection},
    },
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use utoipa::{OpenApi, ToSchema};

use super::{
    ApiDocument, Shared,
    body::{RulesBody, SmallBody},
    problem::Problem,
    writes::RulesRequest,
};
use crate::{
    deploy::{DeployError, Question, Status},
    plan::Plan,
    registry::{AuditEntry, Evidence, VersionRecord},
    rules::SCHEMA,
};

/// Most versions or audit lines of one answer.
const LIST_MAX: u32 = 1_000;

/// Which version is meant.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct WhichVersion {
    /// Default: the active one.
    version: Option<u64>,
}

/// How many are wanted.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct HowMany {
    /// At most 1000; default 50.
    count: Option<u32>,
}

impl HowMany {
    fn get(&self) -> u32 {
        self.count.unwrap_or(50).min(LIST_MAX)
    }
}

/// Versions, newest first.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
pub struct VersionList {
    /// Each with its state.
    pub versions: Vec<VersionRecord>,
}

/// One version with what was seen on its way.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
pub struct VersionDetail {
    /// The version itself.
    #[serde(flatten)]
    pub record: VersionRecord,
    /// What was checked and seen.
    pub evidence: Vec<Evidence>,
}

/// Lines of the audit log, newest first.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
pub struct AuditList {
    /// The lines.
    pub entries: Vec<AuditEntry>,
}

/// Tells what applying rule files would change, and how many Units would move.
#[utoipa::path(
    post,
    path = "/v1/plan",
    request_body = RulesRequest,
    responses(
        (status = 200, description = "the difference; empty where nothing changes", body = Plan),
        (status = 422, description = "faults in the rules", body = Problem),
    )
)]
pub(super) async fn plan(
    State(shared): State<Shared>,
    RulesBody(request): RulesBody<RulesRequest>,
) -> Result<Json<Plan>, Problem> {
    let (files, unmentioned, _) = request.into_parts();
    Ok(Json(shared.deployer.plan(files, unmentioned).await?))
}

/// Tells which Rules are tried for a request, and why each decides or does not.
#[utoipa::path(
    post,
    path = "/v1/explain",
    request_body = Question,
    responses(
        (status = 200, description = "the decision and every step to it", body = serde_json::Value),
        (status = 400, description = "no such attribute, or of another type", body = Problem),
        (status = 404, description = "no such Objective", body = Problem),
    )
)]
pub(super) async fn explain(
    State(shared): State<Shared>,
    SmallBody(question): SmallBody<Question>,
) -> Result<Response, Problem> {
    Ok(Json(shared.deployer.explain(&question)?).into_response())
}

/// Tells what is active, what is on its way, and how every router is.
#[utoipa::path(
    get,
    path = "/v1/status",
    responses((status = 200, description = "how everything is", body = Status))
)]
pub(super) async fn status(State(shared): State<Shared>) -> Result<Json<Status>, Problem> {
    Ok(Json(shared.deployer.status().await?))
}

/// Lists versions.
#[utoipa::path(
    get,
    path = "/v1/versions",
    params(HowMany),
    responses((status = 200, description = "newest first", body = VersionList))
)]
pub(super) async fn versions(
    State(shared): State<Shared>,
    count: Result<Query<HowMany>, QueryRejection>,
) -> Result<Json<VersionList>, Problem> {
    let Query(count) = count.map_err(bad_query)?;
    let versions = shared.deployer.registry().versions(count.get()).await?;
    Ok(Json(VersionList { versions }))
}

/// Shows one version with its evidence.
#[utoipa::path(
    get,
    path = "/v1/versions/{version}",
    params(("version" = u64, Path, description = "its number")),
    responses(
        (status = 200, description = "the version", body = VersionDetail),
        (status = 404, description = "no such version", body = Problem),
    )
)]
pub(super) async fn version(
    State(shared): State<Shared>,
    version: Result<Path<u64>, PathRejection>,
) -> Result<Json<VersionDetail>, Problem> {
    let Path(version) = version
        .map_err(|error| Problem::new(StatusCode::BAD_REQUEST, "version", error.body_text()))?;
    let registry = shared.deployer.registry();
    let record = registry.version(version).await?;
    let evidence = registry.evidence(version).await?;
    Ok(Json(VersionDetail { record, evidence }))
}

/// Prints a version as rule files which give the same version on an empty registry.
#[utoipa::path(
    get,
    path = "/v1/export",
    params(WhichVersion),
    responses(
        (status = 200, description = "YAML documents", body = String, content_type = "application/yaml"),
        (status = 404, description = "no such version", body = Problem),
    )
)]
pub(super) async fn export(
    State(shared): State<Shared>,
    which: Result<Query<WhichVersion>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(which) = which.map_err(bad_query)?;
    let text = shared.deployer.export(which.version).await?;
    Ok(with_type(text, "application/yaml"))
}

/// Gives the signed Snapshot file of a version, while it is kept.
#[utoipa::path(
    get,
    path = "/v1/snapshot",
    params(WhichVersion),
    responses(
        (status = 200, description = "the file", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 404, description = "no such version, or its file is no longer kept", body = Problem),
    )
)]
pub(super) async fn snapshot(
    State(shared): State<Shared>,
    which: Result<Query<WhichVersion>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(which) = which.map_err(bad_query)?;
    let active = shared.deployer.active();
    let version = which
        .version
        .or_else(|| active.map(|active| active.record.version))
        .ok_or(DeployError::NothingActive)?;
    let registry = shared.deployer.registry();
    let record = registry.version(version).await?;
    let file = registry.snapshot(version).await?.ok_or_else(|| {
        let detail = format!("version {version} is {}; its file is not kept", record.state);
        Problem::new(StatusCode::NOT_FOUND, "not_kept", detail)
    })?;
    Ok(with_type(file, "application/octet-stream"))
}

/// Lists the audit log.
#[utoipa::path(
    get,
    path = "/v1/audit",
    params(HowMany),
    responses((status = 200, description = "newest first", body = AuditList))
)]
pub(super) async fn audit(
    State(shared): State<Shared>,
    count: Result<Query<HowMany>, QueryRejection>,
) -> Result<Json<AuditList>, Problem> {
    let Query(count) = count.map_err(bad_query)?;
    let entries = shared.deployer.registry().audit(count.get()).await?;
    Ok(Json(AuditList { entries }))
}

/// The JSON Schema of rule files.
#[utoipa::path(
    get,
    path = "/v1/schema.json",
    responses((status = 200, description = "JSON Schema, draft 2020-12", body = serde_json::Value))
)]
pub(super) async fn schema() -> Response {
    with_type(SCHEMA, "application/schema+json")
}

/// This document.
#[utoipa::path(
    get,
    path = "/v1/openapi.json",
    responses((status = 200, description = "OpenAPI 3.1", body = serde_json::Value))
)]
pub(super) async fn openapi() -> Response {
    Json(ApiDocument::openapi()).into_response()
}

/// The process is alive.
#[utoipa::path(get, path = "/healthz", responses((status = 200, description = "alive")))]
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// The registry answers.
#[utoipa::path(
    get,
    path = "/readyz",
    responses(
        (status = 200, description = "ready"),
        (status = 500, description = "the registry does not answer", body = Problem),
    )
)]
pub(super) async fn readyz(State(shared): State<Shared>) -> Result<&'static str, Problem> {
    shared.deployer.registry().active().await?;
    Ok("ready\n")
}

fn with_type(body: impl IntoResponse, kind: &'static str) -> Response {
    let mut response = body.into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

#[expect(clippy::needless_pass_by_value, reason = "as `map_err` gives it")]
fn bad_query(rejection: QueryRejection) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "query", rejection.body_text())
}
