//! One measurement: a proxy is started, checked, loaded by a `run` of this binary, and stopped.

mod control;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::CompareError;
use super::arguments::CompareArguments;
use super::peer::{Peer, Running, Setting};
use super::process::{Process, as_text, output};
use super::results::Results;
use super::workload::Workload;
use crate::report::percentiles::Percentiles;

/// How requests are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Phase {
    /// Closed loop: as many as the proxy takes.
    Saturation,
    /// Open loop at this rate.
    Rate(f64),
}

impl Phase {
    /// In file names.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Saturation => "saturation",
            Self::Rate(_) => "rate",
        }
    }
}

/// What one measurement found.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// Whose.
    pub peer: Peer,
    /// Which.
    pub phase: Phase,
    /// What `run` reported.
    pub report: Report,
    /// Requests that the model servers saw over the connections that they accepted for them.
    pub requests_per_model_connection: f64,
}

/// The part of `run`'s report that is compared.
#[derive(Clone, Debug, Deserialize)]
pub struct Report {
    /// Answers per second.
    pub rate: f64,
    /// Whole answers.
    pub answers: u64,
    /// Failed requests; none in a fit measurement.
    pub failures_total: u64,
    /// Whether the generator kept its schedule.
    pub valid: bool,
    /// From when requests were due.
    pub latency_us: Percentiles,
    /// Answers by model server.
    pub model_servers: BTreeMap<String, u64>,
    /// The proxy's process, unless there is none.
    pub cpu: Vec<ReportedCpu>,
}

/// CPU time of the proxy.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct ReportedCpu {
    /// User and system time over the answers of the window.
    pub cpu_us_per_answer: f64,
    /// User and system time of the window.
    pub cpu_us: f64,
    /// Resident memory at the end.
    pub resident_bytes: u64,
}

/// What stays the same over all measurements: model servers, folders, settings.
#[derive(Debug)]
pub struct Site<'a> {
    arguments: &'a CompareArguments,
    workload: &'a Workload,
    results: &'a Results,
    work: tempfile::TempDir,
    this_program: PathBuf,
    stable: Model,
    heavy: Model,
    /// Which configurations were kept with the results already.
    kept: RefCell<Vec<Peer>>,
}

#[derive(Debug)]
struct Model {
    address: String,
    _process: Process,
}

/// Requests of the check before each measurement.
const CHECK_REQUESTS: &str = "300";

/// How far the seen share of the heavy model may be from the asked one: four standard deviations of
/// 10 000 users, and a little for the requests of a last unfinished turn.
const SHARE_TOLERANCE: f64 = 0.015;

impl<'a> Site<'a> {
    /// Starts the model servers.
    ///
    /// # Errors
    /// They do not start.
    pub fn open(
        arguments: &'a CompareArguments,
        workload: &'a Workload,
        results: &'a Results,
    ) -> Result<Self, CompareError> {
        let this_program = std::env::current_exe().map_err(CompareError::file("this program"))?;
        let work = tempfile::Builder::new()
            .prefix("compare-")
            .tempdir()
            .map_err(CompareError::file("a temporary folder"))?;
        let model = |name: &str| -> Result<Model, CompareError> {
            let mut command = Command::new(&this_program);
            let bytes = workload.answer_bytes.to_string();
            command.args(["upstream", "--listen", "127.0.0.1:0", "--name", name]);
            command.args(["--body-bytes", &bytes]);
            results.note(&as_text(&command))?;
            let log = work.path().join(name);
            let mut process = Process::start(command, &arguments.load_core, &log)?;
            let address = process.wait_for_line("listening on ")?;
            Ok(Model { address, _process: process })
        };
        let (stable, heavy) = (model("stable")?, model("heavy")?);
        let kept = RefCell::default();
        Ok(Self { arguments, workload, results, work, this_program, stable, heavy, kept })
    }

    /// Measures one peer once.
    ///
    /// # Errors
    /// It does not start, or does not do the job: no numbers are better than wrong ones.
    pub fn measure(
        &self,
        peer: Peer,
        phase: Phase,
        round: usize,
    ) -> Result<Measurement, CompareError> {
        let name = format!("{}-{}-{}", phase.name(), round + 1, peer.name());
        let folder = self.work.path().join(&name);
        std::fs::create_dir(&folder).map_err(CompareError::file(&folder))?;
        let setting = Setting {
            program: self.arguments.program(peer).unwrap_or_default(),
            cores: &self.arguments.proxy_core,
            folder: &folder,
            workload: self.workload,
            models: [&self.stable.address, &self.heavy.address],
        };
        let running = peer.start(&setting)?;
        self.keep_configuration(peer, &running, &folder)?;
        self.check(peer, &running)?;

        for model in [&self.stable, &self.heavy] {
            control::reset(&model.address)?;
        }
        let raw = self.results.raw(&name);
        let report = self.load(&running, phase, &raw)?;
        let seen = [&self.stable, &self.heavy]
            .map(|model| control::stats(&model.address))
            .into_iter()
            .collect::<Result<Vec<_>, _>>()?;
        let requests: u64 = seen.iter().map(|stats| stats.requests).sum();
        let connections: u64 = seen.iter().map(|stats| stats.connections).sum();
        let measurement = Measurement {
            peer,
            phase,
            requests_per_model_connection: requests as f64 / connections.max(1) as f64,
            report,
        };
        self.judge(&measurement)?;
        eprintln!("{}", progress(&measurement, round));
        Ok(measurement)
    }

