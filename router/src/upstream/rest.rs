//! What an answer says of the endpoint that gave it.

use std::time::Duration;

use crate::limits::{REST_MAX, REST_UNREADABLE};

/// What a status and its `Retry-After` tell about an endpoint.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// It does its part.
    Sound,
    /// It answers for something behind it that failed: 502, 503 or 504.
    Failing,
    /// It asks to be left alone for this long, at most [`REST_MAX`]: 429 or 503 with `Retry-After`.
    Rest(Duration),
}

/// Judges an answer by its status and by its `Retry-After` field.
///
/// Only delay-seconds are read (RFC 9110 §10.2.3). A date would need two clocks that agree: it, and what
/// is no number, asks for [`REST_UNREADABLE`]. Zero seconds ask for nothing.
#[must_use]
pub fn verdict(status: u16, retry_after: Option<&[u8]>) -> Verdict {
    match (status, retry_after.map(span)) {
        (429 | 503, Some(span)) if !span.is_zero() => Verdict::Rest(span),
        (502..=504, _) => Verdict::Failing,
        _ => Verdict::Sound,
    }
}

fn span(value: &[u8]) -> Duration {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return REST_UNREADABLE;
    }
    let digit = |sum: u64, byte: &u8| sum.saturating_mul(10).saturating_add(u64::from(byte - b'0'));
    Duration::from_secs(value.iter().fold(0, digit)).min(REST_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_after_asks_for_a_rest_that_is_capped() {
        let rest = |seconds| Verdict::Rest(Duration::from_secs(seconds));
        assert_eq!(verdict(429, Some(b"7")), rest(7));
        assert_eq!(verdict(503, Some(b"007")), rest(7));
        assert_eq!(verdict(503, Some(b"86400")), Verdict::Rest(REST_MAX));
        assert_eq!(verdict(429, Some(&[b'9'; 400])), Verdict::Rest(REST_MAX));
    }

    #[test]
    fn what_is_no_number_of_seconds_asks_for_the_shortest_rest() {
        for value in ["", "-1", "1.5", " 7", "Fri, 31 Dec 1999 23:59:59 GMT", "١"] {
            let verdict = verdict(429, Some(value.as_bytes()));
            assert_eq!(verdict, Verdict::Rest(REST_UNREADABLE), "{value:?}");
        }
    }

    #[test]
    fn no_other_answer_rests_an_endpoint() {
        for (status, retry_after, expected) in [
            (429, None, Verdict::Sound),
            (429, Some("0"), Verdict::Sound),
            (503, None, Verdict::Failing),
            (503, Some("0"), Verdict::Failing),
            (502, Some("7"), Verdict::Failing),
            (504, None, Verdict::Failing),
            (500, Some("7"), Verdict::Sound),
            (404, None, Verdict::Sound),
            (301, Some("7"), Verdict::Sound),
        ] {
            let retry_after = retry_after.map(str::as_bytes);
            assert_eq!(verdict(status, retry_after), expected, "{status} {retry_after:?}");
        }
    }
}
