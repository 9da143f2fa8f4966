//! What the model server does to a request. Each field is a flag at start and a member of the
//! JSON that `POST /__control/behaviour` takes at run time.

use std::time::Duration;

use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

use super::latency::Latency;
use crate::limits::{ANSWER_BYTES_MAX, TOKENS_MAX};
use crate::text::rate::Rate;
use crate::text::span::Span;

/// How requests are answered. Readiness and control requests are never delayed or harmed.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct Behaviour {
    /// Delay before an answer: none, fixed:5ms, lognormal:MEDIAN,SIGMA or bimodal:FAST,SLOW,SHARE
    #[arg(long, default_value_t)]
    pub latency: Latency,
    /// Bytes of a plain answer's JSON body (it grows where the server's name does not fit)
    #[arg(long, default_value_t = 1024, value_name = "N")]
    pub body_bytes: usize,
    /// Answer with chunked transfer coding instead of Content-Length
    #[arg(long)]
    pub chunked: bool,
    /// Share of requests that get the error status
    #[arg(long, default_value_t, value_name = "RATE")]
    pub error_rate: Rate,
    /// Status of the injected errors
    #[arg(long, default_value_t = 503, value_name = "STATUS")]
    pub error_status: u16,
    /// Share of requests whose connection is reset before any byte of the answer
    #[arg(long, default_value_t, value_name = "RATE")]
    pub reset_rate: Rate,
    /// Share of requests whose connection ends in the middle of the answer
    #[arg(long, default_value_t, value_name = "RATE")]
    pub cut_rate: Rate,
    /// Share of requests that never get a byte, until the client goes away
    #[arg(long, default_value_t, value_name = "RATE")]
    pub stall_rate: Rate,
    /// Share of requests whose answer comes in small pieces
    #[arg(long, default_value_t, value_name = "RATE")]
    pub drip_rate: Rate,
    /// Bytes of each small piece
    #[arg(long, default_value_t = 64, value_name = "N")]
    pub drip_bytes: usize,
    /// Time between the small pieces
    #[arg(long, default_value_t = Span::from_millis(10), value_name = "SPAN")]
    pub drip_interval: Span,
    /// Share of answers that close their connection in order (`Connection: close`)
    #[arg(long, default_value_t, value_name = "RATE")]
    pub close_rate: Rate,
    /// Period of the whole server's pauses; 0s: none
    #[arg(long, default_value_t, value_name = "SPAN")]
    pub pause_every: Span,
    /// How long the whole server stands still at the end of each period
    #[arg(long, default_value_t, value_name = "SPAN")]
    pub pause_for: Span,
    /// Tokens of a chat answer
    #[arg(long, default_value_t = 16, value_name = "N")]
    pub tokens: u32,
    /// Time between two streamed tokens
    #[arg(long, default_value_t = Span::from_millis(20), value_name = "SPAN")]
    pub token_interval: Span,
    /// Stream every plain and chat answer, also where the request does not ask for it
    #[arg(long)]
    pub stream: bool,
    /// Answer readiness probes with 503
    #[arg(long)]
    pub unready: bool,
}

/// Why a behaviour was refused. The one before stays.
#[derive(Debug, thiserror::Error)]
pub enum BehaviourError {
    /// Not JSON, an unknown member, or a value of the wrong kind.
    #[error("cannot read the behaviour")]
    Json(#[from] serde_json::Error),
    /// More than every request.
    #[error("the error, reset, cut, stall and drip rates add up to {0}, which is over 1")]
    Rates(f64),
    /// Would not be seen as an error.
    #[error("error_status {0} is outside 400..=599")]
    ErrorStatus(u16),
    /// Would use up the memory.
    #[error("body_bytes {0} is over {ANSWER_BYTES_MAX}")]
    BodyBytes(usize),
    /// Would never end.
    #[error("tokens {0} is over {TOKENS_MAX}")]
    Tokens(u32),
    /// Would never send anything.
    #[error("drip_bytes must be at least 1")]
    DripBytes,
    /// The server would stand still for ever.
    #[error("pause_for must be shorter than pause_every, or both 0s")]
    Pause,
}

/// What is done to one request on purpose.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// An error status.
    Error,
    /// A reset before any byte.
    Reset,
    /// The connection ends half way through the answer.
    Cut,
    /// Nothing, for as long as the client waits.
    Stall,
    /// Small pieces.
    Drip,
}

impl Behaviour {
    /// This behaviour with the members of `patch` (a JSON object) in place of its own.
    ///
    /// # Errors
    /// Anything that [`Self::check`] refuses, and members that do not exist.
    pub fn patched(&self, patch: &[u8]) -> Result<Self, BehaviourError> {
        let patch: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(patch)?;
        let mut members = match serde_json::to_value(self)? {
            serde_json::Value::Object(members) => members,
            _ => serde_json::Map::new(),
        };
        members.extend(patch);
        let patched: Self = serde_json::from_value(serde_json::Value::Object(members))?;
        patched.check()?;
        Ok(patched)
    }

