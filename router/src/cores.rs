//! Which core does what: workers first, and one core for all that is no request.

use std::fmt::Write as _;
use std::io;

use serde::Serialize;

use crate::config::{Cores, Workers};
use crate::net::affinity;

/// A core, as the kernel numbers it.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct CoreId(pub u16);

/// A worker's place among all workers, `0..CorePlan::workers.len()`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct WorkerIndex(pub u16);

impl WorkerIndex {
    /// Its place in a table of workers.
    #[must_use]
    pub const fn get(self) -> usize {
        self.0 as usize
    }
}

/// Which core does what.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct CorePlan {
    /// The network threads; at least one.
    pub workers: Vec<WorkerPlan>,
    /// Where snapshot feed, admin listener and signals are handled. `None`: wherever the kernel likes.
    pub housekeeping: Option<CoreId>,
    /// Whether, and why not, threads stay on their cores.
    pub pinning: Pinning,
}

/// One network thread.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct WorkerPlan {
    /// Which one.
    pub worker: WorkerIndex,
    /// Where it stays. `None`: wherever the kernel likes.
    pub core: Option<CoreId>,
}

/// Whether threads stay on their cores.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pinning {
    /// Each on its own.
    Pinned,
    /// `cores.pin = false`.
    OffBySetting,
    /// A CPU quota allows fewer cores than the process may run on. All processes under such a quota
    /// would pick the same first cores, so pinning takes a `cores.core_list`.
    OffByQuota,
}

/// Why the settings do not fit this host.
#[derive(Debug, thiserror::Error)]
pub enum CoreError {
    /// The kernel did not tell which cores may be used.
    #[error("cannot read which cores may be used")]
    Affinity(#[source] io::Error),
    /// A listed core that the process may not use.
    #[error("cores.core_list names core {core}, but this process may use only {usable}")]
    NotUsable {
        /// The listed core.
        core: u16,
        /// What may be used, such as `0-3,8`.
        usable: String,
    },
    /// More pinned workers than cores.
    #[error(
        "cores.workers asks for {asked} pinned workers, but there are only {cores} cores; ask for fewer or set cores.pin = false"
    )]
    TooManyWorkers {
        /// The setting.
        asked: u16,
        /// Cores that could be used.
        cores: usize,
    },
}

impl CorePlan {
    /// Fits the settings to the cores that this process may use, by affinity and by CPU quota.
    ///
    /// # Errors
    /// See [`CoreError`].
    pub fn for_host(settings: &Cores) -> Result<Self, CoreError> {
        let usable = affinity::usable_cores().map_err(CoreError::Affinity)?;
        // Knows the cgroup's quota as well as the affinity.
        let quota = std::thread::available_parallelism().map_or(usable.len(), usize::from);
        Self::plan(settings, &usable, quota)
    }

    fn plan(settings: &Cores, usable: &[CoreId], quota: usize) -> Result<Self, CoreError> {
        let listed: Vec<CoreId> = settings.core_list.iter().map(|core| CoreId(*core)).collect();
        if let Some(core) = listed.iter().find(|core| !usable.contains(core)) {
            return Err(CoreError::NotUsable { core: core.0, usable: ranges(usable) });
        }
        let (cores, pinning) = match (settings.pin, listed.is_empty()) {
            (false, _) => (usable, Pinning::OffBySetting),
            (true, false) => (listed.as_slice(), Pinning::Pinned),
            (true, true) if quota < usable.len() => (usable, Pinning::OffByQuota),
            (true, true) => (usable, Pinning::Pinned),
        };
        let pinned = pinning == Pinning::Pinned;
        let count = if pinned { cores.len() } else { cores.len().min(quota) };
        let workers = match settings.workers {
            Workers::Auto => count.saturating_sub(1).max(1),
            Workers::Count(asked) if pinned && usize::from(asked.get()) > count => {
                return Err(CoreError::TooManyWorkers { asked: asked.get(), cores: count });
            }
            Workers::Count(asked) => usize::from(asked.get()),
        };
        let core = |place: usize| cores.get(place).copied().filter(|_| pinned);
        let workers = (0..)
            .take(workers)
            .map(|worker| WorkerPlan {
                worker: WorkerIndex(worker),
                core: core(usize::from(worker)),
            })
            .collect::<Vec<_>>();
        // With a worker on each core, housekeeping shares the last one.
        let housekeeping = core(workers.len().min(cores.len().saturating_sub(1)));
        Ok(Self { workers, housekeeping, pinning })
    }

