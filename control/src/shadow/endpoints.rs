//! Which of the candidate's endpoints gets the next call, and when one that refused is asked again.

use std::time::{Duration, Instant};

use super::limits::{BACKOFF_MAX, BACKOFF_MIN};

/// How often to look again at an endpoint that somebody else is trying.
const TRIAL_SPAN: Duration = Duration::from_millis(20);

/// The load and the health of every endpoint; decides, and does no I/O.
#[derive(Debug)]
pub(super) struct Endpoints {
    all: Vec<State>,
}

#[derive(Debug)]
struct State {
    weight: u16,
    in_flight: u32,
    /// Refusals since it last took a connection.
    refusals: u32,
    not_before: Option<Instant>,
}

/// Which endpoint, of the list that [`Endpoints::new`] got.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct EndpointIndex(pub(super) usize);

/// What to do now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Choice {
    /// Call this one, then settle it.
    Call(EndpointIndex),
    /// Every endpoint is away: ask again then.
    Wait(Instant),
}

/// What came of a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Settled {
    /// Somebody listens there, whatever was answered.
    Reached,
    /// No connection came about.
    Refused,
}

impl Endpoints {
    /// Weights, one for each endpoint.
    pub(super) fn new(weights: impl IntoIterator<Item = u16>) -> Self {
        let fresh = |weight| State { weight, in_flight: 0, refusals: 0, not_before: None };
        Self { all: weights.into_iter().map(fresh).collect() }
    }

    /// The endpoint with the least in flight for its weight. One that refused is tried by a single call, after a wait.
    pub(super) fn choose(&mut self, now: Instant) -> Choice {
        let ready = self.all.iter().enumerate().filter(|(_, state)| {
            let trial_is_free = state.refusals == 0 || state.in_flight == 0;
            trial_is_free && state.not_before.is_none_or(|at| at <= now)
        });
        let load = |state: &State| f64::from(state.in_flight + 1) / f64::from(state.weight.max(1));
        let least = ready.min_by(|(_, one), (_, other)| load(one).total_cmp(&load(other)));
        let Some((at, _)) = least else {
            let next = self.all.iter().filter_map(|state| state.not_before).min();
            return Choice::Wait(next.map_or(now, |at| at.max(now)).max(now + TRIAL_SPAN));
        };
        if let Some(state) = self.all.get_mut(at) {
            state.in_flight += 1;
        }
        Choice::Call(EndpointIndex(at))
    }

    /// Ends a call. `jitter` is a random number of 0 to 1.
    pub(super) fn settle(
        &mut self,
        endpoint: EndpointIndex,
        settled: Settled,
        now: Instant,
        jitter: f64,
    ) {
        let Some(state) = self.all.get_mut(endpoint.0) else { return };
        state.in_flight = state.in_flight.saturating_sub(1);
        match settled {
            Settled::Reached => (state.refusals, state.not_before) = (0, None),
            Settled::Refused => {
                state.not_before = Some(now + backoff(state.refusals, jitter));
                state.refusals = state.refusals.saturating_add(1);
            }
        }
    }

    /// A call that was given up before it ended.
    pub(super) fn abandon(&mut self, endpoint: EndpointIndex) {
        if let Some(state) = self.all.get_mut(endpoint.0) {
            state.in_flight = state.in_flight.saturating_sub(1);
        }
    }

    /// How many are away.
    pub(super) fn away(&self) -> usize {
        self.all.iter().filter(|state| state.refusals > 0).count()
    }
}

/// The wait after `failures` earlier ones: doubled each time, and shortened by up to a half, so that many workers do
/// not come back at the same moment.
pub(super) fn backoff(failures: u32, jitter: f64) -> Duration {
    let whole = BACKOFF_MIN.saturating_mul(1_u32.checked_shl(failures.min(16)).unwrap_or(u32::MAX));
    whole.min(BACKOFF_MAX).mul_f64(0.5 + 0.5 * jitter.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(endpoints: &mut Endpoints, now: Instant) -> usize {
        match endpoints.choose(now) {
            Choice::Call(EndpointIndex(at)) => at,
            Choice::Wait(_) => panic!("all away"),
        }
    }

    #[test]
    fn calls_spread_by_weight() {
        let mut endpoints = Endpoints::new([1, 3]);
        let now = Instant::now();
        let calls: Vec<_> = (0..8).map(|_| call(&mut endpoints, now)).collect();
        assert_eq!(calls.iter().filter(|at| **at == 1).count(), 6, "{calls:?}");
    }

    #[test]
    fn the_wait_doubles_up_to_its_maximum() {
        let spans: Vec<_> = (0..9).map(|failures| backoff(failures, 1.0).as_millis()).collect();
        assert_eq!(spans, [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);
        assert_eq!(backoff(u32::MAX, 0.0), BACKOFF_MAX / 2);
    }

    #[test]
    fn one_that_refused_is_tried_by_a_single_call_after_its_wait() {
        let mut endpoints = Endpoints::new([1]);
        let now = Instant::now();
        let at = EndpointIndex(call(&mut endpoints, now));
        endpoints.settle(at, Settled::Refused, now, 1.0);
        let later = now + BACKOFF_MIN;
        assert_eq!(endpoints.choose(now), Choice::Wait(later));
        assert_eq!(endpoints.choose(later), Choice::Call(at));
        assert_eq!(endpoints.choose(later), Choice::Wait(later + TRIAL_SPAN), "one tries already");
        endpoints.settle(at, Settled::Reached, later, 1.0);
        assert_eq!(
            (endpoints.choose(later), endpoints.choose(later)),
            (Choice::Call(at), Choice::Call(at))
        );
    }

    #[test]
    fn the_others_are_called_while_one_is_away() {
        let mut endpoints = Endpoints::new([1, 1]);
        let now = Instant::now();
        endpoints.settle(EndpointIndex(0), Settled::Refused, now, 1.0);
        assert_eq!((call(&mut endpoints, now), call(&mut endpoints, now)), (1, 1));
        assert_eq!(endpoints.away(), 1);
    }

    #[test]
    fn an_abandoned_call_frees_its_place() {
        let mut endpoints = Endpoints::new([1]);
        let now = Instant::now();
        endpoints.settle(EndpointIndex(0), Settled::Refused, now, 0.0);
        let later = now + BACKOFF_MIN;
        let at = EndpointIndex(call(&mut endpoints, later));
        endpoints.abandon(at);
        assert_eq!(endpoints.choose(later), Choice::Call(at));
    }
}
