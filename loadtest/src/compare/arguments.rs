//! The flags of `compare`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;

use super::CompareError;
use super::measure::Phase;
use super::peer::Peer;
use super::workload::{Answer, Workload};
use crate::net::cores::Cores;
use crate::text::span::Span;

/// Rounds of a result that may be published; fewer mark it as quick.
pub const ROUNDS_MIN: usize = 5;

/// Runs the same workloads against several proxies on this host and writes a folder of results.
///
/// Prints its plan with the time that it will take, and at the end what the project's targets are and
/// what was seen. Give the machine to it: anything else that runs meanwhile is measured too.
#[derive(Clone, Debug, clap::Args)]
pub struct CompareArguments {
    /// Which proxies; default: all whose program is found
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PEER,…")]
    peers: Vec<Peer>,
    /// Which workloads; default: all
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    workloads: Vec<String>,
    /// Interleaved rounds; fewer than five mark the result as quick
    #[arg(long, default_value_t = ROUNDS_MIN, value_name = "N")]
    pub(super) rounds: usize,
    /// Length of each measurement at saturation
    #[arg(long, default_value_t = Span::from_millis(1200), value_name = "SPAN")]
    saturation: Span,
    /// Length of each measurement at a given rate
    #[arg(long, default_value_t = Span::from_millis(1600), value_name = "SPAN")]
    rate_span: Span,
    /// Warm-up before each measurement; longer where one answer takes longer
    #[arg(long, default_value_t = Span::from_millis(300), value_name = "SPAN")]
    warmup: Span,
    /// The core of the proxy
    #[arg(long, default_value = "0")]
    pub(super) proxy_core: Cores,
    /// The core of the generator and the model servers
    #[arg(long, default_value = "1")]
    pub(super) load_core: Cores,
    /// Where the dated folder of results goes
    #[arg(long, default_value = "bench-results", value_name = "FOLDER")]
    pub(super) out: PathBuf,
    /// The program of a peer; may be repeated
    #[arg(long = "program", value_name = "PEER=FILE")]
    programs: Vec<ProgramOf>,
    /// Leave out what is measured of the router alone: decisions, pushes, reloads, memory
    #[arg(long)]
    pub(super) peers_only: bool,
    /// Where `cargo bench` left the estimates of the decision benchmark
    #[arg(long, default_value = "target/criterion/decide", value_name = "FOLDER")]
    pub(super) decide_estimates: PathBuf,
    /// Print the plan and end
    #[arg(long)]
    pub(super) plan: bool,
}

/// `PEER=FILE`.
#[derive(Clone, Debug)]
struct ProgramOf {
    peer: Peer,
    file: PathBuf,
}

impl FromStr for ProgramOf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (peer, file) = text.split_once('=').ok_or("write it as PEER=FILE")?;
        Ok(Self { peer: Peer::from_str(peer, false)?, file: PathBuf::from(file) })
    }
}

impl CompareArguments {
    /// The workloads to compare in, each with the peers that take part.
    ///
    /// # Errors
    /// An unknown name, a peer that was asked for without a program, or nothing to compare.
    pub fn choose(&self) -> Result<Vec<(Workload, Vec<Peer>)>, CompareError> {
        let nothing = |why: String| Err(CompareError::Nothing(why));
        if self.rounds == 0 {
            return nothing("it takes a round".to_owned());
        }
        let all = Workload::all();
        let is_known = |name: &String| all.iter().any(|workload| workload.name == name);
        if let Some(unknown) = self.workloads.iter().find(|name| !is_known(name)) {
            let names: Vec<_> = all.iter().map(|workload| workload.name).collect();
            return nothing(format!(
                "there is no workload {unknown}; there are {}",
                names.join(", ")
            ));
        }
        if let Some(missing) = self.peers.iter().find(|peer| !self.has_program(**peer)) {
            let program = self.program(*missing).unwrap_or_default();
            return nothing(format!("there is no {}", program.display()));
        }
        let wanted =
            |name: &str| self.workloads.is_empty() || self.workloads.iter().any(|it| it == name);
        let takes_part = |peer: &Peer| {
            (self.peers.is_empty() || self.peers.contains(peer)) && self.has_program(*peer)
        };
        let chosen: Vec<_> = all
            .into_iter()
            .filter(|workload| wanted(workload.name))
            .map(|workload| {
                let peers = workload.peers.iter().copied().filter(takes_part).collect::<Vec<_>>();
                (workload, peers)
            })
            .filter(|(_, peers)| peers.len() >= 2)
            .collect();
        if chosen.is_empty() {
            return nothing("it takes two peers of one workload".to_owned());
        }
        Ok(chosen)
    }

