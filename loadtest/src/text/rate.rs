//! A share of requests: `0.01` is one in a hundred.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A probability, `0..=1`.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, PartialOrd, Serialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Rate(f64);

/// Why a number is no rate.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("`{0}` is no rate; write a number from 0 to 1, such as 0.01")]
pub struct RateError(String);

impl Rate {
    /// As a plain number.
    pub const fn value(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Rate {
    type Error = RateError;

    fn try_from(value: f64) -> Result<Self, RateError> {
        if (0.0..=1.0).contains(&value) {
            Ok(Self(value))
        } else {
            Err(RateError(value.to_string()))
        }
    }
}

impl From<Rate> for f64 {
    fn from(rate: Rate) -> Self {
        rate.0
    }
}

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let value: f64 = text.parse().map_err(|_| RateError(text.to_owned()))?;
        Self::try_from(value)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_probability() {
        assert_eq!("0.25".parse::<Rate>().unwrap().value(), 0.25);
        for text in ["1.01", "-0.1", "NaN", "x"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }
}
