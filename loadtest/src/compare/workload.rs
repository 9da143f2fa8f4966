//! What is sent in a comparison. Each proxy gets the same.

mod table;

use super::peer::Peer;
use crate::text::span::Span;

/// The share of users that the heavy model should answer.
pub const HEAVY_SHARE: f64 = 0.1;

/// Users by turns: enough that a split by their hash comes near its share.
pub const USERS: u32 = 10_000;

/// The Objective that no proxy knows.
pub const UNKNOWN_OBJECTIVE: &str = "NO_SUCH";

/// One kind of traffic, and who carries it.
#[derive(Clone, Debug)]
pub struct Workload {
    /// In flags, file names and links.
    pub name: &'static str,
    /// For people: what is sent, what comes back, what a proxy has to do.
    pub description: &'static str,
    /// What a proxy has to do.
    pub job: Job,
    /// The Objective that every request asks for.
    pub objective: &'static str,
    /// Where requests go.
    pub path: &'static str,
    /// What they carry.
    pub body: Body,
    /// What the model servers answer.
    pub answer: Answer,
    /// Connections of the generator.
    pub connections: u32,
    /// Whether each request opens its own.
    pub connection_use: ConnectionUse,
    /// How it is measured.
    pub load: LoadPlan,
    /// Who takes part, in the order of reports.
    pub peers: &'static [Peer],
    /// Who cannot do the job, and why: their cells stay empty.
    pub left_out: &'static [(Peer, &'static str)],
}

/// What a proxy does with each request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Job {
    /// Objective and user are header fields; then a 90/10 split by the user's hash.
    Header,
    /// Both are members of the JSON body; then the same split.
    Body,
    /// As `Header`; then three Facts of the user, looked up in Redis, are written into the body.
    Facts,
    /// As `Header`; and a tenth of the users' requests are copied, with their answers, for a candidate.
    Shadow,
    /// Passes chat requests on to one of two models. Ours does the full job of `Header`.
    Forward,
}

/// A request's JSON body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Body {
    /// An object of this size that nobody has to read.
    Bytes(usize),
    /// An object of about this size with `model` (the Objective) and `user_id`.
    Named(usize),
    /// A chat request of about this size.
    Chat {
        /// Bytes of the whole body.
        bytes: usize,
        /// Whether it asks for server-sent events.
        stream: bool,
    },
}

/// What the model servers answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answer {
    /// JSON of this size.
    Bytes(usize),
    /// A chat answer of this many tokens, whole or streamed as asked.
    Tokens(u32, Span),
}

/// Whether connections are used again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ConnectionUse {
    /// As long as they last.
    KeepAlive,
    /// Each request opens and closes its own; the proxy's side towards the models is pooled.
    NewPerRequest,
}

/// How a workload is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoadPlan {
    /// As many requests as it takes (closed loop); then half of the slowest peer's capacity for
    /// everyone (open loop).
    SaturationAndHalf,
    /// Only this many requests per second (open loop): where the answers' own pace is the limit.
    Rate(f64),
}

impl Workload {
    /// All of them, in the order of reports.
    pub fn all() -> Vec<Self> {
        table::all()
    }

    /// The full routing job on small bodies: what the first targets are about.
    pub fn small_json_by_header() -> Self {
        table::small_json_by_header()
    }

    /// The flags of `run` that say what is sent by a generator whose proxy has this `job`. `body` is
    /// the file of [`Self::body_text`], where there is one.
    pub fn flags(&self, job: Job, address: &str, body: Option<&str>) -> Vec<String> {
        let mut flags = self.flags_of_objective(job, address, self.objective);
        match (self.body, body) {
            (Body::Bytes(bytes), _) => flags.extend(owned(["--body-bytes", &bytes.to_string()])),
            (Body::Named(_) | Body::Chat { .. }, Some(file)) => {
                flags.extend(owned(["--body-file", file]));
                flags.extend(owned(["--header", "content-type: application/json"]));
            }
            (Body::Named(_) | Body::Chat { .. }, None) => {
                debug_assert!(false, "{} needs its body's file", self.name);
            }
        }
        flags.extend(owned(["--connections", &self.connections.to_string()]));
        if self.connection_use == ConnectionUse::NewPerRequest {
            flags.push("--new-connection-per-request".to_owned());
        }
        flags.extend(owned(["--expect-status", "200"]));
        flags
    }

