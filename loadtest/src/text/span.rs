//! A span of time as people write it: `5ms`, `1m 30s`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::limits::DELAY_SECONDS_MAX;

/// A duration of at most `DELAY_SECONDS_MAX`, written with its unit.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Span(Duration);

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
    #[error("`{0}` is longer than {DELAY_SECONDS_MAX} s")]
    TooLong(String),
}

impl Span {
    /// A span that the program itself chooses.
    pub const fn from_millis(milliseconds: u64) -> Self {
        Self(Duration::from_millis(milliseconds))
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

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let duration = humantime::parse_duration(text)
            .map_err(|source| SpanError::Syntax { text: text.to_owned(), source })?;
        if duration > Duration::from_secs(DELAY_SECONDS_MAX) {
            return Err(SpanError::TooLong(text.to_owned()));
        }
        Ok(Self(duration))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(formatter)
    }
}

super::serde_as_text!(Span);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_needs_its_unit_and_has_a_maximum() {
        assert_eq!("1m 30s".parse::<Span>().unwrap().duration(), Duration::from_secs(90));
        assert_eq!("250us".parse::<Span>().unwrap().to_string(), "250us");
        assert!(matches!("20".parse::<Span>(), Err(SpanError::Syntax { .. })));
        assert!(matches!("-1s".parse::<Span>(), Err(SpanError::Syntax { .. })));
        assert!(matches!("2h".parse::<Span>(), Err(SpanError::TooLong(_))));
    }
}
