//! A scenario as a TOML file. docs/loadtest.md describes each key; unknown ones are refused with
//! their line.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::arguments::{SEED_DEFAULT, ScenarioArguments, ScenarioError, sized};
use super::attributes::{Attribute, Form, Per};
use super::body::{Body, Order, read_bodies};
use super::head::HeadParts;
use super::template::Template;
use super::url::Url;
use super::users::{Choice, Users};
use super::{BodyCoding, RequestTemplate, Scenario};
use crate::generator::Checks;
use crate::http1::framing::Asked;
use crate::limits::SCENARIO_BYTES_MAX;
use crate::net::address::Address;
use crate::text::span::{RunSpan, Span};

/// A scenario file as it was written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioFile {
    #[serde(default)]
    target: TargetTable,
    /// When requests are sent; each key stands for the flag of its name.
    #[serde(default)]
    pub load: LoadTable,
    #[serde(default)]
    users: UsersTable,
    #[serde(default)]
    attributes: BTreeMap<String, AttributeTable>,
    #[serde(rename = "request")]
    requests: Vec<RequestTable>,
    /// What answers must hold.
    #[serde(default)]
    pub checks: ChecksTable,
    seed: Option<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetTable {
    url: Option<String>,
    connect: Option<String>,
}

/// The table `load`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "each is the flag of its name")]
pub struct LoadTable {
    pub rate: Option<RateText>,
    pub arrivals: Option<crate::run::arguments::ArrivalsName>,
    pub duration: Option<RunSpan>,
    pub warmup: Option<Span>,
    pub requests: Option<u64>,
    pub connections: Option<u32>,
    pub threads: Option<u16>,
    pub cores: Option<String>,
    pub pipeline: Option<u16>,
    pub new_connection_per_request: Option<bool>,
    pub timeout: Option<Span>,
}

/// A rate: a number, or a text with steps.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "the names say it")]
pub enum RateText {
    Whole(u64),
    Number(f64),
    Steps(String),
}

