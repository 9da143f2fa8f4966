//! How each proxy is started: its configuration filled in, its process on its core.

use std::path::{Path, PathBuf};
use std::process::Command;

use switchboard_shared::snapshot::{SecretKey, SnapshotVersion};

use super::Peer;
use crate::compare::CompareError;
use crate::compare::process::{Process, free_address};
use crate::compare::push::{Feed, PushError};
use crate::compare::rules;
use crate::compare::workload::{Job, Workload};
use crate::net::cores::Cores;

/// A proxy that takes requests.
#[derive(Debug)]
pub struct Running {
    /// Where.
    pub address: String,
    /// The process, where there is one.
    pub process: Option<Process>,
    /// How it was started.
    pub command: Option<Command>,
    /// Its filled-in configuration files.
    pub files: Vec<PathBuf>,
    /// The socket and the key for new rules, where it is our router.
    pub feed: Option<(PathBuf, SecretKey)>,
}

/// What a proxy is started with.
#[derive(Debug)]
pub struct Setting<'a> {
    /// Its program; unused without a proxy.
    pub program: PathBuf,
    /// Its cores.
    pub cores: &'a Cores,
    /// Where its files go; an empty folder of its own.
    pub folder: &'a Path,
    /// What it has to do.
    pub workload: &'a Workload,
    /// Addresses of the stable and the heavy model.
    pub models: [&'a str; 2],
    /// Address of Redis, where the workload has Facts.
    pub cache: Option<&'a str>,
}

/// A configuration with places to fill in.
struct Configuration {
    file: &'static str,
    text: &'static str,
}

macro_rules! configuration {
    ($file:literal) => {
        Configuration { file: $file, text: include_str!(concat!("../../../peers/", $file)) }
    };
}

const NGINX: Configuration = configuration!("nginx.conf");
const HAPROXY: Configuration = configuration!("haproxy.cfg");
const HAPROXY_BY_BODY: Configuration = configuration!("haproxy-by-body.cfg");
const ENVOY: Configuration = configuration!("envoy.yaml");
const ENVOY_BY_BODY: Configuration = configuration!("envoy-by-body.yaml");
const LITELLM: Configuration = configuration!("litellm.yaml");
const LITELLM_LOG: Configuration = configuration!("litellm-log.json");
const ROUTER: Configuration = configuration!("router.toml");

pub(super) fn start(peer: Peer, setting: &Setting<'_>) -> Result<Running, CompareError> {
    let by_body = peer.job(setting.workload) == Job::Body;
    match peer {
        Peer::Direct => {
            let address = setting.models[0].to_owned();
            Ok(Running { address, process: None, command: None, files: Vec::new(), feed: None })
        }
        Peer::Floor => floor(setting),
        Peer::Nginx => configured(setting, &NGINX, &["-c"]),
        Peer::Haproxy if by_body => configured(setting, &HAPROXY_BY_BODY, &["-db", "-f"]),
        Peer::Haproxy => configured(setting, &HAPROXY, &["-db", "-f"]),
        Peer::Envoy if by_body => configured(setting, &ENVOY_BY_BODY, ENVOY_FLAGS),
        Peer::Envoy => configured(setting, &ENVOY, ENVOY_FLAGS),
        Peer::SglangRouter => model_router(setting, &["launch"]),
        Peer::VllmRouter => model_router(setting, &[]),
        Peer::Litellm => litellm(setting),
        Peer::RouterByHeader | Peer::Router => router(peer, setting),
    }
}

/// One worker; no shared memory for a hot restart; no log.
const ENVOY_FLAGS: &[&str] =
    &["--concurrency", "1", "--disable-hot-restart", "--log-level", "error", "-c"];

fn address() -> Result<String, CompareError> {
    free_address().map_err(CompareError::file("a free port"))
}

fn port(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(_, port)| port)
}

fn floor(setting: &Setting<'_>) -> Result<Running, CompareError> {
    let address = address()?;
    let mut command = Command::new(&setting.program);
    command.args(["upstream", "--listen", &address, "--name", "floor"]);
    command.args(setting.workload.answer.flags());
    run(setting, command, address)
}

/// Fills a configuration in and starts the program with it: `program FLAGS… FILE`.
fn configured(
    setting: &Setting<'_>,
    configuration: &Configuration,
    flags: &[&str],
) -> Result<Running, CompareError> {
    let address = address()?;
    let path = fill_in(setting, configuration, &address, &[])?;
    let mut command = Command::new(&setting.program);
    command.args(flags).arg(&path);
    let running = run(setting, command, address)?;
    Ok(Running { files: vec![path], ..running })
}