    /// Whether the fields make sense together.
    ///
    /// # Errors
    /// The first one that does not.
    pub fn check(&self) -> Result<(), BehaviourError> {
        let rates = self.fault_rates().iter().map(|(_, rate)| rate.value()).sum::<f64>();
        if rates > 1.0 {
            return Err(BehaviourError::Rates(rates));
        }
        if !(400..=599).contains(&self.error_status) {
            return Err(BehaviourError::ErrorStatus(self.error_status));
        }
        if self.body_bytes > ANSWER_BYTES_MAX {
            return Err(BehaviourError::BodyBytes(self.body_bytes));
        }
        if self.tokens > TOKENS_MAX {
            return Err(BehaviourError::Tokens(self.tokens));
        }
        if self.drip_bytes == 0 {
            return Err(BehaviourError::DripBytes);
        }
        let no_pause = self.pause_for.is_zero() && self.pause_every.is_zero();
        if self.pause_for >= self.pause_every && !no_pause {
            return Err(BehaviourError::Pause);
        }
        Ok(())
    }

    /// Chooses one request's fault; at most one, each with its own rate.
    pub fn fault(&self, random: &mut impl Rng) -> Option<Fault> {
        let rates = self.fault_rates();
        if rates.iter().all(|(_, rate)| rate.value() == 0.0) {
            return None;
        }
        let mut draw = random.random::<f64>();
        for (fault, rate) in rates {
            if draw < rate.value() {
                return Some(fault);
            }
            draw -= rate.value();
        }
        None
    }

    /// Chooses one request's delay, where `age` is the server's. Requests that come during a pause
    /// wait for its end too.
    pub fn delay(&self, age: Duration, random: &mut impl Rng) -> Duration {
        self.pause_left(age) + self.latency.sample(random)
    }

    fn pause_left(&self, age: Duration) -> Duration {
        let period = self.pause_every.duration();
        if period.is_zero() {
            return Duration::ZERO;
        }
        let phase = Duration::from_nanos_u128(age.as_nanos() % period.as_nanos());
        let left = period - phase;
        if left <= self.pause_for.duration() { left } else { Duration::ZERO }
    }

    fn fault_rates(&self) -> [(Fault, Rate); 5] {
        [
            (Fault::Error, self.error_rate),
            (Fault::Reset, self.reset_rate),
            (Fault::Cut, self.cut_rate),
            (Fault::Stall, self.stall_rate),
            (Fault::Drip, self.drip_rate),
        ]
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, FromArgMatches};
    use rand::SeedableRng;
    use rand::rngs::Xoshiro256PlusPlus;

    use super::*;

    fn behaviour(arguments: &[&str]) -> Behaviour {
        let command = Behaviour::augment_args(clap::Command::new("test").no_binary_name(true));
        Behaviour::from_arg_matches(&command.get_matches_from(arguments)).unwrap()
    }

    #[test]
    fn a_patch_changes_its_own_members_only() {
        let before = behaviour(&["--tokens", "3"]);
        let after = before.patched(br#"{"latency":"fixed:5ms","error_rate":0.5}"#).unwrap();
        assert_eq!(after.latency, "fixed:5ms".parse().unwrap());
        assert_eq!(after.error_rate.value(), 0.5);
        assert_eq!(after.tokens, 3);
    }

    #[test]
    fn a_patch_that_makes_no_sense_is_refused() {
        let before = behaviour(&[]);
        let refuse = |patch: &str| before.patched(patch.as_bytes()).unwrap_err();
        assert!(matches!(refuse("[]"), BehaviourError::Json(_)));
        assert!(matches!(refuse(r#"{"latencies":"none"}"#), BehaviourError::Json(_)));
        assert!(matches!(refuse(r#"{"error_rate":2}"#), BehaviourError::Json(_)));
        assert!(matches!(refuse(r#"{"error_rate":0.6,"cut_rate":0.6}"#), BehaviourError::Rates(_)));
        assert!(matches!(refuse(r#"{"error_status":200}"#), BehaviourError::ErrorStatus(200)));
        assert!(matches!(refuse(r#"{"body_bytes":99999999999}"#), BehaviourError::BodyBytes(_)));
        assert!(matches!(refuse(r#"{"drip_bytes":0}"#), BehaviourError::DripBytes));
        assert!(matches!(refuse(r#"{"pause_for":"1s"}"#), BehaviourError::Pause));
        assert!(matches!(refuse(r#"{"tokens":1000001}"#), BehaviourError::Tokens(_)));
    }

    #[test]
    fn each_fault_comes_at_its_own_rate() {
        let behaviour = behaviour(&["--error-rate=0.2", "--reset-rate=0.1", "--drip-rate=0.3"]);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
        let mut counts = [0_i32; 4];
        for _ in 0..10_000 {
            match behaviour.fault(&mut random) {
                Some(Fault::Error) => counts[0] += 1,
                Some(Fault::Reset) => counts[1] += 1,
                Some(Fault::Drip) => counts[2] += 1,
                None => counts[3] += 1,
                Some(fault) => panic!("{fault:?} has rate zero"),
            }
        }
        for (count, expected) in counts.into_iter().zip([2000, 1000, 3000, 4000]) {
            // Four standard deviations are at most 200.
            assert!((count - expected).abs() <= 200, "{counts:?}");
        }
    }

    #[test]
    fn a_pause_stands_at_the_end_of_each_period() {
        let behaviour = behaviour(&["--pause-every=1s", "--pause-for=200ms"]);
        let left =
            |milliseconds| behaviour.pause_left(Duration::from_millis(milliseconds)).as_millis();
        assert_eq!([left(0), left(799), left(800), left(999), left(1000)], [0, 0, 200, 1, 0]);
        assert_eq!(left(60_900), 100);
    }
}
