//! Which endpoint of a Shard gets a request: the less loaded of two drawn by weight.
//!
//! Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing", 2001. Load is a core's own
//! requests in flight per weight: cores share nothing, and two draws keep N independent balancers
//! from herding onto one endpoint.

use switchboard_shared::limits::{ENDPOINT_WEIGHT_MAX, ENDPOINTS_MAX};

use crate::limits::SLOW_START_STEPS;

/// What the choice needs to know of one endpoint.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Candidate {
    /// Relative share, at least 1. At most [`WEIGHT_MAX`].
    pub weight: u32,
    /// This core's requests that the endpoint has not answered yet.
    pub in_flight: u32,
    /// Whether it may be chosen at all: sound, and not tried before for this request.
    pub usable: bool,
}

/// The heaviest endpoint there can be, with all its steps of slow start.
pub const WEIGHT_MAX: u32 = ENDPOINT_WEIGHT_MAX as u32 * SLOW_START_STEPS as u32;

const _: () = assert!(
    ENDPOINTS_MAX as u64 * WEIGHT_MAX as u64 <= u32::MAX as u64,
    "a draw times all weights of a Shard fits 64 bits"
);

/// Chooses among `candidates`; `None` where none is usable. `random` is uniform over all values.
pub fn choose<I>(candidates: I, random: u64) -> Option<usize>
where
    I: Iterator<Item = Candidate> + Clone,
{
    let usable = || candidates.clone().enumerate().filter(|(_, candidate)| candidate.usable);
    let total: u64 = usable().map(|(_, candidate)| u64::from(candidate.weight)).sum();
    let (first_draw, second_draw) = (random & u64::from(u32::MAX), random >> 32);
    let (first_index, first) = drawn(usable(), scaled(first_draw, total))?;
    let rest = usable().filter(|(index, _)| *index != first_index);
    let rest_total = total - u64::from(first.weight);
    let Some((second_index, second)) = drawn(rest, scaled(second_draw, rest_total)) else {
        return Some(first_index);
    };
    Some(if is_less_loaded(second, first) { second_index } else { first_index })
}

/// A 32-bit fraction of `total`: multiply-shift, no division.
fn scaled(draw: u64, total: u64) -> u64 {
    (draw * total) >> 32
}

/// The candidate in whose span of cumulated weights `position` falls.
fn drawn(
    candidates: impl Iterator<Item = (usize, Candidate)>,
    mut position: u64,
) -> Option<(usize, Candidate)> {
    for (index, candidate) in candidates {
        let weight = u64::from(candidate.weight);
        if position < weight {
            return Some((index, candidate));
        }
        position -= weight;
    }
    None
}

/// Compares in-flight per weight without dividing.
fn is_less_loaded(a: Candidate, b: Candidate) -> bool {
    u64::from(a.in_flight) * u64::from(b.weight) < u64::from(b.in_flight) * u64::from(a.weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(weight: u32, in_flight: u32) -> Candidate {
        Candidate { weight, in_flight, usable: true }
    }

    /// Draws that cover both 32-bit halves evenly.
    fn draws(count: u64) -> impl Iterator<Item = u64> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        std::iter::repeat_with(move || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = state;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        })
        .take(usize::try_from(count).unwrap())
    }

    #[test]
    fn nobody_usable_means_no_choice() {
        let candidates = [Candidate { usable: false, ..candidate(1, 0) }];
        assert_eq!(choose(candidates.into_iter(), 7), None);
        assert_eq!(choose([].into_iter(), 7), None);
    }

    #[test]
    fn the_only_usable_endpoint_is_chosen_by_every_draw() {
        let candidates =
            [Candidate { usable: false, ..candidate(9, 0) }, candidate(1, 1000), candidate(1, 0)];
        let only = [candidates[0], candidates[1]];
        assert!(draws(1000).all(|draw| choose(only.into_iter(), draw) == Some(1)));
        assert_eq!(choose(only.into_iter(), u64::MAX), Some(1));
    }

    #[test]
    fn of_two_endpoints_the_less_loaded_always_wins() {
        let candidates = [candidate(1, 5), candidate(1, 4)];
        assert!(draws(1000).all(|draw| choose(candidates.into_iter(), draw) == Some(1)));
        let heavy = [candidate(3, 5), candidate(1, 2)];
        assert!(draws(1000).all(|draw| choose(heavy.into_iter(), draw) == Some(0)));
    }

    #[test]
    fn idle_endpoints_share_by_weight() {
        let candidates = [candidate(3, 0), candidate(1, 0)];
        let firsts =
            draws(40_000).filter(|draw| choose(candidates.into_iter(), *draw) == Some(0)).count();
        assert!((29_000..31_000).contains(&firsts), "{firsts} of 40000, 30000 expected");
    }

    #[test]
    fn the_most_loaded_of_three_is_never_chosen() {
        let candidates = [candidate(1, 9), candidate(1, 1), candidate(1, 1)];
        assert!(draws(10_000).all(|draw| choose(candidates.into_iter(), draw) != Some(0)));
    }
}
