//! Median and range of one number over the rounds. Pure.

use serde::{Deserialize, Serialize};

/// Median and range of one number over the rounds.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Spread {
    /// The middle one; of an even number, the mean of the two in the middle.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// Of these values; `None` where there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let (below, above) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Some(Self { median: f64::midpoint(below, above), min, max })
    }

    /// `12.3 (11.0–14.2)`, with so many digits behind the point.
    pub fn text(self, digits: usize) -> String {
        let Self { median, min, max } = self;
        format!("{median:.digits$} ({min:.digits$}–{max:.digits$})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_median_and_range() {
        let spread = Spread { median: 2.0, min: 1.0, max: 9.0 };
        assert_eq!(Spread::of(&[9.0, 1.0, 2.0]), Some(spread));
        assert_eq!(Spread::of(&[4.0, 1.0, 2.0, 3.0]).map(|spread| spread.median), Some(2.5));
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(spread.text(1), "2.0 (1.0–9.0)");
    }
}
