//! What one workload showed: measurements in, one row per peer out. Pure.

use serde::{Deserialize, Serialize};

use super::measure::{Measurement, Phase, Report};
use super::peer::Peer;
use super::spread::Spread;
use super::workload::Workload;

/// Everything that was measured in one workload.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Which.
    pub workload: Workload,
    /// Everyone's requests per second in the phases at a rate.
    pub rate: f64,
    /// Fit ones only.
    pub measurements: Vec<Measurement>,
    /// Who could not take part, and measurements that were thrown away, each with its reason.
    pub mishaps: Vec<Mishap>,
}

/// What went wrong.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Mishap {
    /// Whose.
    pub peer: String,
    /// When: `rehearsal`, or phase and round.
    pub when: String,
    /// What.
    pub what: String,
}

/// One workload in numbers, as it is written to `summary.json`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Summary {
    /// Its name.
    pub name: String,
    /// For people.
    pub description: String,
    /// Requests per second of the phases at a rate.
    pub rate: f64,
    /// One per peer.
    pub rows: Vec<Row>,
    /// Peers that cannot do the job, and why.
    pub left_out: Vec<(String, String)>,
    /// What went wrong.
    pub mishaps: Vec<Mishap>,
}

/// One peer's numbers. What was not measured is `None`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[expect(missing_docs, reason = "the names say it; what they do not say is said")]
pub struct Row {
    pub peer: String,
    /// Rounds whose numbers were fit.
    pub rounds: usize,
    /// At saturation; of the floor, doubled (see `Peer::Floor`).
    pub cpu_us: Option<Spread>,
    /// Share of its core that the proxy used at saturation, in percent. Well below 100, something else
    /// was the limit.
    pub busy_percent: Option<Spread>,
    pub requests_per_second: Option<Spread>,
    pub resident_mib: Option<Spread>,
    /// Requests that needed no new connection to a model, in percent, at the common rate.
    pub reuse_percent: Option<f64>,
    pub cpu_us_at_rate: Option<Spread>,
    /// Of it at saturation, warm-up included, what our network cores used.
    pub worker_cpu_us: Option<Spread>,
    pub p50_us: Option<Spread>,
    pub p99_us: Option<Spread>,
    pub p99_9_us: Option<Spread>,
    /// Quantiles `0..=1` with their latency at the common rate, medians of the rounds.
    pub percentiles_us: Vec<(f64, f64)>,
    /// Over direct, round by round.
    pub added_p50_us: Option<Spread>,
    pub added_p99_us: Option<Spread>,
    pub added_p99_9_us: Option<Spread>,
    /// Streams only: from the request to its first event.
    pub first_event_p99_us: Option<Spread>,
    /// Streams only: between two events.
    pub event_gap_p99_us: Option<Spread>,
    /// Rounds at the rate in which the generator itself fell behind.
    pub in_doubt: usize,
    /// The router's CPU time per request over this peer's.
    pub router_share: Option<f64>,
}

impl Outcome {
    /// The numbers of this workload; `peers` in the order of the report.
    pub fn summary(&self, peers: &[Peer]) -> Summary {
        let ours = self.cpu_or_at_rate(Peer::Router);
        let rows = peers.iter().map(|peer| self.row(*peer, ours)).filter(|row| row.rounds > 0);
        let left_out = self.workload.left_out.iter();
        Summary {
            name: self.workload.name.to_owned(),
            description: self.workload.description.to_owned(),
            rate: self.rate,
            rows: rows.collect(),
            left_out: left_out
                .map(|(peer, why)| (peer.name().to_owned(), (*why).to_owned()))
                .collect(),
            mishaps: self.mishaps.clone(),
        }
    }