impl RateText {
    /// As the flag would be written.
    pub fn text(&self) -> String {
        match self {
            Self::Whole(rate) => rate.to_string(),
            Self::Number(rate) => rate.to_string(),
            Self::Steps(text) => text.clone(),
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UsersTable {
    #[serde(default = "users_default")]
    count: u64,
    #[serde(default)]
    choice: Option<String>,
}

impl Default for UsersTable {
    fn default() -> Self {
        Self { count: users_default(), choice: None }
    }
}

const fn users_default() -> u64 {
    1000
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AttributeTable {
    values: ValuesTable,
    #[serde(default)]
    per: Per,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum ValuesTable {
    Evenly(Vec<String>),
    Weighted(BTreeMap<String, u32>),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestTable {
    objective: Option<String>,
    #[serde(default = "weight_default")]
    weight: u32,
    method: Option<String>,
    path: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<String>,
    body_bytes: Option<RateText>,
    bodies: Option<BodiesTable>,
    #[serde(default)]
    chunked: bool,
    checks: Option<RequestChecksTable>,
}

const fn weight_default() -> u32 {
    1
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BodiesTable {
    file: PathBuf,
    member: Option<String>,
    #[serde(default)]
    order: Order,
}

/// The table `checks`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChecksTable {
    /// Expected statuses; none: 200 to 399.
    #[serde(default)]
    pub status: Vec<u16>,
    /// Expected header fields.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Streams must end with `[DONE]`.
    #[serde(default)]
    pub stream_done: bool,
    /// Expected shares of users by Objective and Arm.
    #[serde(default)]
    pub arm_shares: BTreeMap<String, BTreeMap<String, f64>>,
    /// The smallest p-value with which shares still count as the expected ones.
    pub share_p_min: Option<f64>,
}

/// The table `request.checks`: in place of what `checks` says for all requests.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestChecksTable {
    #[serde(default)]
    status: Vec<u16>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    stream_done: bool,
}

/// Why a file is no scenario.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("cannot read it")]
    Read(#[source] io::Error),
    /// Nobody writes that much.
    #[error("it is longer than {SCENARIO_BYTES_MAX} bytes")]
    TooLong,
    /// No TOML, an unknown key, or a value of the wrong kind; the text shows the line.
    #[error("it is no scenario")]
    Toml(#[from] Box<toml::de::Error>),
    /// The body has two sources.
    #[error(
        "request {0}: `body` and `bodies` contradict each other, as do `bodies` and `body_bytes`"
    )]
    TwoBodies(usize),
    /// The drawn size would change nothing.
    #[error("request {0}: a `body` with `body_bytes` needs a place for {{padding}}")]
    NoPadding(usize),
    /// Not an Objective's token.
    #[error("request {0}: an Objective is a token such as RECOMMEND_HOME_FEED")]
    Objective(usize),
    /// Nothing would be sent.
    #[error("all requests have weight 0, or there is none")]
    NoWeight,
    /// No choice of users, or none of them.
    #[error("users.count must be at least 1, and users.choice sequence, uniform or zipf:EXPONENT")]
    Users,
    /// A request is wrong.
    #[error("request {number}")]
    Request {
        /// From 1.
        number: usize,
        /// What is wrong with it.
        #[source]
        source: Box<ScenarioError>,
    },
}

impl ScenarioFile {
    /// Reads a file.
    ///
    /// # Errors
    /// `Read`, `TooLong`, `Toml`.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let length = std::fs::metadata(path).map_err(FileError::Read)?.len();
        if length > SCENARIO_BYTES_MAX {
            return Err(FileError::TooLong);
        }
        let text = std::fs::read_to_string(path).map_err(FileError::Read)?;
        toml::from_str(&text).map_err(|error| FileError::Toml(Box::new(error)))
    }

    /// What it says is sent, and where; `path` is its own, so that files beside it are found.
    ///
    /// # Errors
    /// The first thing that is wrong, before anything is sent.
    pub fn scenario(
        &self,
        path: &Path,
        flags: &ScenarioArguments,
    ) -> Result<(Scenario, Address), ScenarioError> {
        let in_file = |source| ScenarioError::File { path: path.to_owned(), source };
        let url = flags.url.as_deref().or(self.target.url.as_deref());
        let url: Url = url.ok_or(ScenarioError::NoUrl)?.parse()?;
        let connect = flags.target.as_deref().or(self.target.connect.as_deref());
        let target = connect.unwrap_or(&url.host_and_port).parse()?;
        let attributes = self.attributes().map_err(ScenarioError::Attribute)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let requests = (1..).zip(&self.requests).map(|(number, request)| {
            request.template(number, &url, &attributes, folder).map_err(|source| match source {
                ScenarioError::File { source, .. } => in_file(source),
                source => in_file(FileError::Request { number, source: Box::new(source) }),
            })
        });
        let requests: Vec<_> = requests.collect::<Result<_, _>>()?;
        if requests.iter().all(|request| request.weight == 0) {
            return Err(in_file(FileError::NoWeight));
        }
        let users = self.users.users().ok_or_else(|| in_file(FileError::Users))?;
        let seed = flags.seed.or(self.seed).unwrap_or(SEED_DEFAULT);
        Ok((Scenario { requests, users, attributes, seed }, target))
    }

    fn attributes(&self) -> Result<Vec<Attribute>, super::attributes::AttributeError> {
        let attributes = self.attributes.iter().map(|(name, table)| match &table.values {
            ValuesTable::Evenly(values) => {
                Attribute::new(name, values.iter().map(|value| (value.as_str(), 1)), table.per)
            }
            ValuesTable::Weighted(values) => {
                let values = values.iter().map(|(value, weight)| (value.as_str(), *weight));
                Attribute::new(name, values, table.per)
            }
        });
        attributes.collect()
    }
}

impl UsersTable {
    fn users(&self) -> Option<Users> {
        let choice = match &self.choice {
            Some(text) => text.parse().ok()?,
            None => Choice::Sequence,
        };
        (self.count > 0).then_some(Users { count: self.count, choice })
    }
}

impl RequestTable {
    fn template(
        &self,
        number: usize,
        url: &Url,
        attributes: &[Attribute],
        folder: &Path,
    ) -> Result<RequestTemplate, ScenarioError> {
        let wrong = |source| ScenarioError::File { path: PathBuf::new(), source };
        let is_token =
            |token: &String| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        if self.objective.as_ref().is_some_and(|token| !is_token(token)) {
            return Err(wrong(FileError::Objective(number)));
        }
        let body = self.body(attributes, folder).map_err(|error| match error {
            BodyFault::Two => wrong(FileError::TwoBodies(number)),
            BodyFault::NoPadding => wrong(FileError::NoPadding(number)),
            BodyFault::Scenario(error) => *error,
        })?;
        let body_coding = match (&body, self.chunked) {
            (None, true) => return Err(ScenarioError::ChunkedNothing),
            (None, false) => BodyCoding::None,
            (Some(_), true) => BodyCoding::Chunked,
            (Some(_), false) => BodyCoding::Length,
        };
        let fields: Vec<_> =
            self.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let method = self.method.as_deref().unwrap_or(if body.is_some() { "POST" } else { "GET" });
        let head = HeadParts {
            method,
            url,
            path: self.path.as_deref().unwrap_or(&url.path),
            fields: &fields,
            names_objective: self.objective.is_some(),
            has_body: body.is_some(),
        };
        Ok(RequestTemplate {
            weight: self.weight,
            objective: self.objective.clone(),
            head: head.template(attributes)?,
            body: body.unwrap_or_else(|| Body::Template(Template::default())),
            body_coding,
            asked: if method == "HEAD" { Asked::HeadOnly } else { Asked::Whole },
            checks: self.checks.as_ref().map(|checks| Checks {
                statuses: checks.status.clone(),
                headers: lowercase(&checks.headers),
                stream_done: checks.stream_done,
            }),
        })
    }

    fn body(&self, attributes: &[Attribute], folder: &Path) -> Result<Option<Body>, BodyFault> {
        let text = self.body.as_ref().map(|text| Template::parse(text, attributes, Form::Json));
        let size = self.body_bytes.as_ref().map(|size| size.text().parse()).transpose();
        let size =
            size.map_err(|error| BodyFault::Scenario(Box::new(ScenarioError::Size(error))))?;
        match (text, size, &self.bodies) {
            (Some(_), _, Some(_)) | (_, Some(_), Some(_)) => Err(BodyFault::Two),
            (None, None, Some(bodies)) => {
                let path = folder.join(&bodies.file);
                let bodies_read = read_bodies(&path, bodies.member.as_deref());
                let read = bodies_read
                    .map_err(|error| BodyFault::Scenario(Box::new(ScenarioError::Bodies(error))))?;
                Ok(Some(Body::Recorded { bodies: read, order: bodies.order }))
            }
            (Some(text), Some(_), None) if !text.has_padding() => Err(BodyFault::NoPadding),
            (text, Some(size), None) => Ok(Some(sized(text, size))),
            (text, None, None) => Ok(text.map(Body::Template)),
        }
    }
}

enum BodyFault {
    Two,
    NoPadding,
    Scenario(Box<ScenarioError>),
}

/// Names in lower case, as they are compared.
pub(crate) fn lowercase(headers: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let lower = |(name, value): (&String, &String)| (name.to_ascii_lowercase(), value.clone());
    headers.iter().map(lower).collect()
}

#[cfg(test)]
mod tests;
