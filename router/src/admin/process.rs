//! What the kernel knows about this process (`proc_pid_stat(5)`).

use std::fs;

/// A sample.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Process {
    pub(super) cpu_nanos: u64,
    pub(super) resident_bytes: u64,
    pub(super) threads: u64,
    pub(super) open_files: Option<usize>,
}

impl Process {
    /// `None` where `/proc` is not mounted.
    pub(super) fn read() -> Option<Self> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        let page_bytes = rustix::param::page_size() as u64;
        let mut process = Self::parse(&stat, rustix::param::clock_ticks_per_second(), page_bytes)?;
        // One of them is the folder that is being read.
        process.open_files = fs::read_dir("/proc/self/fd").ok().map(|open| open.count() - 1);
        Some(process)
    }

    fn parse(stat: &str, ticks_per_second: u64, page_bytes: u64) -> Option<Self> {
        // The program's name is in parentheses and may have blanks and parentheses itself. What
        // follows it begins with field 3.
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let ticks = field(14)?.checked_add(field(15)?)?;
        let cpu_nanos = ticks.checked_mul(1_000_000_000 / ticks_per_second.max(1))?;
        let resident_bytes = field(24)?.checked_mul(page_bytes)?;
        Some(Self { cpu_nanos, resident_bytes, threads: field(20)?, open_files: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_from_behind_the_name() {
        let stat =
            "7 (a ) b) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 5 0 1000 9000000 300 1";
        let process = Process::parse(stat, 100, 4_096).unwrap();
        assert_eq!(process.cpu_nanos, 3_000_000_000);
        assert_eq!(process.resident_bytes, 300 * 4_096);
        assert_eq!(process.threads, 5);
        assert_eq!(Process::parse("7 (a) S 1", 100, 4_096), None);
    }

    #[test]
    fn this_process_has_memory_threads_and_files() {
        let process = Process::read().unwrap();
        assert!(process.resident_bytes > 0 && process.threads > 0);
        assert!(process.open_files.unwrap() > 0);
    }
}
