//! The table of one comparison, as Markdown. Pure.

use std::fmt::Write;

use super::super::machine::Machine;
use super::super::measure::{Measurement, Phase, Report};
use super::super::peer::Peer;
use super::super::workload::Workload;
use super::Spread;

/// What a goal says: the router's CPU time per request over a peer's, at most.
const GOALS: [(Peer, f64); 3] = [(Peer::Haproxy, 0.65), (Peer::Nginx, 0.55), (Peer::Floor, 1.25)];

/// The whole page.
pub(super) fn render(
    machine: &Machine,
    workload: &Workload,
    peers: &[Peer],
    measurements: &[Measurement],
) -> String {
    let mut page = Page { measurements, text: String::new() };
    page.head(machine, workload);
    page.saturation(peers);
    page.rate(peers);
    page.goals(peers);
    page.text
}

struct Page<'a> {
    measurements: &'a [Measurement],
    text: String,
}

impl Page<'_> {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn head(&mut self, machine: &Machine, workload: &Workload) {
        self.line(&format!("# {} on {}\n", workload.name, machine.date));
        self.line(&format!("{}.\n", workload.description));
        let Machine { cpu, cores, kernel, commit, build, .. } = machine;
        let kind = if machine.is_virtual { "virtual machine" } else { "host" };
        self.line(&format!(
            "{cpu}, {cores} cores ({kind}), Linux {kernel}; commit {commit}, {build} build."
        ));
        let Machine { load_average_before, scheduler_group, .. } = machine;
        self.line(&format!(
            "Load average before: {load_average_before}; scheduled as {scheduler_group}."
        ));
        self.line(
            "One worker pinned to one core; generator and model servers on another. Written by \
             `switchboard-loadtest compare`; `machine.json`, `commands.txt`, the configurations and \
             every raw report are beside this file.\n",
        );
        if machine.programs.contains_key("floor") {
            self.line(
                "`floor` is a model server alone on the proxy's core; its CPU time is doubled, for a \
                 proxy receives and sends twice. It is no proxy, and its latency is that of one hop.\n",
            );
        }
        for (peer, version) in &machine.programs {
            self.line(&format!("- {peer}: {version}"));
        }
    }

    fn saturation(&mut self, peers: &[Peer]) {
        self.line("\n## As many requests as it takes (closed loop)\n");
        self.line("| | CPU us/request | range | router's share of it | requests/s | range | MiB resident | requests per model connection |");
        self.line("|---|---|---|---|---|---|---|---|");
        let ours = self.cpu(Peer::Router, is_saturation);
        let requests_per_connection = |peer: Peer| match peer.is_proxy() {
            true => format!("{:.0}", Spread::of(&self.reuse(peer)).median),
            false => String::new(),
        };
        let reuse: Vec<_> = peers.iter().map(|peer| requests_per_connection(*peer)).collect();
        for (peer, reuse) in peers.iter().zip(reuse) {
            let cpu = self.cpu(*peer, is_saturation);
            let rate = self.spread(*peer, is_saturation, |report| Some(report.rate));
            let memory = self.spread(*peer, is_saturation, |report| {
                report.cpu.first().map(|cpu| cpu.resident_bytes as f64 / 1_048_576.0)
            });
            let (share, memory) = match peer {
                Peer::Direct => (String::new(), String::new()),
                Peer::Floor | Peer::Nginx | Peer::Haproxy | Peer::Router => {
                    (ratio(ours, cpu), format!("{:.1}", memory.median))
                }
            };
            let (cpu, cpu_range) = cells(cpu, 2);
            let (rate, rate_range) = cells(rate, 0);
            self.line(&format!(
                "| {} | {cpu} | {cpu_range} | {share} | {rate} | {rate_range} | {memory} | {reuse} |",
                peer.name()
            ));
        }
    }

    fn rate(&mut self, peers: &[Peer]) {
        let Some(rate) = self.measurements.iter().find_map(|measurement| match measurement.phase {
            Phase::Rate(rate) => Some(rate),
            Phase::Saturation => None,
        }) else {
            return;
        };
        self.line(&format!(
            "\n## The same {rate} requests/s for everyone (open loop, from the intended start)\n"
        ));
        self.line("| | CPU us/request | range | p50 us | p99 us | range | p99.9 us | p50 over direct | p99 over direct | rounds in doubt |");
        self.line("|---|---|---|---|---|---|---|---|---|---|");
        let percentile = |page: &Self, peer, of: fn(&Report) -> f64| {
            page.spread(peer, is_rate, |report| Some(of(report)))
        };
        let p50 = |report: &Report| report.latency_us.p50;
        let p99 = |report: &Report| report.latency_us.p99;
        let direct = [percentile(self, Peer::Direct, p50), percentile(self, Peer::Direct, p99)];
        for peer in peers {
            let (middle, high) = (percentile(self, *peer, p50), percentile(self, *peer, p99));
            let highest = percentile(self, *peer, |report| report.latency_us.p99_9).median;
            let doubt = self.of(*peer, is_rate).filter(|measurement| !measurement.report.valid);
            let doubt = doubt.count();
            let (cpu, cpu_range) = cells(self.cpu(*peer, is_rate), 2);
            let (high_cell, high_range) = cells(high, 0);
            let over = |ours: Spread, direct: Spread| {
                if peer.is_proxy() && direct != Spread::default() {
                    format!("{:+.0}", ours.median - direct.median)
                } else {
                    String::new()
                }
            };
            let (over_50, over_99) = (over(middle, direct[0]), over(high, direct[1]));
            self.line(&format!(
                "| {} | {cpu} | {cpu_range} | {:.0} | {high_cell} | {high_range} | {highest:.0} | {over_50} | {over_99} | {doubt} |",
                peer.name(),
                middle.median
            ));
        }
        self.line("\nA round is in doubt where the generator itself fell behind its schedule: then its latencies are not the proxy's.");
    }

    fn goals(&mut self, peers: &[Peer]) {
        let ours = self.cpu(Peer::Router, is_saturation);
        if !peers.contains(&Peer::Router) {
            return;
        }
        self.line("\n## Goals\n");
        for (peer, goal) in GOALS.into_iter().filter(|(peer, _)| peers.contains(peer)) {
            let theirs = self.cpu(peer, is_saturation);
            let seen = ours.median / theirs.median;
            let verdict = if seen <= goal { "met" } else { "NOT met" };
            self.line(&format!(
                "- CPU per request at most {goal} of {}: {seen:.2}, {verdict}",
                peer.name()
            ));
        }
    }

    fn of(
        &self,
        peer: Peer,
        phase: fn(Phase) -> bool,
    ) -> impl Iterator<Item = &Measurement> + use<'_> {
        self.measurements
            .iter()
            .filter(move |measurement| measurement.peer == peer && phase(measurement.phase))
    }

    fn spread(
        &self,
        peer: Peer,
        phase: fn(Phase) -> bool,
        value: impl Fn(&Report) -> Option<f64>,
    ) -> Spread {
        let values: Vec<_> =
            self.of(peer, phase).filter_map(|measurement| value(&measurement.report)).collect();
        Spread::of(&values)
    }

    fn reuse(&self, peer: Peer) -> Vec<f64> {
        self.of(peer, is_saturation)
            .map(|measurement| measurement.requests_per_model_connection)
            .collect()
    }

    fn cpu(&self, peer: Peer, phase: fn(Phase) -> bool) -> Spread {
        let hops = if peer == Peer::Floor { 2.0 } else { 1.0 };
        self.spread(peer, phase, |report| {
            report.cpu.first().map(|cpu| hops * cpu.cpu_us_per_answer)
        })
    }
}

