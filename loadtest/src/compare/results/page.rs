//! The page of one result, as Markdown. Pure.

use super::{Findings, plots};
use crate::compare::machine::Machine;
use crate::compare::outcome::{Row, Summary};
use crate::compare::spread::Spread;
use crate::compare::target::{Target, Verdict};

/// The whole page.
pub(super) fn render(findings: &Findings) -> String {
    let mut page = Page(String::new());
    page.head(findings);
    page.line("## Targets\n");
    page.line(&targets_table(&findings.targets));
    page.not_good(findings);
    page.line("## Workloads\n");
    for workload in &findings.workloads {
        page.workload(workload);
    }
    page.machine(findings);
    page.0
}

/// A table as Markdown, its columns aligned, so that it can be read in a terminal, too.
struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(|cell| (*cell).to_owned()).collect()] }
    }

    fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    fn text(&self) -> String {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width = |column: usize| {
            self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<_> = (0..columns).map(width).collect();
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!(" {cell:<width$} |"));
            text.extend(std::iter::once("|".to_owned()).chain(cells));
            text.push('\n');
            if number == 0 {
                let rules = widths.iter().map(|width| format!("{}|", "-".repeat(width + 2)));
                text.extend(std::iter::once("|".to_owned()).chain(rules));
                text.push('\n');
            }
        }
        text
    }
}

pub(super) fn targets_table(targets: &[Target]) -> String {
    let mut table = Table::new(&["target", "goal", "seen", "ratio to each peer", "met"]);
    for Target { what, goal, seen, ratios, verdict } in targets {
        let cells = [what, goal, seen, ratios, &verdict.text()];
        table.row(cells.map(String::clone).to_vec());
    }
    table.text()
}

struct Page(String);

impl Page {
    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    fn head(&mut self, findings: &Findings) {
        let Findings { machine, rounds, seconds, quick, .. } = findings;
        self.line(&format!("# Comparison of {}\n", machine.date));
        if *quick {
            self.line("**A quick run: too few rounds, or a debug build. Not for publication.**\n");
        }
        let kind = if machine.is_virtual { "virtual machine" } else { "host" };
        let (cpu, cores, kernel) = (&machine.cpu, machine.cores, &machine.kernel);
        let (commit, build) = (&machine.commit, &machine.build);
        self.line(&format!(
            "{cpu}, {cores} cores ({kind}), Linux {kernel}; commit {commit}, {build} build; {rounds} \
             interleaved rounds, {} min in all. Written by `switchboard-loadtest compare`; how to read \
             it is said in [the index](../README.md). `summary.json` has all numbers, `raw/` every \
             report, `commands.txt` every command, `configurations/` every configuration as it was \
             run, `machine.json` and `tuning.json` the host.\n",
            seconds.div_ceil(60)
        ));
    }

    /// What speaks against the router, or against the numbers.
    fn not_good(&mut self, findings: &Findings) {
        self.line("## What is not good\n");
        let mut points = Vec::new();
        for target in &findings.targets {
            let Target { what, goal, seen, verdict, .. } = target;
            match verdict {
                Verdict::Met => {}
                Verdict::NotMet => points.push(format!("{what}: {seen}, and the goal is {goal}.")),
                Verdict::NotMeasured(why) => points.push(format!("{what}: not measured ({why}).")),
            }
        }
        for workload in &findings.workloads {
            points.extend(doubts(workload));
        }
        if points.is_empty() {
            points.push("Nothing that this run could show.".to_owned());
        }
        for point in points {
            self.line(&format!("- {point}"));
        }
        self.line("");
    }

    fn workload(&mut self, workload: &Summary) {
        self.line(&format!("### {}\n", workload.name));
        self.line(&format!("{}.\n", workload.description));
        if workload.rows.iter().any(|row| row.cpu_us.is_some()) {
            self.line("As many requests as it takes (closed loop):\n");
            self.line(&saturation_table(workload));
        }
        if workload.rows.iter().any(|row| row.p99_us.is_some()) {
            let rate = workload.rate;
            self.line(&format!(
                "The same {rate:.0} requests/s for everyone (open loop, from the intended start):\n"
            ));
            self.line(&rate_table(workload));
        }
        if workload.rows.iter().any(|row| row.event_gap_p99_us.is_some()) {
            self.line("Events of the streams at that rate:\n");
            self.line(&stream_table(workload));
        }
        for plots::Plot { file, about, .. } in plots::of(workload) {
            self.line(&format!("![{about}]({file})\n"));
        }
        for (peer, why) in &workload.left_out {
            self.line(&format!("- without {peer}: {why}"));
        }
        if !workload.left_out.is_empty() {
            self.line("");
        }
    }

