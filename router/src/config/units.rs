//! Durations and sizes as `router.toml` writes them: `"250ms"`, `"4MiB"`.

use std::fmt::Write as _;
use std::time::Duration;

use crate::limits::DURATION_MAX;

/// Why a text is no duration or no size.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum UnitError {
    /// No whole number in front.
    #[error("no whole number in front of the unit")]
    Number,
    /// Nothing, or something else, where the unit stands.
    #[error("no known unit after the number")]
    Unit,
    /// More than fits, or more than `DURATION_MAX`.
    #[error("out of range")]
    Range,
}

const DURATION_UNITS: [(&str, u64); 5] =
    [("us", 1), ("ms", 1_000), ("s", 1_000_000), ("m", 60_000_000), ("h", 3_600_000_000)];

const SIZE_UNITS: [(&str, u64); 5] =
    [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];

/// Reads `"500us"`, `"250ms"`, `"5s"`, `"2m"` or `"1h"`.
///
/// # Errors
/// Anything else, fractions and signs among them, and more than `DURATION_MAX`.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let duration = Duration::from_micros(parse(text, &DURATION_UNITS)?);
    if duration > DURATION_MAX { Err(UnitError::Range) } else { Ok(duration) }
}

/// Reads `"512B"`, `"64KiB"`, `"4MiB"`, `"1GiB"` or `"1TiB"`: powers of 1024.
///
/// # Errors
/// Anything else, and more than 64 bits.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    parse(text, &SIZE_UNITS)
}

fn parse(text: &str, units: &[(&str, u64)]) -> Result<u64, UnitError> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return Err(UnitError::Number);
    }
    let factor = units.iter().find(|(name, _)| *name == unit).ok_or(UnitError::Unit)?.1;
    let number: u64 = number.parse().map_err(|_| UnitError::Range)?;
    number.checked_mul(factor).ok_or(UnitError::Range)
}

/// Writes a duration in the largest unit that keeps it whole; below a microsecond is cut.
pub fn format_duration(duration: Duration) -> String {
    format(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX), &DURATION_UNITS)
}

/// Writes a size in the largest unit that keeps it whole.
pub fn format_size(bytes: u64) -> String {
    format(bytes, &SIZE_UNITS)
}

fn format(value: u64, units: &[(&str, u64)]) -> String {
    let (name, factor) = units
        .iter()
        .rev()
        .find(|(_, factor)| value >= *factor && value.is_multiple_of(*factor))
        .unwrap_or(&units[0]);
    let mut text = String::new();
    write!(text, "{}{name}", value / factor).expect("writing into a String cannot fail");
    text
}

/// `#[serde(with = "units::duration")]`: a duration above zero.
pub(crate) mod duration {
    use std::time::Duration;

    use serde::de::{Error, Unexpected};
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) const EXPECTED: &str = r#"a duration above zero such as "250ms", "5s" or "2m" (units us, ms, s, m, h; at most 168h)"#;

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        let text = String::deserialize(from)?;
        match super::parse_duration(&text) {
            Ok(duration) if !duration.is_zero() => Ok(duration),
            _ => Err(D::Error::invalid_value(Unexpected::Str(&text), &EXPECTED)),
        }
    }

    pub(crate) fn serialize<S: Serializer>(value: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&super::format_duration(*value))
    }
}

/// `#[serde(with = "units::optional_duration")]`: a duration above zero, or `"off"`.
pub(crate) mod optional_duration {
    use std::time::Duration;

    use serde::de::{Error, Unexpected};
    use serde::{Deserialize, Deserializer, Serializer};

    const EXPECTED: &str = r#""off", or a duration above zero such as "250ms", "5s" or "2m" (units us, ms, s, m, h; at most 168h)"#;

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        let text = String::deserialize(from)?;
        if text == "off" {
            return Ok(None);
        }
        match super::parse_duration(&text) {
            Ok(duration) if !duration.is_zero() => Ok(Some(duration)),
            _ => Err(D::Error::invalid_value(Unexpected::Str(&text), &EXPECTED)),
        }
    }

    pub(crate) fn serialize<S: Serializer>(
        value: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(duration) => to.serialize_str(&super::format_duration(*duration)),
            None => to.serialize_str("off"),
        }
    }
}

/// `#[serde(with = "units::size")]`: a number of bytes with its unit, as `u64` or `usize`.
pub(crate) mod size {
    use serde::de::{Error, Unexpected};
    use serde::{Deserialize, Deserializer, Serializer};

    const EXPECTED: &str =
        r#"a size such as "512B", "64KiB" or "4MiB" (units B, KiB, MiB, GiB, TiB)"#;

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, N: TryFrom<u64>>(
        from: D,
    ) -> Result<N, D::Error> {
        let text = String::deserialize(from)?;
        super::parse_size(&text)
            .ok()
            .and_then(|bytes| N::try_from(bytes).ok())
            .ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&text), &EXPECTED))
    }

    pub(crate) fn serialize<S: Serializer, N: Copy + TryInto<u64>>(
        value: &N,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.serialize_str(&super::format_size((*value).try_into().unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_whole_number_and_a_unit() {
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_duration("500us"), Ok(Duration::from_micros(500)));
        assert_eq!(parse_duration("168h"), Ok(DURATION_MAX));
        for (text, error) in [
            ("", UnitError::Number),
            ("ms", UnitError::Number),
            ("-1s", UnitError::Number),
            ("+1s", UnitError::Number),
            ("1", UnitError::Unit),
            ("1.5s", UnitError::Unit),
            ("1 s", UnitError::Unit),
            ("1S", UnitError::Unit),
            ("169h", UnitError::Range),
            ("18446744073709551616us", UnitError::Range),
            ("18446744073709551615h", UnitError::Range),
        ] {
            assert_eq!(parse_duration(text), Err(error), "{text}");
        }
    }

    #[test]
    fn a_size_counts_in_powers_of_1024() {
        assert_eq!(parse_size("64KiB"), Ok(65_536));
        assert_eq!(parse_size("0B"), Ok(0));
        assert_eq!(parse_size("4MB"), Err(UnitError::Unit));
        assert_eq!(parse_size("16777216TiB"), Err(UnitError::Range));
    }

    #[test]
    fn what_is_written_reads_back_in_its_largest_whole_unit() {
        for text in ["1us", "250ms", "1001us", "5s", "90s", "2m", "3h"] {
            assert_eq!(format_duration(parse_duration(text).unwrap()), text);
        }
        for text in ["1B", "1023B", "64KiB", "4MiB", "1TiB"] {
            assert_eq!(format_size(parse_size(text).unwrap()), text);
        }
        assert_eq!(format_duration(Duration::ZERO), "0us");
    }
}
