//! `shadow-worker` and `shadow-report`.

mod table;

use std::{fs, path::PathBuf, time::Duration};

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use super::{Failure, ServerArguments, ask, serve, show};
use crate::{
    rules::{self, RuleFile, RuleSet, Unmentioned},
    shadow::{
        candidate::Candidate,
        compare::{JsonRules, Measure, Tolerance},
        kafka::{Begin, Cluster, Properties, read_results},
        limits::{ATTEMPTS_MAX, CONCURRENCY_MAX, RECORD_BYTES_MAX},
        replay::Treatment,
        report::{ReportFile, Tally},
        worker::{self, WorkerOptions},
    },
};

/// Where Kafka is, and whom it is about.
#[derive(Args, Debug)]
struct KafkaArguments {
    /// Kafka's brokers, separated by commas
    #[arg(long, env = "SWITCHBOARD_KAFKA", value_name = "HOST:PORT")]
    kafka: String,
    /// File with librdkafka's settings, name=value on each line: TLS, SASL
    #[arg(long, value_name = "FILE")]
    kafka_properties: Option<PathBuf>,
    /// Topic of results
    #[arg(long, default_value = "switchboard.shadow-results", value_name = "TOPIC")]
    results_topic: String,
    /// The candidate
    #[arg(long, value_name = "NAME@VERSION")]
    model: String,
    /// Write the report as a page, too
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(super) struct ShadowWorkerArguments {
    #[command(flatten)]
    kafka: KafkaArguments,
    /// Topic of Shadow records
    #[arg(long, default_value = "switchboard.shadow", value_name = "TOPIC")]
    topic: String,
    /// Consumer group, whose members share the work; default: `switchboard-shadow-worker.` and the candidate
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    /// Where a new group begins
    #[arg(long, value_enum, default_value = "earliest")]
    from: Start,
    /// Where the candidate listens; may be repeated; default: its Shard's endpoints, as `serve` has them now
    #[arg(long = "endpoint", value_name = "ADDRESS")]
    endpoints: Vec<String>,
    /// Path of every request; default: the Model's own `path`, else what the client asked
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// What goes where a client named the Objective instead of a model; default: the Model's `served_name`, else its name
    #[arg(long, value_name = "NAME")]
    served_name: Option<String>,
    /// Put Facts as they were served into the body's object at this JSON Pointer
    #[arg(long, value_name = "POINTER", value_parser = pointer)]
    facts_into: Option<String>,
    /// Records under way at once
    #[arg(
        long,
        default_value_t = 4,
        value_name = "COUNT",
        value_parser = clap::value_parser!(u16).range(1..=i64::from(CONCURRENCY_MAX))
    )]
    concurrency: u16,
    /// Calls per second, repeated ones included; default: as many as concurrency allows
    #[arg(long, value_name = "PER_SECOND", value_parser = rate)]
    rate: Option<f64>,
    /// How long an answer may take, in milliseconds
    #[arg(
        long,
        default_value_t = 30_000,
        value_name = "MS",
        value_parser = clap::value_parser!(u64).range(1..=3_600_000)
    )]
    answer_within_ms: u64,
    /// Attempts at a record that the candidate takes and does not answer; one that refuses connections is waited for
    #[arg(
        long,
        default_value_t = 3,
        value_name = "COUNT",
        value_parser = clap::value_parser!(u16).range(1..=i64::from(ATTEMPTS_MAX))
    )]
    attempts: u16,
    /// Larger records are counted as unreadable
    #[arg(long, default_value_t = RECORD_BYTES_MAX, value_name = "BYTES")]
    record_bytes_max: usize,
    #[command(flatten)]
    compare: CompareArguments,
    /// End when all records that the topic holds now are done with
    #[arg(long)]
    until_end: bool,
    #[command(flatten)]
    server: ServerArguments,
}

/// What makes two answers the same.
#[derive(Args, Debug)]
struct CompareArguments {
    /// `exact` (every byte), `json`, or `field:POINTER` for one value of the JSON, as in field:/outputs/0/data/0
    #[arg(long, default_value = "json", value_name = "HOW", value_parser = by)]
    compare: By,
    /// Numbers that differ by at most this are the same
    #[arg(long, default_value_t = 0.0, value_name = "NUMBER", value_parser = tolerance)]
    absolute_tolerance: f64,
    /// Numbers that differ by at most this share of the larger one are the same
    #[arg(long, default_value_t = 0.0, value_name = "SHARE", value_parser = tolerance)]
    relative_tolerance: f64,
    /// With `json`: a place that does not count, with all below it; `*` stands for any segment; may be repeated
    #[arg(long, value_name = "POINTER", value_parser = pointer)]
    ignore: Vec<String>,
}

#[derive(Clone, Debug)]
enum By {
    Exact,
    Json,
    Field(String),
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Start {
    /// All that the topic still holds
    Earliest,
    /// Only what is written from now on
    Latest,
}

#[derive(Args, Debug)]
pub(super) struct ShadowReportArguments {
    #[command(flatten)]
    kafka: KafkaArguments,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

fn by(text: &str) -> Result<By, &'static str> {
    match text {
        "exact" => Ok(By::Exact),
        "json" => Ok(By::Json),
        _ => match text.strip_prefix("field:") {
            Some(text) => pointer(text).map(By::Field),
            None => Err("expected exact, json or field:POINTER"),
        },
    }
}

fn pointer(text: &str) -> Result<String, &'static str> {
    if text.is_empty() || text.starts_with('/') {
        Ok(text.to_owned())
    } else {
        Err("expected a JSON Pointer, as in /outputs/0/data; an empty one is the whole")
    }
}

