//! CPU time and memory of other processes, from `/proc`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

/// A process at one moment.
#[derive(Clone, Debug)]
pub struct Sample {
    name: String,
    /// Nanoseconds on a core, by thread: `/proc/PID/task/*/schedstat`.
    threads: BTreeMap<u32, u64>,
    /// `/proc/PID/stat`: whole clock ticks, ended threads included.
    user_ticks: u64,
    system_ticks: u64,
    resident_bytes: u64,
}

/// What a process used between two moments.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Usage {
    /// Process number.
    pub pid: u32,
    /// As the kernel names it.
    pub name: String,
    /// User and system time, in microseconds.
    pub cpu_us: f64,
    /// How `cpu_us` was measured.
    pub precision: Precision,
    /// User time in microseconds, in whole clock ticks (10 ms on most hosts).
    pub user_us: f64,
    /// System time in microseconds, in whole clock ticks.
    pub system_us: f64,
    /// Threads at the end.
    pub threads: usize,
    /// Resident memory at the end.
    pub resident_bytes: u64,
}

/// How CPU time was measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// The scheduler's own account.
    Nanoseconds,
    /// Threads came or went meanwhile, or the kernel keeps no such account.
    ClockTicks,
}

/// Why a process could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum AccountingError {
    /// It does not exist, or has ended.
    #[error("cannot read {path}")]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the host says.
        #[source]
        source: std::io::Error,
    },
    /// The kernel writes it in another form.
    #[error("cannot understand {0}")]
    Format(PathBuf),
}

impl Sample {
    /// Looks at process `pid`.
    ///
    /// # Errors
    /// It has ended, for instance.
    pub fn of(pid: u32) -> Result<Self, AccountingError> {
        let folder = PathBuf::from(format!("/proc/{pid}"));
        let stat_path = folder.join("stat");
        let stat = read(stat_path.clone())?;
        let statm_path = folder.join("statm");
        let statm = read(statm_path.clone())?;
        let (name, user_ticks, system_ticks) =
            parse_stat(&stat).ok_or(AccountingError::Format(stat_path))?;
        let resident_pages: u64 = statm
            .split(' ')
            .nth(1)
            .and_then(|pages| pages.parse().ok())
            .ok_or(AccountingError::Format(statm_path))?;
        let resident_bytes = resident_pages * rustix::param::page_size() as u64;
        let threads = threads(&folder.join("task"))?;
        Ok(Self { name, threads, user_ticks, system_ticks, resident_bytes })
    }

    /// What the process used from `self` to `later`.
    pub fn usage_until(&self, pid: u32, later: &Self) -> Usage {
        let ticks_per_second = rustix::param::clock_ticks_per_second();
        let in_us = |ticks: u64| micros(ticks) * 1e6 / micros(ticks_per_second);
        let user_us = in_us(later.user_ticks.saturating_sub(self.user_ticks));
        let system_us = in_us(later.system_ticks.saturating_sub(self.system_ticks));
        let (cpu_us, precision) = match self.nanoseconds_until(later) {
            Some(nanoseconds) => (micros(nanoseconds) / 1000.0, Precision::Nanoseconds),
            None => (user_us + system_us, Precision::ClockTicks),
        };
        Usage {
            pid,
            name: later.name.clone(),
            cpu_us,
            precision,
            user_us,
            system_us,
            threads: later.threads.len(),
            resident_bytes: later.resident_bytes,
        }
    }

    /// `None` where a thread came or went: its time would be missing.
    fn nanoseconds_until(&self, later: &Self) -> Option<u64> {
        if self.threads.is_empty() || !self.threads.keys().eq(later.threads.keys()) {
            return None;
        }
        let sum = |sample: &Self| sample.threads.values().sum::<u64>();
        Some(sum(later).saturating_sub(sum(self)))
    }
}

#[expect(clippy::cast_precision_loss, reason = "53 bits of nanoseconds are a hundred days")]
fn micros(count: u64) -> f64 {
    count as f64
}

fn read(path: PathBuf) -> Result<String, AccountingError> {
    std::fs::read_to_string(&path).map_err(|source| AccountingError::Read { path, source })
}

/// Nanoseconds by thread; empty where the kernel keeps no account.
fn threads(folder: &std::path::Path) -> Result<BTreeMap<u32, u64>, AccountingError> {
    let failed = |source| AccountingError::Read { path: folder.to_owned(), source };
    let mut threads = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let id = entry.file_name().to_str().and_then(|name| name.parse().ok());
        let account = std::fs::read_to_string(entry.path().join("schedstat")).ok();
        let nanoseconds =
            account.as_deref().and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        if let (Some(id), Some(nanoseconds)) = (id, nanoseconds) {
            threads.insert(id, nanoseconds);
        }
    }
    Ok(threads)
}

/// Name, user and system ticks (fields 2, 14 and 15 of proc_pid_stat(5)). A name may hold blanks
/// and brackets, so the fields count from its last bracket.
fn parse_stat(stat: &str) -> Option<(String, u64, u64)> {
    let (head, fields) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    Some((name.to_owned(), fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let stat = "7 (a) b(c) S 1 7 7 0 -1 4194560 100 0 0 0 55 66 0 0 20 0 1 0 100 1000 10";
        assert_eq!(parse_stat(stat), Some(("a) b(c".to_owned(), 55, 66)));
        assert_eq!(parse_stat("7 (a) S 1"), None);
    }

    #[test]
    fn work_shows_as_cpu_time() {
        let pid = std::process::id();
        let before = Sample::of(pid).unwrap();
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(50) {
            std::hint::black_box(0);
        }
        let usage = before.usage_until(pid, &Sample::of(pid).unwrap());
        assert!(usage.resident_bytes > 100_000, "{usage:?}");
        assert!(usage.threads >= 1, "{usage:?}");
        // Other threads of the test may come and go; then only ticks are left.
        if usage.precision == Precision::Nanoseconds {
            assert!(usage.cpu_us > 1000.0, "{usage:?}");
        }
    }

    #[test]
    fn a_process_that_is_gone_is_told() {
        assert!(matches!(Sample::of(u32::MAX), Err(AccountingError::Read { .. })));
    }
}
