//! The command line.

mod ask;
mod files;
mod keygen;
mod serve;
mod shadow;
mod show;
mod table;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::{client::ClientError, rules::SCHEMA};

/// Switchboard's control plane: rules in, signed Snapshots out.
#[derive(Debug, Parser)]
#[command(
    name = "switchboard-control",
    version,
    about,
    after_help = "Exit codes: 0 done, 1 failed, 2 refused: by the rules' checks, by the gate, or by \
                  wrong arguments."
)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a signing key: a secret file for `serve`, a public one for routers
    Keygen(keygen::KeygenArguments),
    /// Run the control plane: registry, API, and the way to the routers
    Serve(serve::ServeArguments),
    /// Apply rule files: validate, store, gate, sign and activate them as one new version
    Apply(ApplyArguments),
    /// Tell what `apply` would change, and how many Units would move between which Arms
    Plan(RulesArguments),
    /// Tell what is active, what is on its way, and how every router is
    Status(ServerArguments),
    /// List versions, newest first
    Versions(ServerArguments),
    /// Tell which Rules are tried for a request, and why each one decides or does not
    Explain(ExplainArguments),
    /// Make an older version's content a new version
    Rollback(RollbackArguments),
    /// Print a version as rule files that give the same version on an empty registry
    Export(ExportArguments),
    /// Replay Shadow records to a candidate Model version, and tell how its answers differ
    ShadowWorker(Box<shadow::ShadowWorkerArguments>),
    /// Tell what all stored results of a candidate say together
    ShadowReport(shadow::ShadowReportArguments),
    /// Print the JSON Schema of rule files
    Schema,
}

/// Where `serve` is, and how to print its answers.
#[derive(Args, Debug)]
struct ServerArguments {
    /// Where `serve` listens
    #[arg(
        long,
        env = "SWITCHBOARD_CONTROL_URL",
        default_value = "http://127.0.0.1:7700",
        value_name = "URL"
    )]
    server: String,
    /// File with the bearer token; else the variable SWITCHBOARD_TOKEN holds the token itself
    #[arg(long, env = "SWITCHBOARD_TOKEN_FILE", value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Print the API's JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Which rules.
#[derive(Args, Debug)]
struct RulesArguments {
    /// A rule file, a folder of *.yaml and *.yml files, or - for standard input; may be repeated
    #[arg(short = 'f', long = "file", required = true, value_name = "FILE|DIR")]
    files: Vec<PathBuf>,
    /// Remove the objects that the files do not mention
    #[arg(long)]
    prune: bool,
    #[command(flatten)]
    server: ServerArguments,
}

#[derive(Args, Debug)]
struct ApplyArguments {
    #[command(flatten)]
    rules: RulesArguments,
    /// Return once the change has a version, without waiting for its end
    #[arg(long)]
    no_wait: bool,
}

#[derive(Args, Debug)]
struct ExplainArguments {
    /// Token of the Objective
    #[arg(long, value_name = "TOKEN")]
    objective: String,
    /// Value of every attribute that an Experiment of the Objective buckets
    #[arg(long, value_name = "VALUE")]
    unit: Option<String>,
    /// An attribute of the request; may be repeated
    #[arg(long = "attr", value_name = "NAME=VALUE", value_parser = name_and_value)]
    attributes: Vec<(String, String)>,
    #[command(flatten)]
    server: ServerArguments,
}

#[derive(Args, Debug)]
struct RollbackArguments {
    /// The version to restore; default: the one that was active before with other content
    version: Option<u64>,
    /// Return once the change has a version, without waiting for its end
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    server: ServerArguments,
}

#[derive(Args, Debug)]
struct ExportArguments {
    /// The version to print; default: the active one
    version: Option<u64>,
    #[command(flatten)]
    server: ServerArguments,
}

fn name_and_value(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        Some(_) | None => Err("expected NAME=VALUE"),
    }
}

/// How a command ends that did not do what it was asked for.
#[derive(Debug)]
pub enum Failure {
    /// The rules' checks or the gate refused: the author's to mend. The text tells everything.
    Refused(String),
    /// Anything else.
    Other(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        let error = error.into();
        match error.downcast_ref::<ClientError>().and_then(ClientError::refusal) {
            Some(problem) => Self::Refused(show::refusal(problem)),
            None => Self::Other(error),
        }
    }
}

/// Runs one command.
///
/// # Errors
/// See [`Failure`].
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.command {
        Command::Keygen(arguments) => Ok(keygen::keygen(&arguments)?),
        Command::Serve(arguments) => Ok(runtime()?.block_on(serve::serve(arguments))?),
        Command::Apply(arguments) => block_on(ask::apply(arguments)),
        Command::Plan(arguments) => block_on(ask::plan(arguments)),
        Command::Status(arguments) => block_on(ask::status(arguments)),
        Command::Versions(arguments) => block_on(ask::versions(arguments)),
        Command::Explain(arguments) => block_on(ask::explain(arguments)),
        Command::Rollback(arguments) => block_on(ask::rollback(arguments)),
        Command::Export(arguments) => block_on(ask::export(arguments)),
        Command::ShadowWorker(arguments) => block_on(shadow::shadow_worker(*arguments)),
        Command::ShadowReport(arguments) => block_on(shadow::shadow_report(arguments)),
        Command::Schema => Ok(show::print(SCHEMA)?),
    }
}

fn block_on(command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    runtime()?.block_on(command)
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}