/// Writes a configuration with its places filled in, the usual ones and `more`.
fn fill_in(
    setting: &Setting<'_>,
    configuration: &Configuration,
    listen: &str,
    more: &[(&str, &str)],
) -> Result<PathBuf, CompareError> {
    let [stable, heavy] = setting.models;
    let folder = setting.folder.display().to_string();
    let usual = [
        ("folder", folder.as_str()),
        ("listen", listen),
        ("listen_port", port(listen)),
        ("objective", setting.workload.objective),
        ("stable", stable),
        ("stable_port", port(stable)),
        ("heavy", heavy),
        ("heavy_port", port(heavy)),
    ];
    let mut text = configuration.text.to_owned();
    for (place, value) in usual.iter().chain(more) {
        text = text.replace(&format!("{{{{{place}}}}}"), value);
    }
    let path = setting.folder.join(configuration.file);
    std::fs::write(&path, text).map_err(CompareError::file(&path))?;
    Ok(path)
}

/// The routers of SGLang and vLLM share their flags. They take their models in turn: cheaper than any
/// policy of theirs that looks at the request.
fn model_router(setting: &Setting<'_>, verb: &[&str]) -> Result<Running, CompareError> {
    let (address, metrics) = (address()?, address()?);
    let models = setting.models.map(|model| format!("http://{model}"));
    let mut command = Command::new(&setting.program);
    command.args(verb).args(["--host", "127.0.0.1", "--port", port(&address), "--worker-urls"]);
    command.args(models).args(["--policy", "round_robin", "--log-level", "error"]);
    command.args(["--prometheus-port", port(&metrics)]);
    let mut running = run(setting, command, address)?;
    wait_for_health(&mut running, "/health")?;
    Ok(running)
}

fn litellm(setting: &Setting<'_>) -> Result<Running, CompareError> {
    let address = address()?;
    let path = fill_in(setting, &LITELLM, &address, &[])?;
    let log = fill_in(setting, &LITELLM_LOG, &address, &[])?;
    let mut command = Command::new(&setting.program);
    command.args(["--host", "127.0.0.1", "--port", port(&address), "--num_workers", "1"]);
    command.args(["--telemetry", "False"]);
    command.arg("--config").arg(&path).arg("--log_config").arg(&log);
    // Both keep it from asking the internet and from writing a line per request.
    command.env("LITELLM_LOCAL_MODEL_COST_MAP", "True").env("LITELLM_LOG", "ERROR");
    let mut running = run(setting, command, address)?;
    wait_for_health(&mut running, "/health/liveliness")?;
    Ok(Running { files: vec![path, log], ..running })
}

/// It listens before it has met its models.
fn wait_for_health(running: &mut Running, path: &str) -> Result<(), CompareError> {
    let address = running.address.clone();
    if let Some(process) = &mut running.process {
        let healthy = || (crate::compare::ask::status(&address, path).ok()? == 200).then_some(());
        process.wait_until("does not become healthy", healthy)?;
    }
    Ok(())
}

/// The router with one worker; its rules come over its own socket.
fn router(peer: Peer, setting: &Setting<'_>) -> Result<Running, CompareError> {
    // A throwaway key: the Snapshot lives as long as this process.
    let folder = setting.folder.as_os_str().as_encoded_bytes();
    let key = SecretKey::from_seed(blake3::hash(folder).as_bytes());
    let (address, admin) = (address()?, address()?);
    let trusted = key.public().to_string();
    let cache = setting.cache.filter(|_| peer.job(setting.workload) == Job::Facts);
    let places = [
        ("admin", admin.as_str()),
        ("trusted_key", trusted.as_str()),
        ("facts_source", if cache.is_some() { "redis" } else { "off" }),
        ("cache", cache.unwrap_or("127.0.0.1:6379")),
    ];
    let path = fill_in(setting, &ROUTER, &address, &places)?;
    let mut command = Command::new(&setting.program);
    command.arg("--config").arg(&path);
    let mut running = run(setting, command, address)?;
    let socket = setting.folder.join("router.sock");
    if let Some(process) = &mut running.process {
        process.wait_until("has no feed", || socket.exists().then_some(()))?;
    }
    let definition =
        rules::definition(setting.workload, peer.job(setting.workload), setting.models);
    let snapshot =
        rules::snapshot(&definition, SnapshotVersion::FIRST, &key).map_err(PushError::from)?;
    Feed::connect(&socket)?.push(&snapshot)?;
    Ok(Running { files: vec![path], feed: Some((socket, key)), ..running })
}

fn run(setting: &Setting<'_>, command: Command, address: String) -> Result<Running, CompareError> {
    let mut shown = Command::new(command.get_program());
    shown.args(command.get_args());
    let log = setting.folder.join("output.txt");
    let mut process = Process::start(command, setting.cores, &log)?;
    process.wait_for_port(&address)?;
    let (process, command) = (Some(process), Some(shown));
    Ok(Running { address, process, command, files: Vec::new(), feed: None })
}
