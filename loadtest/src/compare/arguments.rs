//! The flags of `compare`.

use std::path::{Path, PathBuf};

use super::CompareError;
use super::peer::Peer;
use crate::net::cores::Cores;
use crate::text::span::Span;

/// Runs the same workload against several proxies on this host and writes a folder of results.
///
/// Give the machine to it: anything else that runs meanwhile is measured too.
#[derive(Clone, Debug, clap::Args)]
pub struct CompareArguments {
    /// Which proxies; default: all whose program is found
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PEER,…")]
    peers: Vec<Peer>,
    /// Interleaved rounds of each measurement
    #[arg(long, default_value_t = 5)]
    pub(super) rounds: usize,
    /// Length of each measurement
    #[arg(long, default_value_t = Span::from_millis(5000), value_name = "SPAN")]
    pub(super) duration: Span,
    /// Warm-up before each measurement
    #[arg(long, default_value_t = Span::from_millis(1000), value_name = "SPAN")]
    pub(super) warmup: Span,
    /// Keep-alive connections of the generator
    #[arg(long, default_value_t = 64, value_name = "N")]
    pub(super) connections: u32,
    /// Requests per second of the latency measurement; default: half of the slowest peer's most
    #[arg(long)]
    pub(super) rate: Option<f64>,
    /// The core of the proxy
    #[arg(long, default_value = "0")]
    pub(super) proxy_core: Cores,
    /// The core of the generator and the model servers
    #[arg(long, default_value = "1")]
    pub(super) load_core: Cores,
    /// Where the dated folder of results goes
    #[arg(long, default_value = "bench-results", value_name = "FOLDER")]
    pub(super) out: PathBuf,
    /// The router's program; default: beside this one
    #[arg(long, value_name = "FILE")]
    router: Option<PathBuf>,
    /// nginx's program
    #[arg(long, default_value = "/usr/sbin/nginx", value_name = "FILE")]
    nginx: PathBuf,
    /// HAProxy's program
    #[arg(long, default_value = "/usr/sbin/haproxy", value_name = "FILE")]
    haproxy: PathBuf,
}

impl CompareArguments {
    /// The peers to compare, in the order of the report.
    ///
    /// # Errors
    /// A peer that was asked for has no program, or there is only one.
    pub fn peers(&self) -> Result<Vec<Peer>, CompareError> {
        let is_here = |peer: &Peer| self.program(*peer).is_none_or(|program| program.exists());
        let peers = if self.peers.is_empty() {
            Peer::ALL.into_iter().filter(is_here).collect()
        } else {
            self.peers.clone()
        };
        if let Some(missing) = peers.iter().find(|peer| !is_here(peer)) {
            let program = self.program(*missing).unwrap_or_default();
            return Err(CompareError::Nothing(format!("there is no {}", program.display())));
        }
        if peers.len() < 2 || self.rounds == 0 {
            return Err(CompareError::Nothing("it takes two peers and a round".to_owned()));
        }
        Ok(peers)
    }

    /// The program that a peer runs; `None` for no proxy at all.
    pub fn program(&self, peer: Peer) -> Option<PathBuf> {
        match peer {
            Peer::Direct => None,
            Peer::Floor => Some(std::env::current_exe().unwrap_or_default()),
            Peer::Nginx => Some(self.nginx.clone()),
            Peer::Haproxy => Some(self.haproxy.clone()),
            Peer::Router => Some(self.router.clone().unwrap_or_else(beside_this_program)),
        }
    }
}

fn beside_this_program() -> PathBuf {
    let this = std::env::current_exe().unwrap_or_default();
    this.parent().unwrap_or(Path::new(".")).join("switchboard-router")
}
