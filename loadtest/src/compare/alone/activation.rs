//! What new rules cost: a large push, and a thousand reloads under load.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use switchboard_shared::definition::Definition;
use switchboard_shared::push::Micros;
use switchboard_shared::snapshot::{SecretKey, SnapshotVersion};

use super::{Activation, fleet};
use crate::compare::CompareError;
use crate::compare::arguments::CompareArguments;
use crate::compare::measure::{Phase, Report};
use crate::compare::peer::{Peer, Running};
use crate::compare::process::as_text;
use crate::compare::push::{Feed, PushError};
use crate::compare::results::Results;
use crate::compare::rules::{self, GROUP};
use crate::compare::site::Site;
use crate::compare::spread::Spread;

/// Reloads in all.
const RELOADS: usize = 1_000;

/// Rounds of the load, each once with reloads and once without.
const ROUNDS: usize = 5;

/// Length of each load.
const LOAD_SPAN: Duration = Duration::from_millis(1500);

/// Requests per second: far below what the router takes, so that p99 shows what a swap does and not
/// what a queue does.
const RATE: f64 = 2_000.0;

/// Measures on a router with the design's cores: the worker alone on its own, the housekeeping on the
/// next, where the generator is, too.
pub(super) fn measure(
    site: &Site<'_>,
    arguments: &CompareArguments,
    results: &Results,
) -> Result<Activation, CompareError> {
    let running = site.start_with_housekeeping()?;
    let Some((socket, key)) = &running.feed else {
        return Err(CompareError::unfit(Peer::Router, "it takes no rules".to_owned()));
    };
    let mut pushes = Pushes::open(socket, key)?;
    let large = large_definition(site);
    let mut push_ms = Vec::new();
    for _ in 0..ROUNDS {
        push_ms.push(pushes.push(&large)?.as_secs_f64() * 1e3);
    }
    let small = site.definition();
    pushes.push(&small)?;
    pushes.swaps.clear();

    let (mut with, mut without) = (Loads::default(), Loads::default());
    let mut reloading = Duration::ZERO;
    let (before, mut reloads) = (pushes.version, 0);
    for round in 0..ROUNDS {
        for reloads_now in if round % 2 == 0 { [true, false] } else { [false, true] } {
            let command = load(site, &running, arguments);
            results.note(&as_text(&command))?;
            let share = RELOADS / ROUNDS;
            let start = Instant::now();
            let report = site.run_while(command, || {
                if !reloads_now {
                    return Ok(());
                }
                (0..share).try_for_each(|number| {
                    pushes.push(&small)?;
                    reloads += 1;
                    // Spread over the load; a push that took its time is not waited for.
                    let due = start + (LOAD_SPAN + START_SPAN) * float(number + 1) / float(share);
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    Ok(())
                })
            })?;
            if reloads_now {
                reloading += start.elapsed();
                with.add(&report);
            } else {
                without.add(&report);
            }
        }
    }
    debug_assert_eq!(pushes.version.get() - before.get(), reloads);
    let spread = |values: &[f64]| {
        Spread::of(values)
            .ok_or_else(|| CompareError::unfit(Peer::Router, "nothing was measured".to_owned()))
    };
    Ok(Activation {
        push_ms: spread(&push_ms)?,
        swap_us: spread(&pushes.swaps)?,
        p99_with_reloads_us: spread(&with.p99_us)?,
        p99_without_us: spread(&without.p99_us)?,
        reloads_per_second: reloads as f64 / reloading.as_secs_f64(),
        reloads,
        requests: with.answers,
        failed: with.failed + without.failed,
    })
}

/// What `run` takes to start: within its warm-up.
const START_SPAN: Duration = Duration::from_millis(200);

fn float(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn load(site: &Site<'_>, running: &Running, arguments: &CompareArguments) -> Command {
    let (span, warmup) =
        (format!("{}ms", LOAD_SPAN.as_millis()), arguments.warmup(site.workload()));
    let flags = ["--duration", &span, "--warmup", &warmup.to_string()];
    site.command(Peer::Router, running, Phase::Rate(RATE), &flags)
}

/// The workload's rules among 10 000 Objectives with 8 rules each.
fn large_definition(site: &Site<'_>) -> Definition {
    let mut large = fleet::definition();
    let own = site.definition();
    GROUP.clone_into(&mut large.group);
    large.objectives.extend(own.objectives);
    large.models.extend(own.models);
    large.shards.extend(own.shards);
    large
}

/// One connection to the router's feed, with ever newer versions.
struct Pushes<'a> {
    feed: Feed,
    key: &'a SecretKey,
    version: SnapshotVersion,
    /// Of each core and push, in microseconds.
    swaps: Vec<f64>,
}

impl<'a> Pushes<'a> {
    fn open(socket: &Path, key: &'a SecretKey) -> Result<Self, PushError> {
        let feed = Feed::connect(socket)?;
        Ok(Self { feed, key, version: SnapshotVersion::FIRST, swaps: Vec::new() })
    }

    /// From the first byte of PREPARE to ACTIVE; building and signing is not the router's.
    fn push(&mut self, definition: &Definition) -> Result<Duration, CompareError> {
        self.version = self.version.next().unwrap_or(self.version);
        let snapshot =
            rules::snapshot(definition, self.version, self.key).map_err(PushError::from)?;
        let start = Instant::now();
        let active = self.feed.push(&snapshot)?;
        let took = start.elapsed();
        self.swaps.extend(active.swaps.iter().map(|Micros(micros)| f64::from(*micros)));
        Ok(took)
    }
}

#[derive(Default)]
struct Loads {
    p99_us: Vec<f64>,
    answers: u64,
    failed: u64,
}

impl Loads {
    fn add(&mut self, report: &Report) {
        self.p99_us.push(report.latency_us.p99);
        self.answers += report.answers;
        self.failed += report.failures_total;
    }
}
