//! A histogram of spans.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Quantiles that a report's chart is drawn from.
const CURVE: [f64; 21] = [
    0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.925, 0.95, 0.96, 0.97, 0.98, 0.99,
    0.995, 0.999, 0.9999, 1.0,
];

/// Microseconds of many requests: three significant digits, an hour at most.
#[derive(Clone, Debug)]
pub(super) struct SpanHistogram {
    histogram: Histogram<u64>,
    sum: u128,
    min: u64,
    max: u64,
}

/// What a histogram says, in microseconds. Quantile q is the smallest span that a share of q of the requests did not
/// exceed; at most 0.1 % above the exact one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Spans {
    /// Requests.
    pub count: u64,
    /// Exact.
    pub mean_us: f64,
    /// Exact.
    pub min_us: u64,
    /// Median.
    pub p50_us: u64,
    /// Nine of ten.
    pub p90_us: u64,
    /// 99 of 100.
    pub p99_us: u64,
    /// 999 of 1 000.
    pub p999_us: u64,
    /// Exact.
    pub max_us: u64,
    /// Quantiles for a chart.
    pub curve: Vec<(f64, u64)>,
}

impl SpanHistogram {
    const US_MAX: u64 = 3_600_000_000;

    pub(super) fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, Self::US_MAX, 3)
            .expect("1 µs to an hour with 3 digits are bounds that a histogram takes");
        Self { histogram, sum: 0, min: u64::MAX, max: 0 }
    }

    pub(super) fn add(&mut self, us: u64) {
        self.histogram.saturating_record(us);
        self.sum += u128::from(us);
        self.min = self.min.min(us);
        self.max = self.max.max(us);
    }

    pub(super) fn spans(&self) -> Spans {
        let count = self.histogram.len();
        if count == 0 {
            return Spans::default();
        }
        let at = |quantile| self.histogram.value_at_quantile(quantile).min(self.max);
        Spans {
            count,
            mean_us: self.sum as f64 / count as f64,
            min_us: self.min,
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: self.max,
            curve: CURVE.map(|quantile| (quantile, at(quantile))).to_vec(),
        }
    }
}
