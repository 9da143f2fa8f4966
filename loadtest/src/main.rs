//! `switchboard-loadtest`: arguments, run, exit code.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use switchboard_loadtest::compare::{self, arguments::CompareArguments};
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
    Compare(Box<CompareArguments>),
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
