//! A scenario as flags: one kind of request per Objective.

use std::io;
use std::path::PathBuf;
use std::str::FromStr;

use super::template::Template;
use super::url::{Url, UrlError};
use super::users::{Choice, Users};
use super::{BodyCoding, RequestTemplate, Scenario};
use crate::http1::framing::Asked;
use crate::limits::REQUEST_BODY_BYTES_MAX;
use crate::net::address::{Address, AddressError};

/// What is sent, and where.
#[derive(Clone, Debug, clap::Args)]
pub struct ScenarioArguments {
    /// Where to send requests; the path may hold {user}, {n} and {objective}
    #[arg(long)]
    url: String,
    /// Connect here instead of the URL's host: host:port or unix:/path
    #[arg(long, value_name = "ADDRESS")]
    target: Option<String>,
    /// Request method; default: POST with a body, else GET
    #[arg(long, short = 'X')]
    method: Option<String>,
    /// A header field, as `name: value`; the value may hold {user}, {n} and {objective}
    #[arg(long = "header", short = 'H', value_name = "FIELD")]
    headers: Vec<String>,
    /// Ask for this Objective in x-switchboard-objective; TOKEN=WEIGHT and repeats make a mix
    #[arg(long = "objective", value_name = "TOKEN[=WEIGHT]")]
    objectives: Vec<WeightedObjective>,
    /// The body; may hold {user}, {n} and {objective}
    #[arg(long, short = 'd', group = "body_source", value_name = "TEXT")]
    body: Option<String>,
    /// Read the body from a file; UTF-8 text may hold {user}, {n} and {objective}
    #[arg(long, group = "body_source", value_name = "FILE")]
    body_file: Option<PathBuf>,
    /// A JSON body of N bytes
    #[arg(long, group = "body_source", value_name = "N")]
    body_bytes: Option<usize>,
    /// Send the body with chunked transfer coding
    #[arg(long)]
    chunked: bool,
    /// How many users {user} is drawn from: u0, u1 …
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    users: u64,
    /// Who comes next: sequence, uniform or zipf:EXPONENT
    #[arg(long, default_value = "sequence", value_name = "CHOICE")]
    user_choice: Choice,
    /// Makes the draws repeatable
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// `TOKEN` or `TOKEN=WEIGHT`.
#[derive(Clone, Debug, Eq, PartialEq)]
struct WeightedObjective {
    token: String,
    weight: u32,
}

impl FromStr for WeightedObjective {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (token, weight) = match text.split_once('=') {
            None => (text, 1),
            Some((token, weight)) => (
                token,
                weight.parse().map_err(|_| format!("`{weight}` is no weight (0..=4294967295)"))?,
            ),
        };
        let is_token = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_token {
            return Err("an Objective is a token such as RECOMMEND_HOME_FEED".to_owned());
        }
        Ok(Self { token: token.to_owned(), weight })
    }
}

