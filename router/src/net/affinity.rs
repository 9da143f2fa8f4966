//! Which cores this process may use, and keeping a thread on one.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::cores::CoreId;

/// The cores that this process may use, ascending: what `taskset`, systemd or a cgroup left it.
///
/// # Errors
/// More than 1 024 cores, which the kernel answers with `EINVAL`.
pub fn usable_cores() -> io::Result<Vec<CoreId>> {
    let set = sched_getaffinity(None)?;
    let cores = (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core));
    Ok(cores.filter_map(|core| u16::try_from(core).ok().map(CoreId)).collect())
}

/// Keeps the calling thread, and threads that it will spawn, on one core.
///
/// # Errors
/// A core that does not exist or that the process may not use.
pub fn pin_current_thread(core: CoreId) -> io::Result<()> {
    let core = usize::from(core.0);
    if core >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut set = CpuSet::new();
    set.set(core);
    Ok(sched_setaffinity(None, &set)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_may_use_only_its_core() {
        let core = *usable_cores().unwrap().last().unwrap();
        let seen = std::thread::spawn(move || {
            pin_current_thread(core).unwrap();
            usable_cores().unwrap()
        });
        assert_eq!(seen.join().unwrap(), [core]);
    }

    #[test]
    fn a_core_that_is_not_there_is_an_error() {
        assert!(pin_current_thread(CoreId(1_023)).is_err());
        assert!(pin_current_thread(CoreId(u16::MAX)).is_err());
    }
}