    /// The configuration as it was run, once per peer.
    fn keep_configuration(
        &self,
        peer: Peer,
        running: &Running,
        folder: &Path,
    ) -> Result<(), CompareError> {
        if self.kept.borrow().contains(&peer) {
            return Ok(());
        }
        self.kept.borrow_mut().push(peer);
        if let Some(command) = &running.command {
            self.results.note(&as_text(command))?;
        }
        for file in ["nginx.conf", "haproxy.cfg"] {
            let path = folder.join(file);
            if path.exists() {
                self.results.keep(&path, file)?;
            }
        }
        Ok(())
    }

    /// Known Objectives are answered, unknown ones are not: every proxy does its job.
    fn check(&self, peer: Peer, running: &Running) -> Result<(), CompareError> {
        let known =
            self.run(&running.address, Phase::Saturation, &["--requests", CHECK_REQUESTS])?;
        if known.failures_total > 0 {
            return Err(unfit(peer, "it fails requests before there is any load"));
        }
        if !peer.is_proxy() {
            return Ok(());
        }
        let url = format!("http://{}/", running.address);
        let unknown = ["run", "--url", &url, "--objective", "NO_SUCH", "-H", "x-user-id: u1"];
        let mut command = Command::new(&self.this_program);
        command.args(unknown).args(["--requests", "20", "--expect-status", "404"]);
        let said = output(command, &self.arguments.load_core)?;
        if !said.status.success() {
            return Err(unfit(peer, "it does not answer 404 to an unknown Objective"));
        }
        Ok(())
    }

    fn load(&self, running: &Running, phase: Phase, raw: &Path) -> Result<Report, CompareError> {
        let (duration, warmup) =
            (self.arguments.duration.to_string(), self.arguments.warmup.to_string());
        let connections = self.arguments.connections.to_string();
        let mut flags =
            vec!["--duration", &duration, "--warmup", &warmup, "--connections", &connections];
        let pid = running.process.as_ref().map(|process| process.pid().to_string());
        if let Some(pid) = &pid {
            flags.extend(["--cpu-of", pid]);
        }
        let command = self.command(&running.address, phase, &flags);
        self.results.note(&as_text(&command))?;
        let said = output(command, &self.arguments.load_core)?;
        std::fs::write(raw, &said.stdout).map_err(CompareError::file(raw))?;
        Ok(serde_json::from_slice(&said.stdout)?)
    }

    fn run(&self, address: &str, phase: Phase, flags: &[&str]) -> Result<Report, CompareError> {
        let said = output(self.command(address, phase, flags), &self.arguments.load_core)?;
        Ok(serde_json::from_slice(&said.stdout)?)
    }

    fn command(&self, address: &str, phase: Phase, flags: &[&str]) -> Command {
        let mut command = Command::new(&self.this_program);
        command.arg("run").args(self.workload.flags(address, phase)).args(flags);
        command.args(["--json", "-"]);
        command
    }

    fn judge(&self, measurement: &Measurement) -> Result<(), CompareError> {
        let report = &measurement.report;
        if report.failures_total > 0 || report.answers == 0 {
            let failures = report.failures_total;
            return Err(unfit(measurement.peer, &format!("{failures} requests failed")));
        }
        if !measurement.peer.is_proxy() {
            return Ok(());
        }
        let heavy = report.model_servers.get("heavy").copied().unwrap_or(0);
        let share = heavy as f64 / report.answers as f64;
        if (share - self.workload.heavy_share).abs() > SHARE_TOLERANCE {
            return Err(unfit(
                measurement.peer,
                &format!("the heavy model got a share of {share}"),
            ));
        }
        if report.cpu.is_empty() {
            return Err(unfit(measurement.peer, "its CPU time is not known"));
        }
        Ok(())
    }
}

fn unfit(peer: Peer, what: &str) -> CompareError {
    CompareError::Unfit { peer: peer.name(), what: what.to_owned() }
}

fn progress(measurement: &Measurement, round: usize) -> String {
    let Measurement { peer, phase, report, .. } = measurement;
    let cpu = report.cpu.first().map_or(String::new(), |cpu| {
        format!(", {:.2} us of CPU per request", cpu.cpu_us_per_answer)
    });
    format!(
        "round {} {:<10} {:<8} {:>8.0}/s, p50 {:.0} us, p99 {:.0} us{cpu}",
        round + 1,
        phase.name(),
        peer.name(),
        report.rate,
        report.latency_us.p50,
        report.latency_us.p99,
    )
}
