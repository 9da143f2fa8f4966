//! How many requests are due by when: one rate, or several steps of it. Pure.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::limits::RATE_STEPS_MAX;
use crate::text::span::{Span, SpanError};

/// A rate over time, as steps. Written `800` or `500@30s,1000@30s,2000`.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates(Vec<Step>);

/// A time of constant rate.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    /// Requests per second; zero is a rest.
    rate: f64,
    /// How long; only the last step may be without an end.
    span: Option<Duration>,
}

/// Why a text tells no rates.
#[derive(Debug, thiserror::Error)]
pub enum RatesError {
    /// Neither a number nor `RATE@SPAN`.
    #[error("`{0}` is no rate; write a number, or steps such as 500@30s,1000@30s")]
    Number(String),
    /// The part behind the `@`.
    #[error("the step `{text}`")]
    Span {
        /// The step.
        text: String,
        /// See the cause.
        #[source]
        source: SpanError,
    },
    /// Only the last step may go on for ever.
    #[error("the step `{0}` needs a span, as in 500@30s: another step follows")]
    NoSpan(String),
    /// Would last for no time.
    #[error("the step `{0}` lasts 0s")]
    ZeroSpan(String),
    /// More than anyone writes by hand.
    #[error("{0} steps are over {RATE_STEPS_MAX}")]
    TooManySteps(usize),
}

impl Rates {
    /// The same rate for ever.
    pub fn constant(rate: f64) -> Self {
        Self(vec![Step { rate, span: None }])
    }

    /// The largest and the smallest rate.
    pub fn bounds(&self) -> (f64, f64) {
        self.0.iter().fold((f64::INFINITY, 0.0), |(low, high), step| {
            (step.rate.min(low), step.rate.max(high))
        })
    }

    /// How long all steps together last; `None` where the last one does not end.
    pub fn length(&self) -> Option<Duration> {
        self.0.iter().map(|step| step.span).sum()
    }

    /// These rates with their first step begun earlier: the warm-up runs at its rate.
    pub fn with_warmup(mut self, warmup: Duration) -> Self {
        if let Some(Step { span: Some(span), .. }) = self.0.first_mut() {
            *span += warmup;
        }
        self
    }

    /// How many requests are due before `age`: a real number, to be rounded up.
    pub fn due_before(&self, age: Duration) -> f64 {
        let mut left = age;
        let mut due = 0.0;
        for step in &self.0 {
            let span = step.span.map_or(left, |span| span.min(left));
            due += span.as_secs_f64() * step.rate;
            left -= span;
        }
        due
    }

    /// At which age the real number `count` of requests is reached: request `n` is due there.
    /// `None` where the steps end before.
    pub fn reaching(&self, count: f64) -> Option<Duration> {
        let mut left = count;
        let mut age = Duration::ZERO;
        for step in &self.0 {
            let of_step = step.span.map_or(f64::INFINITY, |span| span.as_secs_f64() * step.rate);
            if left < of_step {
                // From the step's start each time: adding up intervals would add up their rounding.
                return Some(age + Duration::try_from_secs_f64(left / step.rate).ok()?);
            }
            left -= of_step;
            age += step.span.unwrap_or_default();
        }
        None
    }

    /// The mean rate between two ages.
    pub fn mean_between(&self, from: Duration, to: Duration) -> f64 {
        let seconds = to.saturating_sub(from).as_secs_f64();
        if seconds == 0.0 {
            return 0.0;
        }
        (self.due_before(to) - self.due_before(from)) / seconds
    }
}

impl FromStr for Rates {
    type Err = RatesError;

    fn from_str(text: &str) -> Result<Self, RatesError> {
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        if parts.len() > RATE_STEPS_MAX {
            return Err(RatesError::TooManySteps(parts.len()));
        }
        let last = parts.len() - 1;
        let steps = parts.iter().enumerate().map(|(position, part)| {
            let step = part.parse::<Step>()?;
            match step.span {
                None if position < last => Err(RatesError::NoSpan((*part).to_owned())),
                Some(span) if span.is_zero() => Err(RatesError::ZeroSpan((*part).to_owned())),
                _ => Ok(step),
            }
        });
        steps.collect::<Result<_, _>>().map(Self)
    }
}

