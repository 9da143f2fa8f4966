//! The static settings: `router.toml`, and the flags that stand in for it.
//!
//! All of it is read and checked before anything is bound. An unknown key, a value of the wrong type
//! and a contradiction are refused, with file, line and column.

use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

mod check;
mod facts;
mod listen;
mod read;
pub mod reference;
mod shadow;
pub mod units;
mod workers;

pub use check::Refusal;
pub use facts::{BudgetFrom, Facts, FactsSource, ReadFrom};
pub use listen::{Listen, ListenError};
pub use read::{ConfigError, Place};
pub use shadow::{Compression, ExposureMode, KafkaSettings, ShadowSettings};

use crate::args::Overrides;

/// Where the settings are read from if no flag says otherwise.
pub const DEFAULT_FILE: &str = "/etc/switchboard/router.toml";

/// Every setting of one router. Field names are the keys of `router.toml`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Snapshots for another group of routers are refused.
    pub group: String,
    /// Holds the last good Snapshot; created with mode 0700 if missing.
    pub state_dir: PathBuf,
    /// Public keys whose Snapshots are accepted: files, or keys as `keygen` prints them.
    pub trusted_keys: Vec<String>,
    /// Where clients connect.
    pub listen: Vec<Listen>,
    /// The admin listener.
    pub admin: Admin,
    /// Which cores do what.
    pub cores: Cores,
    /// The Unix socket that the control plane pushes to.
    pub feed: Feed,
    /// What one client can cost.
    pub limits: Limits,
    /// Separate clocks of a request; an Objective or an Arm may override most of them.
    pub clocks: Clocks,
    /// The pools of connections to the models.
    pub upstream: Upstream,
    /// Where Facts are looked up.
    pub facts: Facts,
    /// What the router adds to responses.
    pub response_headers: ResponseHeaders,
    /// Copies of requests, and Exposures.
    pub shadow: ShadowSettings,
    /// Where they go.
    pub kafka: KafkaSettings,
    /// How the router stops.
    pub drain: Drain,
}

/// The admin listener: health, readiness, metrics, the running Snapshot.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Admin {
    /// Its address. It has no authentication: keep it off public interfaces.
    pub listen: std::net::SocketAddr,
}

/// Which cores do what.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cores {
    /// Network threads.
    pub workers: Workers,
    /// Whether each thread stays on its core.
    pub pin: bool,
    /// The cores to use, in this order; empty: all that the process may use.
    pub core_list: Vec<u16>,
}

/// How many network threads there are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Workers {
    /// One on each usable core but one, at least one.
    Auto,
    /// As many, at most `WORKERS_MAX`.
    Count(NonZeroU16),
}

/// The Unix socket that the control plane pushes to.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Feed {
    /// What the router calls itself towards the control plane.
    pub name: String,
    /// Its path; the folder is created with mode 0700 if missing.
    pub socket: PathBuf,
    /// Users that may push besides root and the router's own. If there are any, the socket is open to
    /// all in the file system (mode 0666), and the peer's credentials alone decide.
    pub allowed_uids: Vec<u32>,
}

/// What one client can cost. Sizes in bytes.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Request line and header fields together; more is answered with 431.
    #[serde(with = "units::size")]
    pub head_bytes_max: usize,
    /// The request target alone; more is answered with 414.
    #[serde(with = "units::size")]
    pub target_bytes_max: usize,
    /// A request body, streamed or not; more is answered with 413. An Objective may lower or raise it.
    #[serde(with = "units::size")]
    pub body_bytes_max: u64,
    /// A request body that has to be held in memory to be read or edited; more is answered with 413.
    #[serde(with = "units::size")]
    pub body_buffer_bytes_max: u64,
    /// Client connections of one worker; further ones wait in the kernel's accept queue.
    pub connections_max: u32,
}

/// Separate clocks of a request: one shared clock would kill slow-thinking models.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Clocks {
    /// From a request's first byte to the end of its head; not reset by each byte.
    #[serde(with = "units::duration")]
    pub head: Duration,
    /// Longest gap between two pieces of the request body.
    #[serde(with = "units::duration")]
    pub body_idle: Duration,
    /// Connecting to one endpoint.
    #[serde(with = "units::duration")]
    pub connect: Duration,
    /// From the request's last byte to the response's first.
    #[serde(with = "units::duration")]
    pub first_byte: Duration,
    /// Longest gap between two pieces of the response, in either direction.
    #[serde(with = "units::duration")]
    pub response_idle: Duration,
    /// From the head to the response's last byte; `None`: unbounded, as streams need.
    #[serde(with = "units::optional_duration")]
    pub total: Option<Duration>,
    /// How long a client's connection may wait for its next request.
    #[serde(with = "units::duration")]
    pub keep_alive_idle: Duration,
}

