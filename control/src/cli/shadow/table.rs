//! The report as columns for a terminal.

use crate::{
    cli::table::Table,
    shadow::report::{Agreement, Disagreement, Report},
};

pub(super) fn text(report: &Report) -> String {
    let mut text = format!("{}\n{}", report.candidate, agreement(&report.agreement, report));
    text.push_str(&latency(report));
    text.push_str(&records(report));
    if report.objectives.len() > 1 {
        let mut table = Table::new(&["OBJECTIVE", "COMPARED", "SAME"]);
        for (name, one) in &report.objectives {
            table.row([name.clone(), (one.same + one.different).to_string(), rate(one)]);
        }
        text.push_str(&format!("\n{}", table.text("")));
    }
    text.push_str(&worst(&report.worst));
    text
}

fn agreement(agreement: &Agreement, report: &Report) -> String {
    let by = report.compared_by.join(", ");
    let compared = agreement.same + agreement.different;
    let mut text = match (agreement.rate_low, agreement.rate_high) {
        (Some(low), Some(high)) => format!(
            "{} of {compared} compared answers are the same by {by} (95 % interval {:.2}–{:.2} %)\n",
            rate(agreement),
            low * 100.0,
            high * 100.0
        ),
        _ => "no answers were compared\n".to_owned(),
    };
    for (kind, counts) in
        [("different", &agreement.different_by), ("not comparable", &agreement.not_comparable)]
    {
        for (reason, count) in counts {
            text.push_str(&format!("  {count} {kind}: {reason}\n"));
        }
    }
    text
}

fn latency(report: &Report) -> String {
    let mut table =
        Table::new(&["MILLISECONDS", "REQUESTS", "MEAN", "P50", "P90", "P99", "P99.9", "MAX"]);
    let measures = [("head", &report.latency.first_byte), ("last byte", &report.latency.total)];
    for (name, sides) in measures {
        for (side, spans) in [("primary", &sides.primary), ("candidate", &sides.candidate)] {
            let shown = |us: u64| format!("{:.3}", us as f64 / 1_000.0);
            table.row([
                format!("{name}, {side}"),
                spans.count.to_string(),
                format!("{:.3}", spans.mean_us / 1_000.0),
                shown(spans.p50_us),
                shown(spans.p90_us),
                shown(spans.p99_us),
                shown(spans.p999_us),
                shown(spans.max_us),
            ]);
        }
    }
    format!("\n{}", table.text(""))
}

fn records(report: &Report) -> String {
    let records = &report.records;
    let mut text = format!(
        "\nrecords: {} answered, {} unanswered, {} not replayed, {} unreadable, {} for other candidates, {} repeated\n",
        records.answered,
        records.unanswered,
        records.not_replayed,
        records.unreadable,
        records.passed_over,
        records.repeated
    );
    for (reason, count) in &records.reasons {
        text.push_str(&format!("  {count} {}\n", visible(reason)));
    }
    text
}

fn worst(worst: &[Disagreement]) -> String {
    if worst.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["DISTANCE", "RECORD", "UNIT", "PLACE", "PRIMARY", "CANDIDATE"]);
    for one in worst {
        let first = one.differences.first();
        let value = |value: Option<&String>| value.map_or_else(|| "-".to_owned(), |it| short(it));
        table.row([
            format!("{:.4}", one.distance),
            short(&one.id),
            one.unit.as_deref().map_or_else(|| "-".to_owned(), short),
            first.map_or_else(|| one.reason.clone(), |first| short(&first.pointer)),
            value(first.and_then(|first| first.primary.as_ref())),
            value(first.and_then(|first| first.candidate.as_ref())),
        ]);
    }
    format!("\nworst disagreements\n{}", table.text(""))
}

fn rate(agreement: &Agreement) -> String {
    agreement.rate.map_or_else(|| "-".to_owned(), |rate| format!("{:.2} %", rate * 100.0))
}

/// Values of users and models: one line, and nothing that a terminal obeys.
fn short(text: &str) -> String {
    const CHARACTERS_MAX: usize = 40;
    let shown: String = text.chars().take(CHARACTERS_MAX).collect();
    let more = if text.chars().nth(CHARACTERS_MAX).is_some() { "…" } else { "" };
    format!("{}{more}", visible(&shown))
}

fn visible(text: &str) -> String {
    text.chars().map(|one| if one.is_control() { '·' } else { one }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_nothing_that_users_or_models_wrote() {
        assert_eq!(short("a\x1b[2Jb\n"), "a·[2Jb·");
        assert_eq!(short(&"x".repeat(41)), format!("{}…", "x".repeat(40)));
    }
}
