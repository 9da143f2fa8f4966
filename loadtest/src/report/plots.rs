//! The plots of one run.

use hdrhistogram::Histogram;

use super::percentiles::microseconds;
use super::plot::{Axis, Bar, BarPlot, Line, LinePlot, Unit};
use super::summary::Summary;
use super::timeline::Row;
use crate::recorder::Tally;

/// A plot and the name of its file.
#[derive(Clone, Debug)]
pub struct Plot {
    /// Without its ending.
    pub name: &'static str,
    /// An SVG element.
    pub svg: String,
}

/// Points of a line over time: more would not be seen.
const POINTS_MAX: usize = 720;

/// Ticks between two halvings of the distance to 100 %.
const TICKS_PER_HALF: u32 = 8;

/// All plots that the run has numbers for.
pub fn plots(summary: &Summary, tally: &Tally) -> Vec<Plot> {
    let mut plots = vec![Plot { name: "percentiles", svg: percentiles(summary, tally) }];
    if tally.events > 0 {
        plots.push(Plot { name: "streaming", svg: streaming(tally) });
    }
    if summary.timeline.len() > 1 {
        plots.push(Plot { name: "latency", svg: latency(&summary.timeline) });
        plots.push(Plot { name: "throughput", svg: throughput(&summary.timeline) });
    }
    if summary.decisions.iter().any(|decision| !decision.arm.is_empty()) {
        plots.push(Plot { name: "arms", svg: arms(summary) });
    }
    plots
}

fn percentiles(summary: &Summary, tally: &Tally) -> String {
    let mut lines = vec![line_of("latency, from when it was due", &tally.latency)];
    if summary.mode == "open" {
        lines.push(line_of("service time, from when it was sent", &tally.service));
    }
    percentile_plot("Latency by percentile", lines)
}

fn streaming(tally: &Tally) -> String {
    let lines = vec![
        line_of("time to first token", &tally.first_token),
        line_of("between two tokens", &tally.token_gap),
        line_of("whole answer", &tally.latency),
    ];
    percentile_plot("Streaming by percentile", lines)
}

/// Latencies by percentile, each nine as wide as the one before.
pub fn percentile_plot(title: &str, lines: Vec<Line>) -> String {
    LinePlot {
        title: title.to_owned(),
        x: Axis::nines("share of requests that were at least as fast"),
        y: Axis::log("latency", Unit::Micros),
        lines,
    }
    .svg()
}

/// A histogram of nanoseconds as a line of [`percentile_plot`].
pub fn line_of(name: &str, histogram: &Histogram<u64>) -> Line {
    let points = histogram
        .iter_quantiles(TICKS_PER_HALF)
        .map(|step| (step.quantile_iterated_to(), microseconds(step.value_iterated_to())))
        .collect();
    Line { name: name.to_owned(), points }
}

fn latency(rows: &[Row]) -> String {
    let line = |name: &str, value: fn(&Row) -> f64| Line {
        name: name.to_owned(),
        points: thinned(rows, |rows| rows.iter().map(value).fold(0.0, f64::max)),
    };
    LinePlot {
        title: "Latency over time".to_owned(),
        x: time(),
        y: Axis::log("latency", Unit::Micros),
        lines: vec![
            line("p50", |row| row.p50_us),
            line("p99", |row| row.p99_us),
            line("slowest", |row| row.max_us),
        ],
    }
    .svg()
}

fn throughput(rows: &[Row]) -> String {
    let per_second = |rows: &[Row], count: fn(&Row) -> u64| {
        let seconds: u64 = rows.iter().map(|row| row.seconds).sum();
        rows.iter().map(count).sum::<u64>() as f64 / seconds.max(1) as f64
    };
    let line = |name: &str, count: fn(&Row) -> u64| Line {
        name: name.to_owned(),
        points: thinned(rows, |rows| per_second(rows, count)),
    };
    LinePlot {
        title: "Throughput and errors over time".to_owned(),
        x: time(),
        y: Axis::linear("requests per second", Unit::Count),
        lines: vec![line("ended", |row| row.requests), line("of these failed", |row| row.failures)],
    }
    .svg()
}

fn time() -> Axis {
    Axis::linear("time since the start", Unit::Seconds)
}

/// Rows together where there are more than can be seen. The run's last second is left out: it is
/// seldom a whole one, and would look like a drop.
fn thinned(rows: &[Row], value: impl Fn(&[Row]) -> f64) -> Vec<(f64, f64)> {
    let whole = if rows.len() > 2 { &rows[..rows.len() - 1] } else { rows };
    let chunk = whole.len().div_ceil(POINTS_MAX).max(1);
    whole.chunks(chunk).map(|rows| (rows[0].second as f64, value(rows))).collect()
}

fn arms(summary: &Summary) -> String {
    let expected = |objective: &str, arm: &str| {
        let test = summary.sample_ratios.iter().find(|test| test.objective == objective)?;
        let share = test.arms.iter().find(|share| share.arm == arm)?;
        Some(share.expected_share)
    };
    let bars = summary.decisions.iter().map(|decision| {
        let wanted = expected(&decision.objective, &decision.arm);
        Bar {
            name: format!("{} / {}", decision.objective, decision.arm),
            value: decision.user_share.unwrap_or(decision.share),
            range: wanted.map(|share| (share, share)),
            is_subject: true,
        }
    });
    BarPlot {
        title: "Shares of the Arms".to_owned(),
        label: "share of the Objective's users, | expected".to_owned(),
        unit: Unit::Share,
        bars: bars.collect(),
    }
    .svg()
}