/// The pools of connections to the models; each worker has its own.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Upstream {
    /// Idle connections that one worker keeps per endpoint.
    pub idle_per_endpoint_max: u32,
    /// How long an idle connection is kept; below the servers' own limit, or requests meet a closing one.
    #[serde(with = "units::duration")]
    pub idle: Duration,
    /// A connection older than this is closed after its request.
    #[serde(with = "units::duration")]
    pub age: Duration,
}

/// What the router adds to responses.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResponseHeaders {
    /// `x-switchboard-objective`, `-experiment`, `-arm`, `-model`, `-snapshot`, `-reason`.
    pub decision: bool,
}

/// How the router stops: not ready, wait, stop accepting, finish what runs, close.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Drain {
    /// From "not ready" until no new connection is accepted: what a load balancer needs to notice.
    #[serde(with = "units::duration")]
    pub wait: Duration,
    /// Then, how long running requests may take; what still runs is cut.
    #[serde(with = "units::duration")]
    pub max: Duration,
}

impl Config {
    /// Reads `file`, lets the flags override it, and checks the whole.
    ///
    /// Without a `file`, `DEFAULT_FILE` is read if it exists; else the defaults hold.
    ///
    /// # Errors
    /// Unreadable, no TOML, unknown key, wrong type, out of range, contradiction: with the place.
    pub fn load(file: Option<&Path>, overrides: &Overrides) -> Result<Self, ConfigError> {
        let source = match file {
            Some(path) => Some(read::Source::open(path)?),
            None => read::Source::open_if_exists(Path::new(DEFAULT_FILE))?,
        };
        let mut config = match &source {
            Some(source) => source.parse()?,
            None => Self::default(),
        };
        let overridden = overrides.apply(&mut config);
        check::check(&config).map_err(|refusal| ConfigError::Refused {
            place: read::place(source.as_ref(), &overridden, refusal.key),
            refusal,
        })?;
        Ok(config)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            group: "default".into(),
            state_dir: "/var/lib/switchboard".into(),
            trusted_keys: vec!["/etc/switchboard/trusted.pub".into()],
            listen: vec![Listen::Tcp(([127, 0, 0, 1], 8080).into())],
            admin: Admin::default(),
            cores: Cores::default(),
            feed: Feed::default(),
            limits: Limits::default(),
            clocks: Clocks::default(),
            upstream: Upstream::default(),
            facts: Facts::default(),
            response_headers: ResponseHeaders::default(),
            shadow: ShadowSettings::default(),
            kafka: KafkaSettings::default(),
            drain: Drain::default(),
        }
    }
}

impl Default for Admin {
    fn default() -> Self {
        Self { listen: ([127, 0, 0, 1], 9901).into() }
    }
}

impl Default for Cores {
    fn default() -> Self {
        Self { workers: Workers::Auto, pin: true, core_list: Vec::new() }
    }
}

impl Default for Feed {
    fn default() -> Self {
        Self {
            name: "router".into(),
            socket: "/run/switchboard/router.sock".into(),
            allowed_uids: Vec::new(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes_max: 16 * 1024,
            target_bytes_max: 8 * 1024,
            body_bytes_max: 64 * 1024 * 1024,
            body_buffer_bytes_max: 8 * 1024 * 1024,
            connections_max: 16_384,
        }
    }
}

impl Default for Clocks {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            body_idle: Duration::from_secs(30),
            connect: Duration::from_secs(2),
            first_byte: Duration::from_secs(60),
            response_idle: Duration::from_secs(300),
            total: None,
            keep_alive_idle: Duration::from_secs(75),
        }
    }
}

impl Default for Upstream {
    fn default() -> Self {
        Self {
            idle_per_endpoint_max: 64,
            // Below the 5 s of uvicorn, which most Python model servers run on.
            idle: Duration::from_secs(4),
            age: Duration::from_secs(600),
        }
    }
}

impl Default for ResponseHeaders {
    fn default() -> Self {
        Self { decision: true }
    }
}

impl Default for Drain {
    fn default() -> Self {
        Self { wait: Duration::from_secs(5), max: Duration::from_secs(30) }
    }
}

#[cfg(test)]
mod tests;
