//! How long an answer takes.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use rand::{Rng, RngExt};
use rand_distr::{Distribution, LogNormal};

use crate::limits::DELAY_SECONDS_MAX;
use crate::text::span::Span;

/// A distribution of delays.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Latency {
    /// Answers at once.
    #[default]
    None,
    /// Always the same.
    Fixed(Span),
    /// The logarithm is normally distributed: a long tail, as of a busy model.
    LogNormal {
        /// Half of the answers are faster.
        median: Span,
        /// Standard deviation of the logarithm; 0.5 puts p99 at 3.2 times the median.
        sigma: f64,
    },
    /// Fast, but now and then slow, as with a cache.
    Bimodal {
        /// The usual delay.
        fast: Span,
        /// The other one.
        slow: Span,
        /// Which share is slow, `0..=1`.
        slow_share: f64,
    },
}

/// Why a text is no latency.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "`{0}` is no latency; write none, fixed:5ms, lognormal:MEDIAN,SIGMA (as in lognormal:5ms,0.5) \
     or bimodal:FAST,SLOW,SHARE (as in bimodal:2ms,80ms,0.01)"
)]
pub struct LatencyError(String);

impl Latency {
    /// Draws one delay; at most `DELAY_SECONDS_MAX`.
    pub fn sample(&self, random: &mut impl Rng) -> Duration {
        let delay = match *self {
            Self::None => Duration::ZERO,
            Self::Fixed(span) => span.duration(),
            Self::LogNormal { median, sigma } => {
                let median = median.duration().as_secs_f64();
                let seconds = LogNormal::new(median.ln(), sigma)
                    .map_or(median, |distribution| distribution.sample(random));
                Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
            }
            Self::Bimodal { fast, slow, slow_share } => {
                if random.random::<f64>() < slow_share { slow } else { fast }.duration()
            }
        };
        delay.min(Duration::from_secs(DELAY_SECONDS_MAX))
    }
}

impl FromStr for Latency {
    type Err = LatencyError;

    fn from_str(text: &str) -> Result<Self, LatencyError> {
        parse(text).ok_or_else(|| LatencyError(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Latency> {
    if text == "none" {
        return Some(Latency::None);
    }
    let (kind, values) = text.split_once(':')?;
    let values: Vec<_> = values.split(',').map(str::trim).collect();
    match (kind, values.as_slice()) {
        ("fixed", [span]) => Some(Latency::Fixed(span.parse().ok()?)),
        ("lognormal", [median, sigma]) => {
            let (median, sigma): (Span, f64) = (median.parse().ok()?, sigma.parse().ok()?);
            let usable = !median.is_zero() && sigma.is_finite() && sigma >= 0.0;
            usable.then_some(Latency::LogNormal { median, sigma })
        }
        ("bimodal", [fast, slow, share]) => {
            let slow_share: f64 = share.parse().ok()?;
            let (fast, slow) = (fast.parse().ok()?, slow.parse().ok()?);
            (0.0..=1.0).contains(&slow_share).then_some(Latency::Bimodal { fast, slow, slow_share })
        }
        _ => None,
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => formatter.write_str("none"),
            Self::Fixed(span) => write!(formatter, "fixed:{span}"),
            Self::LogNormal { median, sigma } => write!(formatter, "lognormal:{median},{sigma}"),
            Self::Bimodal { fast, slow, slow_share } => {
                write!(formatter, "bimodal:{fast},{slow},{slow_share}")
            }
        }
    }
}

crate::text::serde_as_text!(Latency);

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::Xoshiro256PlusPlus;

    use super::*;

    fn sorted_samples(text: &str) -> Vec<Duration> {
        let latency: Latency = text.parse().unwrap();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut samples: Vec<_> = (0..20_000).map(|_| latency.sample(&mut random)).collect();
        samples.sort();
        samples
    }

    #[test]
    fn a_latency_prints_as_it_is_written() {
        for text in ["none", "fixed:5ms", "lognormal:5ms,0.5", "bimodal:2ms,80ms,0.01"] {
            assert_eq!(text.parse::<Latency>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_latency_is_refused() {
        let bad = [
            "",
            "fixed",
            "fixed:5",
            "fixed:5ms,1",
            "lognormal:0s,1",
            "lognormal:1ms,-1",
            "bimodal:1ms,2ms,1.5",
        ];
        for text in bad {
            assert_eq!(text.parse::<Latency>(), Err(LatencyError(text.to_owned())));
        }
    }

    #[test]
    fn a_lognormal_latency_has_the_asked_median_and_tail() {
        let samples = sorted_samples("lognormal:10ms,0.5");
        let (median, p99) = (samples[10_000].as_secs_f64(), samples[19_800].as_secs_f64());
        assert!((0.0098..0.0102).contains(&median), "{median}");
        // exp(0.5 * 2.326) = 3.2 times the median.
        assert!((0.0295..0.0345).contains(&p99), "{p99}");
    }

    #[test]
    fn a_bimodal_latency_is_slow_in_the_asked_share() {
        let samples = sorted_samples("bimodal:1ms,50ms,0.1");
        let slow = samples.iter().filter(|delay| **delay == Duration::from_millis(50)).count();
        // 2000 expected; four standard deviations are 170.
        assert!((1830..=2170).contains(&slow), "{slow}");
    }
}
