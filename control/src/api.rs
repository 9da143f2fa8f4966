//! The HTTP API of `serve`: everything that the command line does goes through it.
//!
//! Writes need the bearer token. Reads need it too, except from this host: over loopback, and with a
//! `Host` that names loopback, so that a web page cannot read them through a browser.

mod access;
mod body;
mod listen;
mod metrics;
mod problem;
mod reads;
mod writes;

use axum::{
    Router,
    middleware::from_fn_with_state,
    routing::{get, post},
};
use utoipa::OpenApi;

use self::access::BearerScheme;
pub(crate) use self::{access::read_text, problem::chain};
pub use self::{
    access::{Token, TokenError},
    listen::{ApiListener, ListenError},
    problem::Problem,
    reads::{AuditList, VersionDetail, VersionList},
    writes::{RollbackRequest, RulesFile, RulesRequest},
};
use crate::deploy::Deployer;

/// Largest body of a request that carries rule files: 16 MiB of them, escaped in JSON.
const RULES_BYTES_MAX: usize = 34 << 20;
/// Largest body of any other request.
const SMALL_BYTES_MAX: usize = 64 << 10;

/// What every handler gets.
#[derive(Clone, Debug)]
struct Shared {
    deployer: Deployer,
    token: Token,
}

/// The document that describes this API.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Switchboard control API",
        description = "Rules in, signed Snapshots out. Errors are application/problem+json."
    ),
    paths(
        writes::apply,
        writes::rollback,
        reads::plan,
        reads::explain,
        reads::status,
        reads::versions,
        reads::version,
        reads::export,
        reads::snapshot,
        reads::audit,
        reads::schema,
        reads::openapi,
        reads::healthz,
        reads::readyz,
        metrics::metrics,
    ),
    components(schemas(Problem)),
    modifiers(&BearerScheme)
)]
pub struct ApiDocument;

/// The API over a deployer.
pub fn router(deployer: Deployer, token: Token) -> Router {
    let shared = Shared { deployer, token };
    let writes = Router::new()
        .route("/v1/apply", post(writes::apply))
        .route("/v1/rollback", post(writes::rollback))
        .route_layer(from_fn_with_state(shared.clone(), access::for_writes));
    let reads = Router::new()
        .route("/v1/plan", post(reads::plan))
        .route("/v1/explain", post(reads::explain))
        .route("/v1/status", get(reads::status))
        .route("/v1/versions", get(reads::versions))
        .route("/v1/versions/{version}", get(reads::version))
        .route("/v1/export", get(reads::export))
        .route("/v1/snapshot", get(reads::snapshot))
        .route("/v1/audit", get(reads::audit))
        .route("/metrics", get(metrics::metrics))
        .route_layer(from_fn_with_state(shared.clone(), access::for_reads));
    let open = Router::new()
        .route("/v1/schema.json", get(reads::schema))
        .route("/v1/openapi.json", get(reads::openapi))
        .route("/healthz", get(reads::healthz))
        .route("/readyz", get(reads::readyz));
    writes
        .merge(reads)
        .merge(open)
        .fallback(problem::no_such_path)
        .method_not_allowed_fallback(problem::no_such_method)
        .with_state(shared)
}
