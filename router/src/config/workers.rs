//! `cores.workers` as `router.toml` and `--workers` write it: `"auto"` or a number.

use std::fmt;
use std::num::NonZeroU16;
use std::str::FromStr;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Workers;
use crate::limits::WORKERS_MAX;

/// A text is no number of workers.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("expected \"auto\" or a number from 1 to {WORKERS_MAX}")]
pub struct WorkersError;

impl Workers {
    fn count(number: u64) -> Result<Self, WorkersError> {
        match u16::try_from(number).ok().and_then(NonZeroU16::new) {
            Some(count) if count.get() <= WORKERS_MAX => Ok(Self::Count(count)),
            _ => Err(WorkersError),
        }
    }
}

impl FromStr for Workers {
    type Err = WorkersError;

    fn from_str(text: &str) -> Result<Self, WorkersError> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        Self::count(text.parse().map_err(|_| WorkersError)?)
    }
}

impl<'de> Deserialize<'de> for Workers {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AutoOrCount)
    }
}

impl Serialize for Workers {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => to.serialize_str("auto"),
            Self::Count(count) => to.serialize_u16(count.get()),
        }
    }
}

struct AutoOrCount;

impl Visitor<'_> for AutoOrCount {
    type Value = Workers;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "\"auto\" or a number from 1 to {WORKERS_MAX}")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Workers, E> {
        let refused = || E::invalid_value(Unexpected::Signed(number), &self);
        Workers::count(u64::try_from(number).map_err(|_| refused())?).map_err(|_| refused())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Workers, E> {
        if text == "auto" {
            Ok(Workers::Auto)
        } else {
            Err(E::invalid_value(Unexpected::Str(text), &self))
        }
    }
}
