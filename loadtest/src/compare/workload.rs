//! What is sent in a comparison. Each proxy gets the same.

use super::measure::Phase;

/// A job that every proxy can do.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Names the results' folder.
    pub name: &'static str,
    /// For people.
    pub description: &'static str,
    /// The Objective that every request asks for.
    pub objective: &'static str,
    /// Bytes of a request's body.
    pub request_bytes: u32,
    /// Bytes of an answer's body.
    pub answer_bytes: u32,
    /// Users by turns.
    pub users: u32,
    /// Which share of them the heavy model should answer.
    pub heavy_share: f64,
}

impl Workload {
    /// The full routing job on small bodies.
    pub fn small_json_by_header() -> Self {
        Self {
            name: "small-json-by-header",
            description: "POST of 600 B JSON, 1 KiB answer; the Objective from a header, \
                          then a 90/10 split by a hash of the user header",
            objective: "RECOMMEND_HOME_FEED",
            request_bytes: 600,
            answer_bytes: 1024,
            users: 10_000,
            heavy_share: 0.1,
        }
    }

    /// The flags of `run` for this workload.
    pub fn flags(&self, address: &str, phase: Phase) -> Vec<String> {
        let mut flags = vec![
            "--url".to_owned(),
            format!("http://{address}/v2/models/feed/answer"),
            "--objective".to_owned(),
            self.objective.to_owned(),
            "--header".to_owned(),
            "x-user-id: {user}".to_owned(),
            "--body-bytes".to_owned(),
            self.request_bytes.to_string(),
            "--users".to_owned(),
            self.users.to_string(),
            "--expect-status".to_owned(),
            "200".to_owned(),
        ];
        if let Phase::Rate(rate) = phase {
            flags.extend(["--rate".to_owned(), rate.to_string()]);
        }
        flags
    }
}
