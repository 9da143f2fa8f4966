//! `switchboard-control`: arguments, run, exit code.

use std::process::ExitCode;

use clap::Parser;
use switchboard_control::cli::{Arguments, Failure, run};

/// What the rules, the gate or a router refused.
const REFUSED: u8 = 2;

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Refused(told)) => {
            eprintln!("{told}");
            ExitCode::from(REFUSED)
        }
        Err(Failure::Other(error)) => {
            eprintln!("switchboard-control: {error:#}"); // the only place that prints an error chain
            ExitCode::FAILURE
        }
    }
}