impl FromStr for Step {
    type Err = RatesError;

    fn from_str(text: &str) -> Result<Self, RatesError> {
        let (rate, span) = match text.split_once('@') {
            Some((rate, span)) => (rate, Some(span)),
            None => (text, None),
        };
        let rate = rate.trim().parse().ok().filter(|rate: &f64| rate.is_finite());
        let rate = rate.ok_or_else(|| RatesError::Number(text.to_owned()))?;
        let span = span.map(|span| span.trim().parse::<Span>()).transpose();
        let span = span.map_err(|source| RatesError::Span { text: text.to_owned(), source })?;
        Ok(Self { rate, span: span.map(Span::duration) })
    }
}

impl fmt::Display for Rates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            let comma = if position > 0 { "," } else { "" };
            write!(formatter, "{comma}{}", step.rate)?;
            if let Some(span) = step.span {
                write!(formatter, "@{}", humantime::format_duration(span))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rates(text: &str) -> Rates {
        text.parse().unwrap()
    }

    #[test]
    fn steps_are_due_one_after_the_other() {
        let rates = rates("10@2s, 0@1s, 20@1s");
        assert_eq!(rates.length(), Some(Duration::from_secs(4)));
        let due = |seconds: f64| rates.due_before(Duration::from_secs_f64(seconds));
        assert_eq!(
            [due(1.0), due(2.0), due(3.0), due(3.5), due(9.0)],
            [10.0, 20.0, 20.0, 30.0, 40.0]
        );
        let reaching = |count| rates.reaching(count).map(|age| age.as_millis());
        assert_eq!([reaching(0.0), reaching(19.0)], [Some(0), Some(1900)]);
        assert_eq!(
            [reaching(20.0), reaching(39.0)],
            [Some(3000), Some(3950)],
            "nothing in the rest"
        );
        assert_eq!(reaching(40.0), None);
        assert_eq!(rates.mean_between(Duration::from_secs(1), Duration::from_secs(3)), 5.0);
        assert_eq!(rates.bounds(), (0.0, 20.0));
        assert_eq!(rates.to_string(), "10@2s,0@1s,20@1s");
    }

    #[test]
    fn a_warmup_runs_at_the_first_rate() {
        let warmed = rates("10@1s,20@1s").with_warmup(Duration::from_secs(5));
        assert_eq!(warmed, rates("10@6s,20@1s"));
        assert_eq!(rates("7").with_warmup(Duration::from_secs(5)), Rates::constant(7.0));
    }

    #[test]
    fn what_tells_no_rates_is_refused() {
        let refusal = |text: &str| text.parse::<Rates>().unwrap_err();
        assert!(matches!(refusal("fast"), RatesError::Number(_)));
        assert!(matches!(refusal("inf"), RatesError::Number(_)));
        assert!(matches!(refusal("1,"), RatesError::NoSpan(_)));
        assert!(matches!(refusal("1@5"), RatesError::Span { .. }));
        assert!(matches!(refusal("1@0s,2"), RatesError::ZeroSpan(_)));
        assert!(matches!(refusal(&"1@1s,".repeat(101)), RatesError::TooManySteps(102)));
    }

    proptest! {
        #[test]
        fn a_request_is_due_when_its_number_is_reached(
            steps in prop::collection::vec((0.5_f64..5000.0, 1_u64..5000), 1..6),
            share in 0.0_f64..0.999,
        ) {
            let steps = steps.into_iter().map(|(rate, milliseconds)| Step {
                rate,
                span: Some(Duration::from_millis(milliseconds)),
            });
            let rates = Rates(steps.collect());
            let total = rates.due_before(rates.length().unwrap());
            let count = total * share;
            let age = rates.reaching(count).unwrap();
            prop_assert!((rates.due_before(age) - count).abs() < 1e-3, "{count} at {age:?}");
        }
    }
}
