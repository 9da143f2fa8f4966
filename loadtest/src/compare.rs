//! The same workload against several proxies on this host, in interleaved rounds.
//!
//! One proxy at a time has its core for itself; the generator and the model servers share another.
//! Each measurement is a `run` of this very binary, so every number has a command behind it.

pub mod arguments;
pub mod machine;
pub mod measure;
pub mod peer;
pub mod process;
pub mod push;
pub mod results;
pub mod workload;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use self::arguments::CompareArguments;
use self::machine::Machine;
use self::measure::{Measurement, Phase, Site};
use self::peer::Peer;
use self::process::ProcessError;
use self::results::Results;
use self::workload::Workload;
use crate::signal::StopSignal;

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
    /// Fewer than two proxies.
    #[error("nothing to compare: {0}")]
    Nothing(String),
    /// A signal.
    #[error("stopped by a signal; what was measured is in {0}")]
    Stopped(PathBuf),
    /// The stop signal.
    #[error("cannot set up the process")]
    Setup(#[source] io::Error),
}

impl CompareError {
    /// For `map_err`: `path` could not be used.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}

/// Measures and writes a dated folder of results.
///
/// # Errors
/// A proxy that does not start or answers wrongly, or a disk that is full.
pub fn run(arguments: &CompareArguments) -> Result<(), CompareError> {
    let stop = StopSignal::install().map_err(CompareError::Setup)?;
    let peers = arguments.peers()?;
    let workload = Workload::small_json_by_header();
    let machine = Machine::here(arguments, &peers);
    let results = Results::create(&arguments.out, &machine, &workload)?;
    let site = Site::open(arguments, &workload, &results)?;

    let mut measurements = Vec::new();
    for round in 0..arguments.rounds {
        for peer in in_turn(&peers, round) {
            measurements.push(site.measure(peer, Phase::Saturation, round)?);
            if stop.is_set() {
                return Err(CompareError::Stopped(results.folder().to_owned()));
            }
        }
    }
    let rate = arguments.rate.unwrap_or_else(|| half_of_the_slowest(&measurements));
    for round in 0..arguments.rounds {
        for peer in in_turn(&peers, round) {
            measurements.push(site.measure(peer, Phase::Rate(rate), round)?);
            if stop.is_set() {
                return Err(CompareError::Stopped(results.folder().to_owned()));
            }
        }
    }
    results.finish(&machine, &workload, &peers, &measurements)
}

/// Another peer begins each round, so that none always follows the same one.
fn in_turn(peers: &[Peer], round: usize) -> impl Iterator<Item = Peer> + '_ {
    (0..peers.len()).map(move |position| peers[(position + round) % peers.len()])
}

/// Half of the median throughput of the slowest proxy: a rate that all of them can hold.
fn half_of_the_slowest(measurements: &[Measurement]) -> f64 {
    let mut rates: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for measurement in measurements {
        rates.entry(measurement.peer.name()).or_default().push(measurement.report.rate);
    }
    let slowest =
        rates.into_values().map(|rates| results::Spread::of(&rates).median).reduce(f64::min);
    (slowest.unwrap_or(1000.0) / 2.0).round()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_has_its_turn_in_every_round_and_none_is_always_first() {
        let peers = [Peer::Direct, Peer::Nginx, Peer::Router];
        let orders: Vec<Vec<Peer>> = (0..3).map(|round| in_turn(&peers, round).collect()).collect();
        for peer in peers {
            assert!(orders.iter().all(|order| order.contains(&peer)));
            assert_eq!(orders.iter().filter(|order| order[0] == peer).count(), 1);
        }
    }
}