    /// The flags of `run` for requests that name an Objective nobody has.
    pub fn flags_of_unknown(&self, job: Job, address: &str) -> Vec<String> {
        let mut flags = self.flags_of_objective(job, address, UNKNOWN_OBJECTIVE);
        let body = format!(r#"{{"model":"objective/{UNKNOWN_OBJECTIVE}","user_id":"{{user}}"}}"#);
        flags.extend(owned(["--body", &body, "--header", "content-type: application/json"]));
        flags.extend(owned(["--expect-status", "404"]));
        flags
    }

    fn flags_of_objective(&self, job: Job, address: &str, objective: &str) -> Vec<String> {
        let url = format!("http://{address}{}", self.path);
        let mut flags = owned(["--url", &url, "--users", &USERS.to_string()]);
        match job {
            Job::Header | Job::Facts | Job::Shadow | Job::Forward => {
                flags.extend(owned(["--objective", objective, "--header", "x-user-id: {user}"]));
            }
            Job::Body => {}
        }
        flags
    }

    /// The body's text where it is more than padding.
    pub fn body_text(&self) -> Option<String> {
        let (start, end, bytes) = match self.body {
            Body::Bytes(_) => return None,
            Body::Named(bytes) => {
                let objective = self.objective;
                let start = format!(
                    r#"{{"model":"objective/{objective}","user_id":"{{user}}","k":10,"padding":""#
                );
                (start, r#""}"#, bytes)
            }
            Body::Chat { bytes, stream } => {
                let start = format!(
                    r#"{{"model":"feed","stream":{stream},"messages":[{{"role":"user","content":""#
                );
                (start, r#""}]}"#, bytes)
            }
        };
        let padding = bytes.saturating_sub(start.len() + end.len());
        Some(format!("{start}{}{end}", "x".repeat(padding)))
    }
}

impl Answer {
    /// The flags of a model server that answers so.
    pub fn flags(self) -> Vec<String> {
        match self {
            Self::Bytes(bytes) => owned(["--body-bytes", &bytes.to_string()]),
            Self::Tokens(tokens, interval) => {
                owned(["--tokens", &tokens.to_string(), "--token-interval", &interval.to_string()])
            }
        }
    }
}

fn owned<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_workload_has_its_name_and_at_least_two_peers() {
        let all = Workload::all();
        let names: BTreeSet<_> = all.iter().map(|workload| workload.name).collect();
        assert_eq!(names.len(), all.len());
        for workload in &all {
            assert!(workload.peers.len() >= 2, "{}", workload.name);
            assert!(workload.peers.contains(&Peer::Router), "{}", workload.name);
            assert!(workload.peers.is_sorted(), "{}", workload.name);
            let both = workload.left_out.iter().any(|(peer, _)| workload.peers.contains(peer));
            assert!(!both, "{}: a peer takes part or is left out", workload.name);
        }
    }

    #[test]
    fn a_body_is_json_of_about_the_asked_size() {
        for workload in Workload::all() {
            let (Some(text), Body::Named(bytes) | Body::Chat { bytes, .. }) =
                (workload.body_text(), workload.body)
            else {
                continue;
            };
            assert_eq!(text.len(), bytes, "{}", workload.name);
            assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{text}");
        }
    }

    #[test]
    fn what_is_read_from_the_body_is_not_told_in_the_head() {
        let all = Workload::all();
        let by_body = all.iter().find(|workload| workload.job == Job::Body).unwrap();
        let told =
            |job| by_body.flags(job, "h:1", Some("file")).contains(&"--objective".to_owned());
        assert!(!told(Job::Body));
        assert!(told(Job::Header));
    }
}
