//! One line per event on standard error: `time=… level=… event="…" key=value …`.
//!
//! For starting, stopping and Snapshots only. Nothing on a request's way logs: it counts.

use std::fmt::{self, Display, Write as _};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Who should care.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Level {
    /// Nobody, unless something else went wrong.
    Info,
    /// An operator, soon: the router serves on.
    Warn,
}

/// A key and its value.
pub type Field<'a> = (&'a str, &'a dyn Display);

/// Writes a line. A value with blanks, quotes or control characters is quoted and escaped, so that
/// text from a peer cannot look like a line of ours.
pub fn write(level: Level, event: &str, fields: &[Field<'_>]) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let line = Line { now, level, event, fields };
    eprintln!("{line}");
}

/// [`write()`] at [`Level::Info`].
pub fn info(event: &str, fields: &[Field<'_>]) {
    write(Level::Info, event, fields);
}

/// [`write()`] at [`Level::Warn`].
pub fn warn(event: &str, fields: &[Field<'_>]) {
    write(Level::Warn, event, fields);
}

/// An error with all its causes, `: ` between them.
#[derive(Clone, Copy)]
pub struct Chain<'a>(pub &'a dyn std::error::Error);

impl Display for Chain<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(to, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

struct Line<'a> {
    /// Since the unix epoch.
    now: Duration,
    level: Level,
    event: &'a str,
    fields: &'a [Field<'a>],
}

impl Display for Line<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Info => "info",
            Level::Warn => "warn",
        };
        write!(to, "time={} level={level} event=\"{}\"", UtcTime(self.now), self.event)?;
        let mut value = String::new();
        for (key, field) in self.fields {
            value.clear();
            write!(value, "{field}")?;
            let plain =
                |letter: char| letter.is_ascii_graphic() && !matches!(letter, '"' | '=' | '\\');
            if !value.is_empty() && value.chars().all(plain) {
                write!(to, " {key}={value}")?;
            } else {
                write!(to, " {key}={value:?}")?;
            }
        }
        Ok(())
    }
}

/// A time since the unix epoch, written as RFC 3339 with milliseconds.
struct UtcTime(Duration);

impl Display for UtcTime {
    /// Days to a date as in Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms": years
    /// begin in March, so that the leap day comes last.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, milliseconds) = (self.0.as_secs(), self.0.subsec_millis());
        let (days, second) = (seconds / 86_400 + 719_468, seconds % 86_400);
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = year_of_era + era * 400 + u64::from(month <= 2);
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        write!(
            to,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_date_in_utc() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.007Z"),
            (951_782_399, "2000-02-28T23:59:59.007Z"),
            (951_782_400, "2000-02-29T00:00:00.007Z"),
            (1_795_996_799, "2026-11-29T23:59:59.007Z"),
            (4_107_542_400, "2100-03-01T00:00:00.007Z"),
        ] {
            assert_eq!(UtcTime(Duration::new(seconds, 7_000_000)).to_string(), text);
        }
    }

    #[test]
    fn no_value_can_look_like_a_line_of_ours() {
        let line = Line {
            now: Duration::ZERO,
            level: Level::Warn,
            event: "refused",
            fields: &[("version", &7), ("detail", &"a\nlevel=info b\"c"), ("empty", &"")],
        };
        assert_eq!(
            line.to_string(),
            "time=1970-01-01T00:00:00.000Z level=warn event=\"refused\" version=7 \
             detail=\"a\\nlevel=info b\\\"c\" empty=\"\""
        );
    }

    #[test]
    fn a_chain_tells_every_cause() {
        #[derive(Debug, thiserror::Error)]
        #[error("outer")]
        struct Outer(#[source] std::io::Error);
        let error = Outer(std::io::Error::other("inner"));
        assert_eq!(Chain(&error).to_string(), "outer: inner");
    }
}
