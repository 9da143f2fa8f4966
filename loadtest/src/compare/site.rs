//! Where one workload is measured: its model servers, and the proxies that come and go.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use switchboard_shared::definition::Definition;

use super::CompareError;
use super::arguments::CompareArguments;
use super::ask;
use super::cache::Cache;
use super::measure::{Measurement, Phase, Report, Seen};
use super::peer::{Peer, Running, Setting};
use super::process::{Process, as_text, output};
use super::results::Results;
use super::rules;
use super::workload::{Job, LoadPlan, Workload};
use crate::net::cores::Cores;

/// What stays the same over a workload's measurements.
#[derive(Debug)]
pub struct Site<'a> {
    arguments: &'a CompareArguments,
    workload: &'a Workload,
    results: &'a Results,
    work: tempfile::TempDir,
    this_program: PathBuf,
    body: Option<String>,
    stable: Model,
    heavy: Model,
    cache: Option<Cache>,
    /// Proxies that start slowly, standing still between their turns.
    waiting: RefCell<BTreeMap<Peer, Running>>,
    starts: Cell<usize>,
}

#[derive(Debug)]
struct Model {
    address: String,
    _process: Process,
}

/// The part of a model server's stats that is compared.
#[derive(Debug, serde::Deserialize)]
struct Stats {
    requests: u64,
    connections: u64,
}

