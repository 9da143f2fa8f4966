//! `switchboard-loadtest capacity`: the highest rate at which p99 stays under a limit.

pub mod search;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde::Serialize;

use self::search::{Search, SearchError};
use crate::limits::CAPACITY_STEPS_MAX;
use crate::report::percentiles::Percentiles;
use crate::report::plot::{Axis, Line, LinePlot, Unit};
use crate::report::summary::Summary;
use crate::run::arguments::{LoadArguments, OutputArguments, RunArguments};
use crate::run::{
    EXIT_CHECKS, EXIT_INVALID, RunError, command_line, measure, write_file, write_json,
};
use crate::scenario::arguments::ScenarioArguments;
use crate::signal::{StopSignal, raise_open_files_limit};
use crate::text::rate::Rate;
use crate::text::span::{RunSpan, Span};

/// Searches for the highest rate at which p99 stays under a limit.
///
/// Each step is an open loop of --duration (default 5s, after --warmup). The rate doubles until a
/// step fails, then the distance is halved until it is within --tolerance. A step that fails is
/// measured once more, so that one hiccup of the host does not decide.
///
/// Exit codes: 0 found; 1 not even the first rate holds, or there is no report; 3 the generator was
/// the limit.
#[derive(Clone, Debug, clap::Args)]
pub struct CapacityArguments {
    #[command(flatten)]
    scenario: ScenarioArguments,
    #[command(flatten)]
    load: LoadArguments,
    /// Longest p99 of the latency, from when requests were due
    #[arg(long, value_name = "SPAN")]
    p99_max: Span,
    /// Largest share of failed requests
    #[arg(long, default_value = "0.001", value_name = "RATE")]
    failures_max: Rate,
    /// First rate, in requests per second
    #[arg(long, default_value_t = 100.0, value_name = "RATE")]
    rate_min: f64,
    /// Highest rate that is tried
    #[arg(long, default_value_t = 1_000_000.0, value_name = "RATE")]
    rate_max: f64,
    /// How near the found rate is to one that fails
    #[arg(long, default_value = "0.05", value_name = "RATE")]
    tolerance: Rate,
    /// Most measurements
    #[arg(long, default_value_t = 20, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=i64::from(CAPACITY_STEPS_MAX)))]
    steps_max: u16,
    /// No step begins after this time
    #[arg(long, default_value_t = RunSpan::from_millis(600_000), value_name = "SPAN")]
    time_max: RunSpan,
    /// Write the report as JSON; - is standard output, in place of the table
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write p99 by rate as a plot
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Why there is no capacity.
#[derive(Debug, thiserror::Error)]
pub enum CapacityError {
    /// See the cause.
    #[error(transparent)]
    Run(#[from] RunError),
    /// See the cause.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// The search sets it.
    #[error(
        "capacity chooses the rate itself: leave --rate out, and `rate` in the scenario is ignored"
    )]
    Rate,
    /// Nothing would pass.
    #[error("--p99-max must be above 0s")]
    Limit,
}

/// What a search found.
#[derive(Debug, Serialize)]
pub struct CapacityReport {
    tool: &'static str,
    version: &'static str,
    command: Vec<String>,
    /// The highest rate that held; `None`: not even the first one.
    capacity: Option<f64>,
    /// The lowest rate that did not hold; `None`: all that were tried held.
    fails_at: Option<f64>,
    /// Why the search ended.
    ended_because: &'static str,
    p99_max_us: f64,
    failures_max: f64,
    steps: Vec<Step>,
}

/// One measurement.
#[derive(Debug, Serialize)]
struct Step {
    rate: f64,
    holds: bool,
    /// In words; empty where it holds.
    because: String,
    /// Whether the generator was what failed.
    is_generators_fault: bool,
    answered_rate: f64,
    failures: u64,
    latency_us: Percentiles,
}

const DURATION_DEFAULT: RunSpan = RunSpan::from_millis(5_000);

/// Searches and reports.
///
/// # Errors
/// Before anything is sent, or where the report cannot be written.
pub fn run(arguments: &CapacityArguments) -> Result<ExitCode, CapacityError> {
    if arguments.load.rate.is_some() {
        return Err(CapacityError::Rate);
    }
    if arguments.p99_max.is_zero() {
        return Err(CapacityError::Limit);
    }
    let (low, high) = (arguments.rate_min, arguments.rate_max);
    let mut search = Search::new(low, high, arguments.tolerance.value())?;
    let stop = StopSignal::install().map_err(RunError::Process)?;
    raise_open_files_limit();
    let started = Instant::now();
    let mut steps: Vec<Step> = Vec::new();
    let mut is_repeated = false;
    let ended_because = loop {
        let Some(rate) = search.rate() else { break search.end() };
        if stop.is_set() {
            break "it was stopped by a signal";
        }
        if steps.len() >= usize::from(arguments.steps_max) {
            break "the most steps were made";
        }
        if started.elapsed() >= arguments.time_max.duration() {
            break "the time was over";
        }
        let step = step(arguments, rate, &stop)?;
        if stop.is_set() {
            break "it was stopped by a signal"; // a step that was cut short tells nothing
        }
        eprintln!("{}", step.line());
        let holds = step.holds;
        steps.push(step);
        match (holds, is_repeated) {
            (true, _) => search.note_holds(),
            (false, true) => search.note_fails(),
            (false, false) => {
                is_repeated = true;
                continue;
            }
        }
        is_repeated = false;
    };
    let report = CapacityReport {
        tool: "switchboard-loadtest",
        version: env!("CARGO_PKG_VERSION"),
        command: command_line(),
        capacity: search.holds(),
        fails_at: search.fails(),
        ended_because,
        p99_max_us: micros(arguments.p99_max.duration()),
        failures_max: arguments.failures_max.value(),
        steps,
    };
    report.write(arguments)?;
    Ok(report.exit_code())
}

