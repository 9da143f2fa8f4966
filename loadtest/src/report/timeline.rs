//! A run second by second.

use std::collections::BTreeMap;

use serde::Serialize;

use super::percentiles::microseconds;
use crate::limits::TIMELINE_ROWS_MAX;
use crate::recorder::Second;

/// One second of the whole run; of a long run, several.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Seconds since the start, warm-up included.
    pub second: u64,
    /// How many seconds this row is about; the first and the last one may be shorter.
    pub seconds: u64,
    /// Whether it belongs to the warm-up.
    pub is_warmup: bool,
    /// Requests that ended, well or not.
    pub requests: u64,
    /// Those that failed.
    pub failures: u64,
    /// Latency of whole answers in microseconds; of several seconds, the mean of theirs.
    pub p50_us: f64,
    /// Latency of whole answers in microseconds; of several seconds, the worst of theirs.
    pub p99_us: f64,
    /// Latency of whole answers in microseconds.
    pub max_us: f64,
}

/// Merges the threads' seconds. A second is kept as a histogram until three more have come, then as
/// a row; when there are `TIMELINE_ROWS_MAX` of them, each two become one.
#[derive(Debug)]
pub struct Timeline {
    open: BTreeMap<u64, Second>,
    closed: Vec<Second>,
    rows: Vec<Row>,
    /// Seconds of each row; a power of two.
    width: u64,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { open: BTreeMap::new(), closed: Vec::new(), rows: Vec::new(), width: 1 }
    }
}

impl Timeline {
    /// Takes one thread's second.
    pub fn add(&mut self, second: Second) {
        let newest = second.second;
        match self.open.get_mut(&second.second) {
            Some(ours) => ours.merge(&second),
            None => drop(self.open.insert(second.second, second)),
        }
        while let Some(entry) = self.open.first_entry()
            && *entry.key() + 2 < newest
        {
            let second = entry.remove();
            self.close(second);
        }
    }

    /// The newest second that is likely to be whole.
    pub fn newest(&self) -> Option<Row> {
        self.open.values().next_back().map(Row::of)
    }

    /// The seconds that have become rows since this was last asked, with all that they hold.
    pub fn take_closed(&mut self) -> Vec<Second> {
        std::mem::take(&mut self.closed)
    }

    /// Closes all seconds that are left: no more will come.
    pub fn close_all(&mut self) {
        for second in std::mem::take(&mut self.open).into_values() {
            self.close(second);
        }
    }

    /// All rows; the last second is seldom a whole one.
    pub fn finish(mut self) -> Vec<Row> {
        self.close_all();
        self.rows
    }

    fn close(&mut self, second: Second) {
        let row = Row::of(&second);
        self.closed.push(second);
        match self.rows.last_mut() {
            Some(last) if last.second / self.width == row.second / self.width => last.take(&row),
            _ => self.rows.push(row),
        }
        if self.rows.len() >= TIMELINE_ROWS_MAX {
            self.halve();
        }
    }

    fn halve(&mut self) {
        self.width *= 2;
        let mut halved: Vec<Row> = Vec::with_capacity(TIMELINE_ROWS_MAX);
        for row in self.rows.drain(..) {
            match halved.last_mut() {
                Some(last) if last.second / self.width == row.second / self.width => {
                    last.take(&row)
                }
                _ => halved.push(row),
            }
        }
        self.rows = halved;
    }
}

impl Row {
    fn of(second: &Second) -> Self {
        let at = |quantile| microseconds(second.latency.value_at_quantile(quantile));
        Self {
            second: second.second,
            seconds: 1,
            is_warmup: second.is_warmup,
            requests: second.requests,
            failures: second.failures,
            p50_us: at(0.5),
            p99_us: at(0.99),
            max_us: microseconds(second.latency.max()),
        }
    }

    /// Takes the next row in.
    fn take(&mut self, next: &Self) {
        let (ours, theirs) = (self.seconds as f64, next.seconds as f64);
        self.p50_us = (self.p50_us * ours + next.p50_us * theirs) / (ours + theirs);
        self.p99_us = self.p99_us.max(next.p99_us);
        self.max_us = self.max_us.max(next.max_us);
        self.seconds += next.seconds;
        self.is_warmup &= next.is_warmup;
        self.requests += next.requests;
        self.failures += next.failures;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn second(number: u64) -> Second {
        let mut second = Second::at(Duration::from_secs(number), Duration::ZERO);
        second.requests = 10;
        second.latency.saturating_record(1_000_000 * (number % 100 + 1));
        second
    }

    #[test]
    fn the_threads_seconds_become_rows_in_order() {
        let mut timeline = Timeline::default();
        for number in 0..6 {
            for _ in 0..2 {
                timeline.add(second(number));
            }
        }
        assert!(timeline.open.len() <= 3);
        assert_eq!(timeline.take_closed().len(), 3);
        let rows = timeline.finish();
        assert_eq!(rows.len(), 6);
        for (number, row) in rows.iter().enumerate() {
            assert_eq!((row.second, row.requests), (number as u64, 20));
            let exact = 1000.0 * (number as f64 + 1.0);
            assert!((row.max_us - exact).abs() <= exact / 50.0, "{row:?}");
        }
    }

    #[test]
    fn a_day_needs_no_more_rows_than_an_afternoon_and_loses_no_request() {
        let mut timeline = Timeline::default();
        for number in 0..20_000 {
            timeline.add(second(number));
            timeline.take_closed();
            assert!(timeline.rows.len() < TIMELINE_ROWS_MAX);
        }
        let rows = timeline.finish();
        assert_eq!(rows.iter().map(|row| row.requests).sum::<u64>(), 200_000);
        assert_eq!(rows.iter().map(|row| row.seconds).sum::<u64>(), 20_000);
        assert!(
            rows.iter().rev().skip(1).all(|row| row.seconds == 4),
            "20 000 seconds need rows of four"
        );
        let worst = rows.iter().map(|row| row.max_us).fold(0.0, f64::max);
        assert!((worst - 100_000.0).abs() < 1000.0, "{worst}");
    }

    #[test]
    fn the_measured_window_starts_with_a_second_of_its_own() {
        let warmup = Duration::from_millis(2500);
        let at = |milliseconds| {
            let second = Second::at(Duration::from_millis(milliseconds), warmup);
            (second.second, second.start.as_millis(), second.is_warmup)
        };
        assert_eq!(at(0), (0, 0, true));
        assert_eq!(at(2499), (2, 2000, true));
        assert_eq!(at(2500), (3, 2500, false));
        assert_eq!(at(3500), (4, 3500, false));
    }
}