    fn machine(&mut self, findings: &Findings) {
        let machine = &findings.machine;
        self.line("## Host\n");
        let Machine { load_average_before, scheduler_group, clock_source, .. } = machine;
        self.line(&format!(
            "- load average before: {load_average_before}; scheduled as {scheduler_group}"
        ));
        self.line(&format!(
            "- clock source {clock_source}; io_uring: {}",
            machine.ring_features.join(", ")
        ));
        let tuning: Vec<_> =
            machine.tuning.iter().map(|(verdict, count)| format!("{count} {verdict}")).collect();
        self.line(&format!(
            "- `kernel-tuning/tune check --profile edge-latency`: {}",
            tuning.join(", ")
        ));
        for (name, state) in &machine.mitigations {
            self.line(&format!("- {name}: {state}"));
        }
        self.line("\nPrograms:\n");
        for (peer, version) in &machine.programs {
            self.line(&format!("- {peer}: {version}"));
        }
    }
}

/// What makes the numbers of one workload doubtful.
fn doubts(workload: &Summary) -> Vec<String> {
    let name = &workload.name;
    let mishaps = workload.mishaps.iter().map(|mishap| {
        format!("{name}: {} dropped out ({}): {}.", mishap.peer, mishap.when, mishap.what)
    });
    let lag = workload.rows.iter().filter(|row| row.in_doubt > 0).map(|row| {
        format!(
            "{name}: in {} of {} rounds of {} the generator itself fell behind its schedule; those \
             latencies are not the proxy's.",
            row.in_doubt, row.rounds, row.peer
        )
    });
    let idle = workload.rows.iter().filter_map(|row| {
        let busy = row.busy_percent.filter(|busy| busy.median < 85.0)?;
        let (peer, median) = (&row.peer, busy.median);
        (peer != "floor").then(|| {
            format!(
                "{name}: {peer} was busy {median:.0} % of the time at saturation, so its throughput was \
                 limited by something else, such as the generator."
            )
        })
    });
    mishaps.chain(lag).chain(idle).collect()
}

fn saturation_table(workload: &Summary) -> String {
    let mut table = Table::new(&[
        "",
        "CPU µs/request",
        "router's share of it",
        "requests/s",
        "core busy %",
        "MiB resident",
    ]);
    for row in workload.rows.iter().filter(|row| row.requests_per_second.is_some()) {
        table.row(vec![
            row.peer.clone(),
            cell(row.cpu_us, 2),
            share(row),
            cell(row.requests_per_second, 0),
            row.busy_percent.map_or(String::new(), |busy| format!("{:.0}", busy.median)),
            row.resident_mib.map_or(String::new(), |mib| format!("{:.1}", mib.median)),
        ]);
    }
    table.text()
}

fn rate_table(workload: &Summary) -> String {
    let mut table = Table::new(&[
        "",
        "CPU µs/request",
        "p50 µs",
        "p99 µs",
        "p99.9 µs",
        "added p50",
        "added p99",
        "added p99.9",
        "reuse %",
    ]);
    for row in workload.rows.iter().filter(|row| row.p99_us.is_some()) {
        table.row(vec![
            row.peer.clone(),
            cell(row.cpu_us_at_rate, 2),
            cell(row.p50_us, 0),
            cell(row.p99_us, 0),
            cell(row.p99_9_us, 0),
            cell(row.added_p50_us, 0),
            cell(row.added_p99_us, 0),
            cell(row.added_p99_9_us, 0),
            row.reuse_percent.map_or(String::new(), |percent| format!("{percent:.3}")),
        ]);
    }
    table.text()
}

fn stream_table(workload: &Summary) -> String {
    let mut table = Table::new(&[
        "",
        "p99 to the first event µs",
        "p99 between events µs",
        "router's share of CPU",
    ]);
    for row in workload.rows.iter().filter(|row| row.event_gap_p99_us.is_some()) {
        let cells = [cell(row.first_event_p99_us, 0), cell(row.event_gap_p99_us, 0), share(row)];
        table.row(std::iter::once(row.peer.clone()).chain(cells).collect());
    }
    table.text()
}

fn share(row: &Row) -> String {
    row.router_share.map_or(String::new(), |share| format!("{share:.2}"))
}

/// Median and range; nothing where nothing was measured.
fn cell(spread: Option<Spread>, digits: usize) -> String {
    spread.map_or(String::new(), |spread| spread.text(digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_aligned_by_characters_and_not_by_bytes() {
        let mut table = Table::new(&["", "µs"]);
        table.row(vec!["nginx".to_owned(), "1".to_owned()]);
        let text = table.text();
        assert_eq!(text, "|       | µs |\n|-------|----|\n| nginx | 1  |\n");
    }

    #[test]
    fn what_is_not_met_and_what_is_not_known_are_both_told() {
        let of = |verdict| Target {
            what: "a".to_owned(),
            goal: "b".to_owned(),
            seen: "c".to_owned(),
            ratios: String::new(),
            verdict,
        };
        let why = Verdict::NotMeasured("d".to_owned());
        let text = targets_table(&[of(Verdict::Met), of(Verdict::NotMet), of(why)]);
        let last: Vec<_> =
            text.lines().skip(2).map(|line| line.split('|').nth(5).unwrap().trim()).collect();
        assert_eq!(last, ["met", "**not met**", "not measured: d"]);
    }
}
