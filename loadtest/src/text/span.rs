//! A span of time as people write it: `5ms`, `1m 30s`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::limits::{DELAY_SECONDS_MAX, RUN_SECONDS_MAX};

/// A duration of at most `SECONDS_MAX`, written with its unit.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Span<const SECONDS_MAX: u64 = DELAY_SECONDS_MAX>(Duration);

/// How long a run lasts: up to a week.
pub type RunSpan = Span<RUN_SECONDS_MAX>;

/// Why a text is no span.
#[derive(Debug, thiserror::Error)]
pub enum SpanError {
    /// Not a number with a unit.
    #[error("`{text}` is no span of time; write it with its unit, such as 20ms or 1m30s")]
    Syntax {
        /// What was given.
        text: String,
        /// What the parser says.
        #[source]
        source: humantime::DurationError,
    },
    /// Longer than anything here should take.
    #[error("`{text}` is longer than {seconds_max} s")]
    TooLong {
        /// What was given.
        text: String,
        /// The longest.
        seconds_max: u64,
    },
}

impl<const SECONDS_MAX: u64> Span<SECONDS_MAX> {
    /// A span that the program itself chooses.
    pub const fn from_millis(milliseconds: u64) -> Self {
        Self(Duration::from_millis(milliseconds))
    }

    /// A span that is known to be short enough.
    pub const fn of(duration: Duration) -> Self {
        Self(duration)
    }

    /// The span for the clock.
    pub const fn duration(self) -> Duration {
        self.0
    }

    /// Whether nothing is to be waited for.
    pub const fn is_zero(self) -> bool {
        self.0.is_zero()
    }
}

impl<const SECONDS_MAX: u64> FromStr for Span<SECONDS_MAX> {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let duration = humantime::parse_duration(text)
            .map_err(|source| SpanError::Syntax { text: text.to_owned(), source })?;
        if duration > Duration::from_secs(SECONDS_MAX) {
            return Err(SpanError::TooLong { text: text.to_owned(), seconds_max: SECONDS_MAX });
        }
        Ok(Self(duration))
    }
}

impl<const SECONDS_MAX: u64> fmt::Display for Span<SECONDS_MAX> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(formatter)
    }
}

super::serde_as_text!(Span);
super::serde_as_text!(RunSpan);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_needs_its_unit_and_has_a_maximum() {
        assert_eq!("1m 30s".parse::<Span>().unwrap().duration(), Duration::from_secs(90));
        assert_eq!("250us".parse::<Span>().unwrap().to_string(), "250us");
        assert!(matches!("20".parse::<Span>(), Err(SpanError::Syntax { .. })));
        assert!(matches!("-1s".parse::<Span>(), Err(SpanError::Syntax { .. })));
        assert!(matches!("2h".parse::<Span>(), Err(SpanError::TooLong { .. })));
        assert_eq!("36h".parse::<RunSpan>().unwrap().duration(), Duration::from_secs(129_600));
    }
}