    /// The program that a peer runs; `None` for no proxy at all.
    pub fn program(&self, peer: Peer) -> Option<PathBuf> {
        // What is said of the router is said of its other self, too.
        let names =
            |of: &&ProgramOf| of.peer == peer || (of.peer == Peer::Router && peer.is_ours());
        match self.programs.iter().find(names) {
            Some(of) => Some(of.file.clone()),
            None => peer.default_program(),
        }
    }

    /// Whether it is here, as far as it needs a program.
    pub fn has_program(&self, peer: Peer) -> bool {
        self.program(peer).is_none_or(|program| program.exists())
    }

    /// How long a phase is measured.
    pub fn span(&self, phase: Phase) -> Span {
        match phase {
            Phase::Saturation => self.saturation,
            Phase::Rate(_) => self.rate_span,
        }
    }

    /// The warm-up: at least as long as the first answers take, so that as many end as begin.
    pub fn warmup(&self, workload: &Workload) -> Span {
        let answer = match workload.answer {
            Answer::Bytes(_) => Duration::ZERO,
            Answer::Tokens(tokens, interval) => interval.duration() * tokens,
        };
        let milliseconds = u64::try_from(answer.as_millis()).unwrap_or(u64::MAX);
        self.warmup.max(Span::from_millis(milliseconds + milliseconds / 4))
    }

    /// The trial that finds out what a peer takes.
    pub fn rehearsal(&self) -> Span {
        Span::from_millis(600).min(self.saturation)
    }

    /// Whether the result must not be published.
    pub fn is_quick(&self) -> bool {
        self.rounds < ROUNDS_MIN
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, FromArgMatches};

    use super::*;

    fn arguments(flags: &[&str]) -> CompareArguments {
        let command = CompareArguments::augment_args(clap::Command::new("x").no_binary_name(true));
        CompareArguments::from_arg_matches(&command.get_matches_from(flags)).unwrap()
    }

    #[test]
    fn a_peer_without_a_program_takes_no_part_unless_it_was_asked_for() {
        let flags = ["--program", "nginx=/no/such", "--program", "router=/bin/sh"];
        let chosen = arguments(&flags).choose().unwrap();
        assert!(chosen.iter().all(|(_, peers)| !peers.contains(&Peer::Nginx)));
        assert!(chosen.iter().all(|(_, peers)| peers.contains(&Peer::Router)));
        let asked = arguments(&[&flags[..], &["--peers", "direct,nginx"]].concat());
        assert!(asked.choose().unwrap_err().to_string().contains("there is no /no/such"));
    }

    #[test]
    fn the_router_by_header_is_the_routers_program() {
        let program = arguments(&["--program", "router=/a/b"]).program(Peer::RouterByHeader);
        assert_eq!(program, Some(PathBuf::from("/a/b")));
    }

    #[test]
    fn a_stream_is_warmed_up_until_answers_end_as_fast_as_they_begin() {
        let all = Workload::all();
        let of = |name| all.iter().find(|workload| workload.name == name).unwrap();
        let arguments = arguments(&["--warmup", "100ms"]);
        assert_eq!(arguments.warmup(of("small-json-by-header")), Span::from_millis(100));
        assert_eq!(arguments.warmup(of("sse-200-tokens")), Span::from_millis(500));
    }

    #[test]
    fn fewer_rounds_than_five_are_quick() {
        assert!(!arguments(&[]).is_quick());
        assert!(arguments(&["--rounds", "4"]).is_quick());
    }
}
