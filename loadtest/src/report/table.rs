//! The final table for people.

use std::io::{self, Write};

use super::percentiles::Percentiles;
use super::shares::SampleRatio;
use super::summary::{Replayed, Schedule, Stream, Summary};

/// Writes the table.
///
/// # Errors
/// What the output says.
pub fn write(summary: &Summary, out: &mut impl Write) -> io::Result<()> {
    let Summary { mode, target, connections, threads, .. } = summary;
    writeln!(out, "{mode} loop to {target}, {connections} connections, {threads} thread(s)")?;
    writeln!(
        out,
        "  {} answers in {:.2} s: {:.1}/s, {} failed",
        summary.answers, summary.window_seconds, summary.rate, summary.failures_total
    )?;
    write_schedule(&summary.schedule, out)?;
    for (name, count) in summary.failures.iter().filter(|(_, count)| **count > 0) {
        writeln!(out, "  failed: {name:<10} {count}")?;
    }
    for (status, count) in &summary.statuses {
        writeln!(out, "  status: {status:<10} {count}")?;
    }
    writeln!(
        out,
        "  bytes: {} sent, {} received; {} connections opened",
        summary.bytes_sent, summary.bytes_received, summary.connections_opened
    )?;
    write_percentiles(summary, out)?;
    if !summary.decisions.iter().all(|decision| decision.objective.is_empty()) {
        writeln!(
            out,
            "\n  {:<32} {:<16} {:>9} {:>7} {:>9} {:>9} {:>9}",
            "objective", "arm", "answers", "share", "users", "p50 us", "p99 us"
        )?;
        for row in &summary.decisions {
            writeln!(
                out,
                "  {:<32} {:<16} {:>9} {:>6.2}% {:>9} {:>9.0} {:>9.0}",
                row.objective,
                row.arm,
                row.answers,
                row.share * 100.0,
                row.users,
                row.p50_us,
                row.p99_us
            )?;
        }
    }
    if let Some(replay) = &summary.replay {
        write_replay(replay, out)?;
    }
    for cpu in &summary.cpu {
        writeln!(
            out,
            "  cpu: {} ({}): {:.2} us per answer, {:.0} MiB resident",
            cpu.usage.name,
            cpu.usage.pid,
            cpu.cpu_us_per_answer,
            cpu.usage.resident_bytes as f64 / 1_048_576.0
        )?;
    }
    for test in &summary.sample_ratios {
        write_sample_ratio(test, out)?;
    }
    for failed in &summary.failed_checks {
        writeln!(out, "  CHECK FAILED: {failed}")?;
    }
    for objection in &summary.invalid_because {
        writeln!(out, "  INVALID: {objection}")?;
    }
    Ok(())
}

fn write_replay(replay: &Replayed, out: &mut impl Write) -> io::Result<()> {
    let Percentiles { p50, p99, .. } = replay.recorded_latency_us;
    writeln!(
        out,
        "  {} records could be sent; when they were recorded, p50 was {p50:.0} us and p99 {p99:.0} us",
        replay.records
    )?;
    for (reason, count) in &replay.skipped {
        writeln!(out, "  skipped: {reason:<14} {count}")?;
    }
    Ok(())
}

fn write_sample_ratio(test: &SampleRatio, out: &mut impl Write) -> io::Result<()> {
    write!(out, "  sample ratio of {}, {} users:", test.objective, test.users)?;
    for arm in &test.arms {
        let (share, expected) = (arm.share * 100.0, arm.expected_share * 100.0);
        write!(out, " {} {share:.2} % of {expected:.2} %,", arm.arm)?;
    }
    match test.p_value {
        Some(p_value) => writeln!(out, " chi-square {:.3}, p = {p_value:.4}", test.chi_square),
        None => writeln!(out, " too few users to tell"),
    }
}

fn write_schedule(schedule: &Schedule, out: &mut impl Write) -> io::Result<()> {
    let (Some(asked), Some(error)) = (schedule.asked_rate, schedule.rate_error) else {
        return Ok(());
    };
    writeln!(
        out,
        "  asked {asked:.1}/s, sent {:.1}/s ({:+.3} %); lag p99 {:.0} us, {} waited for a connection",
        schedule.sent_rate,
        error * 100.0,
        schedule.lag_us.p99,
        schedule.waited_for_connection
    )?;
    if !schedule.target_kept_up {
        writeln!(
            out,
            "  the target did not keep up: {} requests were never sent",
            schedule.unsent
        )?;
    }
    Ok(())
}

fn write_percentiles(summary: &Summary, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "\n  {:<14} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "us", "mean", "p50", "p90", "p99", "p99.9", "max"
    )?;
    let mut row = |name: &str, values: &Percentiles| {
        let Percentiles { mean, p50, p90, p99, p99_9, max, .. } = values;
        writeln!(
            out,
            "  {name:<14} {mean:>10.1} {p50:>10.1} {p90:>10.1} {p99:>10.1} {p99_9:>10.1} {max:>10.1}"
        )
    };
    row("latency", &summary.latency_us)?;
    if summary.mode == "open" {
        row("service time", &summary.service_us)?;
    }
    if let Some(stream) = &summary.stream {
        row("first event", &stream.first_event_us)?;
        row("event gap", &stream.event_gap_us)?;
        row("first token", &stream.first_token_us)?;
        row("token gap", &stream.token_gap_us)?;
        let Stream { streams, streams_done, events, tokens, .. } = stream;
        writeln!(
            out,
            "  {streams} streams, {tokens} tokens in {events} events, {streams_done} ended with [DONE]"
        )?;
    }
    Ok(())
}
