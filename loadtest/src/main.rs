//! `switchboard-loadtest`: arguments, run, exit code.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use switchboard_loadtest::capacity::{self, CapacityArguments};
use switchboard_loadtest::compare::{self, arguments::CompareArguments};
use switchboard_loadtest::replay::{self, ReplayArguments};
use switchboard_loadtest::run::{self, arguments::RunArguments};
use switchboard_loadtest::upstream::serve::{self, UpstreamArguments};

/// Load generator and model server of Switchboard.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Capacity(Box<CapacityArguments>),
    Compare(Box<CompareArguments>),
    Replay(Box<ReplayArguments>),
    Run(Box<RunArguments>),
    Upstream(Box<UpstreamArguments>),
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("switchboard-loadtest: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments.command {
        Command::Capacity(arguments) => Ok(capacity::run(&arguments)?),
        Command::Replay(arguments) => Ok(replay::run(&arguments)?),
        Command::Compare(arguments) => {
            compare::run(&arguments)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Run(arguments) => Ok(run::run(&arguments)?),
        Command::Upstream(arguments) => {
            serve::run(*arguments)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
