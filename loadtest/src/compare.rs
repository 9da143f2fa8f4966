//! The same workloads against several proxies on this host, in interleaved rounds.
//!
//! One proxy at a time has its core for itself; the generator and the model servers share another.
//! Each measurement is a `run` of this very binary, so every number has a command behind it.
//!
//! In the order of its data: [`arguments`] → [`plan`]; [`workload`] and [`peer`] as data; [`site`] starts
//! and loads them; [`measure`] → [`outcome`] → [`target`]; [`alone`] is about the router without peers;
//! [`results`] writes all of it.

pub mod alone;
pub mod arguments;
pub mod ask;
pub mod cache;
pub mod machine;
pub mod measure;
pub mod outcome;
pub mod peer;
pub mod plan;
pub mod process;
pub mod push;
pub mod results;
pub mod rules;
pub mod site;
pub mod spread;
pub mod target;
pub mod workload;

use std::collections::BTreeSet;
use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

use self::arguments::CompareArguments;
use self::machine::Machine;
use self::outcome::{Mishap, Outcome};
use self::peer::Peer;
use self::process::ProcessError;
use self::results::{Findings, Results};
use self::site::Site;
use self::target::Evidence;
use self::workload::Workload;
use crate::accounting::AccountingError;
use crate::signal::{StopSignal, raise_open_files_limit};

/// Why there is no comparison.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// See the cause.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The router did not take the rules.
    #[error("cannot give the router its rules")]
    Push(#[from] push::PushError),
    /// A measurement with failures compares nothing.
    #[error("{peer}: {what}")]
    Unfit {
        /// Which proxy.
        peer: &'static str,
        /// What went wrong.
        what: String,
    },
    /// A file of the comparison.
    #[error("cannot use {path}")]
    File {
        /// Which one.
        path: PathBuf,
        /// What the host says.
        #[source]
        source: io::Error,
    },
    /// A report of `run` that is none.
    #[error("cannot read a report")]
    Report(#[from] serde_json::Error),
    /// A process that was measured has gone.
    #[error("cannot account for a process")]
    Accounting(#[from] AccountingError),
    /// Wrong flags.
    #[error("nothing to compare: {0}")]
    Nothing(String),
    /// A signal.
    #[error("stopped by a signal; what was measured is in {0}")]
    Stopped(PathBuf),
    /// The stop signal or standard output.
    #[error("cannot set up the process")]
    Setup(#[source] io::Error),
    /// A bug.
    #[error("a thread of the comparison has died")]
    Died,
}

impl CompareError {
    /// For `map_err`: `path` could not be used.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }

    /// A peer that does not do what it is measured at.
    pub(crate) fn unfit(peer: Peer, what: String) -> Self {
        Self::Unfit { peer: peer.name(), what }
    }
}

/// Measures, writes a dated folder of results, and prints the targets.
///
/// # Errors
/// Wrong flags, model servers that do not start, or a disk that is full. A proxy that fails is dropped
/// and told about; if it is the router, the result is written all the same, and then it is an error.
pub fn run(arguments: &CompareArguments) -> Result<(), CompareError> {
    let start = Instant::now();
    let chosen = arguments.choose()?;
    eprint!("{}", plan::text(arguments, &chosen, alone::expected(arguments)));
    if arguments.plan {
        return Ok(());
    }
    let stop = StopSignal::install().map_err(CompareError::Setup)?;
    raise_open_files_limit();
    let everyone: BTreeSet<Peer> = chosen.iter().flat_map(|(_, peers)| peers.clone()).collect();
    let tuning = machine::tuning();
    let machine = Machine::here(arguments, &everyone, &tuning);
    let quick = arguments.is_quick() || cfg!(debug_assertions);
    let name = machine.result_name() + if quick { "-quick" } else { "" };
    let results = Results::create(&arguments.out, &name, &machine)?;
    results.write("tuning.json", &String::from_utf8_lossy(&tuning))?;

    let mut workloads = Vec::new();
    for (workload, peers) in &chosen {
        let outcome = compare(arguments, &results, (workload, peers), &stop)?;
        workloads.push(outcome.summary(peers));
    }
    let alone = alone::measure(arguments, &results)?;
    let targets = target::judge(Evidence { workloads: &workloads, alone: &alone });
    let (rounds, seconds) = (arguments.rounds, start.elapsed().as_secs());
    let findings = Findings { machine, rounds, quick, seconds, workloads, alone, targets };
    results.finish(&findings)?;
    tell(&findings, &results).map_err(CompareError::Setup)?;
    router_is_whole(&findings)
}

/// Measures one workload: a rehearsal that also finds the common rate, then the rounds.
fn compare(
    arguments: &CompareArguments,
    results: &Results,
    (workload, peers): (&Workload, &[Peer]),
    stop: &StopSignal,
) -> Result<Outcome, CompareError> {
    eprintln!("{}", workload.name);
    let site = Site::open(arguments, workload, results)?;
    let mut mishaps = Vec::new();
    let mut capacities = Vec::new();
    for peer in peers {
        match site.rehearse(*peer) {
            Ok(capacity) => capacities.push((*peer, capacity)),
            Err(error) => mishaps.push(mishap(*peer, "rehearsal".to_owned(), chain(&error))),
        }
        if stop.is_set() {
            return Err(CompareError::Stopped(results.folder().to_owned()));
        }
    }
    let able: Vec<_> = capacities.iter().map(|(peer, _)| *peer).collect();
    let rate = plan::common_rate(workload, &capacities);
    let mut measurements = Vec::new();
    for round in 0..arguments.rounds {
        for peer in plan::in_turn(&able, round) {
            match site.measure(peer, &plan::phases(workload, peer, rate), round) {
                Ok(measured) => {
                    for measurement in measured {
                        match measurement.objection() {
                            None => measurements.push(measurement),
                            Some(what) => {
                                let phase = measurement.phase.name();
                                let when = format!("{phase}, round {}", round + 1);
                                mishaps.push(mishap(peer, when, what));
                            }
                        }
                    }
                }
                Err(error) => {
                    mishaps.push(mishap(peer, format!("round {}", round + 1), chain(&error)));
                }
            }
            if stop.is_set() {
                return Err(CompareError::Stopped(results.folder().to_owned()));
            }
        }
    }
    Ok(Outcome { workload: workload.clone(), rate, measurements, mishaps })
}

fn mishap(peer: Peer, when: String, what: String) -> Mishap {
    eprintln!("  {} dropped out ({when}): {what}", peer.name());
    Mishap { peer: peer.name().to_owned(), when, what }
}

fn tell(findings: &Findings, results: &Results) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "\n{}", results::targets_table(&findings.targets))?;
    if findings.quick {
        writeln!(out, "A quick run: too few rounds, or a debug build. Not for publication.")?;
    }
    writeln!(out, "written to {}", results.folder().display())
}

/// A comparison in which our own router failed must not look like a success.
fn router_is_whole(findings: &Findings) -> Result<(), CompareError> {
    let mishaps = findings.workloads.iter().flat_map(|workload| &workload.mishaps);
    match mishaps.into_iter().find(|mishap| mishap.peer == Peer::Router.name()) {
        Some(Mishap { when, what, .. }) => {
            Err(CompareError::unfit(Peer::Router, format!("{when}: {what}")))
        }
        None => Ok(()),
    }
}

/// An error with its causes on one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
