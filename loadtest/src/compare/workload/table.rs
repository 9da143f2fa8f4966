//! The workloads, as data. To add one: an entry here, and what it needs in `site.rs`.

use super::{Answer, Body, ConnectionUse, Job, LoadPlan, Workload};
use crate::compare::peer::Peer;
use crate::text::span::Span;

const NO_BODY: (Peer, &str) =
    (Peer::Nginx, "nginx routes by the body only in a script (njs), which would cost more");

/// Everything that routes by a header and splits by a hash without a script.
const WEB: &[Peer] = &[Peer::Direct, Peer::Nginx, Peer::Haproxy, Peer::Envoy, Peer::Router];

pub(super) fn all() -> Vec<Workload> {
    let small = small_json_by_header();
    let [facts, facts_alone, facts_crowded, large_facts, shadow] = of_ours_alone(&small);
    vec![
        small.clone(),
        small_json_by_body(&small),
        Workload {
            name: "body-64k",
            description: "POST of 64 KiB JSON, 1 KiB answer; the Objective from a header, then a 90/10 \
                          split by a hash of the user header",
            body: Body::Bytes(64 * 1024),
            peers: WEB,
            ..small.clone()
        },
        facts,
        facts_alone,
        facts_crowded,
        large_facts,
        shadow,
        Workload {
            name: "sse-200-tokens",
            description: "Chat request of 600 B, answered by 200 server-sent events, one each 2 ms; the \
                          Objective from a header, then a 90/10 split by a hash of the user header. \
                          Requests come at a steady rate; the answers' own pace is the limit",
            path: "/v1/chat/completions",
            body: Body::Chat { bytes: 600, stream: true },
            answer: Answer::Tokens(200, Span::from_millis(2)),
            connections: 256,
            load: LoadPlan::Rate(60.0),
            peers: WEB,
            ..small.clone()
        },
        Workload {
            name: "connections-1000",
            description: "As small-json-by-header, over 1 000 keep-alive connections",
            connections: 1000,
            peers: WEB,
            ..small.clone()
        },
        Workload {
            name: "new-connections",
            description: "As small-json-by-header, each request over a connection of its own",
            connection_use: ConnectionUse::NewPerRequest,
            peers: WEB,
            ..small.clone()
        },
        Workload {
            name: "chat",
            description: "Chat request of 600 B, answer of 1 KiB. The routers of model servers pass it on to \
                          a model in turn (LiteLLM: by weight); the router does its full job, with the \
                          Objective from a header and a 90/10 split by a hash of the user header",
            job: Job::Forward,
            path: "/v1/chat/completions",
            body: Body::Chat { bytes: 600, stream: false },
            answer: Answer::Tokens(150, Span::from_millis(0)),
            peers: &[
                Peer::Direct,
                Peer::SglangRouter,
                Peer::VllmRouter,
                Peer::Litellm,
                Peer::Router,
            ],
            ..small
        },
    ]
}

/// What no other proxy does, held against the router without it.
fn of_ours_alone(small: &Workload) -> [Workload; 5] {
    let facts = Workload {
        name: "facts-1k",
        description: "As small-json-by-header; then three Facts of the user, from Redis, are written into \
                      the body. No other proxy has this job; `router-by-header` is the router without it",
        job: Job::Facts,
        peers: &[Peer::Direct, Peer::RouterByHeader, Peer::Router],
        left_out: &[],
        ..small.clone()
    };
    [
        facts.clone(),
        Workload {
            name: "facts-1-connection",
            description: "As facts-1k, over one connection: each lookup goes alone",
            connections: 1,
            ..facts.clone()
        },
        Workload {
            name: "facts-512-connections",
            description: "As facts-1k, over 512 connections: many lookups share one pipeline",
            connections: 512,
            ..facts.clone()
        },
        Workload {
            name: "facts-64k",
            description: "As facts-1k, with a body of 64 KiB",
            body: Body::Bytes(64 * 1024),
            ..facts
        },
        Workload {
            name: "shadow-10",
            description: "As small-json-by-header; and the requests of a tenth of the users are copied with their \
                          answers, and written to the spool by the shadow core, which shares the worker's core \
                          here. No other proxy has this job; `router-by-header` is the router without it",
            job: Job::Shadow,
            peers: &[Peer::Direct, Peer::RouterByHeader, Peer::Router],
            left_out: &[],
            ..small.clone()
        },
    ]
}

pub(super) fn small_json_by_header() -> Workload {
    Workload {
        name: "small-json-by-header",
        description: "POST of 600 B JSON, 1 KiB answer; the Objective from a header, then a 90/10 split by \
                      a hash of the user header",
        job: Job::Header,
        objective: "RECOMMEND_HOME_FEED",
        path: "/v2/models/feed/answer",
        body: Body::Bytes(600),
        answer: Answer::Bytes(1024),
        connections: 64,
        connection_use: ConnectionUse::KeepAlive,
        load: LoadPlan::SaturationAndHalf,
        peers: &[Peer::Direct, Peer::Floor, Peer::Nginx, Peer::Haproxy, Peer::Envoy, Peer::Router],
        left_out: &[],
    }
}

fn small_json_by_body(small: &Workload) -> Workload {
    Workload {
        name: "small-json-by-body",
        description: "POST of 2 KiB JSON, 1 KiB answer; Objective and user are members of the body, then the \
                      90/10 split by the user's hash. The router also writes the model's name into the body. \
                      `router-by-header` gets the same bodies with both in header fields",
        job: Job::Body,
        body: Body::Named(2048),
        peers: &[Peer::Direct, Peer::Haproxy, Peer::Envoy, Peer::RouterByHeader, Peer::Router],
        left_out: &[NO_BODY],
        ..small.clone()
    }
}
