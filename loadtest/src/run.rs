//! `switchboard-loadtest run`: flags in, report out.

pub mod arguments;
pub mod watch;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hdrhistogram::serialization::V2DeflateSerializer;

use self::arguments::{ArgumentsError, Asked, OutputArguments, RunArguments};
use self::watch::{Watched, watch};
use crate::accounting::AccountingError;
use crate::generator::feed::Feed;
use crate::generator::{Finished, GeneratorError, Run};
use crate::recorder::records::{Records, RecordsError};
use crate::report::folder::Folder;
use crate::report::interval_log;
use crate::report::percentiles::write_hgrm;
use crate::report::summary::{Around, Summary};
use crate::report::table;
use crate::signal::{StopSignal, raise_open_files_limit};

/// Exit code where a check does not hold: the target's fault.
pub const EXIT_CHECKS: u8 = 1;

/// Exit code where requests failed otherwise: the target's fault too.
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
    let asked = arguments.asked()?;
    let stop = StopSignal::install().map_err(RunError::Process)?;
    raise_open_files_limit();
    let (lag_max, output) = (arguments.load.lag_max.duration(), &arguments.output);
    let measured = measure(asked, Vec::new(), lag_max, output, &stop)?;
    report(&measured, output)?;
    Ok(exit_code(&measured.summary))
}

/// What a run measured, and what follows from it.
#[derive(Debug)]
pub struct Measured {
    /// The conclusions.
    pub summary: Summary,
    /// All counts and distributions.
    pub finished: Finished,
}

/// Sends what was asked until its end or a signal. `feeds` has one for each thread, or is empty.
///
/// # Errors
/// See [`RunError`].
pub fn measure(
    asked: Asked,
    feeds: Vec<Feed>,
    lag_max: Duration,
    output: &OutputArguments,
    stop: &StopSignal,
) -> Result<Measured, RunError> {
    let Asked { plan, shares } = asked;
    let plan = Arc::new(plan);
    let folder = output.out.as_deref().map(|path| Folder::create(path).map_err(in_file(path)));
    let folder = folder.transpose()?;
    let records = output
        .record
        .as_deref()
        .map(|path| Records::create(path, output.record_max))
        .transpose()?;
    let recorders =
        records.iter().flat_map(|records| (0..plan.threads).map(|_| records.recorder()));
    let started = SystemTime::now();

    let generator = Run::start(&plan, recorders.collect(), feeds, stop)?;
    let watched = follow(&generator, output, folder.as_ref(), started)?;
    let span = generator.span;
    let finished = generator.finish()?;
    if let Some(records) = records {
        records.finish()?;
    }

    let window_end = match span.end {
        Some(end) => end.min(watched.ended),
        None => finished.tally.last_done.unwrap_or(watched.ended),
    };
    let started_unix_ms = started
        .duration_since(UNIX_EPOCH)
        .map_or(0, |age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
    let around = Around {
        command: command_line(),
        started_unix_ms,
        window: window_end.saturating_duration_since(span.measured_from),
        lag_max,
        shares,
        usages: watched.usages,
        timeline: watched.timeline.finish(),
    };
    let summary = Summary::new(&plan, &finished, around);
    Ok(Measured { summary, finished })
}

/// Follows a run to its end; where there is a folder, its seconds are logged as they pass.
fn follow(
    generator: &Run,
    output: &OutputArguments,
    folder: Option<&Folder>,
    started: SystemTime,
) -> Result<Watched, RunError> {
    let Some(folder) = folder else { return watch(generator, &output.cpu_of, |_| Ok(())) };
    let path = folder.log_path();
    let mut out = BufWriter::new(File::create(&path).map_err(in_file(&path))?);
    let mut serializer = V2DeflateSerializer::new();
    let mut log =
        interval_log::begin(&mut out, &mut serializer, started).map_err(in_file(&path))?;
    let watched = watch(generator, &output.cpu_of, |second| {
        interval_log::write(&mut log, second).map_err(in_file(&path))
    })?;
    out.flush().map_err(in_file(&path))?;
    Ok(watched)
}

/// Writes all reports that were asked for.
///
/// # Errors
/// `Report`.
pub fn report(measured: &Measured, output: &OutputArguments) -> Result<(), RunError> {
    let Measured { summary, finished } = measured;
    if let Some(path) = &output.hgrm {
        write_file(path, |out| write_hgrm(&finished.tally.latency, out))?;
    }
    if let Some(path) = &output.out {
        let folder = Folder::create(path).map_err(in_file(path))?;
        folder.write(summary, &finished.tally).map_err(in_file(path))?;
    }
    write_summary(summary, output.json.as_deref())
}

fn write_summary(summary: &Summary, json: Option<&Path>) -> Result<(), RunError> {
    let stdout = Path::new("-");
    let json_to_stdout = json == Some(stdout);
    if let Some(path) = json {
        write_json(path, summary)?;
    }
    if !json_to_stdout {
        table::write(summary, &mut io::stdout().lock()).map_err(in_file(stdout))?;
    }
    Ok(())
}

/// Writes a report as JSON; `-` is standard output.
///
/// # Errors
/// `Report`.
pub fn write_json(path: &Path, report: &impl serde::Serialize) -> Result<(), RunError> {
    let write_json = |mut out: Box<dyn Write>| {
        serde_json::to_writer_pretty(&mut out, report)?;
        writeln!(out)?;
        out.flush()
    };
    let written = if path == Path::new("-") {
        write_json(Box::new(io::stdout().lock()))
    } else {
        File::create(path).and_then(|file| write_json(Box::new(BufWriter::new(file))))
    };
    written.map_err(in_file(path))
}

/// Writes a file.
///
/// # Errors
/// `Report`.
pub fn write_file(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), RunError> {
    let written = File::create(path).and_then(|file| {
        let mut out = BufWriter::new(file);
        write(&mut out)?;
        out.flush()
    });
    written.map_err(in_file(path))
}

fn in_file(path: &Path) -> impl Fn(io::Error) -> RunError {
    move |source| RunError::Report { path: path.to_owned(), source }
}

/// What a program that started this one should know.
pub fn exit_code(summary: &Summary) -> ExitCode {
    if !summary.valid {
        ExitCode::from(EXIT_INVALID)
    } else if !summary.failed_checks.is_empty() {
        ExitCode::from(EXIT_CHECKS)
    } else if summary.failures_total > 0 {
        ExitCode::from(EXIT_FAILURES)
    } else {
        ExitCode::SUCCESS
    }
}

/// The arguments, with the program's name in place of its path: a result tells no one's folders.
pub fn command_line() -> Vec<String> {
    let mut arguments: Vec<String> = std::env::args().collect();
    if let Some(program) = arguments.first_mut()
        && let Some(name) = Path::new(program).file_name()
    {
        *program = name.to_string_lossy().into_owned();
    }
    arguments
}
