//! Starts the model server's threads, waits for the stop signal, tells what was seen.

use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::behaviour::{Behaviour, BehaviourError};
use super::connection::Connection;
use super::counters::Count;
use super::model::{Model, Worker};
use crate::net::address::Address;
use crate::net::cores::Cores;
use crate::net::listener::{Bound, Listener};
use crate::net::ring::ring;
use crate::net::timer::Timer;
use crate::signal::StopSignal;

/// Runs a model server: OpenAI chat, Open Inference (V2), plain JSON, echo.
#[derive(Clone, Debug, clap::Args)]
pub struct UpstreamArguments {
    /// Where to listen: host:port (port 0: any free one) or unix:/path; may be repeated
    #[arg(long, default_value = "127.0.0.1:9001", value_name = "ADDRESS")]
    listen: Vec<Address>,
    /// Told in the header x-model-server and in each JSON body
    #[arg(long, default_value = "model", value_parser = header_text)]
    name: String,
    /// Threads, each with its own ring; default: as many as --cores names, else 1
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=512))]
    threads: Option<u16>,
    /// Pin the threads to these cores, such as 1 or 0,2-3
    #[arg(long)]
    cores: Option<Cores>,
    /// Makes delays and faults repeatable, thread by thread
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Count deliveries by x-request-id, up to N different ones per thread; 0: do not
    #[arg(long, default_value_t = 0, value_name = "N")]
    count_deliveries: usize,
    #[command(flatten)]
    behaviour: Behaviour,
}

/// Why the model server did not start.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// Contradictory flags.
    #[error(transparent)]
    Behaviour(#[from] BehaviourError),
    /// An address that cannot be had.
    #[error("cannot listen on {address}")]
    Bind {
        /// Which one.
        address: Address,
        /// What the kernel says.
        #[source]
        source: io::Error,
    },
    /// No io_uring, a core that went away, or no memory.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
    /// The stop signal or standard output.
    #[error("cannot set up the process")]
    Process(#[source] io::Error),
}

/// Serves until SIGTERM or SIGINT. Prints one line `listening on ADDRESS` for each address once
/// every thread accepts connections.
///
/// # Errors
/// Only before the first `listening` line, or where that line cannot be written.
pub fn run(arguments: UpstreamArguments) -> Result<(), UpstreamError> {
    arguments.behaviour.check()?;
    let stop = StopSignal::install().map_err(UpstreamError::Process)?;
    crate::signal::raise_open_files_limit();
    let bound = bind(&arguments.listen)?;
    let threads = arguments
        .threads
        .map_or_else(|| arguments.cores.as_ref().map_or(1, Cores::count), usize::from);
    let model = Arc::new(Model::new(
        arguments.name,
        arguments.behaviour,
        threads,
        arguments.count_deliveries,
    ));

    let (started, starts) = mpsc::channel();
    for thread in 0..threads {
        let (model, bound, started) = (Arc::clone(&model), Arc::clone(&bound), started.clone());
        let cores = arguments.cores.clone();
        thread::Builder::new()
            .name(format!("model-{thread}"))
            .spawn(move || {
                let start = Start { model, bound, cores, thread, seed: arguments.seed };
                serve_thread(&start, &started);
            })
            .map_err(UpstreamError::Thread)?;
    }
    for _ in 0..threads {
        let start = starts.recv().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
        start.map_err(UpstreamError::Thread)?;
    }

    announce(&bound).map_err(UpstreamError::Process)?;
    stop.wait();
    bound.iter().for_each(Bound::remove_file);
    let stats = model.stats();
    eprintln!(
        "switchboard-loadtest: {} saw {} requests on {} connections, {} clients went away early",
        model.name, stats.requests, stats.connections, stats.clients_gone
    );
    Ok(())
}

struct Start {
    model: Arc<Model>,
    bound: Arc<Vec<Bound>>,
    cores: Option<Cores>,
    thread: usize,
    seed: u64,
}

fn bind(addresses: &[Address]) -> Result<Arc<Vec<Bound>>, UpstreamError> {
    let bound: Result<Vec<_>, _> = addresses
        .iter()
        .map(|address| {
            Bound::bind(address)
                .map_err(|source| UpstreamError::Bind { address: address.clone(), source })
        })
        .collect();
    bound.map(Arc::new)
}

fn announce(bound: &[Bound]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for address in bound.iter().map(Bound::address) {
        writeln!(out, "listening on {address}")?;
    }
    out.flush()
}

/// Runs one thread; it ends with the process.
fn serve_thread(start: &Start, started: &mpsc::Sender<io::Result<()>>) {
    let served = (|| {
        if let Some(cores) = &start.cores {
            cores.pin_current_thread(start.thread)?;
        }
        ring()?.block_on(async {
            let timer = Timer::start()?;
            let model = Arc::clone(&start.model);
            let worker = Rc::new(Worker::new(model, start.thread, timer, start.seed));
            for bound in start.bound.iter() {
                monoio::spawn(accept(Rc::clone(&worker), bound.listen()?));
            }
            drop(started.send(Ok(()))); // the starter waits for it, or has failed already
            std::future::pending::<io::Result<()>>().await
        })
    })();
    if let Err(error) = served {
        drop(started.send(Err(error)));
    }
}

/// How long accepting rests after a failure: the usual one, too many open files, lasts a while.
const ACCEPT_REST: Duration = Duration::from_millis(10);

async fn accept(worker: Rc<Worker>, listener: Listener) {
    let thread = (worker.thread as u64) << 40;
    for number in 0_u64.. {
        match listener.accept().await {
            Ok(stream) => {
                let connection = Connection::new(Rc::clone(&worker), stream, thread | number);
                let worker = Rc::clone(&worker);
                worker.counters().add(Count::Connections, 1);
                monoio::spawn(async move {
                    connection.serve().await;
                    worker.counters().add(Count::ConnectionsClosed, 1);
                });
            }
            Err(_) => worker.timer.sleep(ACCEPT_REST).await,
        }
    }
}

fn header_text(text: &str) -> Result<String, String> {
    let fits = !text.is_empty() && text.bytes().all(|byte| (b'!'..=b'~').contains(&byte));
    if fits { Ok(text.to_owned()) } else { Err("printable ASCII without spaces".to_owned()) }
}
