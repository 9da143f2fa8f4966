//! The plots of one workload: what a request costs, and how long it takes. Pure.

use crate::compare::outcome::{Row, Summary};
use crate::compare::peer::Peer;
use crate::report::plot::{Axis, Bar, BarPlot, Line, LinePlot, Unit};

/// Peers whose bar would be longer than this many of the router's are left to the table: beside
/// LiteLLM's milliseconds all others would be dots.
const LONGEST: f64 = 40.0;

/// A plot, and where it goes.
pub(super) struct Plot {
    /// Below the result's folder.
    pub(super) file: String,
    /// For who cannot see it.
    pub(super) about: &'static str,
    /// The picture.
    pub(super) svg: String,
}

/// Those that the numbers allow.
pub(super) fn of(workload: &Summary) -> Vec<Plot> {
    let plot = |what: &str, about, svg| Plot {
        file: format!("plots/{}-{what}.svg", workload.name),
        about,
        svg,
    };
    let cpu = cpu(workload).map(|svg| plot("cpu", "CPU time per request", svg));
    let latency = latency(workload).map(|svg| plot("latency", "Latency by percentile", svg));
    cpu.into_iter().chain(latency).collect()
}

fn cpu(workload: &Summary) -> Option<String> {
    let cost = |row: &Row| row.cpu_us.or(row.cpu_us_at_rate);
    let ours = workload.row(Peer::Router).and_then(cost)?.median;
    let bar = |row: &Row| {
        let cpu = cost(row).filter(|cpu| cpu.median <= LONGEST * ours)?;
        Some(Bar {
            name: row.peer.clone(),
            value: cpu.median,
            range: Some((cpu.min, cpu.max)),
            is_subject: row.peer == Peer::Router.name(),
        })
    };
    let bars: Vec<_> = workload.rows.iter().filter_map(bar).collect();
    let label = "CPU time per request: median and range of the rounds".to_owned();
    let plot = BarPlot { title: workload.name.clone(), label, unit: Unit::Micros, bars };
    (plot.bars.len() > 1).then(|| plot.svg())
}

fn latency(workload: &Summary) -> Option<String> {
    let line = |row: &Row| Line { name: row.peer.clone(), points: row.percentiles_us.clone() };
    // The first line is drawn on top: the router, which is last in tables.
    let with_points = |row: &&Row| !row.percentiles_us.is_empty();
    let lines: Vec<_> = workload.rows.iter().rev().filter(with_points).map(line).collect();
    let plot = LinePlot {
        title: format!("{} at {:.0} requests/s", workload.name, workload.rate),
        x: Axis::nines("Share of requests that are as fast"),
        y: Axis::log("Latency, median of the rounds", Unit::Micros),
        lines,
    };
    (plot.lines.len() > 1).then(|| plot.svg())
}
