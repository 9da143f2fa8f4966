//! What the host is, as far as it explains the numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use io_uring::{IoUring, cqueue, squeue};
use serde::{Deserialize, Serialize};

use super::arguments::CompareArguments;
use super::peer::Peer;

/// Facts about the host at the moment of the comparison.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Machine {
    pub date: String,
    pub commit: String,
    pub build: String,
    pub cpu: String,
    pub cores: usize,
    pub is_virtual: bool,
    pub memory: String,
    pub kernel: String,
    pub clock_source: String,
    pub governor: String,
    pub io_uring_disabled: String,
    /// Features and set-up flags of io_uring that this kernel grants us.
    pub ring_features: Vec<String>,
    pub mitigations: BTreeMap<String, String>,
    /// What `kernel-tuning/tune check` counted; the whole of it is in `tuning.json`.
    pub tuning: BTreeMap<String, u64>,
    /// Of the minutes before: another load would be measured too.
    pub load_average_before: String,
    /// The scheduler's group of this session and its priority: `nice 0` unless it was raised, as on
    /// a host that has other work meanwhile.
    pub scheduler_group: String,
    pub programs: BTreeMap<String, String>,
}

/// The part of `tune check --json` that is counted.
#[derive(Deserialize)]
struct Tuning {
    summary: BTreeMap<String, u64>,
}

impl Machine {
    /// Looks around. What a host does not tell is left empty. `tuning` is what `tune check` printed.
    pub fn here(arguments: &CompareArguments, peers: &BTreeSet<Peer>, tuning: &[u8]) -> Self {
        let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let value = |name: &str| {
            let line = cpu.lines().find(|line| line.starts_with(name)).unwrap_or_default();
            line.split_once(": ").map_or(String::new(), |(_, value)| value.to_owned())
        };
        let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let memory = memory.lines().next().unwrap_or_default().replace("MemTotal:", "");
        let tuning = serde_json::from_slice::<Tuning>(tuning).map(|tuning| tuning.summary);
        Self {
            date: humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string(),
            commit: commit(),
            build: build().to_owned(),
            cpu: value("model name"),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            is_virtual: value("flags").split(' ').any(|flag| flag == "hypervisor"),
            memory: memory.trim().to_owned(),
            kernel: line("/proc/sys/kernel/osrelease"),
            clock_source: line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            io_uring_disabled: line("/proc/sys/kernel/io_uring_disabled"),
            ring_features: ring_features(),
            mitigations: mitigations(Path::new("/sys/devices/system/cpu/vulnerabilities")),
            tuning: tuning.unwrap_or_default(),
            load_average_before: line("/proc/loadavg"),
            scheduler_group: line("/proc/self/autogroup"),
            programs: peers
                .iter()
                .filter_map(|peer| {
                    let program = arguments.program(*peer)?;
                    Some((peer.name().to_owned(), peer.version(&program)))
                })
                .collect(),
        }
    }
}

impl Machine {
    /// Names a result: the day, and the commit that was measured.
    pub fn result_name(&self) -> String {
        let day = self.date.split('T').next().unwrap_or_default();
        let commit: String = self.commit.chars().take(8).collect();
        format!("{day}-{commit}")
    }
}

/// What `tune check --json` prints; empty where the comparison does not run in the repository.
pub fn tuning() -> Vec<u8> {
    let check = ["check", "--profile", "edge-latency", "--json"];
    let output = Command::new("kernel-tuning/tune").args(check).output();
    output.map_or(Vec::new(), |output| output.stdout)
}

/// How this program, and so most likely the router beside it, was built.
pub const fn build() -> &'static str {
    if cfg!(debug_assertions) { "debug: not for publication" } else { "release" }
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

fn first_line(command: &mut Command) -> String {
    let Ok(output) = command.output() else { return String::new() };
    String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned()
}

fn ring_features() -> Vec<String> {
    let Ok(ring) = IoUring::new(8) else { return vec!["no io_uring".to_owned()] };
    let parameters = ring.params();
    let features = [
        ("single_mmap", parameters.is_feature_single_mmap()),
        ("nodrop", parameters.is_feature_nodrop()),
        ("submit_stable", parameters.is_feature_submit_stable()),
        ("fast_poll", parameters.is_feature_fast_poll()),
        ("ext_arg", parameters.is_feature_ext_arg()),
        ("native_workers", parameters.is_feature_native_workers()),
        ("skip_cqe_on_success", parameters.is_feature_skip_cqe_on_success()),
        ("linked_file", parameters.is_feature_linked_file()),
    ];
    let mut flags = IoUring::<squeue::Entry, cqueue::Entry>::builder();
    flags.setup_single_issuer().setup_coop_taskrun().setup_defer_taskrun();
    let flags = ("SINGLE_ISSUER|COOP_TASKRUN|DEFER_TASKRUN", flags.build(8).is_ok());
    let granted = features.into_iter().chain([flags]).filter(|(_, is_granted)| *is_granted);
    granted.map(|(name, _)| name.to_owned()).collect()
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
