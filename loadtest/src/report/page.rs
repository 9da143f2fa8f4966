//! The report as one HTML page that needs nothing else: no script, no font, no picture from outside.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::percentiles::Percentiles;
use super::plot::Unit;
use super::plots::Plot;
use super::summary::Summary;

const STYLE: &str = include_str!("page/style.css");

/// The page.
pub fn page(summary: &Summary, plots: &[Plot]) -> String {
    let title = format!("Load on {}", summary.target);
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (title) }
                (verdict(summary))
                (figures(summary))
                @for plot in plots {
                    figure { (PreEscaped(&plot.svg)) }
                }
                h2 { "Latencies" }
                (latencies(summary))
                (arms(summary))
                (outcomes(summary))
                (cpu(summary))
                h2 { "How it was made" }
                p { code { (summary.command.join(" ")) } }
                p.small {
                    (summary.tool) " " (summary.version) ", started " (time_text(summary.started_unix_ms))
                    ", " (summary.mode) " loop, " (summary.connections) " connections, "
                    (summary.threads) " thread(s), pipeline of " (summary.pipeline)
                    @if !summary.keep_alive { ", a new connection for each request" }
                }
            }
        }
    };
    markup.into_string()
}

fn verdict(summary: &Summary) -> Markup {
    html! {
        @for objection in &summary.invalid_because {
            p.bad { strong { "Invalid. " } (objection) }
        }
        @for failed in &summary.failed_checks {
            p.bad { strong { "Check failed. " } (failed) }
        }
        @if !summary.schedule.target_kept_up {
            p.bad { strong { "The target did not keep up. " } (summary.schedule.unsent) " requests that were due were never sent." }
        }
        @if summary.valid && summary.failed_checks.is_empty() && summary.failures_total == 0 {
            p.good { strong { "Valid. " } "The generator kept its schedule, and no request failed." }
        }
        @if summary.mode == "closed" {
            p.small { "A closed loop waits for each answer before it asks again: its throughput is what the target takes, its latencies hide stalls." }
        }
    }
}

fn figures(summary: &Summary) -> Markup {
    let micros = |value| Unit::Micros.text(value);
    let figure = |value: String, name: &str| html! { div { b { (value) } span { (name) } } };
    html! {
        div.figures {
            (figure(format!("{:.0}/s", summary.rate), "answers per second"))
            @if let Some(asked) = summary.schedule.asked_rate { (figure(format!("{asked:.0}/s"), "asked")) }
            (figure(micros(summary.latency_us.p50), "median"))
            (figure(micros(summary.latency_us.p99), "p99"))
            (figure(micros(summary.latency_us.p99_9), "p99.9"))
            (figure(summary.answers.to_string(), "answers"))
            (figure(summary.failures_total.to_string(), "failed"))
        }
    }
}

fn latencies(summary: &Summary) -> Markup {
    let row = |name: &str, values: &Percentiles| {
        let columns = [
            values.mean,
            values.p50,
            values.p90,
            values.p99,
            values.p99_9,
            values.p99_99,
            values.max,
        ];
        html! {
            tr {
                th scope="row" { (name) }
                @for value in columns { td { (Unit::Micros.text(value)) } }
                td { (values.count) }
            }
        }
    };
    html! {
        table {
            thead { tr { th {} @for name in ["mean", "p50", "p90", "p99", "p99.9", "p99.99", "slowest", "count"] { th scope="col" { (name) } } } }
            tbody {
                (row("latency, from when it was due", &summary.latency_us))
                @if summary.mode == "open" { (row("service time, from when it was sent", &summary.service_us)) }
                @if let Some(stream) = &summary.stream {
                    (row("time to first event", &stream.first_event_us))
                    (row("time to first token", &stream.first_token_us))
                    (row("between two tokens", &stream.token_gap_us))
                }
            }
        }
        @if let Some(stream) = &summary.stream {
            p { (stream.streams) " streams with " (stream.tokens) " tokens in " (stream.events) " events; " (stream.streams_done) " ended with [DONE]." }
        }
    }
}

fn arms(summary: &Summary) -> Markup {
    let is_routed = summary.decisions.iter().any(|decision| !decision.objective.is_empty());
    html! {
        @if is_routed {
            h2 { "Objectives and Arms" }
            table {
                thead { tr { @for name in ["Objective", "Arm", "answers", "share", "users", "share of users", "p50", "p99", "failed"] { th scope="col" { (name) } } } }
                tbody {
                    @for row in &summary.decisions {
                        tr {
                            th scope="row" { (row.objective) }
                            td { (row.arm) }
                            td { (row.answers) }
                            td { (Unit::Share.text(row.share)) }
                            td { (row.users) }
                            td { @if let Some(share) = row.user_share { (Unit::Share.text(share)) } }
                            td { (Unit::Micros.text(row.p50_us)) }
                            td { (Unit::Micros.text(row.p99_us)) }
                            td { (row.failures) }
                        }
                    }
                }
            }
        }
        @for test in &summary.sample_ratios {
            p class=(if test.is_mismatch { "bad" } else { "small" }) {
                "Sample-ratio test of " (test.objective) ", " (test.users) " users: "
                @for arm in &test.arms {
                    (arm.arm) " " (Unit::Share.text(arm.share)) " (expected " (Unit::Share.text(arm.expected_share)) "), "
                }
                @match test.p_value {
                    Some(p_value) => { "chi-square " (format!("{:.3}", test.chi_square)) ", p = " (format!("{p_value:.4}")) }
                    None => { "too few users to tell" }
                }
                "; " (test.users_in_several_arms) " users met several Arms."
            }
        }
    }
}

fn outcomes(summary: &Summary) -> Markup {
    html! {
        h2 { "Outcomes" }
        table {
            thead { tr { th scope="col" { "what" } th scope="col" { "count" } } }
            tbody {
                @for (status, count) in &summary.statuses { tr { th scope="row" { "status " (status) } td { (count) } } }
                @for (name, count) in summary.failures.iter().filter(|(_, count)| **count > 0) { tr { th scope="row" { "failed: " (name) } td { (count) } } }
                @for (name, count) in &summary.reasons { tr { th scope="row" { "reason " (name) } td { (count) } } }
                @for (name, count) in &summary.model_servers { tr { th scope="row" { "model server " (name) } td { (count) } } }
                tr { th scope="row" { "connections opened" } td { (summary.connections_opened) } }
                tr { th scope="row" { "bytes sent" } td { (summary.bytes_sent) } }
                tr { th scope="row" { "bytes received" } td { (summary.bytes_received) } }
            }
        }
    }
}

fn cpu(summary: &Summary) -> Markup {
    html! {
        @if !summary.cpu.is_empty() {
            h2 { "CPU time" }
            table {
                thead { tr { @for name in ["process", "µs per answer", "resident MiB"] { th scope="col" { (name) } } } }
                tbody {
                    @for cpu in &summary.cpu {
                        tr {
                            th scope="row" { (cpu.usage.name) }
                            td { (format!("{:.2}", cpu.cpu_us_per_answer)) }
                            td { (format!("{:.1}", cpu.usage.resident_bytes as f64 / 1_048_576.0)) }
                        }
                    }
                }
            }
        }
    }
}

/// RFC 3339, in UTC.
fn time_text(unix_ms: u64) -> String {
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_millis(unix_ms);
    humantime::format_rfc3339_seconds(time).to_string()
}
