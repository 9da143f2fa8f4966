//! The flags of `run`, and the plan that they make, together with a scenario file if there is one.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::generator::{Checks, Plan, Reuse, Source};
use crate::limits::{CONNECTIONS_MAX, PIPELINE_MAX};
use crate::net::cores::{Cores, CoresError};
use crate::report::shares::{ArmShares, SharesError};
use crate::scenario::arguments::{ScenarioArguments, ScenarioError};
use crate::scenario::file::{ChecksTable, LoadTable, ScenarioFile, lowercase};
use crate::schedule::rates::{Rates, RatesError};
use crate::schedule::{Arrivals, Load};
use crate::text::span::{RunSpan, Span};

/// Sends requests and reports latency, failures and the router's decisions.
///
/// With --rate it is an open loop: requests are due at that rate and latency counts from then, so
/// that a stalled server shows in every request it delays. Without --rate it is a closed loop: a
/// throughput test, whose latencies hide stalls.
///
/// Exit codes: 0 all well; 1 an answer or a share of users is not as expected, or there is no
/// report; 2 requests failed otherwise; 3 the generator fell behind its schedule and the numbers
/// are not to be trusted.
#[derive(Clone, Debug, clap::Args)]
pub struct RunArguments {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    #[command(flatten)]
    pub(crate) load: LoadArguments,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

/// When and how requests are sent, and what their answers must hold.
#[derive(Clone, Debug, clap::Args)]
pub struct LoadArguments {
    /// Requests per second, over all threads; makes it an open loop. Steps: 500@30s,1000@30s,2000
    #[arg(long)]
    pub(crate) rate: Option<String>,
    /// How an open loop's requests are spread; default: constant
    #[arg(long, value_enum)]
    arrivals: Option<ArrivalsName>,
    /// How long results count; default: that of the steps of --rate, else 10s, unless --requests
    /// is given
    #[arg(long, value_name = "SPAN")]
    pub(crate) duration: Option<RunSpan>,
    /// Stop after this many requests, warm-up included
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// Results are thrown away for this long at first; default: 0s
    #[arg(long, value_name = "SPAN")]
    pub(crate) warmup: Option<Span>,
    /// Connections of all threads together; default: 16
    #[arg(long, short = 'c', value_name = "N")]
    connections: Option<u32>,
    /// Threads, each with its own ring; default: as many as --cores names, else 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=512))]
    threads: Option<u16>,
    /// Pin the threads to these cores, such as 1 or 0,2-3
    #[arg(long)]
    cores: Option<Cores>,
    /// Open a connection for each request and close it afterwards
    #[arg(long)]
    new_connection_per_request: bool,
    /// Requests that are written at once on one connection; default: 1
    #[arg(long, value_name = "N")]
    pipeline: Option<u16>,
    /// Longest time from sending a request to its answer's last byte; default: 30s
    #[arg(long, value_name = "SPAN")]
    timeout: Option<Span>,
    /// Count any other status as a failure; may be repeated (default: 200 to 399)
    #[arg(long, value_name = "STATUS", value_parser = clap::value_parser!(u16).range(100..=999))]
    expect_status: Vec<u16>,
    /// Count an answer without this header field, as `name: value`, as a failure
    #[arg(long, value_name = "FIELD")]
    expect_header: Vec<String>,
    /// Count a stream of events that does not end with `data: [DONE]` as a failure
    #[arg(long)]
    expect_stream_done: bool,
    /// Expect this share of an Objective's users on an Arm, such as HOME_FEED/heavy=0.1
    #[arg(long, value_name = "OBJECTIVE/ARM=SHARE")]
    expect_share: Vec<String>,
    /// Shares fail where chance would bring such a deviation in fewer runs than this; default: 0.001
    #[arg(long, value_name = "PROBABILITY")]
    share_p_min: Option<f64>,
    /// Tell when p99 of the generator's own lag is longer than this (exit code 3)
    #[arg(long, default_value_t = Span::from_millis(10), value_name = "SPAN")]
    pub(crate) lag_max: Span,
}

/// What is watched and written besides the table.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct OutputArguments {
    /// Account the CPU time of these processes over the measured window
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    pub(crate) cpu_of: Vec<u32>,
    /// Write all reports into this folder: report.json, report.html, latency.hlog, *.hgrm, *.svg
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
    /// Write the report as JSON; - is standard output, in place of the table
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the latency distribution for HdrHistogram's tools, in microseconds
    #[arg(long, value_name = "FILE")]
    pub(crate) hgrm: Option<PathBuf>,
    /// Write one JSON line per request; slows the generator down
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Most lines of --record
    #[arg(long, default_value_t = 1_000_000, value_name = "N")]
    pub(crate) record_max: u64,
}