    /// A line per thread.
    pub fn to_text(&self) -> String {
        let core =
            |core: Option<CoreId>| core.map_or("any core".into(), |id| format!("core {}", id.0));
        let mut text = String::new();
        for plan in &self.workers {
            writeln!(text, "worker {:<6} {}", plan.worker.0, core(plan.core))
                .expect("writing into a String cannot fail");
        }
        let note = match self.pinning {
            Pinning::Pinned => "",
            Pinning::OffBySetting => "not pinned: cores.pin = false\n",
            Pinning::OffByQuota => "not pinned: a CPU quota holds; give cores.core_list to pin\n",
        };
        write!(text, "housekeeping  {}\n{note}", core(self.housekeeping))
            .expect("writing into a String cannot fail");
        text
    }

    /// One JSON object.
    #[expect(clippy::missing_panics_doc, reason = "numbers and names can always be written")]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a plan has only numbers and names")
    }
}

/// Such as `0-3,8`.
fn ranges(cores: &[CoreId]) -> String {
    let runs = cores.chunk_by(|before, after| before.0 + 1 == after.0);
    let texts: Vec<String> = runs
        .filter_map(|run| match run {
            [] => None,
            [only] => Some(only.0.to_string()),
            [first, .., last] => Some(format!("{}-{}", first.0, last.0)),
        })
        .collect();
    texts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores(ids: impl IntoIterator<Item = u16>) -> Vec<CoreId> {
        ids.into_iter().map(CoreId).collect()
    }

    fn settings(workers: &str) -> Cores {
        Cores { workers: workers.parse().unwrap(), ..Cores::default() }
    }

    fn worker_cores(plan: &CorePlan) -> Vec<Option<u16>> {
        plan.workers.iter().map(|plan| plan.core.map(|core| core.0)).collect()
    }

    #[test]
    fn all_cores_but_one_are_workers() {
        let plan = CorePlan::plan(&settings("auto"), &cores(0..4), 4).unwrap();
        assert_eq!(worker_cores(&plan), [Some(0), Some(1), Some(2)]);
        assert_eq!(plan.housekeeping, Some(CoreId(3)));
    }

    #[test]
    fn on_one_core_all_threads_share_it() {
        let plan = CorePlan::plan(&settings("auto"), &cores([5]), 1).unwrap();
        assert_eq!(worker_cores(&plan), [Some(5)]);
        assert_eq!(plan.housekeeping, Some(CoreId(5)));
    }

    #[test]
    fn with_a_worker_on_each_core_housekeeping_shares_the_last() {
        let plan = CorePlan::plan(&settings("2"), &cores([2, 4]), 2).unwrap();
        assert_eq!(worker_cores(&plan), [Some(2), Some(4)]);
        assert_eq!(plan.housekeeping, Some(CoreId(4)));
    }

    #[test]
    fn the_list_decides_order_and_is_held_to_what_may_be_used() {
        let mut listed = settings("auto");
        listed.core_list = vec![3, 1, 2];
        let plan = CorePlan::plan(&listed, &cores(0..4), 2).unwrap();
        assert_eq!(worker_cores(&plan), [Some(3), Some(1)]);
        assert_eq!(plan.housekeeping, Some(CoreId(2)));
        let error = CorePlan::plan(&listed, &cores([0, 1, 2, 8]), 4).unwrap_err();
        let expected = "cores.core_list names core 3, but this process may use only 0-2,8";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn a_quota_below_the_cores_bounds_the_workers_and_unpins_them() {
        let plan = CorePlan::plan(&settings("auto"), &cores(0..64), 3).unwrap();
        assert_eq!(worker_cores(&plan), [None, None]);
        assert_eq!((plan.housekeeping, plan.pinning), (None, Pinning::OffByQuota));
    }

    #[test]
    fn more_pinned_workers_than_cores_are_refused_and_unpinned_ones_are_not() {
        let mut crowded = settings("3");
        let error = CorePlan::plan(&crowded, &cores(0..2), 2).unwrap_err();
        assert!(matches!(error, CoreError::TooManyWorkers { asked: 3, cores: 2 }));
        crowded.pin = false;
        let plan = CorePlan::plan(&crowded, &cores(0..2), 2).unwrap();
        assert_eq!(worker_cores(&plan), [None, None, None]);
    }

    #[test]
    fn the_plan_of_this_host_has_a_worker() {
        let plan = CorePlan::for_host(&Cores::default()).unwrap();
        assert!(!plan.workers.is_empty());
        assert!(plan.to_text().ends_with('\n'));
    }

    #[test]
    fn the_map_prints_as_text_and_as_json() {
        let plan = CorePlan::plan(&settings("1"), &cores(0..2), 2).unwrap();
        assert_eq!(plan.to_text(), "worker 0      core 0\nhousekeeping  core 1\n");
        let json = r#"{"workers":[{"worker":0,"core":0}],"housekeeping":1,"pinning":"pinned"}"#;
        assert_eq!(plan.to_json(), json);
    }
}
