//! What will be done, in which order, and how long it will take. Pure.

use std::fmt::Write;
use std::time::Duration;

use super::arguments::CompareArguments;
use super::measure::Phase;
use super::peer::Peer;
use super::workload::{LoadPlan, Workload};

/// What one peer costs beside its measurements: to start, to be checked, to end.
fn start_span(peer: Peer) -> Duration {
    Duration::from_millis(match peer {
        Peer::Direct => 0,
        Peer::Floor | Peer::Haproxy | Peer::Nginx | Peer::RouterByHeader | Peer::Router => 250,
        Peer::Envoy => 900,
        Peer::SglangRouter | Peer::VllmRouter => 3_000,
        Peer::Litellm => 10_000,
    })
}

/// A `run` beside its spans: it starts, connects, drains, and its report is read.
const RUN_SPAN: Duration = Duration::from_millis(120);

/// How long one workload will take.
pub fn expected(arguments: &CompareArguments, workload: &Workload, peers: &[Peer]) -> Duration {
    let rounds = u32::try_from(arguments.rounds).unwrap_or(u32::MAX);
    let rehearsal = arguments.rehearsal().duration() + 3 * RUN_SPAN;
    let of_peer = |peer: &Peer| {
        let measured: Duration = phases(workload, *peer, 0.0)
            .iter()
            .map(|phase| {
                arguments.span(*phase).duration() + arguments.warmup(workload).duration() + RUN_SPAN
            })
            .sum();
        let starts = if peer.starts_slowly() { 1 } else { rounds + 1 };
        rehearsal + start_span(*peer) * starts + measured * rounds
    };
    peers.iter().map(of_peer).sum()
}

/// What is measured of a peer in one round, where `rate` is everyone's.
pub fn phases(workload: &Workload, peer: Peer, rate: f64) -> Vec<Phase> {
    match workload.load {
        LoadPlan::Rate(rate) => vec![Phase::Rate(rate)],
        LoadPlan::SaturationAndHalf if peer.joins_the_rate() => {
            vec![Phase::Saturation, Phase::Rate(rate)]
        }
        LoadPlan::SaturationAndHalf => vec![Phase::Saturation],
    }
}

/// Another peer begins each round, so that none always follows the same one.
pub fn in_turn(peers: &[Peer], round: usize) -> impl Iterator<Item = Peer> + '_ {
    (0..peers.len()).map(move |position| peers[(position + round) % peers.len()])
}

/// The rate that all can hold: half of what the slowest proxy takes, of those that join it.
pub fn common_rate(workload: &Workload, capacities: &[(Peer, f64)]) -> f64 {
    if let LoadPlan::Rate(rate) = workload.load {
        return rate;
    }
    let of_proxies = capacities.iter().filter(|(peer, _)| peer.is_proxy() && peer.joins_the_rate());
    let slowest = of_proxies.map(|(_, capacity)| *capacity).reduce(f64::min);
    // Whole hundreds: a rate that people can read.
    let half = slowest.unwrap_or(2000.0) / 2.0;
    if half < 200.0 { half.max(1.0).floor() } else { (half / 100.0).floor() * 100.0 }
}

/// The plan as text; `alone` is the time for what is measured of the router alone.
pub fn text(
    arguments: &CompareArguments,
    chosen: &[(Workload, Vec<Peer>)],
    alone: Duration,
) -> String {
    let mut text = String::new();
    let mut total = alone;
    for (workload, peers) in chosen {
        let span = expected(arguments, workload, peers);
        total += span;
        let names: Vec<_> = peers.iter().map(|peer| peer.name()).collect();
        let (seconds, names) = (span.as_secs(), names.join(", "));
        // Writing to memory cannot fail.
        writeln!(text, "{seconds:>5} s  {:<22} {names}", workload.name).ok();
        for (peer, why) in workload.left_out {
            writeln!(text, "         {:<22} without {}: {why}", "", peer.name()).ok();
        }
        for peer in workload.peers.iter().filter(|peer| !arguments.has_program(**peer)) {
            writeln!(text, "         {:<22} without {}: not installed", "", peer.name()).ok();
        }
    }
    if !alone.is_zero() {
        let what = "decisions, pushes, reloads, memory";
        writeln!(text, "{:>5} s  {:<22} {what}", alone.as_secs(), "the router alone").ok();
    }
    let (minutes, seconds) = (total.as_secs() / 60, total.as_secs() % 60);
    let rounds = arguments.rounds;
    writeln!(text, "{rounds} rounds, about {minutes} min {seconds} s in all").ok();
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_has_its_turn_in_every_round_and_none_is_always_first() {
        let peers = [Peer::Direct, Peer::Nginx, Peer::Router];
        let orders: Vec<Vec<Peer>> = (0..3).map(|round| in_turn(&peers, round).collect()).collect();
        for peer in peers {
            assert!(orders.iter().all(|order| order.contains(&peer)));
            assert_eq!(orders.iter().filter(|order| order[0] == peer).count(), 1);
        }
    }

    #[test]
    fn the_common_rate_is_half_of_the_slowest_that_joins_it() {
        let all = Workload::all();
        let small = &all[0];
        let capacities = [
            (Peer::Direct, 90_000.0),
            (Peer::Envoy, 6_789.0),
            (Peer::Litellm, 120.0),
            (Peer::Router, 40_000.0),
        ];
        assert_eq!(common_rate(small, &capacities), 3_300.0);
        assert_eq!(common_rate(small, &[(Peer::Router, 150.0)]), 75.0);
    }

    #[test]
    fn a_stream_is_measured_at_its_own_rate_only() {
        let all = Workload::all();
        let stream = all.iter().find(|workload| workload.name == "sse-200-tokens").unwrap();
        let LoadPlan::Rate(rate) = stream.load else { panic!("a stream has a rate") };
        assert_eq!(common_rate(stream, &[(Peer::Router, 9_999.0)]), rate);
        assert_eq!(phases(stream, Peer::Router, 7.0), [Phase::Rate(rate)]);
    }
}
