//! The project's targets (design, section 13) held against what was seen. Pure.

use serde::{Deserialize, Serialize};

use super::alone::{Alone, Known};
use super::outcome::{Row, Summary};
use super::peer::Peer;
use super::spread::Spread;

/// One target, and what was seen of it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Target {
    /// What is asked of the router.
    pub what: String,
    /// How much of it, in words.
    pub goal: String,
    /// What was seen; empty where nothing was.
    pub seen: String,
    /// Ours over each peer's, where they have it too.
    pub ratios: String,
    /// Whether it is met.
    pub verdict: Verdict,
}

/// Whether a target is met.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is.
    Met,
    /// It is not.
    NotMet,
    /// Nobody knows, and why.
    NotMeasured(String),
}

impl Verdict {
    /// For a table.
    pub fn text(&self) -> String {
        match self {
            Self::Met => "met".to_owned(),
            Self::NotMet => "**not met**".to_owned(),
            Self::NotMeasured(why) => format!("not measured: {why}"),
        }
    }

    fn below(seen: f64, limit: f64) -> Self {
        if seen < limit { Self::Met } else { Self::NotMet }
    }

    fn at_most(seen: f64, limit: f64) -> Self {
        if seen <= limit { Self::Met } else { Self::NotMet }
    }
}

/// What a run knows when it judges.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// Every workload that ran.
    pub workloads: &'a [Summary],
    /// What was measured of the router alone.
    pub alone: &'a Alone,
}

const SMALL: &str = "small-json-by-header";
const BY_BODY: &str = "small-json-by-body";
const FACTS: &str = "facts-64k";
const SHADOW: &str = "shadow-10";
const CHAT: &str = "chat";

/// The router's CPU time per request over a peer's, at most; and in which workload.
const CPU_GOALS: [(Peer, f64, &str); 6] = [
    (Peer::Haproxy, 0.65, SMALL),
    (Peer::Nginx, 0.55, SMALL),
    (Peer::Envoy, 0.16, SMALL),
    (Peer::SglangRouter, 0.10, CHAT),
    (Peer::VllmRouter, 0.10, CHAT),
    (Peer::Floor, 1.25, SMALL),
];

/// Peers that the targets name and that this comparison has no program of.
const ABSENT: [(&str, &str, &str); 2] = [
    (
        "Pingora",
        "at most 0.30",
        "Pingora is a library, and this comparison brings no proxy made from it",
    ),
    (
        "TensorZero",
        "at most 0.06",
        "TensorZero comes as a container image only, which is not used here",
    ),
];

/// All targets, in the design's order.
pub fn judge(evidence: Evidence<'_>) -> Vec<Target> {
    let mut targets = vec![
        evidence.added_p99(SMALL, "added p99, 1 KiB", 200.0),
        evidence.added_p99(FACTS, "added p99, 64 KiB with facts", 1000.0),
        evidence.reuse(),
    ];
    targets.extend(CPU_GOALS.map(|(peer, goal, workload)| evidence.cpu(peer, goal, workload)));
    targets.extend(
        ABSENT.map(|(peer, goal, why)| missing(&format!("CPU per request of {peer}'s"), goal, why)),
    );
    targets.push(evidence.lowest_p99());
    targets.push(evidence.decide());
    targets.push(evidence.body_attribute());
    targets.extend(evidence.activation());
    targets.push(evidence.shadow());
    targets.extend(evidence.memory());
    targets
}

fn missing(what: &str, goal: &str, why: &str) -> Target {
    Target {
        what: what.to_owned(),
        goal: goal.to_owned(),
        seen: String::new(),
        ratios: String::new(),
        verdict: Verdict::NotMeasured(why.to_owned()),
    }
}

fn seen(what: &str, goal: &str, seen: String, verdict: Verdict) -> Target {
    Target { what: what.to_owned(), goal: goal.to_owned(), seen, ratios: String::new(), verdict }
}

