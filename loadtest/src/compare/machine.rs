//! What the host is, as far as it explains the numbers.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde::Serialize;

use super::arguments::CompareArguments;
use super::peer::Peer;

/// Facts about the host at the moment of the comparison.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Machine {
    pub date: String,
    pub commit: String,
    pub build: &'static str,
    pub cpu: String,
    pub cores: usize,
    pub is_virtual: bool,
    pub memory: String,
    pub kernel: String,
    pub clock_source: String,
    pub governor: String,
    pub io_uring_disabled: String,
    pub mitigations: BTreeMap<String, String>,
    /// Of the minutes before: another load would be measured too.
    pub load_average_before: String,
    /// The scheduler's group of this session and its priority: `nice 0` unless it was raised, as on
    /// a host that has other work meanwhile.
    pub scheduler_group: String,
    pub programs: BTreeMap<&'static str, String>,
}

impl Machine {
    /// Looks around. What a host does not tell is left empty.
    pub fn here(arguments: &CompareArguments, peers: &[Peer]) -> Self {
        let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let value = |name: &str| {
            let line = cpu.lines().find(|line| line.starts_with(name)).unwrap_or_default();
            line.split_once(": ").map_or(String::new(), |(_, value)| value.to_owned())
        };
        let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        Self {
            date: humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string(),
            commit: commit(),
            build: if cfg!(debug_assertions) { "debug: not for publication" } else { "release" },
            cpu: value("model name"),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            is_virtual: value("flags").split(' ').any(|flag| flag == "hypervisor"),
            memory: memory
                .lines()
                .next()
                .unwrap_or_default()
                .replace("MemTotal:", "")
                .trim()
                .to_owned(),
            kernel: line("/proc/sys/kernel/osrelease"),
            clock_source: line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            io_uring_disabled: line("/proc/sys/kernel/io_uring_disabled"),
            mitigations: mitigations(Path::new("/sys/devices/system/cpu/vulnerabilities")),
            load_average_before: line("/proc/loadavg"),
            scheduler_group: line("/proc/self/autogroup"),
            programs: peers
                .iter()
                .filter_map(|peer| {
                    let program = arguments.program(*peer)?;
                    Some((peer.name(), first_line(Command::new(program).arg(peer.version_flag()))))
                })
                .collect(),
        }
    }
}

/// The commit of the working folder; `+` where it has changes.
fn commit() -> String {
    let hash = first_line(Command::new("git").args(["rev-parse", "--short=12", "HEAD"]));
    let changes =
        first_line(Command::new("git").args(["status", "--porcelain", "--untracked-files=no"]));
    if changes.is_empty() { hash } else { format!("{hash}+") }
}

fn line(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// What a program says first, on either output.
fn first_line(command: &mut Command) -> String {
    let Ok(output) = command.output() else { return String::new() };
    let said = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&said).lines().next().unwrap_or_default().to_owned()
}

fn mitigations(folder: &Path) -> BTreeMap<String, String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return BTreeMap::new() };
    entries
        .flatten()
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, line(&entry.path().to_string_lossy()))
        })
        .filter(|(_, state)| state != "Not affected")
        .collect()
}
