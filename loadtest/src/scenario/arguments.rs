//! A scenario as flags: one kind of request per Objective.

use std::io;
use std::path::PathBuf;
use std::str::FromStr;

use super::attributes::{AttributeError, Form};
use super::body::{BodiesError, Body};
use super::file::FileError;
use super::head::{HeadError, HeadParts};
use super::size::{Size, SizeError};
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
    #[arg(long, required_unless_present = "scenario")]
    pub url: Option<String>,
    /// Read requests, users, load and checks from a TOML file (docs/loadtest.md); flags that are
    /// given too take precedence, except for those that describe requests, which are refused
    #[arg(long, value_name = "FILE", conflicts_with_all = ["method", "headers", "objectives",
          "body", "body_file", "body_bytes", "chunked", "users", "user_choice"])]
    pub scenario: Option<PathBuf>,
    /// Connect here instead of the URL's host: host:port or unix:/path
    #[arg(long, value_name = "ADDRESS")]
    pub target: Option<String>,
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
    /// A JSON body of this size: N, uniform:MIN,MAX, lognormal:MEDIAN,SIGMA or choice:N=WEIGHT,…
    #[arg(long, group = "body_source", value_name = "SIZE")]
    body_bytes: Option<String>,
    /// Send the body with chunked transfer coding
    #[arg(long)]
    chunked: bool,
    /// How many users {user} is drawn from: u0, u1 …
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    users: u64,
    /// Who comes next: sequence, uniform or zipf:EXPONENT
    #[arg(long, default_value = "sequence", value_name = "CHOICE")]
    user_choice: Choice,
    /// Makes the draws repeatable; default: 1
    #[arg(long)]
    pub seed: Option<u64>,
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
    /// See the cause.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// See the cause.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// See the cause.
    #[error(transparent)]
    Attribute(#[from] AttributeError),
    /// See the cause.
    #[error("the recorded bodies")]
    Bodies(#[from] BodiesError),
    /// The scenario file cannot be had, or is none.
    #[error("the scenario {path}")]
    File {
        /// The file.
        path: PathBuf,
        /// See the cause.
        #[source]
        source: FileError,
    },
    /// Neither flag nor file names it.
    #[error("there is no --url, and the scenario has no `target.url`")]
    NoUrl,
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
        let url: Url = self.url.as_deref().ok_or(ScenarioError::NoUrl)?.parse()?;
        let target = self.target.as_deref().unwrap_or(&url.host_and_port).parse()?;
        let body = self.body_template()?;
        let body_coding = match (&body, self.chunked) {
            (None, true) => return Err(ScenarioError::ChunkedNothing),
            (None, false) => BodyCoding::None,
            (Some(_), true) => BodyCoding::Chunked,
            (Some(_), false) => BodyCoding::Length,
        };
        let body = body.unwrap_or_else(|| Body::Template(Template::default()));
        let has_body = body_coding != BodyCoding::None;
        let method = self.method.as_deref().unwrap_or(if has_body { "POST" } else { "GET" });
        let head = |names_objective| {
            let (path, fields) = (url.path.as_str(), self.headers.as_slice());
            HeadParts { method, url: &url, path, fields, names_objective, has_body }.template(&[])
        };
        let objective_head = head(true)?;
        let template = RequestTemplate {
            weight: 1,
            objective: None,
            head: head(false)?,
            body,
            body_coding,
            asked: match self.method.as_deref() {
                Some("HEAD") => Asked::HeadOnly,
                _ => Asked::Whole,
            },
            checks: None,
        };
        let of_objective = |objective: &WeightedObjective| RequestTemplate {
            weight: objective.weight,
            objective: Some(objective.token.clone()),
            head: objective_head.clone(),
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
        let seed = self.seed.unwrap_or(SEED_DEFAULT);
        Ok((Scenario { requests, users, attributes: Vec::new(), seed }, target))
    }

    fn body_template(&self) -> Result<Option<Body>, ScenarioError> {
        let bytes = match (&self.body, &self.body_file, self.body_bytes.as_deref()) {
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
            (.., Some(size)) => return Ok(Some(sized(None, size.parse()?))),
            _ => return Ok(None),
        };
        Ok(Some(Body::Template(match String::from_utf8(bytes) {
            Ok(text) => Template::parse(&text, &[], Form::Json),
            Err(error) => Template::literal(error.into_bytes()),
        })))
    }
}

/// The seed where none was given.
pub(super) const SEED_DEFAULT: u64 = 1;

/// A body of this size; without a text of its own it is a JSON object.
pub(super) fn sized(template: Option<Template>, size: Size) -> Body {
    match (template, size) {
        (None, Size::Fixed(bytes)) => Body::Template(Template::literal(json_of_size(bytes))),
        (template, size) => {
            let json = || Template::parse(r#"{"padding":"{padding}"}"#, &[], Form::Json);
            Body::Sized { template: template.unwrap_or_else(json), size }
        }
    }
}

/// A JSON object of `bytes` bytes; the smallest is `{}`.
pub(super) fn json_of_size(bytes: usize) -> Vec<u8> {
    const FRAME: &str = r#"{"padding":""}"#;
    match bytes.checked_sub(FRAME.len()) {
        Some(padding) => format!(r#"{{"padding":"{}"}}"#, "x".repeat(padding)).into_bytes(),
        None => format!("{:<bytes$}", "{}").into_bytes(),
    }
}

#[cfg(test)]
mod tests;