impl Evidence<'_> {
    fn summary(&self, workload: &str) -> Option<&Summary> {
        self.workloads.iter().find(|summary| summary.name == workload)
    }

    fn row(&self, workload: &str, peer: Peer) -> Option<&Row> {
        self.summary(workload)?.row(peer)
    }

    /// Ours over each other proxy's of a workload.
    fn ratios(&self, workload: &str, value: fn(&Row) -> Option<f64>) -> String {
        let ours = self.row(workload, Peer::Router).and_then(value);
        let rows = self.summary(workload).map_or(&[][..], |summary| &summary.rows);
        let is_other =
            |row: &&Row| ![Peer::Direct, Peer::Floor].iter().any(|it| it.name() == row.peer);
        let ratio = |row: &Row| {
            let (ours, theirs) = (ours?, value(row)?);
            (theirs > 0.0 && !row.peer.starts_with("router"))
                .then(|| format!("{} {:.2}", row.peer, ours / theirs))
        };
        rows.iter().filter(is_other).filter_map(ratio).collect::<Vec<_>>().join(", ")
    }

    fn added_p99(&self, workload: &str, what: &str, goal_us: f64) -> Target {
        let goal = format!("below {goal_us:.0} µs");
        let Some(added) = self.row(workload, Peer::Router).and_then(|row| row.added_p99_us) else {
            return missing(what, &goal, "the workload did not run with `direct` and `router`");
        };
        let ratios = self.ratios(workload, |row| Some(row.added_p99_us?.median));
        let text = format!("{} µs", added.text(0));
        Target { ratios, ..seen(what, &goal, text, Verdict::below(added.median, goal_us)) }
    }

    fn reuse(&self) -> Target {
        let (what, goal) = ("upstream connections reused at steady load", "above 99.9 %");
        match self.row(SMALL, Peer::Router).and_then(|row| row.reuse_percent) {
            None => missing(what, goal, "the workload did not run"),
            Some(percent) => {
                let verdict = Verdict::below(100.0 - percent, 0.1);
                seen(what, goal, format!("{percent:.3} %"), verdict)
            }
        }
    }

    fn cpu(&self, peer: Peer, goal: f64, workload: &str) -> Target {
        let what = match peer {
            Peer::Floor => "CPU per request of the floor's".to_owned(),
            peer => format!("CPU per request of {}'s", peer.name()),
        };
        let goal_text = format!("at most {goal:.2}");
        let share = self.row(workload, peer).and_then(|row| row.router_share);
        let cpu = |peer| self.row(workload, peer).and_then(|row| row.cpu_us);
        let (Some(share), Some(ours), Some(theirs)) = (share, cpu(Peer::Router), cpu(peer)) else {
            let why = format!("{} was not part of this run", peer.name());
            return missing(&what, &goal_text, &why);
        };
        let text = format!("{share:.2} ({:.1} of {:.1} µs)", ours.median, theirs.median);
        seen(&what, &goal_text, text, Verdict::at_most(share, goal))
    }

    fn lowest_p99(&self) -> Target {
        let (what, goal) = ("p99 at the same load, 1 KiB", "lowest of all proxies");
        let p99 = |row: &Row| Some(row.p99_us?.median);
        let Some(ours) = self.row(SMALL, Peer::Router).and_then(p99) else {
            return missing(what, goal, "the workload did not run");
        };
        let rows = self.summary(SMALL).map_or(&[][..], |summary| &summary.rows);
        let proxies = rows
            .iter()
            .filter(|row| Peer::ALL.iter().any(|peer| peer.name() == row.peer && peer.is_proxy()));
        let lowest = proxies.filter_map(p99).reduce(f64::min).unwrap_or(ours);
        let text = format!("{ours:.0} µs; the lowest is {lowest:.0} µs");
        Target {
            ratios: self.ratios(SMALL, p99),
            ..seen(what, goal, text, Verdict::at_most(ours, lowest))
        }
    }

    fn decide(&self) -> Target {
        let (what, goal) =
            ("decide() with 10 000 Objectives × 8 rules", "below 300 ns, 0 allocations");
        match &self.alone.decide {
            Known::NotMeasured(why) => missing(what, goal, why),
            Known::Seen(estimates) => {
                let slowest = estimates.iter().map(|one| one.nanoseconds).fold(0.0, f64::max);
                let fastest = estimates.iter().map(|one| one.nanoseconds).fold(slowest, f64::min);
                let text = format!(
                    "{fastest:.0} ns (one Objective) to {slowest:.0} ns (each request another)"
                );
                seen(what, goal, text, Verdict::below(slowest, 300.0))
            }
        }
    }

    fn body_attribute(&self) -> Target {
        let (what, goal) = ("body attribute and splice over header routing, 2 KiB", "below 3 µs");
        let cpu = |peer| Some(self.row(BY_BODY, peer)?.cpu_us?.median);
        match (cpu(Peer::Router), cpu(Peer::RouterByHeader)) {
            (Some(body), Some(header)) => {
                let text = format!("{:+.1} µs ({body:.1} over {header:.1})", body - header);
                seen(what, goal, text, Verdict::below(body - header, 3.0))
            }
            _ => missing(what, goal, "the workload did not run"),
        }
    }

    fn shadow(&self) -> Target {
        let (what, goal) =
            ("shadow at 10 %: more CPU per request in the network core", "below 5 %");
        let row = |peer| self.row(SHADOW, peer);
        let worker = |peer| Some(row(peer)?.worker_cpu_us?.median);
        let whole = |peer| Some(row(peer)?.cpu_us?.median);
        let of = |value: &dyn Fn(Peer) -> Option<f64>| {
            Some((value(Peer::Router)?, value(Peer::RouterByHeader)?))
        };
        match (of(&worker), of(&whole)) {
            (Some((with, without)), Some((all_with, all_without))) => {
                let more = 100.0 * (with / without - 1.0);
                let text = format!(
                    "{more:+.1} % ({with:.1} over {without:.1} µs; with the shadow core and its spool \
                     {all_with:.1} over {all_without:.1} µs)"
                );
                seen(what, goal, text, Verdict::below(more, 5.0))
            }
            _ => missing(what, goal, "the workload did not run"),
        }
    }

    fn activation(&self) -> Vec<Target> {
        let push = ("PREPARE to ACTIVE of 10 000 Objectives", "below 50 ms");
        let swap = ("p99 while Snapshots are swapped", "at most a tenth more than without");
        let reloads = ("1 000 hot reloads under load", "0 failed requests");
        let seen_of = match &self.alone.activation {
            Known::NotMeasured(why) => {
                return [push, swap, reloads].map(|(what, goal)| missing(what, goal, why)).to_vec();
            }
            Known::Seen(activation) => activation,
        };
        let (with, without) = (seen_of.p99_with_reloads_us, seen_of.p99_without_us);
        let swaps = format!(
            "{} µs with {:.0} reloads/s, {} µs without; a swap itself takes {} µs",
            with.text(0),
            seen_of.reloads_per_second,
            without.text(0),
            seen_of.swap_us.text(0)
        );
        let failed = seen_of.failed;
        let text = format!("{failed} failed of {}, {} reloads", seen_of.requests, seen_of.reloads);
        let reloads_verdict = match (failed, seen_of.reloads) {
            (0, 1000..) => Verdict::Met,
            _ => Verdict::NotMet,
        };
        let pushed = Verdict::below(seen_of.push_ms.median, 50.0);
        vec![
            seen(push.0, push.1, milliseconds(seen_of.push_ms), pushed),
            seen(swap.0, swap.1, swaps, Verdict::at_most(with.median, 1.1 * without.median)),
            seen(reloads.0, reloads.1, text, reloads_verdict),
        ]
    }

    fn memory(&self) -> Vec<Target> {
        let idle = ("memory idle, one worker", "below 40 MiB");
        let each = ("memory per idle keep-alive connection, user space", "below 6 KiB");
        match &self.alone.memory {
            Known::NotMeasured(why) => {
                [idle, each].map(|(what, goal)| missing(what, goal, why)).to_vec()
            }
            Known::Seen(memory) => {
                let mib = memory.idle_bytes as f64 / 1_048_576.0;
                let kib = memory.bytes_per_connection() / 1024.0;
                let per = format!("{kib:.2} KiB, over {} connections", memory.connections);
                vec![
                    seen(idle.0, idle.1, format!("{mib:.1} MiB"), Verdict::below(mib, 40.0)),
                    seen(each.0, each.1, per, Verdict::below(kib, 6.0)),
                ]
            }
        }
    }
}

fn milliseconds(spread: Spread) -> String {
    format!("{} ms", spread.text(1))
}

#[cfg(test)]
mod tests;
