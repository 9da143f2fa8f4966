//! Which Exposures were told already this hour. Pure: time is an argument.

use std::collections::HashSet;

use crate::limits::EXPOSURES_REMEMBERED_MAX;

const HOUR_MS: u64 = 3_600_000;

/// What makes two Exposures the same.
#[derive(Clone, Copy)]
pub(super) struct Sameness<'a> {
    pub(super) objective: &'a str,
    pub(super) experiment: &'a str,
    pub(super) arm: &'a str,
    /// A Unit that was not treated first and then was is told of twice.
    pub(super) is_treated: bool,
    pub(super) unit: &'a str,
}

/// The Exposures of the running hour (UTC), by 64 hash bits: one in 10⁷ is taken for another at a million.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    hour: u64,
    seen: HashSet<u64>,
}

impl Remembered {
    /// Whether this one is new in its hour. Beyond `EXPOSURES_REMEMBERED_MAX` all are, so that memory is
    /// bounded and none is lost.
    pub(super) fn is_new(&mut self, exposure: &Sameness<'_>, time_unix_ms: u64) -> bool {
        let hour = time_unix_ms / HOUR_MS;
        if hour > self.hour {
            self.hour = hour;
            self.seen.clear();
        }
        let hash = hash(exposure);
        if self.seen.len() >= EXPOSURES_REMEMBERED_MAX {
            return !self.seen.contains(&hash);
        }
        self.seen.insert(hash)
    }
}

fn hash(exposure: &Sameness<'_>) -> u64 {
    let mut hasher = blake3::Hasher::new();
    for text in [exposure.objective, exposure.experiment, exposure.arm, exposure.unit] {
        // With its length, so that no two lists run together into the same bytes (cases.md EX-01).
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.update(&[u8::from(exposure.is_treated)]);
    let mut word = [0; 8];
    hasher.finalize_xof().fill(&mut word);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn treated(unit: &str) -> Sameness<'_> {
        let (objective, experiment, arm) = ("FEED", "trial", "heavy");
        Sameness { objective, experiment, arm, is_treated: true, unit }
    }

    fn untreated(unit: &str) -> Sameness<'_> {
        Sameness { is_treated: false, ..treated(unit) }
    }

    #[test]
    fn a_unit_is_told_once_an_hour() {
        let mut remembered = Remembered::default();
        assert!(remembered.is_new(&treated("u1"), HOUR_MS * 5));
        assert!(!remembered.is_new(&treated("u1"), HOUR_MS * 6 - 1));
        assert!(remembered.is_new(&treated("u2"), HOUR_MS * 5));
        assert!(remembered.is_new(&treated("u1"), HOUR_MS * 6));
        assert!(!remembered.is_new(&treated("u1"), HOUR_MS * 6));
    }

    #[test]
    fn treated_after_untreated_is_told() {
        let mut remembered = Remembered::default();
        assert!(remembered.is_new(&untreated("u1"), 0));
        assert!(remembered.is_new(&treated("u1"), 0));
        assert!(!remembered.is_new(&untreated("u1"), 0));
    }

    #[test]
    fn names_do_not_run_together() {
        let of = |experiment, arm| {
            hash(&Sameness { objective: "FEED", experiment, arm, is_treated: true, unit: "u" })
        };
        assert_ne!(of("ab", "c"), of("a", "bc"));
    }
}
