//! What is seen from outside while the generator's threads work.

use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use super::RunError;
use crate::accounting::{AccountingError, Sample, Usage};
use crate::generator::Run;
use crate::recorder::Second;
use crate::report::progress::Progress;
use crate::report::timeline::Timeline;

/// What was seen.
#[derive(Debug)]
pub struct Watched {
    /// CPU times over the measured window.
    pub usages: Vec<Usage>,
    /// Second by second.
    pub timeline: Timeline,
    /// When the threads were found to have ended.
    pub ended: Instant,
}

/// Follows a run to its end: progress, timeline, and CPU times over the measured window. Each second
/// of the whole run is told once it is complete.
///
/// # Errors
/// A process that is to be accounted has ended; what `tell` says.
pub fn watch(
    run: &Run,
    pids: &[u32],
    mut tell: impl FnMut(&Second) -> Result<(), RunError>,
) -> Result<Watched, RunError> {
    let length = run.span.end.map(|end| end.saturating_duration_since(run.span.start));
    let progress = Progress::over(length);
    let mut timeline = Timeline::default();
    let mut failures = 0;
    let mut before: Option<Vec<Sample>> = None;
    let mut after: Option<Vec<Sample>> = None;
    let mut ended = None;
    loop {
        let now = Instant::now();
        if before.is_none() && now >= run.span.measured_from {
            before = Some(samples(pids)?);
        }
        if after.is_none() && run.span.end.is_some_and(|end| now >= end) {
            after = Some(samples(pids)?);
        }
        if run.is_finished() {
            ended.get_or_insert(now);
            break;
        }
        let age = now.saturating_duration_since(run.span.start);
        progress.show(age, timeline.newest().as_ref(), failures);
        match run.seconds.recv_timeout(wait(run, now)) {
            Ok(second) => {
                failures += second.failures;
                timeline.add(second);
                timeline.take_closed().iter().try_for_each(&mut tell)?;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    while let Ok(second) = run.seconds.try_recv() {
        timeline.add(second);
    }
    timeline.close_all();
    timeline.take_closed().iter().try_for_each(&mut tell)?;
    progress.clear();
    let after = match after {
        Some(after) => after,
        None => samples(pids)?,
    };
    let usages = before
        .unwrap_or_default()
        .iter()
        .zip(&after)
        .zip(pids)
        .map(|((before, after), pid)| before.usage_until(*pid, after))
        .collect();
    Ok(Watched { usages, timeline, ended: ended.unwrap_or_else(Instant::now) })
}

fn samples(pids: &[u32]) -> Result<Vec<Sample>, AccountingError> {
    pids.iter().map(|pid| Sample::of(*pid)).collect()
}

/// Until the next moment of the span, or a look at the threads.
fn wait(run: &Run, now: Instant) -> Duration {
    let look = Duration::from_millis(20);
    [Some(run.span.measured_from), run.span.end]
        .into_iter()
        .flatten()
        .filter(|moment| *moment > now)
        .map(|moment| moment - now)
        .fold(look, Duration::min)
}
