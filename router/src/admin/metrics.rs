//! `/metrics`: the counters, and what is known about the Snapshot and the process.
//!
//! No label is what a client sent: they come from closed lists, from the Snapshot, or count workers.

use super::pages::Sources;
use super::process::Process;
use crate::counters::{Kind, MetricsText, Seconds};
use crate::status::{Source, now_unix_ms};

pub(super) fn page(sources: &Sources) -> String {
    let mut page = MetricsText::default();
    router(sources, &mut page);
    snapshot(sources, &mut page);
    sources.counters.write(&mut page);
    if let Some(active) = sources.activation.published() {
        active.series().write(active.snapshot.payload(), &mut page);
    }
    process(&mut page);
    page.into_text()
}

fn router(sources: &Sources, page: &mut MetricsText) {
    let (status, gauge) = (&sources.status, Kind::Gauge);
    page.family("switchboard_build_info", "The program; always 1.", gauge);
    page.sample("switchboard_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    let ready = u8::from(status.ready().is_ok());
    page.single("switchboard_ready", "Whether traffic should come.", gauge, ready);
    let draining = u8::from(status.is_draining());
    page.single("switchboard_draining", "Whether the router stops.", gauge, draining);
    let workers = sources.activation.workers();
    page.single("switchboard_workers", "Network threads.", gauge, workers);
    let uptime = u64::try_from(status.uptime().as_nanos()).unwrap_or(u64::MAX);
    page.single("switchboard_uptime_seconds", "Since the start.", gauge, Seconds(uptime));
}

fn snapshot(sources: &Sources, page: &mut MetricsText) {
    let Some((active, running)) = sources.activation.published().zip(sources.status.running())
    else {
        return;
    };
    let (snapshot, gauge) = (&active.snapshot, Kind::Gauge);
    let single = [
        (
            "switchboard_snapshot_version",
            "Version of the snapshot that runs.",
            snapshot.version().get(),
        ),
        (
            "switchboard_snapshot_from_disk",
            "Whether it comes from the state folder and no control plane has confirmed it.",
            u64::from(running.source == Source::Disk),
        ),
        (
            "switchboard_snapshot_expired",
            "Whether it has expired; it serves on.",
            u64::from(snapshot.is_expired(now_unix_ms())),
        ),
        (
            "switchboard_snapshot_objectives",
            "Objectives that it has.",
            snapshot.payload().objectives.len() as u64,
        ),
    ];
    for (name, help, value) in single {
        page.single(name, help, gauge, value);
    }
    let times = [
        (
            "switchboard_snapshot_created_timestamp_seconds",
            "When it was built, by the signer's clock.",
            snapshot.created_unix_ms(),
        ),
        (
            "switchboard_snapshot_active_timestamp_seconds",
            "When it became active, by this host's clock.",
            running.since_unix_ms,
        ),
    ];
    for (name, help, milliseconds) in times {
        page.single(name, help, gauge, Seconds(milliseconds.saturating_mul(1_000_000)));
    }
    let name = "switchboard_worker_swap_seconds";
    page.family(name, "From the last activation to the worker's swap.", gauge);
    for (worker, swap) in sources.activation.swap_times().enumerate() {
        if let Some(swap) = swap {
            let nanos = u64::try_from(swap.as_nanos()).unwrap_or(u64::MAX);
            page.sample(name, &[("worker", &worker.to_string())], Seconds(nanos));
        }
    }
}

/// The names that Prometheus' own libraries use.
fn process(page: &mut MetricsText) {
    let Some(process) = Process::read() else { return };
    let help = "Processor time, user and system.";
    page.single("process_cpu_seconds_total", help, Kind::Counter, Seconds(process.cpu_nanos));
    let help = "Memory that is resident.";
    page.single("process_resident_memory_bytes", help, Kind::Gauge, process.resident_bytes);
    page.single("process_threads", "Threads.", Kind::Gauge, process.threads);
    if let Some(open) = process.open_files {
        page.single("process_open_fds", "Open file descriptors.", Kind::Gauge, open);
    }
}
