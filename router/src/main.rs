//! The router's program: what is started in which order, and stopped in reverse.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Parser as _;
use switchboard_router::activation::Activation;
use switchboard_router::admin::{self, Sources};
use switchboard_router::announce::announce;
use switchboard_router::args::{Args, Command, CoreMapFormat, SpoolLook};
use switchboard_router::config::{Config, reference};
use switchboard_router::cores::CorePlan;
use switchboard_router::counters::Counters;
use switchboard_router::feed::{self, Stage};
use switchboard_router::net::signal::Signals;
use switchboard_router::shadow::spool::dump;
use switchboard_router::shadow::{self, Shadow};
use switchboard_router::state::State;
use switchboard_router::status::Status;
use switchboard_router::{stop, trusted, worker};
use switchboard_shared::snapshot::TrustedKeys;

fn main() -> ExitCode {
    let Err(error) = run(&Args::parse()) else { return ExitCode::SUCCESS };
    eprintln!("switchboard-router: {error:#}"); // the only place that prints an error chain
    ExitCode::FAILURE
}

fn run(args: &Args) -> anyhow::Result<()> {
    if args.print_example_config {
        return print(&reference::example());
    }
    let config = Config::load(args.config.as_deref(), &args.overrides)?;
    if let Some(Command::Spool { look }) = &args.command {
        return look_at_spool(look, &config);
    }
    let cores = CorePlan::for_host(&config.cores)?;
    match args.print_core_map {
        Some(CoreMapFormat::Text) => return print(&cores.to_text()),
        Some(CoreMapFormat::Json) => return print(&format!("{}\n", cores.to_json())),
        None => {}
    }
    let trusted = trusted::load(&config.trusted_keys)?;
    if args.check {
        return print("ok\n");
    }
    serve(config, &cores, trusted)
}

fn look_at_spool(look: &SpoolLook, config: &Config) -> anyhow::Result<()> {
    let own = shadow::spool_folder(config);
    match look {
        SpoolLook::Dump { folder } => {
            let mut to = std::io::BufWriter::new(std::io::stdout().lock());
            dump::dump(folder.as_ref().unwrap_or(&own), &mut to)?;
            to.flush().context("cannot write to standard output")
        }
        SpoolLook::Verify { folder } => {
            let found = dump::verify(folder.as_ref().unwrap_or(&own))?;
            print(&format!(
                "{} records in {} segments, {} torn bytes\n",
                found.records, found.segments, found.torn_bytes
            ))
        }
    }
}

fn serve(config: Config, cores: &CorePlan, trusted: TrustedKeys) -> anyhow::Result<()> {
    let config = Arc::new(config);
    let signals = Signals::block().context("cannot block signals")?; // before there are threads
    let state = State::open(&config.state_dir)?;

    let counters = Counters::new(cores.workers.len());
    let status = Status::new();
    let (publisher, activation) = Activation::new(cores.workers.len());
    let feed_counters = counters.feed().context("the feed's counters are taken once")?;
    let group = config.group.clone();
    let mut stage =
        Stage::new(trusted, group, state, publisher, feed_counters, Arc::clone(&status));
    stage.start(); // first: no worker ever listens without what is on disk

    let mut shadow = Shadow::start(&config, cores.housekeeping, cores.workers.len(), &counters);
    let workers = worker::start(cores, &config, &activation, &counters, &mut shadow)?;
    let sources = Sources {
        status: Arc::clone(&status),
        counters: Arc::clone(&counters),
        activation: Arc::clone(&activation),
        survey: Arc::clone(&workers.survey),
    };
    let admin = admin::listen(config.admin.listen, sources, cores.housekeeping)?;
    let feed = feed::listen(&config.feed, stage, counters, cores.housekeeping)?;
    announce(&workers, &admin, &config);

    stop::wait(&signals)?;
    status.drain(); // readiness first: load balancers need a while to notice
    stop::at_once_on_the_next(signals)?;
    stop::pause(config.drain.wait);
    feed.stop(); // no Activation meets a worker that drains
    workers.drain(config.drain.max);
    shadow.flush(); // what the workers handed over gets written
    admin.stop();
    Ok(())
}

fn print(text: &str) -> anyhow::Result<()> {
    std::io::stdout().write_all(text.as_bytes()).context("cannot write to standard output")
}
