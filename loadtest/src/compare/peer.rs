//! The proxies, and how each is started for the comparison.

use std::path::{Path, PathBuf};
use std::process::Command;

use switchboard_shared::snapshot::SecretKey;

use super::CompareError;
use super::process::{Process, ProcessError, free_address};
use super::push::push;
use super::workload::Workload;
use crate::net::cores::Cores;

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
    /// HAProxy, from `peers/haproxy.cfg`.
    Haproxy,
    /// Switchboard's router.
    Router,
}

/// A proxy that takes requests.
#[derive(Debug)]
pub struct Running {
    /// Where.
    pub address: String,
    /// The process, where there is one.
    pub process: Option<Process>,
    /// How it was started.
    pub command: Option<Command>,
}

/// What a proxy is started with.
#[derive(Debug)]
pub struct Setting<'a> {
    /// Its program; unused without a proxy.
    pub program: PathBuf,
    /// Its core.
    pub cores: &'a Cores,
    /// Where its files go; an empty folder of its own.
    pub folder: &'a Path,
    /// What it has to do.
    pub workload: &'a Workload,
    /// Addresses of the stable and the heavy model.
    pub models: [&'a str; 2],
}

const NGINX: &str = include_str!("../../peers/nginx.conf");
const HAPROXY: &str = include_str!("../../peers/haproxy.cfg");

impl Peer {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 5] =
        [Self::Direct, Self::Floor, Self::Nginx, Self::Haproxy, Self::Router];

    /// In reports and file names.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Floor => "floor",
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::Router => "router",
        }
    }

    /// The flag that makes its program tell its version.
    pub const fn version_flag(self) -> &'static str {
        match self {
            Self::Direct | Self::Floor | Self::Router => "--version",
            Self::Nginx | Self::Haproxy => "-v",
        }
    }

    /// Whether it routes and splits, or only answers.
    pub const fn is_proxy(self) -> bool {
        match self {
            Self::Direct | Self::Floor => false,
            Self::Nginx | Self::Haproxy | Self::Router => true,
        }
    }

    /// Starts it, and waits until it takes requests.
    ///
    /// # Errors
    /// It ended, or does not listen.
    pub fn start(self, setting: &Setting<'_>) -> Result<Running, CompareError> {
        match self {
            Self::Direct => {
                let address = setting.models[0].to_owned();
                Ok(Running { address, process: None, command: None })
            }
            Self::Floor => floor(setting),
            Self::Nginx => from_template(setting, NGINX, "nginx.conf", &["-c"]),
            Self::Haproxy => from_template(setting, HAPROXY, "haproxy.cfg", &["-db", "-f"]),
            Self::Router => router(setting),
        }
    }
}

fn address() -> Result<String, CompareError> {
    free_address().map_err(CompareError::file("a free port"))
}

fn floor(setting: &Setting<'_>) -> Result<Running, CompareError> {
    let address = address()?;
    let mut command = Command::new(&setting.program);
    command.args(["upstream", "--listen", &address, "--name", "floor", "--body-bytes"]);
    command.arg(setting.workload.answer_bytes.to_string());
    start(setting, command, address)
}

/// Fills a configuration in and starts the program with it: `program FLAGS… FILE`.
fn from_template(
    setting: &Setting<'_>,
    template: &str,
    file: &str,
    flags: &[&str],
) -> Result<Running, CompareError> {
    let address = address()?;
    let text = template
        .replace("{{folder}}", &setting.folder.display().to_string())
        .replace("{{listen}}", &address)
        .replace("{{objective}}", setting.workload.objective)
        .replace("{{stable}}", setting.models[0])
        .replace("{{heavy}}", setting.models[1]);
    let path = setting.folder.join(file);
    std::fs::write(&path, text).map_err(CompareError::file(&path))?;
    let mut command = Command::new(&setting.program);
    command.args(flags).arg(&path);
    start(setting, command, address)
}

/// The router with one worker and built-in settings; its rules come over its own socket.
fn router(setting: &Setting<'_>) -> Result<Running, CompareError> {
    // A throwaway key: the Snapshot lives as long as this process.
    let key = SecretKey::from_seed(
        blake3::hash(setting.folder.as_os_str().as_encoded_bytes()).as_bytes(),
    );
    let (listen, admin) = (address()?, address()?);
    let socket = setting.folder.join("router.sock");
    let mut command = Command::new(&setting.program);
    command.args(["--workers", "1", "--listen", &listen, "--admin-listen", &admin]);
    command.arg("--socket").arg(&socket);
    command.arg("--state-dir").arg(setting.folder.join("state"));
    command.args(["--trusted-key", &key.public().to_string()]);
    let mut running = start(setting, command, listen)?;
    if let Some(process) = &mut running.process {
        let listens = || socket.exists().then_some(());
        process.wait_until("has no feed", listens)?;
    }
    push(&socket, &key, setting.workload, setting.models, GROUP)?;
    Ok(running)
}

/// The group of a router with built-in settings.
const GROUP: &str = "default";

fn start(
    setting: &Setting<'_>,
    command: Command,
    address: String,
) -> Result<Running, CompareError> {
    let mut shown = Command::new(command.get_program());
    shown.args(command.get_args());
    let log = setting.folder.join("output.txt");
    let mut process = Process::start(command, setting.cores, &log)?;
    process.wait_for_port(&address).map_err(|error: ProcessError| CompareError::from(error))?;
    Ok(Running { address, process: Some(process), command: Some(shown) })
}
