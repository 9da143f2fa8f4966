//! How far each partition is done: an offset may be committed once no result below it is missing.

use std::collections::{BTreeMap, BTreeSet};

/// The partitions of one topic that this worker has.
#[derive(Debug, Default)]
pub(super) struct Progress {
    partitions: BTreeMap<i32, Partition>,
    assignments: u64,
    was_assigned: bool,
}

#[derive(Debug)]
struct Partition {
    /// Which of the times that it was given to us: an answer from an earlier time must not count.
    assignment: u64,
    /// One above the highest offset that was taken.
    next: i64,
    /// Taken, and not finished.
    open: BTreeSet<i64>,
    /// What may be committed.
    done: i64,
    /// Whether its end was reached since the last record.
    at_end: bool,
}

/// One record that was taken, to be finished once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Claim {
    pub(super) partition: i32,
    pub(super) offset: i64,
    assignment: u64,
}

impl Progress {
    /// A partition is ours from now on.
    pub(super) fn assign(&mut self, partition: i32) {
        self.was_assigned = true;
        self.assignments += 1;
        let fresh = Partition {
            assignment: self.assignments,
            next: 0,
            open: BTreeSet::new(),
            done: 0,
            at_end: false,
        };
        self.partitions.insert(partition, fresh);
    }

    /// Partitions were given out, perhaps none to us.
    pub(super) fn assigned(&mut self) {
        self.was_assigned = true;
    }

    /// A partition is no longer ours: whoever gets it begins at what was committed.
    pub(super) fn revoke(&mut self, partition: i32) {
        self.partitions.remove(&partition);
    }

    /// A record arrived. Offsets of one partition arrive in order, with gaps.
    pub(super) fn take(&mut self, partition: i32, offset: i64) -> Claim {
        if !self.partitions.contains_key(&partition) {
            self.assign(partition);
        }
        let assignment = match self.partitions.get_mut(&partition) {
            Some(state) => {
                if state.open.is_empty() {
                    state.done = offset;
                }
                state.open.insert(offset);
                state.next = offset.saturating_add(1);
                state.at_end = false;
                state.assignment
            }
            None => 0,
        };
        Claim { partition, offset, assignment }
    }

    /// A record's result is stored. Returns where the partition's next reader has to begin, if that moved.
    pub(super) fn finish(&mut self, claim: Claim) -> Option<i64> {
        let state = self.partitions.get_mut(&claim.partition)?;
        if state.assignment != claim.assignment || !state.open.remove(&claim.offset) {
            return None;
        }
        let done = state.open.first().copied().unwrap_or(state.next);
        if done <= state.done {
            return None;
        }
        state.done = done;
        Some(done)
    }

    /// All that a partition holds has arrived, for now.
    pub(super) fn reached_end(&mut self, partition: i32) {
        if let Some(state) = self.partitions.get_mut(&partition) {
            state.at_end = true;
        }
    }

    /// Whether every partition that we have is read to its end and finished.
    pub(super) fn is_complete(&self) -> bool {
        self.was_assigned
            && self.partitions.values().all(|state| state.at_end && state.open.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_above_a_missing_result_is_committed() {
        let mut progress = Progress::default();
        progress.assign(0);
        let claims: Vec<_> = [10, 11, 14].map(|offset| progress.take(0, offset)).to_vec();
        assert_eq!(progress.finish(claims[2]), None);
        assert_eq!(progress.finish(claims[1]), None);
        assert_eq!(progress.finish(claims[0]), Some(15));
    }

    #[test]
    fn finishing_the_lowest_moves_to_the_next_that_is_open() {
        let mut progress = Progress::default();
        progress.assign(0);
        let claims: Vec<_> = [10, 11, 14].map(|offset| progress.take(0, offset)).to_vec();
        assert_eq!(progress.finish(claims[0]), Some(11));
        assert_eq!(progress.finish(claims[1]), Some(14));
        assert_eq!(progress.finish(claims[2]), Some(15));
    }

    #[test]
    fn a_result_of_an_earlier_assignment_moves_nothing() {
        let mut progress = Progress::default();
        progress.assign(0);
        let before = progress.take(0, 10);
        progress.revoke(0);
        assert_eq!(progress.finish(before), None);
        progress.assign(0);
        let again = progress.take(0, 10);
        assert_eq!(progress.finish(before), None);
        assert_eq!(progress.finish(again), Some(11));
    }

    #[test]
    fn it_is_complete_once_every_partition_was_read_and_finished() {
        let mut progress = Progress::default();
        assert!(!progress.is_complete(), "nothing was given out yet");
        progress.assign(0);
        progress.assign(1);
        progress.reached_end(1);
        assert!(!progress.is_complete());
        let claim = progress.take(0, 7);
        progress.reached_end(0);
        assert!(!progress.is_complete(), "one is open");
        progress.finish(claim);
        assert!(progress.is_complete());
        progress.take(1, 0);
        assert!(!progress.is_complete(), "more came");
    }

    #[test]
    fn a_member_that_gets_no_partition_is_complete() {
        let mut progress = Progress::default();
        progress.assigned();
        assert!(progress.is_complete());
    }

    proptest! {
        /// Whatever the order of finishing, what may be committed is below all that is open, and grows.
        #[test]
        fn committed_is_always_below_all_that_is_open(order in Just((0..40_i64).collect::<Vec<_>>()).prop_shuffle()) {
            let mut progress = Progress::default();
            progress.assign(3);
            let claims: Vec<_> = (0..40).map(|offset| progress.take(3, offset * 2)).collect();
            let mut open: BTreeSet<i64> = (0..40).map(|offset| offset * 2).collect();
            let mut last = 0;
            for at in order {
                let claim = claims[usize::try_from(at).unwrap()];
                open.remove(&claim.offset);
                if let Some(done) = progress.finish(claim) {
                    prop_assert!(done > last);
                    last = done;
                }
                prop_assert!(open.first().is_none_or(|first| last <= *first));
            }
            prop_assert_eq!(last, 79);
        }
    }
}
