//! `/metrics` in Prometheus' text form. Every label comes from a closed set.

use axum::{
    extract::State,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};

use super::{Shared, problem::Problem};
use crate::{broadcaster::Standing, deploy::Status};

/// Sums and states of the control plane.
#[utoipa::path(
    get,
    path = "/metrics",
    responses((status = 200, description = "Prometheus text", body = String))
)]
pub(super) async fn metrics(State(shared): State<Shared>) -> Result<Response, Problem> {
    let status = shared.deployer.status().await?;
    let mut response = text(&status).into_response();
    let kind = HeaderValue::from_static("text/plain; version=0.0.4");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

fn text(status: &Status) -> String {
    let mut text = String::new();
    let mut gauge = |name: &str, help: &str, values: &[(String, u64)]| {
        text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} gauge\n"));
        for (labels, value) in values {
            text.push_str(&format!("{name}{labels} {value}\n"));
        }
    };
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    let active = status.active.as_ref().map_or(0, |active| active.version);
    gauge(
        "switchboard_control_active_version",
        "The version that routers are to evaluate; 0: none.",
        &[(String::new(), active)],
    );
    gauge(
        "switchboard_control_objectives",
        "Objectives of the active version.",
        &[(String::new(), count(status.objectives))],
    );
    gauge(
        "switchboard_control_pending_changes",
        "Versions on their way.",
        &[(String::new(), count(status.pending.len()))],
    );
    let standings: Vec<_> = Standing::ALL
        .into_iter()
        .map(|standing| {
            let routers = status.routers.iter().filter(|router| router.standing == standing);
            (format!("{{standing=\"{}\"}}", standing.label()), count(routers.count()))
        })
        .collect();
    gauge(
        "switchboard_control_routers",
        "Routers by how they stand to the active version.",
        &standings,
    );
    text
}
