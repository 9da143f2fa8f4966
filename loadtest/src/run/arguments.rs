//! The flags of `run`, and the plan that they make.

use std::path::PathBuf;

use crate::generator::{Checks, Plan, Reuse};
use crate::limits::{CONNECTIONS_MAX, PIPELINE_MAX};
use crate::net::cores::Cores;
use crate::scenario::arguments::{ScenarioArguments, ScenarioError};
use crate::schedule::Load;
use crate::text::span::Span;

/// Sends requests and reports latency, failures and the router's decisions.
///
/// With --rate it is an open loop: requests are due at a constant rate and latency counts from
/// then, so that a stalled server shows in every request it delays. Without --rate it is a closed
/// loop: a throughput test, whose latencies hide stalls.
///
/// Exit codes: 0 all well; 1 no report; 2 requests failed; 3 the generator fell behind its
/// schedule and the numbers are not to be trusted.
#[derive(Clone, Debug, clap::Args)]
pub struct RunArguments {
    #[command(flatten)]
    scenario: ScenarioArguments,
    /// Requests per second, over all threads; makes it an open loop
    #[arg(long)]
    rate: Option<f64>,
    /// How long results count; default: 10s, unless --requests is given
    #[arg(long, value_name = "SPAN")]
    duration: Option<Span>,
    /// Stop after this many requests, warm-up included
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// Results are thrown away for this long at first
    #[arg(long, default_value_t, value_name = "SPAN")]
    warmup: Span,
    /// Connections of all threads together
    #[arg(long, short = 'c', default_value_t = 16, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(CONNECTIONS_MAX)))]
    connections: u32,
    /// Threads, each with its own ring; default: as many as --cores names, else 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=512))]
    threads: Option<u16>,
    /// Pin the threads to these cores, such as 1 or 0,2-3
    #[arg(long)]
    cores: Option<Cores>,
    /// Open a connection for each request and close it afterwards
    #[arg(long)]
    new_connection_per_request: bool,
    /// Requests that are written at once on one connection
    #[arg(long, default_value_t = 1, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=i64::from(PIPELINE_MAX)))]
    pipeline: u16,
    /// Longest time from sending a request to its answer's last byte
    #[arg(long, default_value_t = Span::from_millis(30_000), value_name = "SPAN")]
    timeout: Span,
    /// Count any other status as a failure; may be repeated (default: 200 to 399)
    #[arg(long, value_name = "STATUS", value_parser = clap::value_parser!(u16).range(100..=999))]
    expect_status: Vec<u16>,
    /// Count an answer without this header field, as `name: value`, as a failure
    #[arg(long, value_name = "FIELD")]
    expect_header: Vec<String>,
    /// Tell when p99 of the generator's own lag is longer than this (exit code 3)
    #[arg(long, default_value_t = Span::from_millis(10), value_name = "SPAN")]
    pub(super) lag_max: Span,
    /// Account the CPU time of these processes over the measured window
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    pub(super) cpu_of: Vec<u32>,
    /// Write the report as JSON; - is standard output, in place of the table
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    /// Write the latency distribution for HdrHistogram's tools, in microseconds
    #[arg(long, value_name = "FILE")]
    pub(super) hgrm: Option<PathBuf>,
    /// Write one JSON line per request; slows the generator down
    #[arg(long, value_name = "FILE")]
    pub(super) record: Option<PathBuf>,
    /// Most lines of --record
    #[arg(long, default_value_t = 1_000_000, value_name = "N")]
    pub(super) record_max: u64,
}

/// Why the flags make no plan.
#[derive(Debug, thiserror::Error)]
pub enum ArgumentsError {
    /// See the cause.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// Zero, negative or no number.
    #[error("--rate must be a number above 0, up to 100 million")]
    Rate,
    /// Nothing would be measured.
    #[error("--duration must be above 0s")]
    Duration,
    /// Everything would time out.
    #[error("--timeout must be above 0s")]
    Timeout,
    /// A thread would have nothing to do.
    #[error("{threads} threads need at least as many --connections, not {connections}")]
    FewConnections {
        /// Asked for.
        threads: u16,
        /// Asked for.
        connections: u32,
    },
    /// Contradictory.
    #[error("--pipeline needs connections that stay open")]
    PipelineOnNew,
    /// See the text.
    #[error("--expect-header: `{0}` is no `name: value`")]
    ExpectHeader(String),
}

const DURATION_DEFAULT: Span = Span::from_millis(10_000);
const RATE_MAX: f64 = 1e8;

impl RunArguments {
    /// The plan, all of it checked.
    ///
    /// # Errors
    /// The first flag that is wrong or contradicts another.
    pub fn plan(&self) -> Result<Plan, ArgumentsError> {
        let (scenario, target) = self.scenario.scenario()?;
        let threads = self.threads();
        if u32::from(threads) > self.connections {
            let connections = self.connections;
            return Err(ArgumentsError::FewConnections { threads, connections });
        }
        if self.pipeline > 1 && self.new_connection_per_request {
            return Err(ArgumentsError::PipelineOnNew);
        }
        if self.timeout.is_zero() {
            return Err(ArgumentsError::Timeout);
        }
        let load = match self.rate {
            None => Load::Closed,
            Some(rate) if rate > 0.0 && rate <= RATE_MAX => Load::Constant { rate },
            Some(_) => return Err(ArgumentsError::Rate),
        };
        let duration = match (self.duration, self.requests) {
            (Some(duration), _) if duration.is_zero() => return Err(ArgumentsError::Duration),
            (Some(duration), _) => Some(duration),
            (None, Some(_)) => None,
            (None, None) => Some(DURATION_DEFAULT),
        };
        Ok(Plan {
            scenario,
            target,
            load,
            warmup: self.warmup.duration(),
            duration: duration.map(Span::duration),
            requests_max: self.requests,
            connections: self.connections,
            threads,
            cores: self.cores.clone(),
            reuse: match self.new_connection_per_request {
                true => Reuse::NewPerRequest,
                false => Reuse::KeepAlive,
            },
            pipeline: self.pipeline,
            timeout: self.timeout.duration(),
            checks: Checks { statuses: self.expect_status.clone(), headers: self.headers()? },
        })
    }

    fn threads(&self) -> u16 {
        let cores = self.cores.as_ref().map_or(1, Cores::count);
        self.threads.unwrap_or_else(|| u16::try_from(cores).unwrap_or(u16::MAX))
    }

    fn headers(&self) -> Result<Vec<(String, String)>, ArgumentsError> {
        self.expect_header
            .iter()
            .map(|field| {
                let (name, value) = field
                    .split_once(':')
                    .ok_or_else(|| ArgumentsError::ExpectHeader(field.clone()))?;
                Ok((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
            })
            .collect()
    }
}