    fn row(&self, peer: Peer, ours: Option<Spread>) -> Row {
        let rounds = |phase: fn(Phase) -> bool| self.of(peer, phase).count();
        let is_proxy = peer.is_proxy();
        let process = |value: Option<Spread>| value.filter(|_| peer != Peer::Direct);
        let theirs = self.cpu_or_at_rate(peer);
        let busy = |report: &Report| {
            let cpu = report.cpu.first()?;
            Some(cpu.cpu_us / (report.window_seconds * 1e4))
        };
        let resident =
            |report: &Report| Some(report.cpu.first()?.resident_bytes as f64 / 1_048_576.0);
        let memory = self.spread(peer, is_rate, resident);
        Row {
            peer: peer.name().to_owned(),
            rounds: rounds(is_saturation).max(rounds(is_rate)),
            cpu_us: process(self.cpu(peer, is_saturation)),
            busy_percent: process(self.spread(peer, is_saturation, busy)),
            requests_per_second: self.spread(peer, is_saturation, |report| Some(report.rate)),
            resident_mib: process(memory.or(self.spread(peer, is_saturation, resident))),
            reuse_percent: self.reuse(peer).filter(|_| is_proxy),
            cpu_us_at_rate: process(self.cpu(peer, is_rate)),
            worker_cpu_us: self.worker_cpu(peer),
            p50_us: self.spread(peer, is_rate, p50),
            p99_us: self.spread(peer, is_rate, p99),
            p99_9_us: self.spread(peer, is_rate, p99_9),
            percentiles_us: self.percentiles(peer),
            added_p50_us: self.added(peer, p50).filter(|_| is_proxy),
            added_p99_us: self.added(peer, p99).filter(|_| is_proxy),
            added_p99_9_us: self.added(peer, p99_9).filter(|_| is_proxy),
            first_event_p99_us: self
                .spread(peer, is_rate, |report| Some(report.stream.as_ref()?.first_event_us.p99)),
            event_gap_p99_us: self
                .spread(peer, is_rate, |report| Some(report.stream.as_ref()?.event_gap_us.p99)),
            in_doubt: self.of(peer, is_rate).filter(|one| !one.report.valid).count(),
            router_share: ours.zip(theirs).map(|(ours, theirs)| ours.median / theirs.median),
        }
    }

    fn percentiles(&self, peer: Peer) -> Vec<(f64, f64)> {
        let at = |quantile, of: fn(&Report) -> Option<f64>| {
            Some((quantile, self.spread(peer, is_rate, of)?.median))
        };
        let all = [
            at(0.5, p50),
            at(0.75, |report| Some(report.latency_us.p75)),
            at(0.9, |report| Some(report.latency_us.p90)),
            at(0.99, p99),
            at(0.999, p99_9),
        ];
        all.into_iter().flatten().collect()
    }

    fn of(&self, peer: Peer, phase: fn(Phase) -> bool) -> impl Iterator<Item = &Measurement> {
        self.measurements.iter().filter(move |one| one.peer == peer && phase(one.phase))
    }

    fn spread(
        &self,
        peer: Peer,
        phase: fn(Phase) -> bool,
        value: impl Fn(&Report) -> Option<f64>,
    ) -> Option<Spread> {
        let values: Vec<_> =
            self.of(peer, phase).filter_map(|measurement| value(&measurement.report)).collect();
        Spread::of(&values)
    }

    /// A percentile over that of no proxy in the same round: what the host did meanwhile, both met.
    fn added(&self, peer: Peer, percentile: fn(&Report) -> Option<f64>) -> Option<Spread> {
        let direct = |round| {
            let mut direct = self.of(Peer::Direct, is_rate).filter(|one| one.round == round);
            percentile(&direct.next()?.report)
        };
        let differences: Vec<_> = self
            .of(peer, is_rate)
            .filter_map(|one| Some(percentile(&one.report)? - direct(one.round)?))
            .collect();
        Spread::of(&differences)
    }

    fn cpu(&self, peer: Peer, phase: fn(Phase) -> bool) -> Option<Spread> {
        let hops = if peer == Peer::Floor { 2.0 } else { 1.0 };
        self.spread(peer, phase, |report| Some(hops * report.cpu.first()?.cpu_us_per_answer))
    }

    fn worker_cpu(&self, peer: Peer) -> Option<Spread> {
        let seen = self.of(peer, is_saturation).filter_map(|one| one.seen.worker_us());
        Spread::of(&seen.collect::<Vec<_>>())
    }

