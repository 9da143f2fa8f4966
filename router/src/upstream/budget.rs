//! How many requests may be sent again: a share of the requests, above a small floor.
//!
//! Finagle's retry budget: without one, retries multiply the load on a Shard that already fails.

use crate::limits::{RETRY_FLOOR, RETRY_MILLIS_PER_REQUEST, RETRY_SAVED_MAX};

/// One core's budget, in thousandths of a retry.
#[derive(Clone, Copy, Debug)]
pub struct RetryBudget {
    saved: u32,
}

impl Default for RetryBudget {
    fn default() -> Self {
        Self { saved: RETRY_FLOOR * 1000 }
    }
}

impl RetryBudget {
    /// A request came: it earns its share of a retry.
    pub fn earn(&mut self) {
        self.saved = (self.saved + RETRY_MILLIS_PER_REQUEST).min(RETRY_SAVED_MAX * 1000);
    }

    /// Whether one retry could be paid.
    #[must_use]
    pub fn has_one(&self) -> bool {
        self.saved >= 1000
    }

    /// Whether one retry may be made; it is paid then.
    pub fn spend(&mut self) -> bool {
        let Some(rest) = self.saved.checked_sub(1000) else { return false };
        self.saved = rest;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_the_long_run_retries_are_a_fixed_share_of_the_requests() {
        let mut budget = RetryBudget::default();
        while budget.spend() {}
        let mut retries = 0;
        for _ in 0..10_000 {
            budget.earn();
            retries += u32::from(budget.spend());
        }
        assert_eq!(retries, 10_000 * RETRY_MILLIS_PER_REQUEST / 1000);
    }

    #[test]
    fn a_quiet_router_can_retry_the_floor() {
        let mut budget = RetryBudget::default();
        let retries = std::iter::from_fn(|| budget.spend().then_some(())).count();
        assert_eq!(retries, RETRY_FLOOR as usize);
    }

    #[test]
    fn what_is_saved_is_bounded() {
        let mut budget = RetryBudget::default();
        (0..1_000_000).for_each(|_| budget.earn());
        let retries = std::iter::from_fn(|| budget.spend().then_some(())).count();
        assert_eq!(retries, RETRY_SAVED_MAX as usize);
    }
}