/// How an open loop's requests are spread over time.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ArrivalsName {
    /// At even distances
    Constant,
    /// At random, independent of each other
    Poisson,
}

/// Why the flags make no plan.
#[derive(Debug, thiserror::Error)]
pub enum ArgumentsError {
    /// See the cause.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// Zero, negative or too much.
    #[error("--rate must be a number above 0, up to 100 million (0 only as a rest between steps)")]
    Rate,
    /// See the cause.
    #[error("--rate")]
    Rates(#[from] RatesError),
    /// Nothing would be measured.
    #[error("--duration must be above 0s")]
    Duration,
    /// Contradictory.
    #[error(
        "--duration and the steps of --rate both say how long; leave one out, or the last step's span"
    )]
    TwoDurations,
    /// Spread of nothing.
    #[error("--arrivals needs --rate")]
    ArrivalsWithoutRate,
    /// Everything would time out.
    #[error("--timeout must be above 0s")]
    Timeout,
    /// None, or more than one address has ports for.
    #[error("--connections must be from 1 to {CONNECTIONS_MAX}")]
    Connections,
    /// None, or more than anyone reads at once.
    #[error("--pipeline must be from 1 to {PIPELINE_MAX}")]
    Pipeline,
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
    /// See the cause.
    #[error("--cores")]
    Cores(#[from] CoresError),
    /// See the text.
    #[error("--expect-header: `{0}` is no `name: value`")]
    ExpectHeader(String),
    /// See the cause.
    #[error("--expect-share")]
    Shares(#[from] SharesError),
}

/// Everything that a run was asked.
#[derive(Debug)]
pub struct Asked {
    /// What the generator does.
    pub plan: Plan,
    /// What its users' shares should be.
    pub shares: ArmShares,
}

const DURATION_DEFAULT: RunSpan = RunSpan::from_millis(10_000);
const CONNECTIONS_DEFAULT: u32 = 16;
const TIMEOUT_DEFAULT: Span = Span::from_millis(30_000);
const RATE_MAX: f64 = 1e8;

impl RunArguments {
    /// The plan, all of it checked.
    ///
    /// # Errors
    /// The first flag or key that is wrong or contradicts another.
    pub fn asked(&self) -> Result<Asked, ArgumentsError> {
        let Some(path) = &self.scenario.scenario else {
            let (scenario, target) = self.scenario.scenario()?;
            let seed = scenario.seed;
            let (load, checks) = (LoadTable::default(), ChecksTable::default());
            return self.load.asked(Source::Scenario(scenario), target, seed, &load, &checks);
        };
        let in_file = |source| ScenarioError::File { path: path.clone(), source };
        let file = ScenarioFile::read(path).map_err(in_file)?;
        let (scenario, target) = file.scenario(path, &self.scenario)?;
        let seed = scenario.seed;
        self.load.asked(Source::Scenario(scenario), target, seed, &file.load, &file.checks)
    }
}

impl LoadArguments {
    /// The plan; what no flag says is taken from the file's tables.
    ///
    /// # Errors
    /// The first flag or key that is wrong or contradicts another.
    pub fn asked(
        &self,
        source: Source,
        target: crate::net::address::Address,
        seed: u64,
        load: &LoadTable,
        checks: &ChecksTable,
    ) -> Result<Asked, ArgumentsError> {
        let connections = self.connections.or(load.connections).unwrap_or(CONNECTIONS_DEFAULT);
        if !(1..=CONNECTIONS_MAX).contains(&connections) {
            return Err(ArgumentsError::Connections);
        }
        let cores = match (&self.cores, &load.cores) {
            (Some(cores), _) => Some(cores.clone()),
            (None, Some(text)) => Some(text.parse()?),
            (None, None) => None,
        };
        let of_cores = u16::try_from(cores.as_ref().map_or(1, Cores::count)).unwrap_or(u16::MAX);
        let threads = self.threads.or(load.threads).unwrap_or(of_cores).max(1);
        if u32::from(threads) > connections {
            return Err(ArgumentsError::FewConnections { threads, connections });
        }
        let pipeline = self.pipeline.or(load.pipeline).unwrap_or(1);
        if !(1..=PIPELINE_MAX).contains(&pipeline) {
            return Err(ArgumentsError::Pipeline);
        }
        let new_connections =
            self.new_connection_per_request || load.new_connection_per_request.unwrap_or_default();
        if pipeline > 1 && new_connections {
            return Err(ArgumentsError::PipelineOnNew);
        }
        let timeout = self.timeout.or(load.timeout).unwrap_or(TIMEOUT_DEFAULT);
        if timeout.is_zero() {
            return Err(ArgumentsError::Timeout);
        }
        let warmup = self.warmup.or(load.warmup).unwrap_or_default().duration();
        let rates = self.rates(load)?;
        let requests_max = self.requests.or(load.requests);
        let duration = self.duration(load, rates.as_ref(), requests_max)?;
        let plan = Plan {
            source,
            target,
            load: self.load(load, rates.map(|rates| rates.with_warmup(warmup)), seed)?,
            warmup,
            duration: duration.map(RunSpan::duration),
            requests_max,
            connections,
            threads,
            cores,
            reuse: if new_connections { Reuse::NewPerRequest } else { Reuse::KeepAlive },
            pipeline,
            timeout: timeout.duration(),
            checks: self.checks(checks)?,
        };
        let p_min = self.share_p_min.or(checks.share_p_min);
        let shares = ArmShares::new(&checks.arm_shares, &self.expect_share, p_min)?;
        Ok(Asked { plan, shares })
    }

    fn rates(&self, load: &LoadTable) -> Result<Option<Rates>, ArgumentsError> {
        let text = self.rate.clone().or_else(|| load.rate.as_ref().map(|rate| rate.text()));
        let Some(text) = text else { return Ok(None) };
        let rates: Rates = text.parse()?;
        let (low, high) = rates.bounds();
        if low >= 0.0 && high > 0.0 && high <= RATE_MAX {
            Ok(Some(rates))
        } else {
            Err(ArgumentsError::Rate)
        }
    }

    fn duration(
        &self,
        load: &LoadTable,
        rates: Option<&Rates>,
        requests_max: Option<u64>,
    ) -> Result<Option<RunSpan>, ArgumentsError> {
        let asked = self.duration.or(load.duration);
        let of_steps = rates.and_then(Rates::length);
        match (asked, of_steps) {
            (Some(_), Some(_)) => Err(ArgumentsError::TwoDurations),
            (Some(duration), None) if duration.is_zero() => Err(ArgumentsError::Duration),
            (Some(duration), None) => Ok(Some(duration)),
            (None, Some(length)) => Ok(Some(RunSpan::of(length))),
            (None, None) => Ok(requests_max.is_none().then_some(DURATION_DEFAULT)),
        }
    }

    fn load(
        &self,
        load: &LoadTable,
        rates: Option<Rates>,
        seed: u64,
    ) -> Result<Load, ArgumentsError> {
        let arrivals = self.arrivals.or(load.arrivals);
        match (rates, arrivals) {
            (None, Some(_)) => Err(ArgumentsError::ArrivalsWithoutRate),
            (None, None) => Ok(Load::Closed),
            (Some(rates), None | Some(ArrivalsName::Constant)) => {
                Ok(Load::Open { rates, arrivals: Arrivals::Constant })
            }
            (Some(rates), Some(ArrivalsName::Poisson)) => {
                Ok(Load::Open { rates, arrivals: Arrivals::Poisson { seed } })
            }
        }
    }

    fn checks(&self, table: &ChecksTable) -> Result<Checks, ArgumentsError> {
        let mut headers: BTreeMap<String, String> = BTreeMap::new();
        for field in &self.expect_header {
            let (name, value) =
                field.split_once(':').ok_or_else(|| ArgumentsError::ExpectHeader(field.clone()))?;
            headers.insert(name.trim().to_owned(), value.trim().to_owned());
        }
        let statuses =
            if self.expect_status.is_empty() { &table.status } else { &self.expect_status };
        let headers =
            if headers.is_empty() { lowercase(&table.headers) } else { lowercase(&headers) };
        let stream_done = self.expect_stream_done || table.stream_done;
        Ok(Checks { statuses: statuses.clone(), headers, stream_done })
    }
}
