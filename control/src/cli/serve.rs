//! `serve`: started in order, stopped in reverse.

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use clap::Args;
use switchboard_shared::snapshot::{SecretKey, syntax};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
    time::timeout,
};

use crate::{
    api::{self, ApiListener, Token},
    broadcaster::{Broadcaster, BroadcasterOptions, Patience},
    deploy::{BakeLimits, DeployOptions, Deployer},
    gate::Gate,
    registry::Registry,
};

/// What a change that is on its way may still take once we are told to stop.
const CHANGE_TIME_MAX: Duration = Duration::from_secs(5);

#[derive(Args, Debug)]
pub(super) struct ServeArguments {
    /// Where the HTTP API listens; port 0 takes a free one
    #[arg(
        long,
        env = "SWITCHBOARD_CONTROL_LISTEN",
        default_value = "127.0.0.1:7700",
        value_name = "ADDRESS"
    )]
    listen: SocketAddr,
    /// The registry, an SQLite file; made where there is none
    #[arg(
        long,
        env = "SWITCHBOARD_CONTROL_DATABASE",
        default_value = "switchboard.db",
        value_name = "FILE"
    )]
    database: PathBuf,
    /// Folder with the routers' sockets, *.sock; routers may come and go
    #[arg(
        long,
        env = "SWITCHBOARD_CONTROL_SOCKETS",
        default_value = "/run/switchboard",
        value_name = "DIR"
    )]
    sockets: PathBuf,
    /// Secret key that signs Snapshots, as `keygen` makes it
    #[arg(
        long,
        env = "SWITCHBOARD_CONTROL_SIGNING_KEY",
        default_value = "signing.key",
        value_name = "FILE"
    )]
    signing_key: PathBuf,
    /// File with the bearer token; default: the database's name with `.token`, made where there is none
    #[arg(long, env = "SWITCHBOARD_TOKEN_FILE", value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The routers' group; a router of another group refuses our Snapshots
    #[arg(long, env = "SWITCHBOARD_CONTROL_GROUP", default_value = "default", value_name = "NAME")]
    group: String,
    /// How long an endpoint may take to become ready, in milliseconds
    #[arg(long, default_value_t = 10_000, value_name = "MS")]
    ready_within_ms: u64,
    /// How long a router may take to answer, in milliseconds
    #[arg(long, default_value_t = 15_000, value_name = "MS")]
    router_answer_ms: u64,
    /// Watch each applied version for so many seconds, and roll it back if an Arm exceeds a limit below; 0: not
    #[arg(long, default_value_t = 0, value_name = "SECONDS")]
    bake_seconds: u64,
    /// Share of an Arm's requests that may fail, 5xx included, while its version is watched
    #[arg(long, default_value_t = 0.05, value_name = "SHARE", value_parser = share)]
    bake_errors_max: f64,
    /// Share of an Arm's requests that may fall out to the default Arm meanwhile
    #[arg(long, default_value_t = 0.2, value_name = "SHARE", value_parser = share)]
    bake_fallouts_max: f64,
    /// Requests of an Arm below which nothing is concluded
    #[arg(long, default_value_t = 100, value_name = "COUNT")]
    bake_requests_min: u64,
    /// Give no version below this one: after a registry was lost while routers ran on
    #[arg(long, default_value_t = 1, value_name = "VERSION")]
    first_version: u64,
}

pub(super) async fn serve(arguments: ServeArguments) -> anyhow::Result<()> {
    let log = tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false);
    log.with_target(false).init();
    anyhow::ensure!(
        syntax::is_label(&arguments.group),
        "--group {:?} is not of the form [A-Za-z0-9][A-Za-z0-9_.-]{{0,63}}",
        arguments.group
    );
    let key = signing_key(&arguments.signing_key)?;
    let (token, token_file) = token(&arguments)?;
    // One control process per registry: two would give the same versions away.
    let _lock = lock(&arguments.database)?;
    // Caught before anyone can see us serve: who sends SIGTERM on sight must get an orderly end.
    let stopped = stopped()?;
    let registry = Registry::open(&arguments.database).await?;
    let listener = ApiListener::bind(arguments.listen).await?;

    let answer = Duration::from_millis(arguments.router_answer_ms.max(1));
    let (broadcaster, broadcasting) = Broadcaster::start(BroadcasterOptions {
        sockets: arguments.sockets.clone(),
        group: arguments.group.clone(),
        patience: Patience { answer, ..Patience::default() },
    });
    let patience = Duration::from_millis(arguments.ready_within_ms);
    let key_id = key.public().id();
    let deployer = Deployer::start(DeployOptions {
        registry: registry.clone(),
        key,
        group: arguments.group,
        gate: Gate { patience, ..Gate::default() },
        broadcaster,
        bake: BakeLimits {
            span: Duration::from_secs(arguments.bake_seconds),
            requests_min: arguments.bake_requests_min.max(1),
            errors_max: arguments.bake_errors_max,
            fallouts_max: arguments.bake_fallouts_max,
        },
        version_min: arguments.first_version,
    })
    .await?;
    tracing::info!(
        listen = %listener.address(),
        database = %arguments.database.display(),
        sockets = %arguments.sockets.display(),
        token_file = %token_file.display(),
        %key_id,
        "serving"
    );

    let (stopping, stop) = watch::channel(false);
    let serving = tokio::spawn(listener.serve(api::router(deployer, token), stop));
    stopped.await;
    tracing::info!("stopping");
    stopping.send_replace(true);
    serving.await.context("the API broke")?; // with it goes the last handle of the broadcaster
    match timeout(CHANGE_TIME_MAX, broadcasting).await {
        Ok(ended) => ended.context("the broadcaster broke")?,
        Err(_) => tracing::warn!("a change is still on its way; the next start ends it"),
    }
    registry.close().await;
    Ok(())
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a share from 0 to 1".to_owned())
}

fn signing_key(path: &Path) -> anyhow::Result<SecretKey> {
    let text = fs::read_to_string(path).with_context(|| {
        format!(
            "cannot read the signing key {}; `switchboard-control keygen` makes one",
            path.display()
        )
    })?;
    warn_if_shared(path);
    text.parse().with_context(|| format!("{} is no signing key", path.display()))
}

/// Who reads the key signs Snapshots, and who reads the token applies rules.
fn warn_if_shared(path: &Path) {
    let shared = fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o077 != 0);
    if shared {
        tracing::warn!(file = %path.display(), "others may read this secret; chmod 600 it");
    }
}

fn token(arguments: &ServeArguments) -> anyhow::Result<(Token, PathBuf)> {
    if let Some(path) = &arguments.token_file {
        warn_if_shared(path);
        return Ok((Token::read(path)?, path.clone()));
    }
    let path = beside(&arguments.database, ".token");
    let (token, made) = Token::read_or_make(&path)?;
    if made {
        tracing::info!(file = %path.display(), "made a token");
    }
    Ok((token, path))
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(suffix);
    PathBuf::from(name)
}

/// Held as long as the file is open; the kernel gives it up with the process.
fn lock(database: &Path) -> anyhow::Result<fs::File> {
    let path = beside(database, ".lock");
    let file = fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .with_context(|| format!("cannot open {}", path.display()))?;
    file.try_lock().with_context(|| {
        format!("another control process has the registry {}", database.display())
    })?;
    Ok(file)
}

/// Ends with SIGTERM or SIGINT; both are caught from now on.
pub(super) fn stopped() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
