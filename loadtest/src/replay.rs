//! `switchboard-loadtest replay`: sends Shadow records to a candidate.

pub mod input;
pub mod reader;
pub mod record;
pub mod topic;

use std::fs::File;
use std::io::{self, BufReader};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::sync_channel;

use self::input::Input;
use self::reader::{Reader, Refusals};
use self::record::{Form, FormError};
use self::topic::{TopicArguments, TopicError};
use crate::generator::Source;
use crate::generator::feed::Feed;
use crate::limits::REPLAY_AHEAD_MAX;
use crate::report::percentiles::Percentiles;
use crate::report::summary::Replayed;
use crate::run::arguments::{ArgumentsError, Asked, LoadArguments, OutputArguments};
use crate::run::{RunError, exit_code, measure, report};
use crate::scenario::file::{ChecksTable, LoadTable};
use crate::scenario::url::{Url, UrlError};
use crate::schedule::Load;
use crate::signal::{StopSignal, raise_open_files_limit};

/// Sends recorded requests to a candidate and reports as `run` does.
///
/// Records come as JSON lines, as `switchboard-router spool dump` writes them, or from a Kafka topic,
/// from its beginning to the end that it has when it is reached. They are sent at the
/// pace at which they were recorded, at --speed times that, at a fixed --rate, or, with --closed, as
/// fast as the candidate takes them. What cannot be sent again (a body that was cut or withheld) is
/// skipped and counted.
#[derive(Clone, Debug, clap::Args)]
pub struct ReplayArguments {
    /// File of JSON lines; - is standard input
    #[arg(value_name = "FILE", required_unless_present = "topic", conflicts_with = "topic")]
    input: Option<PathBuf>,
    #[command(flatten)]
    topic: TopicArguments,
    /// The candidate; each record brings its own path
    #[arg(long)]
    url: String,
    /// Connect here instead of the URL's host: host:port or unix:/path
    #[arg(long, value_name = "ADDRESS")]
    target: Option<String>,
    /// Put this model's name where a record's body names its Objective
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Ask for the record's Objective in x-switchboard-objective: where the candidate is a router
    #[arg(long)]
    with_objective: bool,
    /// A header field for each request, as `name: value`
    #[arg(long = "header", short = 'H', value_name = "FIELD")]
    headers: Vec<String>,
    /// How many times as fast as it was recorded
    #[arg(long, default_value_t = 1.0, conflicts_with_all = ["rate", "closed"])]
    speed: f64,
    /// As fast as the candidate answers
    #[arg(long, conflicts_with = "rate")]
    closed: bool,
    #[command(flatten)]
    load: LoadArguments,
    #[command(flatten)]
    output: OutputArguments,
}

/// Why there is no replay.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// See the cause.
    #[error(transparent)]
    Run(#[from] RunError),
    /// See the cause.
    #[error("--url")]
    Url(#[from] UrlError),
    /// See the cause.
    #[error("the target")]
    Target(#[from] crate::net::address::AddressError),
    /// See the cause.
    #[error("--header")]
    Form(#[from] FormError),
    /// Stands still, or runs backwards.
    #[error("--speed must be a number above 0")]
    Speed,
    /// See the cause.
    #[error(transparent)]
    Topic(#[from] TopicError),
    /// The records cannot be had.
    #[error("cannot read {place}")]
    Read {
        /// Where they should be.
        place: String,
        /// What the host says.
        #[source]
        source: io::Error,
    },
    /// Nothing was sent.
    #[error("no record could be sent: {0}")]
    Nothing(Refusals),
}

/// Replays and reports.
///
/// # Errors
/// Before anything is sent, or where the report cannot be written.
pub fn run(arguments: &ReplayArguments) -> Result<ExitCode, ReplayError> {
    if !(arguments.speed.is_finite() && arguments.speed > 0.0) {
        return Err(ReplayError::Speed);
    }
    let url: Url = arguments.url.parse()?;
    let address = arguments.target.as_deref().unwrap_or(&url.host_and_port).parse()?;
    let (load, checks) = (LoadTable::default(), ChecksTable::default());
    let asked = arguments.load.asked(Source::Records, address, 1, &load, &checks);
    let mut asked = asked.map_err(RunError::Arguments)?;
    arguments.set_pace(&mut asked)?;
    let form = Form {
        authority: url.authority,
        model: arguments.model.clone(),
        fields: Form::fields(&arguments.headers)?,
        names_objective: arguments.with_objective,
        speed: arguments.speed,
    };

    let stop = StopSignal::install().map_err(RunError::Process)?;
    raise_open_files_limit();
    let failed = |source| ReplayError::Read { place: arguments.place(), source };
    let input = match (arguments.topic.open()?, &arguments.input) {
        (Some(topic), _) => Input::Topic(Box::new(topic)),
        (None, Some(path)) if path.as_os_str() != "-" => {
            Input::Lines(Box::new(BufReader::new(File::open(path).map_err(failed)?)))
        }
        (None, _) => Input::Lines(Box::new(BufReader::new(io::stdin()))),
    };
    let (senders, feeds): (Vec<_>, Vec<_>) = (0..asked.plan.threads)
        .map(|_| sync_channel(REPLAY_AHEAD_MAX))
        .map(|(sender, receiver)| (sender, Feed::new(receiver)))
        .unzip();
    let reader = Reader::start(input, form, senders).map_err(failed)?;
    reader.wait_for_first();
    let first = reader.counts();
    if first.records == 0 {
        return Err(first.failure.map_or(ReplayError::Nothing(first.refusals), failed));
    }

    let lag_max = arguments.load.lag_max.duration();
    let mut measured = measure(asked, feeds, lag_max, &arguments.output, &stop)?;
    let counts = reader.counts();
    measured.summary.replay = Some(Replayed {
        records: counts.records,
        skipped: counts.refusals.by_reason(),
        recorded_latency_us: Percentiles::of(&counts.recorded_latency),
    });
    report(&measured, &arguments.output)?;
    match first.failure.or(counts.failure) {
        Some(source) => Err(failed(source)),
        None => Ok(exit_code(&measured.summary)),
    }
}

impl ReplayArguments {
    /// What errors call the input.
    fn place(&self) -> String {
        self.input
            .as_ref()
            .map_or_else(|| "the topic".to_owned(), |path| path.display().to_string())
    }

    /// Without a rate the records' own times are kept; the last record ends the run.
    fn set_pace(&self, asked: &mut Asked) -> Result<(), ReplayError> {
        let plan = &mut asked.plan;
        if plan.pipeline > 1 {
            return Err(RunError::Arguments(ArgumentsError::Pipeline).into());
        }
        if plan.load.is_closed() && !self.closed {
            plan.load = Load::Recorded;
        }
        plan.duration = match &plan.load {
            Load::Open { rates, .. } => {
                self.load.duration.map(|span| span.duration()).or(rates.length())
            }
            _ => self.load.duration.map(|span| span.duration()),
        };
        Ok(())
    }
}