fn is_saturation(phase: Phase) -> bool {
    phase == Phase::Saturation
}

fn is_rate(phase: Phase) -> bool {
    !is_saturation(phase)
}

/// Median and range; nothing where nothing was measured.
fn cells(spread: Spread, digits: usize) -> (String, String) {
    if spread == Spread::default() {
        return (String::new(), String::new());
    }
    let Spread { median, min, max } = spread;
    let mut range = String::new();
    write!(range, "{min:.digits$}–{max:.digits$}").ok(); // writing to memory cannot fail
    (format!("{median:.digits$}"), range)
}

fn ratio(ours: Spread, theirs: Spread) -> String {
    if ours == Spread::default() || theirs == Spread::default() {
        return String::new();
    }
    format!("{:.2}", ours.median / theirs.median)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::super::measure::ReportedCpu;
    use super::*;
    use crate::report::percentiles::Percentiles;

    fn measurement(peer: Peer, phase: Phase, cpu: f64) -> Measurement {
        let report = Report {
            rate: 20_000.0,
            answers: 100_000,
            failures_total: 0,
            valid: true,
            latency_us: Percentiles { p50: cpu * 10.0, p99: cpu * 20.0, ..Percentiles::default() },
            model_servers: BTreeMap::new(),
            cpu: vec![ReportedCpu {
                cpu_us_per_answer: cpu,
                cpu_us: cpu * 100_000.0,
                resident_bytes: 10 << 20,
            }],
        };
        Measurement { peer, phase, report, requests_per_model_connection: 1000.0 }
    }

    #[test]
    fn a_ratio_is_of_medians_and_a_goal_is_held_against_it() {
        let mut measurements = Vec::new();
        for (router, haproxy) in [(20.0, 40.0), (21.0, 41.0), (90.0, 42.0)] {
            for phase in [Phase::Saturation, Phase::Rate(100.0)] {
                measurements.push(measurement(Peer::Router, phase, router));
                measurements.push(measurement(Peer::Haproxy, phase, haproxy));
            }
        }
        let mut page = Page { measurements: &measurements, text: String::new() };
        let peers = [Peer::Haproxy, Peer::Router];
        page.saturation(&peers);
        page.rate(&peers);
        page.goals(&peers);
        let row = "| haproxy | 41.00 | 40.00–42.00 | 0.51 | 20000 | 20000–20000 | 10.0 | 1000 |";
        assert!(page.text.contains(row), "{}", page.text);
        assert!(page.text.contains("at most 0.65 of haproxy: 0.51, met"), "{}", page.text);
        assert!(
            page.text.contains("| router | 21.00 | 20.00–90.00 | 210 | 420 |"),
            "{}",
            page.text
        );
    }
}