fn step(
    arguments: &CapacityArguments,
    rate: f64,
    stop: &StopSignal,
) -> Result<Step, CapacityError> {
    let mut load = arguments.load.clone();
    load.rate = Some(rate.to_string());
    load.duration = load.duration.or(Some(DURATION_DEFAULT));
    let output = OutputArguments::default();
    let run = RunArguments { scenario: arguments.scenario.clone(), load, output };
    let asked = run.asked().map_err(RunError::Arguments)?;
    let lag_max = run.load.lag_max.duration();
    let measured = measure(asked, Vec::new(), lag_max, &run.output, stop)?;
    Ok(Step::judged(rate, measured.summary, arguments))
}

impl Step {
    fn judged(rate: f64, summary: Summary, arguments: &CapacityArguments) -> Self {
        let all = (summary.answers + summary.failures_total).max(1) as f64;
        let failed = summary.failures_total as f64 / all;
        let p99_max = micros(arguments.p99_max.duration());
        let p99 = summary.latency_us.p99;
        let because = if let Some(objection) = summary.invalid_because.first() {
            objection.clone()
        } else if failed > arguments.failures_max.value() {
            format!("{:.2} % of the requests failed", failed * 100.0)
        } else if p99 > p99_max {
            format!("p99 is {}", Unit::Micros.text(p99))
        } else if !summary.schedule.target_kept_up {
            format!("{} requests were never sent", summary.schedule.unsent)
        } else if summary.answers == 0 {
            "there was no answer".to_owned()
        } else {
            String::new()
        };
        Self {
            rate,
            holds: because.is_empty(),
            because,
            is_generators_fault: !summary.valid,
            answered_rate: summary.rate,
            failures: summary.failures_total,
            latency_us: summary.latency_us,
        }
    }

    fn line(&self) -> String {
        let verdict =
            if self.holds { "holds".to_owned() } else { format!("FAILS: {}", self.because) };
        let Self { rate, answered_rate, latency_us, .. } = self;
        format!(
            "{rate:>10.0}/s  answered {answered_rate:>10.0}/s  p50 {:>9}  p99 {:>9}  {verdict}",
            Unit::Micros.text(latency_us.p50),
            Unit::Micros.text(latency_us.p99)
        )
    }
}

impl CapacityReport {
    fn write(&self, arguments: &CapacityArguments) -> Result<(), RunError> {
        if let Some(path) = &arguments.svg {
            write_file(path, |out| writeln!(out, "{}", self.plot()))?;
        }
        match &arguments.json {
            Some(path) => write_json(path, self)?,
            None => self
                .table(&mut io::stdout().lock())
                .map_err(|source| RunError::Report { path: PathBuf::from("-"), source })?,
        }
        Ok(())
    }

    fn table(&self, out: &mut impl Write) -> io::Result<()> {
        for step in &self.steps {
            writeln!(out, "{}", step.line())?;
        }
        let limit = Unit::Micros.text(self.p99_max_us);
        match (self.capacity, self.fails_at) {
            (Some(capacity), Some(fails)) => {
                writeln!(
                    out,
                    "capacity with p99 up to {limit}: {capacity:.0}/s ({fails:.0}/s fails)"
                )?;
            }
            (Some(capacity), None) => {
                writeln!(out, "capacity with p99 up to {limit}: at least {capacity:.0}/s")?;
            }
            (None, _) => writeln!(out, "not even the first rate holds p99 up to {limit}")?,
        }
        writeln!(out, "ended because {}", self.ended_because)
    }

    fn plot(&self) -> String {
        let mut steps: Vec<_> = self.steps.iter().collect();
        steps.sort_by(|one, other| one.rate.total_cmp(&other.rate));
        let line = |name: &str, value: fn(&Step) -> f64| Line {
            name: name.to_owned(),
            points: steps.iter().map(|step| (step.rate, value(step))).collect(),
        };
        let limit = steps.iter().map(|step| (step.rate, self.p99_max_us)).collect();
        LinePlot {
            title: "Latency by offered rate".to_owned(),
            x: Axis::log("offered requests per second", Unit::Count),
            y: Axis::log("latency", Unit::Micros),
            lines: vec![
                line("p99", |step| step.latency_us.p99),
                line("p50", |step| step.latency_us.p50),
                Line { name: "limit of p99".to_owned(), points: limit },
            ],
        }
        .svg()
    }

    /// A search whose last failure was the generator's own has found the generator's capacity.
    fn exit_code(&self) -> ExitCode {
        let last_failure = self.steps.iter().rfind(|step| !step.holds);
        if last_failure.is_some_and(|step| step.is_generators_fault) {
            ExitCode::from(EXIT_INVALID)
        } else if self.capacity.is_none() {
            ExitCode::from(EXIT_CHECKS)
        } else {
            ExitCode::SUCCESS
        }
    }
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}
