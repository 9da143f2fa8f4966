//! Whether users were spread over the Arms as they should be: the sample-ratio test.
//!
//! Pearson's chi-square test over *users*: each counts once for each Arm that it met. Requests would
//! not do, since those of one user all go to one Arm, and are no independent draws.

use std::collections::BTreeMap;

use serde::Serialize;
use statrs::distribution::{ChiSquared, ContinuousCDF};

use crate::recorder::decisions::Row;

/// What the shares should be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArmShares {
    of_objectives: BTreeMap<String, BTreeMap<String, f64>>,
    p_min: f64,
}

/// Why there are no shares to compare with.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum SharesError {
    /// Another form.
    #[error("`{0}` is no share; write OBJECTIVE/ARM=SHARE, as in HOME_FEED/heavy=0.1")]
    Syntax(String),
    /// Not a share.
    #[error("the shares of {0} must each be from 0 to 1, and at most 1 together")]
    Range(String),
    /// Not a probability.
    #[error("the smallest p-value must be above 0 and below 1")]
    PMin,
}

/// What a test of one Objective found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SampleRatio {
    /// Which Objective.
    pub objective: String,
    /// Each Arm, those that were not expected together as `(others)`.
    pub arms: Vec<ArmShare>,
    /// Users over all Arms.
    pub users: u64,
    /// Users that met more than one Arm: by a Fallout, or since the split was changed meanwhile.
    pub users_in_several_arms: u64,
    /// Pearson's statistic.
    pub chi_square: f64,
    /// How often chance alone would bring such a deviation or a larger one. `None`: fewer than
    /// five users are expected on an Arm, which is too few to tell.
    pub p_value: Option<f64>,
    /// Whether `p_value` is too small.
    pub is_mismatch: bool,
}

/// One Arm of a test.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct ArmShare {
    pub arm: String,
    pub users: u64,
    pub share: f64,
    pub expected_share: f64,
}

/// In how many healthy runs of a thousand this test cries wolf.
const P_MIN_DEFAULT: f64 = 0.001;

/// Below this many expected users the statistic does not follow its distribution (Cochran, 1954).
const EXPECTED_USERS_MIN: f64 = 5.0;

/// What is left of 1 where shares were added up.
const ROUNDING: f64 = 1e-9;

impl ArmShares {
    /// The shares of a scenario file and of flags together.
    ///
    /// # Errors
    /// See [`SharesError`].
    pub fn new(
        of_file: &BTreeMap<String, BTreeMap<String, f64>>,
        of_flags: &[String],
        p_min: Option<f64>,
    ) -> Result<Self, SharesError> {
        let mut of_objectives = of_file.clone();
        for flag in of_flags {
            let (objective, arm, share) =
                parse(flag).ok_or_else(|| SharesError::Syntax(flag.clone()))?;
            of_objectives.entry(objective.to_owned()).or_default().insert(arm.to_owned(), share);
        }
        for (objective, arms) in &of_objectives {
            let sum: f64 = arms.values().sum();
            if !arms.values().all(|share| (0.0..=1.0).contains(share)) || sum > 1.0 + ROUNDING {
                return Err(SharesError::Range(objective.clone()));
            }
        }
        let p_min = p_min.unwrap_or(P_MIN_DEFAULT);
        if !(p_min > 0.0 && p_min < 1.0) {
            return Err(SharesError::PMin);
        }
        Ok(Self { of_objectives, p_min })
    }

    /// Compares with what was seen, by Objective and Arm.
    pub fn test(&self, rows: &BTreeMap<(&str, &str), &Row>) -> Vec<SampleRatio> {
        let tests = self.of_objectives.iter().map(|(objective, expected)| {
            let seen: Vec<(&str, &Row)> = rows
                .iter()
                .filter(|((of, _), _)| of == objective)
                .map(|((_, arm), row)| (*arm, *row))
                .collect();
            self.test_one(objective, expected, &seen)
        });
        tests.collect()
    }

    fn test_one(
        &self,
        objective: &str,
        expected: &BTreeMap<String, f64>,
        seen: &[(&str, &Row)],
    ) -> SampleRatio {
        let mut counts: Vec<(String, u64, f64)> = expected
            .iter()
            .map(|(arm, share)| {
                let row = seen.iter().find(|(name, _)| name == arm);
                (arm.clone(), row.map_or(0, |(_, row)| row.users.count()), *share)
            })
            .collect();
        let others = seen.iter().filter(|(arm, _)| !expected.contains_key(*arm));
        let others: u64 = others.map(|(_, row)| row.users.count()).sum();
        let rest = 1.0 - expected.values().sum::<f64>();
        if others > 0 || rest > ROUNDING {
            counts.push(("(others)".to_owned(), others, rest.max(0.0)));
        }
        let users: u64 = counts.iter().map(|(_, count, _)| count).sum();
        let (chi_square, p_value) = chi_square(users, &counts);
        SampleRatio {
            objective: objective.to_owned(),
            users,
            users_in_several_arms: in_several(seen),
            chi_square,
            p_value,
            is_mismatch: p_value.is_some_and(|p_value| p_value < self.p_min),
            arms: counts
                .into_iter()
                .map(|(arm, count, expected_share)| ArmShare {
                    arm,
                    users: count,
                    share: float(count) / float(users.max(1)),
                    expected_share,
                })
                .collect(),
        }
    }
}