    /// Peers are compared at saturation; streams have none.
    fn cpu_or_at_rate(&self, peer: Peer) -> Option<Spread> {
        let cpu = self.cpu(peer, is_saturation).or_else(|| self.cpu(peer, is_rate));
        cpu.filter(|_| peer != Peer::Direct)
    }

    /// Over all rounds at the rate, when the pools are filled; else over those at saturation.
    fn reuse(&self, peer: Peer) -> Option<f64> {
        let of = |phase| Spread::of(&self.of(peer, phase).filter_map(reuse_of).collect::<Vec<_>>());
        of(is_rate).or_else(|| of(is_saturation)).map(|reuse| reuse.median)
    }
}

impl Summary {
    /// The row of a peer.
    pub fn row(&self, peer: Peer) -> Option<&Row> {
        self.rows.iter().find(|row| row.peer == peer.name())
    }
}

fn reuse_of(measurement: &Measurement) -> Option<f64> {
    measurement.seen.reuse_percent()
}

fn p50(report: &Report) -> Option<f64> {
    Some(report.latency_us.p50)
}

fn p99(report: &Report) -> Option<f64> {
    Some(report.latency_us.p99)
}

fn p99_9(report: &Report) -> Option<f64> {
    Some(report.latency_us.p99_9)
}

fn is_saturation(phase: Phase) -> bool {
    phase == Phase::Saturation
}

fn is_rate(phase: Phase) -> bool {
    !is_saturation(phase)
}

#[cfg(test)]
mod tests {
    use super::super::measure::tests::measurement;
    use super::*;

    fn outcome() -> Outcome {
        let mut measurements = Vec::new();
        let rounds = [(20.0, 40.0, 1.0), (21.0, 41.0, 2.0), (90.0, 42.0, 80.0)];
        for (round, (router, haproxy, direct)) in rounds.into_iter().enumerate() {
            for phase in [Phase::Saturation, Phase::Rate(100.0)] {
                measurements.push(measurement(Peer::Router, phase, round, router));
                measurements.push(measurement(Peer::Haproxy, phase, round, haproxy));
                measurements.push(measurement(Peer::Floor, phase, round, 8.0));
                measurements.push(measurement(Peer::Direct, phase, round, direct));
            }
        }
        let workload = Workload::all().remove(0);
        Outcome { workload, rate: 100.0, measurements, mishaps: Vec::new() }
    }

    #[test]
    fn a_share_is_of_medians() {
        let summary = outcome().summary(&[Peer::Direct, Peer::Haproxy, Peer::Router]);
        let haproxy = summary.row(Peer::Haproxy).unwrap();
        assert_eq!(haproxy.cpu_us, Some(Spread { median: 41.0, min: 40.0, max: 42.0 }));
        assert_eq!(haproxy.router_share, Some(21.0 / 41.0));
        let direct = summary.row(Peer::Direct).unwrap();
        assert_eq!((direct.cpu_us, direct.router_share), (None, None));
    }

    #[test]
    fn what_is_added_is_taken_round_by_round() {
        let summary = outcome().summary(&[Peer::Router]);
        let router = summary.row(Peer::Router).unwrap();
        // p50 is ten times the made-up CPU time: 200-10, 210-20 and, in a bad round, 900-800.
        assert_eq!(router.added_p50_us, Some(Spread { median: 190.0, min: 100.0, max: 190.0 }));
        assert_eq!(router.p50_us.map(|spread| spread.max), Some(900.0));
    }

    #[test]
    fn the_floor_counts_twice() {
        let summary = outcome().summary(&[Peer::Floor]);
        assert_eq!(summary.rows[0].cpu_us.map(|spread| spread.median), Some(16.0));
        assert_eq!(summary.rows[0].added_p99_us, None);
    }

    #[test]
    fn a_peer_without_a_fit_round_has_no_row() {
        assert!(outcome().summary(&[Peer::Envoy]).rows.is_empty());
    }
}
