//! Percentiles, as JSON and in the text form of HdrHistogram's own tools.

use std::io::{self, Write};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// A distribution in microseconds.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Percentiles {
    pub count: u64,
    pub min: f64,
    pub mean: f64,
    pub stdev: f64,
    pub p50: f64,
    pub p75: f64,
    pub p90: f64,
    pub p99: f64,
    pub p99_9: f64,
    pub p99_99: f64,
    pub max: f64,
}

impl Percentiles {
    /// Of a histogram of nanoseconds.
    pub fn of(histogram: &Histogram<u64>) -> Self {
        let at = |quantile| microseconds(histogram.value_at_quantile(quantile));
        Self {
            count: histogram.len(),
            min: microseconds(histogram.min()),
            mean: histogram.mean() / 1000.0,
            stdev: histogram.stdev() / 1000.0,
            p50: at(0.5),
            p75: at(0.75),
            p90: at(0.9),
            p99: at(0.99),
            p99_9: at(0.999),
            p99_99: at(0.9999),
            max: microseconds(histogram.max()),
        }
    }
}

/// Nanoseconds as microseconds.
#[expect(clippy::cast_precision_loss, reason = "an hour of nanoseconds has 42 bits")]
pub fn microseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1000.0
}

/// Ticks between two halvings of the distance to 100 %, as HdrHistogram's tools have it.
const TICKS_PER_HALF: u32 = 5;

/// Writes the percentile distribution as `.hgrm`, in microseconds: what HdrHistogram's plotter and
/// its other tools read.
///
/// # Errors
/// What the output says.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
pub fn write_hgrm(histogram: &Histogram<u64>, mut out: impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{:>12} {:>14} {:>10} {:>14}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    )?;
    let mut total = 0;
    for step in histogram.iter_quantiles(TICKS_PER_HALF) {
        total += step.count_since_last_iteration();
        let value = microseconds(step.value_iterated_to());
        let quantile = step.quantile_iterated_to();
        if quantile < 1.0 {
            let inverse = 1.0 / (1.0 - quantile);
            writeln!(out, "{value:>12.3} {quantile:>14.12} {total:>10} {inverse:>14.2}")?;
        } else {
            writeln!(out, "{value:>12.3} {quantile:>14.12} {total:>10}")?;
        }
    }
    let (mean, stdev) = (histogram.mean() / 1000.0, histogram.stdev() / 1000.0);
    writeln!(out, "#[Mean    = {mean:>12.3}, StdDeviation   = {stdev:>12.3}]")?;
    let (max, count) = (microseconds(histogram.max()), histogram.len() as f64);
    writeln!(out, "#[Max     = {max:>12.3}, Total count    = {count:>12}]")?;
    let (buckets, size) = (histogram.buckets(), histogram.distinct_values());
    writeln!(out, "#[Buckets = {buckets:>12}, SubBuckets     = {size:>12}]")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::recorder::{histogram, record};

    #[test]
    fn percentiles_are_in_microseconds() {
        let mut histogram = histogram();
        for milliseconds in 1..=100 {
            record(&mut histogram, Duration::from_millis(milliseconds));
        }
        let percentiles = Percentiles::of(&histogram);
        assert_eq!(percentiles.count, 100);
        for (seen, exact) in [
            (percentiles.min, 1000.0),
            (percentiles.p50, 50_000.0),
            (percentiles.p99, 99_000.0),
            (percentiles.max, 100_000.0),
        ] {
            assert!((seen - exact).abs() <= exact / 1000.0, "{seen} {exact}");
        }
    }

    #[test]
    fn a_distribution_ends_at_its_maximum_with_all_samples() {
        let mut histogram = histogram();
        for microseconds in 1..=10_000 {
            record(&mut histogram, Duration::from_micros(microseconds));
        }
        let mut out = Vec::new();
        write_hgrm(&histogram, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let rows: Vec<Vec<f64>> = text
            .lines()
            .skip(2)
            .take_while(|line| !line.starts_with('#'))
            .map(|line| line.split_whitespace().map(|cell| cell.parse().unwrap()).collect())
            .collect();
        let last = rows.last().unwrap();
        assert_eq!((last[1], last[2]), (1.0, 10_000.0));
        assert!((last[0] - 10_000.0).abs() < 10.0, "{last:?}");
        assert!(rows.windows(2).all(|pair| pair[0][0] <= pair[1][0] && pair[0][2] <= pair[1][2]));
    }
}
