//! Who is compared, and what each of them can do.

mod start;

use std::path::{Path, PathBuf};
use std::process::Command;

pub use self::start::{Running, Setting};
use super::CompareError;
use super::workload::{Job, Workload};

/// Who is compared.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, clap::ValueEnum)]
pub enum Peer {
    /// No proxy: the generator asks one model server.
    Direct,
    /// A model server alone on the proxy's core. It receives once and sends once where a proxy does
    /// both twice, so twice its CPU time is what no proxy on these sockets can be far below.
    Floor,
    /// nginx, from `peers/nginx.conf`.
    Nginx,
    /// HAProxy, from `peers/haproxy.cfg` and `peers/haproxy-by-body.cfg`.
    Haproxy,
    /// Envoy, from `peers/envoy.yaml` and `peers/envoy-by-body.yaml`.
    Envoy,
    /// SGLang's router; forwards to models in turn.
    SglangRouter,
    /// vLLM's router; forwards to models in turn.
    VllmRouter,
    /// LiteLLM's proxy, from `peers/litellm.yaml`; forwards by weight at random.
    Litellm,
    /// Switchboard's router, told to route a workload's requests by their header only: what the
    /// workload's own job costs is the difference.
    RouterByHeader,
    /// Switchboard's router.
    Router,
}

/// How a peer's program is found and asked for its version.
struct Program {
    /// From the folder that the comparison runs in, unless it is absolute.
    path: &'static str,
    version_flag: &'static str,
}

impl Peer {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 10] = [
        Self::Direct,
        Self::Floor,
        Self::Nginx,
        Self::Haproxy,
        Self::Envoy,
        Self::SglangRouter,
        Self::VllmRouter,
        Self::Litellm,
        Self::RouterByHeader,
        Self::Router,
    ];

    /// In reports, flags and file names.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Floor => "floor",
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::Envoy => "envoy",
            Self::SglangRouter => "sglang-router",
            Self::VllmRouter => "vllm-router",
            Self::Litellm => "litellm",
            Self::RouterByHeader => "router-by-header",
            Self::Router => "router",
        }
    }

    /// Whether it passes requests on, or only answers.
    pub const fn is_proxy(self) -> bool {
        !matches!(self, Self::Direct | Self::Floor)
    }

    /// Whether it is Switchboard's.
    pub const fn is_ours(self) -> bool {
        matches!(self, Self::RouterByHeader | Self::Router)
    }

    /// Whether it refuses what it does not know and splits users 90 to 10 by a hash. The routers of
    /// model servers do neither; what they do is in `peers/README.md`.
    pub const fn splits_by_user(self) -> bool {
        match self {
            Self::Direct | Self::Floor => false,
            Self::SglangRouter | Self::VllmRouter | Self::Litellm => false,
            Self::Nginx | Self::Haproxy | Self::Envoy => true,
            Self::RouterByHeader | Self::Router => true,
        }
    }

    /// Whether it takes seconds to start: then it is started once per workload and stands still
    /// (SIGSTOP) while others have their turn.
    pub const fn starts_slowly(self) -> bool {
        matches!(self, Self::SglangRouter | Self::VllmRouter | Self::Litellm)
    }

    /// Whether it can hold a rate at which the others show anything. LiteLLM takes milliseconds of CPU
    /// per request, so it is only asked for as much as it takes.
    pub const fn joins_the_rate(self) -> bool {
        !matches!(self, Self::Litellm)
    }

    /// What it has to do in a workload.
    pub fn job(self, workload: &Workload) -> Job {
        if self == Self::RouterByHeader { Job::Header } else { workload.job }
    }

    /// The program that it runs unless a flag names another; `None` for no proxy at all.
    pub fn default_program(self) -> Option<PathBuf> {
        match self {
            Self::Direct => None,
            Self::Floor => std::env::current_exe().ok(),
            Self::RouterByHeader | Self::Router => Some(beside_this_program("switchboard-router")),
            _ => Some(PathBuf::from(self.foreign()?.path)),
        }
    }

    /// What a program says about its version, on one line; empty where it says nothing.
    pub fn version(self, program: &Path) -> String {
        let flag = self.foreign().map_or("--version", |foreign| foreign.version_flag);
        let Ok(output) = Command::new(program).arg(flag).output() else { return String::new() };
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        let said = said.lines().find(|line| line.chars().any(|letter| letter.is_ascii_digit()));
        let said = said.unwrap_or_default().trim();
        // Envoy begins with its own path.
        said.strip_prefix(&*program.to_string_lossy()).unwrap_or(said).trim().to_owned()
    }

    fn foreign(self) -> Option<Program> {
        let of = |path, version_flag| Some(Program { path, version_flag });
        match self {
            Self::Direct | Self::Floor | Self::RouterByHeader | Self::Router => None,
            Self::Nginx => of("/usr/sbin/nginx", "-v"),
            Self::Haproxy => of("/usr/sbin/haproxy", "-v"),
            Self::Envoy => of("loadtest/peers/.venv-envoy/bin/envoy", "--version"),
            Self::SglangRouter => of("loadtest/peers/.venv-sglang/bin/sglang-router", "--version"),
            Self::VllmRouter => of("loadtest/peers/.venv-vllm/bin/vllm-router", "--version"),
            Self::Litellm => of("loadtest/peers/.venv-litellm/bin/litellm", "--version"),
        }
    }

    /// Starts it for a workload, and waits until it takes requests.
    ///
    /// # Errors
    /// It ended, or does not listen.
    pub fn start(self, setting: &Setting<'_>) -> Result<Running, CompareError> {
        start::start(self, setting)
    }
}

fn beside_this_program(name: &str) -> PathBuf {
    let this = std::env::current_exe().unwrap_or_default();
    this.parent().unwrap_or(Path::new(".")).join(name)
}
