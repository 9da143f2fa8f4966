//! When two numbers are the same, and how far apart they are.

use serde_json::Number;

/// Numbers are the same if they differ by at most `absolute`, or by `relative` of the larger one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tolerance {
    /// In the numbers' own unit.
    pub absolute: f64,
    /// 0.01 is one per cent.
    pub relative: f64,
}

impl Tolerance {
    /// `None`: the same. Else how far apart: the relative difference, at most 1.
    pub(super) fn distance(self, one: &Number, other: &Number) -> Option<f64> {
        let (Some(first), Some(second)) = (one.as_f64(), other.as_f64()) else { return Some(1.0) };
        // Whole numbers without rounding: above 2⁵³ they are ids, more often than quantities.
        let apart = match (whole(one), whole(other)) {
            (Some(one), Some(other)) => one.abs_diff(other) as f64,
            (Some(_) | None, _) => (first - second).abs(),
        };
        let larger = first.abs().max(second.abs());
        let is_same = apart <= self.absolute || apart <= self.relative * larger;
        (!is_same).then(|| (apart / larger).min(1.0))
    }
}

fn whole(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}
