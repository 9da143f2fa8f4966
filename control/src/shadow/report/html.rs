//! The report as one page that needs nothing else: no script, no font, no other file.

use super::{Agreement, Disagreement, Report, Sides, Spans};

const STYLE: &str = "
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #1b2733 }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2rem }
table { border-collapse: collapse; margin: .5rem 0 } td, th { padding: .2rem .9rem .2rem 0; text-align: right; vertical-align: top }
th { font-weight: 600; border-bottom: 1px solid #b8c4ce } td:first-child, th:first-child { text-align: left }
td.text, th.text { text-align: left; overflow-wrap: anywhere } code { font-size: .85rem }
.rate { font-size: 2.2rem; font-weight: 600 } .note { color: #5b6b79 }
.primary { stroke: #2f6fb2; fill: none; stroke-width: 2 } .candidate { stroke: #c4622d; fill: none; stroke-width: 2 }
.grid { stroke: #dde4ea } svg text { font-size: 12px; fill: #5b6b79 }
";

/// The whole page. Everything in it that came from outside is escaped.
#[must_use]
pub fn page(report: &Report) -> String {
    let candidate = escaped(&report.candidate);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{candidate} beside its primary</title>\
         <style>{STYLE}</style></head><body>\n<h1>{candidate} beside its primary</h1>\n"
    );
    page.push_str(&agreement(report));
    page.push_str(&latency(report));
    page.push_str(&records(report));
    page.push_str(&objectives(report));
    page.push_str(&worst(&report.worst));
    page.push_str("</body></html>\n");
    page
}

fn agreement(report: &Report) -> String {
    let Agreement { same, different, .. } = report.agreement;
    let by = escaped(&report.compared_by.join(", "));
    let mut text = format!(
        "<h2>Agreement</h2>\n<p><span class=\"rate\">{}</span> of {} compared answers are the same by <code>{by}</code> \
         ({})</p>\n",
        rate(&report.agreement),
        same + different,
        interval(&report.agreement),
    );
    let mut rows = vec![["same".to_owned(), same.to_string()]];
    for (kind, counts) in [
        ("different", &report.agreement.different_by),
        ("not comparable", &report.agreement.not_comparable),
    ] {
        rows.extend(
            counts
                .iter()
                .map(|(reason, count)| [format!("{kind}: {}", escaped(reason)), count.to_string()]),
        );
    }
    text.push_str(&table(["answers", "count"], rows));
    text
}

fn latency(report: &Report) -> String {
    let mut text = "<h2>Latency</h2>\n<p class=\"note\">Only requests that both sides answered with 2xx; milliseconds.</p>\n".to_owned();
    let measures = [
        ("To the answer's head", &report.latency.first_byte),
        ("To the answer's last byte", &report.latency.total),
    ];
    let mut rows = Vec::new();
    for (name, sides) in measures {
        for (side, spans) in [("primary", &sides.primary), ("candidate", &sides.candidate)] {
            rows.push([
                format!("{name}: {side}"),
                spans.count.to_string(),
                milliseconds(spans.mean_us),
                milliseconds(spans.p50_us as f64),
                milliseconds(spans.p90_us as f64),
                milliseconds(spans.p99_us as f64),
                milliseconds(spans.p999_us as f64),
                milliseconds(spans.max_us as f64),
            ]);
        }
    }
    text.push_str(&table(["", "requests", "mean", "p50", "p90", "p99", "p99.9", "max"], rows));
    text.push_str(&chart(&report.latency.first_byte));
    text
}

/// Quantiles across, spans upwards on a logarithmic scale; the right end is stretched, as tails matter.
fn chart(sides: &Sides) -> String {
    if sides.primary.count == 0 {
        return String::new();
    }
    const WIDTH: f64 = 860.0;
    const HEIGHT: f64 = 260.0;
    const LEFT: f64 = 70.0;
    let low = sides.primary.min_us.min(sides.candidate.min_us).max(1) as f64;
    let high = (sides.primary.max_us.max(sides.candidate.max_us) as f64).max(low * 1.1);
    let (first, last) = (low.log10().floor(), high.log10().ceil());
    let across = |quantile: f64| {
        let nines = -(1.0 - quantile).max(1e-4).log10() / 4.0;
        LEFT + nines * (WIDTH - LEFT - 20.0)
    };
    let up = |us: f64| 10.0 + HEIGHT * (1.0 - (us.max(1.0).log10() - first) / (last - first));
    let mut text = format!(
        "<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"latency by quantile\">\n",
        HEIGHT + 50.0
    );
    let mut decade = first;
    while decade <= last {
        let us = 10_f64.powf(decade);
        text.push_str(&format!(
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/><text x=\"0\" y=\"{y:.1}\">{} ms</text>\n",
            us / 1_000.0,
            y = up(us)
        ));
        decade += 1.0;
    }
    for (quantile, name) in
        [(0.0, "min"), (0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9")]
    {
        text.push_str(&format!(
            "<text x=\"{:.1}\" y=\"{:.1}\">{name}</text>\n",
            across(quantile),
            HEIGHT + 30.0
        ));
    }
    for (side, spans) in [("primary", &sides.primary), ("candidate", &sides.candidate)] {
        let points: Vec<_> = points(spans)
            .map(|(quantile, us)| format!("{:.1},{:.1}", across(quantile), up(us)))
            .collect();
        text.push_str(&format!("<polyline class=\"{side}\" points=\"{}\"/>\n", points.join(" ")));
    }
    text.push_str(&format!(
        "<line class=\"primary\" x1=\"{LEFT}\" x2=\"110\" y1=\"{y}\" y2=\"{y}\"/><text x=\"116\" y=\"{t}\">primary</text>\
         <line class=\"candidate\" x1=\"190\" x2=\"230\" y1=\"{y}\" y2=\"{y}\"/><text x=\"236\" y=\"{t}\">candidate, to the answer's head</text></svg>\n",
        y = HEIGHT + 44.0,
        t = HEIGHT + 48.0
    ));
    text
}

fn points(spans: &Spans) -> impl Iterator<Item = (f64, f64)> + '_ {
    spans.curve.iter().map(|(quantile, us)| (*quantile, *us as f64))
}

fn records(report: &Report) -> String {
    let records = &report.records;
    let mut rows = vec![
        ["answered".to_owned(), records.answered.to_string()],
        ["unanswered".to_owned(), records.unanswered.to_string()],
        ["not replayed".to_owned(), records.not_replayed.to_string()],
        ["unreadable".to_owned(), records.unreadable.to_string()],
        ["for other candidates".to_owned(), records.passed_over.to_string()],
        ["repeated results, not counted again".to_owned(), records.repeated.to_string()],
    ];
    let reasons = records.reasons.iter();
    rows.extend(
        reasons.map(|(reason, count)| [format!("reason: {}", escaped(reason)), count.to_string()]),
    );
    for (side, statuses) in
        [("primary", &report.primary_statuses), ("candidate", &report.candidate_statuses)]
    {
        rows.extend(
            statuses.iter().map(|(status, count)| [format!("{side}: {status}"), count.to_string()]),
        );
    }
    format!("<h2>Records</h2>\n{}", table(["", "count"], rows))
}

fn objectives(report: &Report) -> String {
    let rows = report.objectives.iter().map(|(name, agreement)| {
        [
            escaped(name),
            (agreement.same + agreement.different).to_string(),
            rate(agreement),
            interval(agreement),
        ]
    });
    format!(
        "<h2>By Objective</h2>\n{}",
        table(["objective", "compared", "same", "95 % interval"], rows.collect())
    )
}

fn worst(worst: &[Disagreement]) -> String {
    if worst.is_empty() {
        return "<h2>Worst disagreements</h2>\n<p>None.</p>\n".to_owned();
    }
    let mut text = "<h2>Worst disagreements</h2>\n<table><tr><th>distance</th><th class=\"text\">record</th>\
                    <th class=\"text\">place</th><th class=\"text\">primary</th><th class=\"text\">candidate</th></tr>\n"
        .to_owned();
    for one in worst {
        let unit = one.unit.as_deref().unwrap_or("no Unit");
        text.push_str(&format!(
            "<tr><td>{:.4}</td><td class=\"text\">{} {}<br><code>{}</code><br><code>{}</code></td>",
            one.distance,
            escaped(&one.objective),
            escaped(unit),
            escaped(&one.id),
            escaped(&one.source)
        ));
        let column = |text: &dyn Fn(usize) -> String| {
            let lines: Vec<_> = (0..one.differences.len()).map(text).collect();
            format!("<td class=\"text\"><code>{}</code></td>", lines.join("<br>"))
        };
        if one.differences.is_empty() {
            text.push_str(&format!(
                "<td class=\"text\" colspan=\"3\">{}</td></tr>\n",
                escaped(&one.reason)
            ));
            continue;
        }
        let shown = |value: Option<&String>| escaped(value.map_or("absent", String::as_str));
        let at = |index: usize| one.differences.get(index);
        text.push_str(&column(&|index| {
            at(index).map_or_else(String::new, |difference| match difference.pointer.as_str() {
                "" => "the whole".to_owned(),
                pointer => escaped(pointer),
            })
        }));
        text.push_str(&column(&|index| shown(at(index).and_then(|one| one.primary.as_ref()))));
        text.push_str(&column(&|index| shown(at(index).and_then(|one| one.candidate.as_ref()))));
        text.push_str("</tr>\n");
    }
    text.push_str("</table>\n");
    text
}

fn rate(agreement: &Agreement) -> String {
    agreement.rate.map_or_else(|| "–".to_owned(), |rate| format!("{:.2} %", rate * 100.0))
}

fn interval(agreement: &Agreement) -> String {
    match (agreement.rate_low, agreement.rate_high) {
        (Some(low), Some(high)) => {
            format!("95 % interval {:.2}–{:.2} %", low * 100.0, high * 100.0)
        }
        _ => "nothing was compared".to_owned(),
    }
}

fn milliseconds(us: f64) -> String {
    format!("{:.3}", us / 1_000.0)
}

/// Cells are HTML already.
fn table<const COLUMNS: usize>(head: [&str; COLUMNS], rows: Vec<[String; COLUMNS]>) -> String {
    let row = |tag: &str, cells: Vec<&str>| {
        let cells: String = cells.iter().map(|cell| format!("<{tag}>{cell}</{tag}>")).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let body: String =
        rows.iter().map(|cells| row("td", cells.iter().map(String::as_str).collect())).collect();
    format!("<table>{}{body}</table>\n", row("th", head.to_vec()))
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}
