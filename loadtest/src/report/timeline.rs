//! A run second by second.

use std::collections::BTreeMap;

use serde::Serialize;

use super::percentiles::microseconds;
use crate::limits::TIMELINE_SECONDS_MAX;
use crate::recorder::Second;

/// One second of the whole run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Seconds since the start, warm-up included.
    pub second: u64,
    /// Requests that ended, well or not.
    pub requests: u64,
    /// Those that failed.
    pub failures: u64,
    /// Latency of whole answers in microseconds.
    pub p50_us: f64,
    /// Latency of whole answers in microseconds.
    pub p99_us: f64,
    /// Latency of whole answers in microseconds.
    pub max_us: f64,
}

/// Merges the threads' seconds. A second is kept as a histogram until two more have come, then as
/// a row: memory grows by a row a second, up to `TIMELINE_SECONDS_MAX`.
#[derive(Debug, Default)]
pub struct Timeline {
    open: BTreeMap<u64, Second>,
    rows: Vec<Row>,
}

impl Timeline {
    /// Takes one thread's second.
    pub fn add(&mut self, second: Second) {
        let newest = second.second;
        match self.open.get_mut(&second.second) {
            Some(ours) => {
                ours.requests += second.requests;
                ours.failures += second.failures;
                let added = ours.latency.add(&second.latency);
                debug_assert!(added.is_ok(), "both have the same bounds");
            }
            None => drop(self.open.insert(second.second, second)),
        }
        while let Some(entry) = self.open.first_entry()
            && *entry.key() + 2 < newest
        {
            let row = Row::of(&entry.remove());
            self.keep(row);
        }
    }

    /// The newest second that is likely to be whole.
    pub fn newest(&self) -> Option<Row> {
        self.open.values().next_back().map(Row::of)
    }

    /// All rows; the last second is seldom a whole one.
    pub fn finish(mut self) -> Vec<Row> {
        for second in std::mem::take(&mut self.open).into_values() {
            self.keep(Row::of(&second));
        }
        self.rows
    }

    fn keep(&mut self, row: Row) {
        if self.rows.len() < TIMELINE_SECONDS_MAX {
            self.rows.push(row);
        }
    }
}

impl Row {
    fn of(second: &Second) -> Self {
        let at = |quantile| microseconds(second.latency.value_at_quantile(quantile));
        Self {
            second: second.second,
            requests: second.requests,
            failures: second.failures,
            p50_us: at(0.5),
            p99_us: at(0.99),
            max_us: microseconds(second.latency.max()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threads_seconds_become_rows_in_order() {
        let mut timeline = Timeline::default();
        for number in 0..6 {
            for thread in 0..2 {
                let mut second = Second::new(number);
                second.requests = 10 + thread;
                second.latency.saturating_record(1_000_000 * (number + 1));
                timeline.add(second);
            }
        }
        assert!(timeline.open.len() <= 3);
        let rows = timeline.finish();
        assert_eq!(rows.len(), 6);
        for (number, row) in rows.iter().enumerate() {
            assert_eq!((row.second, row.requests), (number as u64, 21));
            let exact = 1000.0 * (number as f64 + 1.0);
            assert!((row.max_us - exact).abs() <= exact / 50.0, "{row:?}");
        }
    }
}