fn parse(flag: &str) -> Option<(&str, &str, f64)> {
    let (names, share) = flag.rsplit_once('=')?;
    let (objective, arm) = names.split_once('/')?;
    let is_named = !objective.is_empty() && !arm.is_empty();
    is_named.then_some((objective, arm, share.parse().ok()?))
}

/// The statistic and its p-value.
fn chi_square(users: u64, counts: &[(String, u64, f64)]) -> (f64, Option<f64>) {
    let mut statistic = 0.0;
    let mut is_enough = users > 0;
    for (_, count, share) in counts {
        let expected = float(users) * share;
        if *share <= ROUNDING {
            if *count > 0 {
                return (f64::MAX, Some(0.0)); // what should never be
            }
            continue;
        }
        is_enough &= expected >= EXPECTED_USERS_MIN;
        statistic += (float(*count) - expected).powi(2) / expected;
    }
    let possible = counts.iter().filter(|(_, _, share)| *share > ROUNDING).count();
    let freedom = possible.saturating_sub(1);
    if !is_enough {
        return (statistic, None);
    }
    match ChiSquared::new(freedom as f64) {
        Ok(distribution) => (statistic, Some(distribution.sf(statistic))),
        Err(_) => (statistic, Some(1.0)), // one Arm, and everybody is there
    }
}

/// Users that are in at least two of the rows.
fn in_several(seen: &[(&str, &Row)]) -> u64 {
    let mut met = crate::recorder::users::UserSet::default();
    let mut several = 0;
    for (_, row) in seen {
        several += met.count_common(&row.users);
        met.merge(&row.users);
    }
    several
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::decisions::{Decisions, Seen};

    fn shares(flags: &[&str]) -> Result<ArmShares, SharesError> {
        let flags: Vec<_> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        ArmShares::new(&BTreeMap::new(), &flags, None)
    }

    /// Users `from..to` of each Arm, each of them ten times.
    fn decisions(arms: &[(&str, std::ops::Range<u64>)]) -> Decisions {
        let mut decisions = Decisions::default();
        for (arm, users) in arms {
            for user in (0..10).flat_map(|_| users.clone()) {
                let objective = decisions.labels.of(b"HOME");
                let arm = decisions.labels.of(arm.as_bytes());
                let seen = Seen { objective, arm, ..Seen::default() };
                decisions.count(seen, Some(user), 1, None);
            }
        }
        decisions
    }

    #[test]
    fn the_test_is_pearsons_over_users() {
        let decisions = decisions(&[("stable", 0..880), ("heavy", 880..1000)]);
        let test =
            &shares(&["HOME/stable=0.9", "HOME/heavy=0.1"]).unwrap().test(&decisions.rows())[0];
        // (880 - 900)² / 900 + (120 - 100)² / 100 = 4.4444; p with one degree of freedom: 0.03501.
        assert!((test.chi_square - 4.444_44).abs() < 1e-4, "{test:?}");
        assert!((test.p_value.unwrap() - 0.035_01).abs() < 1e-4, "{test:?}");
        assert_eq!((test.users, test.is_mismatch, test.users_in_several_arms), (1000, false, 0));
    }

    #[test]
    fn a_wrong_split_is_a_mismatch_and_what_should_never_be_is_one_at_once() {
        let decisions = decisions(&[("stable", 0..800), ("heavy", 800..1000), ("odd", 999..1000)]);
        let rows = decisions.rows();
        let split = &shares(&["HOME/heavy=0.1"]).unwrap().test(&rows)[0];
        assert!(split.is_mismatch, "{split:?}");
        assert_eq!(split.arms[1].arm, "(others)");
        assert_eq!(split.users_in_several_arms, 1);
        let whole = &shares(&["HOME/stable=0.8", "HOME/heavy=0.2"]).unwrap().test(&rows)[0];
        assert_eq!((whole.p_value, whole.is_mismatch), (Some(0.0), true));
    }

    #[test]
    fn too_few_users_tell_nothing() {
        let decisions = decisions(&[("stable", 0..40)]);
        let test = &shares(&["HOME/stable=0.9"]).unwrap().test(&decisions.rows())[0];
        assert_eq!((test.p_value, test.is_mismatch), (None, false));
        let nobody = &shares(&["OTHER/stable=0.9"]).unwrap().test(&decisions.rows())[0];
        assert_eq!((nobody.users, nobody.p_value), (0, None));
    }

    #[test]
    fn what_is_no_share_is_refused() {
        assert!(matches!(shares(&["HOME=0.1"]), Err(SharesError::Syntax(_))));
        assert!(matches!(shares(&["HOME/heavy=x"]), Err(SharesError::Syntax(_))));
        assert!(matches!(shares(&["HOME/heavy=1.1"]), Err(SharesError::Range(_))));
        assert!(matches!(shares(&["H/a=0.6", "H/b=0.6"]), Err(SharesError::Range(_))));
        let p_min = ArmShares::new(&BTreeMap::new(), &[], Some(1.0));
        assert_eq!(p_min, Err(SharesError::PMin));
    }
}