fn rate(text: &str) -> Result<f64, &'static str> {
    match text.parse() {
        Ok(rate) if (0.001..=1e6).contains(&rate) => Ok(rate),
        Ok(_) | Err(_) => Err("expected a number from 0.001 to 1000000"),
    }
}

fn tolerance(text: &str) -> Result<f64, &'static str> {
    match text.parse::<f64>() {
        Ok(number) if number >= 0.0 && number.is_finite() => Ok(number),
        Ok(_) | Err(_) => Err("expected a number that is not negative"),
    }
}

pub(super) async fn shadow_worker(arguments: ShadowWorkerArguments) -> Result<(), Failure> {
    let log = tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false);
    log.with_target(false).init();
    let json = arguments.server.json;
    let options = options(arguments).await?;
    tracing::info!(
        topic = options.topic,
        group = options.group,
        candidate = options.candidate.reference,
        endpoints = options.candidate.endpoints.len(),
        "replaying"
    );
    let report = worker::run(options, serve::stopped()?).await?;
    let text = if json { show::json(&report)? } else { table::text(&report) };
    Ok(show::print(&text)?)
}

async fn options(arguments: ShadowWorkerArguments) -> anyhow::Result<WorkerOptions> {
    let cluster = cluster(&arguments.kafka)?;
    let reference = &arguments.kafka.model;
    let known = if arguments.endpoints.is_empty() {
        Candidate::in_rules(&registered(&arguments.server).await?, reference)?
    } else {
        Candidate::at(reference, &arguments.endpoints)?
    };
    let candidate = Candidate {
        path: arguments.path.or(known.path),
        served_name: arguments.served_name.unwrap_or(known.served_name),
        ..known
    };
    let CompareArguments { compare, absolute_tolerance, relative_tolerance, ignore } =
        arguments.compare;
    let tolerance = Tolerance { absolute: absolute_tolerance, relative: relative_tolerance };
    let measure = match compare {
        By::Exact => Measure::Bytes,
        By::Json => Measure::Json(JsonRules { tolerance, ignored: ignore }),
        By::Field(pointer) => Measure::Field { pointer, tolerance },
    };
    let group = arguments.group;
    Ok(WorkerOptions {
        cluster,
        topic: arguments.topic,
        results_topic: arguments.kafka.results_topic,
        group: group.unwrap_or_else(|| format!("switchboard-shadow-worker.{reference}")),
        begin: match arguments.from {
            Start::Earliest => Begin::Earliest,
            Start::Latest => Begin::Latest,
        },
        candidate,
        treatment: Treatment {
            calls_per_second: arguments.rate,
            answer_within: Duration::from_millis(arguments.answer_within_ms),
            attempts: arguments.attempts,
        },
        concurrency: arguments.concurrency,
        record_bytes_max: arguments.record_bytes_max,
        measure,
        facts_into: arguments.facts_into,
        until_end: arguments.until_end,
        html: arguments.kafka.html,
    })
}

pub(super) async fn shadow_report(arguments: ShadowReportArguments) -> Result<(), Failure> {
    let ShadowReportArguments { kafka, json } = arguments;
    let cluster = cluster(&kafka)?;
    let mut tally = Tally::new(&kafka.model);
    let mut foreign = 0_u64;
    read_results(&cluster, &kafka.results_topic, |result| match result {
        Ok(result) if result.candidate == kafka.model => tally.add(&result),
        Ok(_) => {}
        Err(_) => foreign += 1,
    })
    .await?;
    if foreign > 0 {
        eprintln!("{foreign} messages of {} are no results", kafka.results_topic);
    }
    let report = tally.report();
    if let Some(path) = kafka.html {
        let shown = path.display().to_string();
        ReportFile::new(path)
            .try_write(&report)
            .with_context(|| format!("cannot write {shown}"))?;
    }
    let text = if json { show::json(&report)? } else { table::text(&report) };
    Ok(show::print(&text)?)
}

fn cluster(arguments: &KafkaArguments) -> anyhow::Result<Cluster> {
    let properties = match &arguments.kafka_properties {
        None => Properties::default(),
        Some(path) => {
            let shown = path.display();
            let text = fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
            Properties::read(&text).with_context(|| format!("cannot use {shown}"))?
        }
    };
    Ok(Cluster { brokers: arguments.kafka.clone(), properties })
}

/// The active version's Models and Shards.
async fn registered(server: &ServerArguments) -> anyhow::Result<RuleSet> {
    let text = ask::client(server)?.get_text("/v1/export").await?;
    let file = RuleFile { name: "the registry's export".to_owned(), text };
    let documents = rules::read(&[file]).map_err(|faults| {
        let first = faults.first().map(ToString::to_string).unwrap_or_default();
        anyhow::anyhow!("this build does not read what the control plane exports: {first}")
    })?;
    Ok(RuleSet::default().with(&documents, Unmentioned::Prune))
}
