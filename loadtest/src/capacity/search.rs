//! Which rate is tried next: doubling, then halving the distance. Pure.

/// A search between a rate that holds and one that fails.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    rate_min: f64,
    rate_max: f64,
    tolerance: f64,
    holds: Option<f64>,
    fails: Option<f64>,
}

/// Why there is nothing to search.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SearchError {
    /// Not a range.
    #[error("--rate-min must be above 0 and not above --rate-max")]
    Range,
    /// Would search for ever.
    #[error("--tolerance must be from 0.001 to 1")]
    Tolerance,
}

const TOLERANCE_MIN: f64 = 0.001;

impl Search {
    /// A search that starts at `rate_min`.
    ///
    /// # Errors
    /// See [`SearchError`].
    pub fn new(rate_min: f64, rate_max: f64, tolerance: f64) -> Result<Self, SearchError> {
        let is_range = rate_min > 0.0 && rate_min <= rate_max && rate_max.is_finite();
        if !is_range {
            return Err(SearchError::Range);
        }
        if tolerance < TOLERANCE_MIN {
            return Err(SearchError::Tolerance);
        }
        Ok(Self { rate_min, rate_max, tolerance, holds: None, fails: None })
    }

    /// The rate to try next; `None`: the search is over.
    pub fn rate(&self) -> Option<f64> {
        match (self.holds, self.fails) {
            (None, None) => Some(self.rate_min),
            (None, Some(_)) => None,
            (Some(holds), None) if holds >= self.rate_max => None,
            (Some(holds), None) => Some((holds * 2.0).min(self.rate_max)),
            (Some(holds), Some(fails)) if fails - holds <= self.tolerance * holds => None,
            (Some(holds), Some(fails)) => Some((holds + fails) / 2.0),
        }
    }

    /// Notes that the rate that was asked for holds.
    pub fn note_holds(&mut self) {
        self.holds = self.rate().or(self.holds);
    }

    /// Notes that the rate that was asked for fails.
    pub fn note_fails(&mut self) {
        self.fails = self.rate().or(self.fails);
    }

    /// The highest rate that held.
    pub fn holds(&self) -> Option<f64> {
        self.holds
    }

    /// The lowest rate that failed.
    pub fn fails(&self) -> Option<f64> {
        self.fails
    }

    /// Why it is over.
    pub fn end(&self) -> &'static str {
        match (self.holds, self.fails) {
            (None, _) => "the first rate fails",
            (Some(_), None) => "the highest rate holds",
            (Some(_), Some(_)) => "the found rate is near enough to one that fails",
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Searches for a capacity that is known; returns the search and its steps.
    fn found(capacity: f64, rate_max: f64) -> (Search, u32) {
        let mut search = Search::new(100.0, rate_max, 0.02).unwrap();
        let mut steps = 0;
        while let Some(rate) = search.rate() {
            if rate <= capacity {
                search.note_holds()
            } else {
                search.note_fails()
            }
            steps += 1;
        }
        (search, steps)
    }

    proptest! {
        #[test]
        fn any_capacity_is_found_within_the_tolerance_in_few_steps(capacity in 100.0_f64..900_000.0) {
            let (search, steps) = found(capacity, 1e6);
            let (holds, fails) = (search.holds().unwrap(), search.fails().unwrap());
            prop_assert!(holds <= capacity && capacity < fails);
            prop_assert!(fails - holds <= 0.02 * holds);
            prop_assert!(steps <= 21, "{steps}");
        }
    }

    #[test]
    fn the_ends_of_the_range_end_the_search() {
        let (nothing, steps) = found(50.0, 1e6);
        assert_eq!((nothing.holds(), steps, nothing.end()), (None, 1, "the first rate fails"));
        let (all, _) = found(1e9, 5000.0);
        assert_eq!((all.holds(), all.fails()), (Some(5000.0), None));
        assert_eq!(all.end(), "the highest rate holds");
    }

    #[test]
    fn what_is_no_range_is_refused() {
        assert_eq!(Search::new(0.0, 1.0, 0.1), Err(SearchError::Range));
        assert_eq!(Search::new(2.0, 1.0, 0.1), Err(SearchError::Range));
        assert_eq!(Search::new(f64::NAN, 1.0, 0.1), Err(SearchError::Range));
        assert_eq!(Search::new(1.0, 2.0, 0.0), Err(SearchError::Tolerance));
    }
}
