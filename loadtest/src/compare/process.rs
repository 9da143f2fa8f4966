//! Programs that the comparison starts, each on its core, and stops again.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::net::cores::Cores;

/// A running program. It ends with this value.
#[derive(Debug)]
pub struct Process {
    child: Child,
    program: PathBuf,
    log: PathBuf,
}

/// Why a program did not do as it should.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// No such program, for instance.
    #[error("cannot start {program}")]
    Start {
        /// Which one.
        program: PathBuf,
        /// What the host says.
        #[source]
        source: io::Error,
    },
    /// It ended, or never came up.
    #[error("{program} {what}; it said: {said}")]
    Failed {
        /// Which one.
        program: PathBuf,
        /// In what way.
        what: String,
        /// The end of what it printed.
        said: String,
    },
}

/// How long a program may take to come up or to end.
const PATIENCE: Duration = Duration::from_secs(10);

impl Process {
    /// Starts `command` pinned to `cores`; what it prints goes to `log`.
    ///
    /// # Errors
    /// `Start`.
    pub fn start(mut command: Command, cores: &Cores, log: &Path) -> Result<Self, ProcessError> {
        let program = PathBuf::from(command.get_program());
        let failed = |source| ProcessError::Start { program: program.clone(), source };
        let output = File::create(log).map_err(failed)?;
        let errors = output.try_clone().map_err(failed)?;
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        let child = on_cores(cores, || command.spawn()).map_err(failed)?;
        Ok(Self { child, program: program.clone(), log: log.to_owned() })
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until something listens on `address`.
    ///
    /// # Errors
    /// It ended, or nothing listens for too long.
    pub fn wait_for_port(&mut self, address: &str) -> Result<(), ProcessError> {
        self.wait_until("does not listen", || TcpStream::connect(address).is_ok().then_some(()))
    }

    /// Waits for a line of its output that begins with `prefix`, and returns the rest of it.
    ///
    /// # Errors
    /// It ended, or does not print such a line for too long.
    pub fn wait_for_line(&mut self, prefix: &str) -> Result<String, ProcessError> {
        let log = self.log.clone();
        self.wait_until("does not say what was waited for", || {
            let lines = BufReader::new(File::open(&log).ok()?).lines();
            lines
                .map_while(Result::ok)
                .find_map(|line| line.strip_prefix(prefix).map(str::to_owned))
        })
    }

    /// Asks until there is an answer.
    ///
    /// # Errors
    /// It ended, or there is none for too long.
    pub fn wait_until<T>(
        &mut self,
        otherwise: &str,
        mut ask: impl FnMut() -> Option<T>,
    ) -> Result<T, ProcessError> {
        let start = Instant::now();
        loop {
            if let Some(answer) = ask() {
                return Ok(answer);
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(self.failed(format!("ended with {status}")));
            }
            if start.elapsed() > PATIENCE {
                return Err(self.failed(otherwise.to_owned()));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Lets it stand still, with its connections open.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// A process that has gone already misses nothing.
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).ok();
    }

    fn failed(&self, what: String) -> ProcessError {
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = said.lines().collect();
        let said = lines[lines.len().saturating_sub(5)..].join(" | ");
        ProcessError::Failed { program: self.program.clone(), what, said }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Already gone: then the wait below tells at once.
        self.signal(Signal::TERM);
        self.resume(); // a paused one would never take it
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Runs `command` to its end, pinned to `cores`.
///
/// # Errors
/// `Start`.
pub fn output(mut command: Command, cores: &Cores) -> Result<Output, ProcessError> {
    let program = PathBuf::from(command.get_program());
    on_cores(cores, || command.output()).map_err(|source| ProcessError::Start { program, source })
}

/// The command as a shell would take it, with the program's name in place of its path.
pub fn as_text(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(quoted).collect::<Vec<_>>().join(" ")
}

/// A port that nobody uses at this moment.
///
/// # Errors
/// There is none.
pub fn free_address() -> io::Result<String> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}

/// A child inherits the cores of the thread that starts it; so a thread of its own is pinned first.
fn on_cores<T: Send>(cores: &Cores, start: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let starter = scope.spawn(|| {
            cores.allow_current_thread()?;
            start()
        });
        starter.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
    })
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=,@+".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_program_runs_on_the_core_that_it_was_given_and_we_stay_where_we_were() {
        let before = rustix::thread::sched_getaffinity(None).unwrap();
        let cores = "0".parse().unwrap();
        let printed = output(shell("grep Cpus_allowed_list /proc/self/status"), &cores).unwrap();
        let printed = String::from_utf8(printed.stdout).unwrap();
        assert_eq!(printed.split_whitespace().last(), Some("0"), "{printed}");
        assert_eq!(rustix::thread::sched_getaffinity(None).unwrap(), before);
    }

    #[test]
    fn a_program_that_ends_early_is_told_with_what_it_said() {
        let folder = tempfile::tempdir().unwrap();
        let cores = "0".parse().unwrap();
        let command = shell("echo no such thing; exit 3");
        let mut process = Process::start(command, &cores, &folder.path().join("log")).unwrap();
        let error = process.wait_for_line("listening on ").unwrap_err().to_string();
        assert!(error.contains("ended with exit status: 3"), "{error}");
        assert!(error.contains("no such thing"), "{error}");
    }

    #[test]
    fn a_paused_program_stands_still_and_ends_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let cores = "0".parse().unwrap();
        let command = shell("while :; do echo x; sleep 0.01; done");
        let mut process = Process::start(command, &cores, &log).unwrap();
        process.wait_for_line("x").unwrap();
        process.pause();
        let pid = process.pid();
        let stands_still = move || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            stat.rsplit_once(") ").map(|(_, fields)| fields.starts_with('T'))
        };
        process.wait_until("goes on", || stands_still().filter(|stands| *stands)).unwrap();
        drop(process);
        assert_eq!(stands_still(), None, "the process is gone");
    }

    #[test]
    fn a_command_is_told_so_that_a_shell_takes_it() {
        assert_eq!(as_text(&shell("echo 'a b'")), r"sh -c 'echo '\''a b'\'''");
    }
}