/// Requests of the check before the measurements: enough for every connection, few enough to be quick.
const CHECK_REQUESTS: &str = "300";

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
        results.hide(work.path(), "WORK");
        results.note(&format!("\n# {}", workload.name))?;
        let model = |name: &str| -> Result<Model, CompareError> {
            let mut command = Command::new(&this_program);
            command.args(["upstream", "--listen", "127.0.0.1:0", "--name", name]);
            command.args(workload.answer.flags());
            results.note(&as_text(&command))?;
            let log = work.path().join(name);
            let mut process = Process::start(command, &arguments.load_core, &log)?;
            let address = process.wait_for_line("listening on ")?;
            Ok(Model { address, _process: process })
        };
        let (stable, heavy) = (model("stable")?, model("heavy")?);
        let body = workload
            .body_text()
            .map(|text| {
                let path = work.path().join("body.json");
                std::fs::write(&path, text).map_err(CompareError::file(&path))?;
                results.keep(&path, &format!("{}-body.json", workload.name))?;
                Ok::<_, CompareError>(path.display().to_string())
            })
            .transpose()?;
        let cache = (workload.job == Job::Facts)
            .then(|| Cache::start(&arguments.load_core, work.path(), results))
            .transpose()?;
        let (waiting, starts) = (RefCell::default(), Cell::new(0));
        Ok(Self {
            arguments,
            workload,
            results,
            work,
            this_program,
            body,
            stable,
            heavy,
            cache,
            waiting,
            starts,
        })
    }

    /// Starts a proxy, checks that it does its job, and tells how many requests per second it takes (or
    /// has to take, where the workload says so): no numbers are better than wrong ones.
    ///
    /// # Errors
    /// It does not start, or does not do the job.
    pub fn rehearse(&self, peer: Peer) -> Result<f64, CompareError> {
        let running = self.start(peer)?;
        self.keep_configuration(peer, &running)?;
        let known =
            self.command(peer, &running, Phase::Saturation, &["--requests", CHECK_REQUESTS]);
        let known = self.run(known)?;
        if known.failures_total > 0 {
            let failed = known.failures_total;
            let what = format!("it fails {failed} of {CHECK_REQUESTS} requests before any load");
            return Err(CompareError::unfit(peer, what));
        }
        if peer.splits_by_user() {
            self.check_unknown(peer, &running)?;
        }
        if let LoadPlan::Rate(rate) = self.workload.load {
            self.release(peer, running);
            return Ok(rate);
        }
        let span = self.arguments.rehearsal().to_string();
        let trial = self.command(peer, &running, Phase::Saturation, &["--duration", &span]);
        let rate = self.run(trial)?.rate;
        self.release(peer, running);
        Ok(rate)
    }

    /// Measures one peer once in each of `phases`.
    ///
    /// # Errors
    /// It does not start. What goes wrong under load is told by [`Measurement::objection`].
    pub fn measure(
        &self,
        peer: Peer,
        phases: &[Phase],
        round: usize,
    ) -> Result<Vec<Measurement>, CompareError> {
        let running = self.take(peer)?;
        let measured = phases
            .iter()
            .map(|phase| self.measure_phase(peer, &running, *phase, round))
            .collect::<Result<Vec<_>, _>>();
        self.release(peer, running);
        measured
    }

    /// A running peer, told to go on where it stood still.
    fn take(&self, peer: Peer) -> Result<Running, CompareError> {
        let waiting = self.waiting.borrow_mut().remove(&peer);
        let running = match waiting {
            Some(running) => running,
            None => self.start(peer)?,
        };
        running.process.iter().for_each(Process::resume);
        Ok(running)
    }

    /// Ends a peer, or lets it stand still where starting it again would take seconds.
    fn release(&self, peer: Peer, running: Running) {
        if peer.starts_slowly() {
            running.process.iter().for_each(Process::pause);
            self.waiting.borrow_mut().insert(peer, running);
        }
    }

    /// Starts a peer in a folder of its own.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(&self, peer: Peer) -> Result<Running, CompareError> {
        self.start_on(peer, &self.arguments.proxy_core)
    }

    /// Starts the router with its worker on the proxy's core and its housekeeping on the other, as it
    /// is on a host of its own.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_with_housekeeping(&self) -> Result<Running, CompareError> {
        let cores = self.arguments.proxy_core.and(&self.arguments.load_core);
        self.start_on(Peer::Router, &cores)
    }

    fn start_on(&self, peer: Peer, cores: &Cores) -> Result<Running, CompareError> {
        let number = self.starts.replace(self.starts.get() + 1);
        let folder = self.work.path().join(format!("{number}-{}", peer.name()));
        std::fs::create_dir(&folder).map_err(CompareError::file(&folder))?;
        let setting = Setting {
            program: self.arguments.program(peer).unwrap_or_default(),
            cores,
            folder: &folder,
            workload: self.workload,
            models: [&self.stable.address, &self.heavy.address],
            cache: self.cache.as_ref().map(Cache::address),
        };
        peer.start(&setting)
    }

    fn measure_phase(
        &self,
        peer: Peer,
        running: &Running,
        phase: Phase,
        round: usize,
    ) -> Result<Measurement, CompareError> {
        let (duration, warmup) = (self.arguments.span(phase), self.arguments.warmup(self.workload));
        let (duration, warmup) = (duration.to_string(), warmup.to_string());
        let mut flags = vec!["--duration", &duration, "--warmup", &warmup];
        let pid = running.process.as_ref().map(|process| process.pid().to_string());
        if let Some(pid) = &pid {
            flags.extend(["--cpu-of", pid]);
        }
        let command = self.command(peer, running, phase, &flags);
        self.results.note(&as_text(&command))?;
        let seen_until_now = || {
            let worker_nanos = running.process.as_ref().filter(|_| peer.is_ours());
            let worker_nanos = worker_nanos.map_or(0, |process| worker_nanos_of(process.pid()));
            Ok::<_, CompareError>(Seen { worker_nanos, ..self.stats()? })
        };
        let before = seen_until_now()?;
        let said = output(command, &self.arguments.load_core)?;
        let seen = Seen::between(before, seen_until_now()?);
        self.results.raw(self.workload, (peer, phase, round), seen, &said.stdout)?;
        let report: Report = serde_json::from_slice(&said.stdout)?;
        let measurement = Measurement { peer, phase, round, report, seen };
        eprintln!("{}", measurement.progress());
        Ok(measurement)
    }

    /// What both model servers have seen until now.
    fn stats(&self) -> Result<Seen, CompareError> {
        let mut seen = Seen::default();
        for model in [&self.stable, &self.heavy] {
            let what = "/__control/stats";
            let stats = ask::body(&model.address, "GET", what).map_err(CompareError::file(what))?;
            let stats: Stats = serde_json::from_str(&stats)?;
            seen.requests += stats.requests;
            seen.connections += stats.connections;
        }
        Ok(seen)
    }

    /// The configuration as it was run.
    fn keep_configuration(&self, peer: Peer, running: &Running) -> Result<(), CompareError> {
        if let Some(command) = &running.command {
            self.results.note(&as_text(command))?;
        }
        for path in &running.files {
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            let name = format!("{}-{}-{file}", self.workload.name, peer.name());
            self.results.keep(path, &name)?;
        }
        Ok(())
    }

    /// An Objective that nobody has is not answered.
    fn check_unknown(&self, peer: Peer, running: &Running) -> Result<(), CompareError> {
        let mut command = Command::new(&self.this_program);
        let job = peer.job(self.workload);
        command.arg("run").args(self.workload.flags_of_unknown(job, &running.address));
        command.args(["--requests", "20", "--json", "-"]);
        if self.run(command)?.failures_total > 0 {
            let what = "it does not answer 404 to an unknown Objective".to_owned();
            return Err(CompareError::unfit(peer, what));
        }
        Ok(())
    }

    fn run(&self, command: Command) -> Result<Report, CompareError> {
        let said = output(command, &self.arguments.load_core)?;
        Ok(serde_json::from_slice(&said.stdout)?)
    }

    /// Runs the generator beside `meanwhile`.
    ///
    /// # Errors
    /// Of either; what `run` reports is not judged.
    pub fn run_while(
        &self,
        command: Command,
        meanwhile: impl FnOnce() -> Result<(), CompareError>,
    ) -> Result<Report, CompareError> {
        let said = std::thread::scope(|scope| {
            let load = scope.spawn(|| output(command, &self.arguments.load_core));
            let done = meanwhile();
            let said = load.join().map_err(|_| CompareError::Died)?;
            done.and(Ok(said?))
        })?;
        Ok(serde_json::from_slice(&said.stdout)?)
    }

    /// A `run` of the generator against a running peer.
    pub fn command(&self, peer: Peer, running: &Running, phase: Phase, flags: &[&str]) -> Command {
        let mut command = Command::new(&self.this_program);
        let (job, body) = (peer.job(self.workload), self.body.as_deref());
        command.arg("run").args(self.workload.flags(job, &running.address, body));
        if let Phase::Rate(rate) = phase {
            command.args(["--rate", &rate.to_string()]);
        }
        command.args(flags).args(["--json", "-"]);
        command
    }

    /// What is measured here.
    pub fn workload(&self) -> &Workload {
        self.workload
    }

    /// The router's rules here.
    pub fn definition(&self) -> Definition {
        let models = [self.stable.address.as_str(), self.heavy.address.as_str()];
        rules::definition(self.workload, self.workload.job, models)
    }

    /// One small request of this workload, as bytes on the wire.
    pub fn request(&self) -> String {
        let Workload { path, objective, .. } = self.workload;
        format!(
            "POST {path} HTTP/1.1\r\nhost: router\r\nx-switchboard-objective: {objective}\r\n\
             x-user-id: u1\r\ncontent-length: 2\r\n\r\n{{}}"
        )
    }
}

/// CPU time that a router's network threads have used, in nanoseconds (`/proc/PID/task/TID/schedstat`).
fn worker_nanos_of(pid: u32) -> u64 {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return 0 };
    let used = |thread: PathBuf| -> Option<u64> {
        let name = std::fs::read_to_string(thread.join("comm")).ok()?;
        let used = std::fs::read_to_string(thread.join("schedstat")).ok()?;
        let used = used.split_ascii_whitespace().next()?.parse().ok()?;
        name.starts_with("worker-").then_some(used)
    };
    threads.flatten().filter_map(|thread| used(thread.path())).sum()
}
