//! What each path answers.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use super::metrics;
use super::request::{Method, RequestError};
use super::upstreams;
use crate::activation::Activation;
use crate::counters::{Counters, METRICS_CONTENT_TYPE};
use crate::status::{Status, now_unix_ms};
use crate::upstream::survey::Survey;

/// What the pages tell about.
#[derive(Debug)]
pub struct Sources {
    /// How the router is.
    pub status: Arc<Status>,
    /// What it counted.
    pub counters: Arc<Counters>,
    /// What is active.
    pub activation: Arc<Activation>,
    /// How the workers' endpoints are.
    pub survey: Arc<Survey>,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Page {
    status: u16,
    content_type: &'static str,
    body: String,
}

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

const INDEX: &str = "switchboard-router\n\n\
    /healthz   200 while the process lives\n\
    /readyz    200 with a snapshot and not draining, else 503 with the reason\n\
    /metrics   Prometheus text format\n\
    /snapshot  the running snapshot and the last refusal, as JSON\n\
    /upstreams shards and their endpoints: health, load and connections per worker, as JSON\n";

/// The page at a path.
pub(super) fn page(path: &str, sources: &Sources) -> Page {
    match path {
        "/" => Page::ok(TEXT, INDEX.into()),
        "/healthz" => Page::ok(TEXT, "alive\n".into()),
        "/readyz" => match sources.status.ready() {
            Ok(()) => Page::ok(TEXT, "ready\n".into()),
            Err(reason) => Page { status: 503, content_type: TEXT, body: format!("{reason}\n") },
        },
        "/metrics" => Page::ok(METRICS_CONTENT_TYPE, metrics::page(sources)),
        "/upstreams" => Page::ok(JSON, format!("{:#}\n", upstreams::page(sources))),
        "/snapshot" => Page::ok(JSON, format!("{:#}\n", snapshot(sources))),
        _ => Page { status: 404, content_type: TEXT, body: "no such page; see /\n".into() },
    }
}

fn snapshot(sources: &Sources) -> Value {
    let now = now_unix_ms();
    let active = sources.activation.published().zip(sources.status.running());
    let active = active.map(|(active, running)| {
        let (snapshot, payload) = (&active.snapshot, active.snapshot.payload());
        json!({
            "version": snapshot.version().get(),
            "digest": text(snapshot.digest()),
            "key_id": text(snapshot.key_id()),
            "group": payload.group.as_str(),
            "created_unix_ms": snapshot.created_unix_ms(),
            "age_ms": now.saturating_sub(snapshot.created_unix_ms()),
            "expires_unix_ms": payload.expires_unix_ms.as_ref().map(|time| time.to_native()),
            "expired": snapshot.is_expired(now),
            "bytes": snapshot.bytes().len(),
            "objectives": payload.objectives.len(),
            "models": payload.models.len(),
            "shards": payload.shards.len(),
            "source": running.source.label(),
            "active_since_unix_ms": running.since_unix_ms,
            "swap_micros": swaps(&sources.activation),
        })
    });
    let last_refusal = sources.status.last_refusal().map(|refusal| {
        json!({
            "version": refusal.version,
            "reason": refusal.reason,
            "detail": refusal.detail,
            "at_unix_ms": refusal.at_unix_ms,
        })
    });
    json!({
        "ready": sources.status.ready().is_ok(),
        "active": active,
        "refusals": sources.counters.refusals(),
        "last_refusal": last_refusal,
    })
}

/// Per worker; null for one that has not swapped yet.
fn swaps(activation: &Activation) -> Vec<Option<u64>> {
    let micros = |swap: std::time::Duration| u64::try_from(swap.as_micros()).unwrap_or(u64::MAX);
    activation.swap_times().map(|swap| swap.map(micros)).collect()
}

fn text(value: impl fmt::Display) -> String {
    value.to_string()
}

impl Page {
    fn ok(content_type: &'static str, body: String) -> Self {
        Self { status: 200, content_type, body }
    }

    pub(super) fn refusal(error: RequestError) -> Self {
        Self { status: error.status(), content_type: TEXT, body: format!("{error}\n") }
    }

    /// The whole answer; without its body for HEAD.
    pub(super) fn to_bytes(&self, method: Method) -> Vec<u8> {
        let Self { status, content_type, body } = self;
        let reason = match status {
            200 => "OK",
            400 => "Bad Request",
            404 => "Not Found",
            405 => "Method Not Allowed",
            431 => "Request Header Fields Too Large",
            _ => "Service Unavailable",
        };
        let allow = if *status == 405 { "Allow: GET, HEAD\r\n" } else { "" };
        let length = body.len();
        let mut bytes = format!(
            "HTTP/1.1 {status} {reason}\r\nContent-Type: {content_type}\r\n\
             Content-Length: {length}\r\nCache-Control: no-store\r\n{allow}Connection: close\r\n\r\n"
        )
        .into_bytes();
        if method == Method::Get {
            bytes.extend_from_slice(body.as_bytes());
        }
        bytes
    }
}
