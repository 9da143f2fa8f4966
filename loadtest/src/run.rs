//! `switchboard-loadtest run`: flags in, report out.

pub mod arguments;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use self::arguments::{ArgumentsError, RunArguments};
use crate::accounting::{AccountingError, Sample, Usage};
use crate::generator::{GeneratorError, Run};
use crate::recorder::records::{Records, RecordsError};
use crate::report::percentiles::write_hgrm;
use crate::report::progress::Progress;
use crate::report::summary::{Around, Summary};
use crate::report::table;
use crate::report::timeline::Timeline;
use crate::signal::{StopSignal, raise_open_files_limit};

/// Exit code where requests failed: the target's fault.
pub const EXIT_FAILURES: u8 = 2;

/// Exit code where the generator fell behind its schedule: the numbers are not to be trusted.
pub const EXIT_INVALID: u8 = 3;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// See the cause.
    #[error(transparent)]
    Arguments(#[from] ArgumentsError),
    /// See the cause.
    #[error(transparent)]
    Generator(#[from] GeneratorError),
    /// See the cause.
    #[error("--cpu-of")]
    Accounting(#[from] AccountingError),
    /// See the cause.
    #[error("--record")]
    Records(#[from] RecordsError),
    /// The stop signal.
    #[error("cannot set up the process")]
    Process(#[source] io::Error),
    /// The disk is full, for instance.
    #[error("cannot write the report to {path}")]
    Report {
        /// Where to.
        path: PathBuf,
        /// What the host says.
        #[source]
        source: io::Error,
    },
}

/// Runs until its end or a signal, and reports either way.
///
/// # Errors
/// Before anything is sent, or where the report cannot be written.
pub fn run(arguments: &RunArguments) -> Result<ExitCode, RunError> {
    let plan = Arc::new(arguments.plan()?);
    let stop = StopSignal::install().map_err(RunError::Process)?;
    raise_open_files_limit();
    let records = arguments
        .record
        .as_deref()
        .map(|path| Records::create(path, arguments.record_max))
        .transpose()?;
    let recorders =
        records.iter().flat_map(|records| (0..plan.threads).map(|_| records.recorder()));
    let started_unix_ms = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX));

    let generator = Run::start(&plan, recorders.collect(), &stop)?;
    let watched = watch(&generator, &arguments.cpu_of)?;
    let span = generator.span;
    let finished = generator.finish()?;
    if let Some(records) = records {
        records.finish()?;
    }

    let window_end = match span.end {
        Some(end) => end.min(watched.ended),
        None => finished.tally.last_done.unwrap_or(watched.ended),
    };
    let around = Around {
        command: command_line(),
        started_unix_ms,
        window: window_end.saturating_duration_since(span.measured_from),
        lag_max: arguments.lag_max.duration(),
        usages: watched.usages,
        timeline: watched.timeline.finish(),
    };
    let summary = Summary::new(&plan, &finished, around);
    if let Some(path) = &arguments.hgrm {
        write_file(path, |out| write_hgrm(&finished.tally.latency, out))?;
    }
    write_summary(&summary, arguments)?;
    Ok(exit_code(&summary))
}

/// What was seen from outside while the threads worked.
struct Watched {
    usages: Vec<Usage>,
    timeline: Timeline,
    ended: Instant,
}

/// Follows a run to its end: progress, timeline, and CPU times over the measured window.
fn watch(run: &Run, pids: &[u32]) -> Result<Watched, RunError> {
    let length = run.span.end.map(|end| end.saturating_duration_since(run.span.start));
    let progress = Progress::over(length);
    let mut timeline = Timeline::default();
    let mut before: Option<Vec<Sample>> = None;
    let mut after: Option<Vec<Sample>> = None;
    let sample = || pids.iter().map(|pid| Sample::of(*pid)).collect::<Result<Vec<_>, _>>();
    let mut ended = None;
    loop {
        let now = Instant::now();
        if before.is_none() && now >= run.span.measured_from {
            before = Some(sample()?);
        }
        if after.is_none() && run.span.end.is_some_and(|end| now >= end) {
            after = Some(sample()?);
        }
        if run.is_finished() {
            ended.get_or_insert(now);
            break;
        }
        progress.show(now.saturating_duration_since(run.span.start), timeline.newest().as_ref());
        match run.seconds.recv_timeout(wait(run, now)) {
            Ok(second) => timeline.add(second),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    timeline_rest(run, &mut timeline);
    progress.clear();
    let after = match after {
        Some(after) => after,
        None => sample()?,
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

fn timeline_rest(run: &Run, timeline: &mut Timeline) {
    while let Ok(second) = run.seconds.try_recv() {
        timeline.add(second);
    }
}

fn write_summary(summary: &Summary, arguments: &RunArguments) -> Result<(), RunError> {
    let stdout = Path::new("-");
    let json_to_stdout = arguments.json.as_deref() == Some(stdout);
    if let Some(path) = arguments.json.as_deref() {
        let write_json = |mut out: Box<dyn Write>| {
            serde_json::to_writer_pretty(&mut out, summary)?;
            writeln!(out)?;
            out.flush()
        };
        let written = if json_to_stdout {
            write_json(Box::new(io::stdout().lock()))
        } else {
            File::create(path).and_then(|file| write_json(Box::new(BufWriter::new(file))))
        };
        written.map_err(|source| RunError::Report { path: path.to_owned(), source })?;
    }
    if !json_to_stdout {
        table::write(summary, &mut io::stdout().lock())
            .map_err(|source| RunError::Report { path: stdout.to_owned(), source })?;
    }
    Ok(())
}

fn write_file(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), RunError> {
    let written = File::create(path).and_then(|file| {
        let mut out = BufWriter::new(file);
        write(&mut out)?;
        out.flush()
    });
    written.map_err(|source| RunError::Report { path: path.to_owned(), source })
}

fn exit_code(summary: &Summary) -> ExitCode {
    if !summary.valid {
        ExitCode::from(EXIT_INVALID)
    } else if summary.failures_total > 0 {
        ExitCode::from(EXIT_FAILURES)
    } else {
        ExitCode::SUCCESS
    }
}

/// The arguments, with the program's name in place of its path: a result tells no one's folders.
fn command_line() -> Vec<String> {
    let mut arguments: Vec<String> = std::env::args().collect();
    if let Some(program) = arguments.first_mut()
        && let Some(name) = Path::new(program).file_name()
    {
        *program = name.to_string_lossy().into_owned();
    }
    arguments
}