/// Why the flags make no scenario.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// See the cause.
    #[error("--url")]
    Url(#[from] UrlError),
    /// See the cause.
    #[error("the target")]
    Target(#[from] AddressError),
    /// Would break the head.
    #[error("`{0}` is no header field; write `name: value` on one line")]
    Header(String),
    /// Would break the request line.
    #[error("`{0}` is no method")]
    Method(String),
    /// The body's length is told by the generator itself.
    #[error("`{0}` is set by the generator; see --chunked")]
    OwnHeader(String),
    /// Contradictory.
    #[error("--chunked needs a body")]
    ChunkedNothing,
    /// The body cannot be had.
    #[error("cannot read the body from {path}")]
    BodyFile {
        /// The file.
        path: PathBuf,
        /// What the host says.
        #[source]
        source: io::Error,
    },
    /// Would use up the memory.
    #[error("a body of {0} bytes is over {REQUEST_BODY_BYTES_MAX}")]
    BodyTooLong(usize),
    /// Nothing would be sent.
    #[error("all Objectives have weight 0")]
    NoWeight,
}

impl ScenarioArguments {
    /// The scenario and the address that it is sent to.
    ///
    /// # Errors
    /// The first flag that is wrong, before anything is sent.
    pub fn scenario(&self) -> Result<(Scenario, Address), ScenarioError> {
        let url: Url = self.url.parse()?;
        let target = self.target.as_deref().unwrap_or(&url.host_and_port).parse()?;
        let body = self.body_template()?;
        let body_coding = match (&body, self.chunked) {
            (None, true) => return Err(ScenarioError::ChunkedNothing),
            (None, false) => BodyCoding::None,
            (Some(_), true) => BodyCoding::Chunked,
            (Some(_), false) => BodyCoding::Length,
        };
        let body = body.unwrap_or_default();
        let head = self.head(&url, body_coding)?;
        let template = RequestTemplate {
            weight: 1,
            objective: None,
            head: Template::parse(&head),
            body,
            body_coding,
            asked: match self.method.as_deref() {
                Some("HEAD") => Asked::HeadOnly,
                _ => Asked::Whole,
            },
        };
        let of_objective = |objective: &WeightedObjective| RequestTemplate {
            weight: objective.weight,
            objective: Some(objective.token.clone()),
            head: Template::parse(&format!("{head}x-switchboard-objective: {{objective}}\r\n")),
            ..template.clone()
        };
        let requests: Vec<_> = match self.objectives.as_slice() {
            [] => vec![template],
            objectives => objectives.iter().map(of_objective).collect(),
        };
        if requests.iter().all(|request| request.weight == 0) {
            return Err(ScenarioError::NoWeight);
        }
        let users = Users { count: self.users, choice: self.user_choice };
        Ok((Scenario { requests, users, seed: self.seed }, target))
    }

    fn body_template(&self) -> Result<Option<Template>, ScenarioError> {
        let bytes = match (&self.body, &self.body_file, self.body_bytes) {
            (Some(text), ..) => text.clone().into_bytes(),
            (_, Some(path), _) => {
                let failed = |source| ScenarioError::BodyFile { path: path.clone(), source };
                let length = std::fs::metadata(path).map_err(failed)?.len();
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                if length > REQUEST_BODY_BYTES_MAX {
                    return Err(ScenarioError::BodyTooLong(length));
                }
                std::fs::read(path).map_err(failed)?
            }
            (.., Some(bytes)) if bytes > REQUEST_BODY_BYTES_MAX => {
                return Err(ScenarioError::BodyTooLong(bytes));
            }
            (.., Some(bytes)) => json_of_size(bytes),
            _ => return Ok(None),
        };
        Ok(Some(match String::from_utf8(bytes) {
            Ok(text) => Template::parse(&text),
            Err(error) => Template::literal(error.into_bytes()),
        }))
    }

    fn head(&self, url: &Url, body_coding: BodyCoding) -> Result<String, ScenarioError> {
        let has_body = body_coding != BodyCoding::None;
        let method = self.method.as_deref().unwrap_or(if has_body { "POST" } else { "GET" });
        if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return Err(ScenarioError::Method(method.to_owned()));
        }
        let mut head = format!("{method} {} HTTP/1.1\r\n", url.path);
        let mut named = Vec::new();
        for field in &self.headers {
            let refused = || ScenarioError::Header(field.clone());
            let (name, value) = field.split_once(':').ok_or_else(refused)?;
            let one_line = !value.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0));
            let is_token =
                name.bytes().all(|byte| byte.is_ascii_graphic() && !b"{}()\"".contains(&byte));
            if name.is_empty() || !is_token || !one_line {
                return Err(refused());
            }
            let name = name.to_ascii_lowercase();
            if name == "content-length" || name == "transfer-encoding" {
                return Err(ScenarioError::OwnHeader(name));
            }
            head.push_str(&format!("{name}: {}\r\n", value.trim()));
            named.push(name);
        }
        let is_missing = |name: &str| !named.iter().any(|given| given == name);
        if is_missing("host") {
            head.push_str(&format!("host: {}\r\n", url.authority));
        }
        if has_body && is_missing("content-type") {
            head.push_str("content-type: application/json\r\n");
        }
        Ok(head)
    }
}

/// A JSON object of `bytes` bytes; the smallest is `{}`.
fn json_of_size(bytes: usize) -> Vec<u8> {
    const FRAME: &str = r#"{"padding":""}"#;
    match bytes.checked_sub(FRAME.len()) {
        Some(padding) => format!(r#"{{"padding":"{}"}}"#, "x".repeat(padding)).into_bytes(),
        None => format!("{:<bytes$}", "{}").into_bytes(),
    }
}

#[cfg(test)]
mod tests;
