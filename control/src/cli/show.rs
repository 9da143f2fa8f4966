//! Answers as text for people.

use std::io::{self, Write as _};

use serde::Serialize;
use serde_json::Value;

use super::table::Table;
use crate::{
    api::{Problem, VersionList},
    broadcaster::{RouterStatus, Standing},
    clock,
    deploy::{Ended, Report, Status},
    plan::{Change, Plan},
    registry::{Evidence, VersionRecord},
};

/// Writes to standard output; a reader that has seen enough is no error.
pub(super) fn print(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    let written = output
        .write_all(text.as_bytes())
        .and_then(|()| if text.ends_with('\n') { Ok(()) } else { output.write_all(b"\n") });
    match written.and_then(|()| output.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

pub(super) fn json(value: &impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string_pretty(value)
}

/// What the rules' checks or the gate refused, every fault on its line.
pub(super) fn refusal(problem: &Problem) -> String {
    let mut text = String::new();
    for fault in &problem.faults {
        text.push_str(&format!("{fault}\n"));
    }
    match &problem.report {
        Some(report) => text.push_str(&self::report(report)),
        None if problem.faults.is_empty() => text.push_str(&format!("{}\n", problem.detail)),
        None => text.push_str(&format!("{}; nothing is stored\n", problem.detail)),
    }
    text.trim_end().to_owned()
}

pub(super) fn report(report: &Report) -> String {
    let version = report.version.map_or_else(|| "none".to_owned(), |version| version.to_string());
    if report.ended == Ended::Unchanged {
        return format!("Nothing changes; version {version} stays active.\n");
    }
    let mut text = plan(&report.plan);
    text.push_str(&evidence(&report.evidence));
    let reason = report.reason.as_deref().unwrap_or("no reason given");
    text.push_str(&match report.ended {
        Ended::Unchanged => String::new(),
        Ended::Active => format!("Version {version} is active.\n"),
        Ended::Pending => format!("Version {version} is on its way; `status` tells how far.\n"),
        Ended::FailedValidation => {
            format!("Version {version} failed validation and goes nowhere: {reason}\n")
        }
        Ended::FailedRefused => {
            format!("Version {version} failed, no router has activated it: {reason}\n")
        }
    });
    text
}

fn evidence(evidence: &[Evidence]) -> String {
    let mut text = String::new();
    for one in evidence {
        let mark = if one.passed { "ok  " } else { "FAIL" };
        text.push_str(&format!("  {mark}  {}: {}\n", one.subject, one.detail));
    }
    text
}

pub(super) fn plan(plan: &Plan) -> String {
    if plan.is_empty() {
        let base = plan.base.map_or_else(|| "none".to_owned(), |base| base.to_string());
        return format!("Nothing would change; version {base} is active.\n");
    }
    let mut text = match plan.base {
        Some(base) => format!("Changes against version {base}:\n"),
        None => "Changes against an empty registry:\n".to_owned(),
    };
    for object in &plan.objects {
        let mark = mark(object.change);
        text.push_str(&format!("  {mark} {} {}\n", object.kind, object.name));
        for field in &object.fields {
            let shown = |value: &Option<Value>| match value {
                Some(value) => value.to_string(),
                None => "(nothing)".to_owned(),
            };
            let (before, after) = (shown(&field.before), shown(&field.after));
            text.push_str(&format!("      {}: {before} → {after}\n", field.path));
        }
    }
    text.push_str(&moves(plan));
    text
}

const fn mark(change: Change) -> char {
    match change {
        Change::Added => '+',
        Change::Changed => '~',
        Change::Removed => '-',
    }
}

fn moves(plan: &Plan) -> String {
    if plan.experiments.is_empty() {
        return "No Unit moves between the Arms of an experiment.\n".to_owned();
    }
    let mut table = Table::new(&["OBJECTIVE", "EXPERIMENT", "FROM", "TO", "SLOTS", "UNITS"]);
    let mut notes = String::new();
    for one in &plan.experiments {
        let arm = |arm: &Option<String>| arm.clone().unwrap_or_else(|| "(next Rule)".to_owned());
        for way in &one.moves {
            let slots = way.slots.map_or_else(|| "-".to_owned(), |slots| slots.to_string());
            let about = if one.exact { "" } else { "about " };
            table.row([
                one.objective.clone(),
                format!("{} {}", mark(one.change), one.rule),
                arm(&way.from),
                arm(&way.to),
                slots,
                format!("{about}{} %", percent(way.percent)),
            ]);
        }
        let name = format!("{}/{}", one.objective, one.rule);
        if !one.exact {
            notes.push_str(&format!("  {name} has another salt: each Unit falls anew.\n"));
        }
        if one.audience_changed {
            notes.push_str(&format!(
                "  {name} meets other requests than before; the numbers hold for those that it \
                 meets both times.\n"
            ));
        }
    }
    format!("Units that move, of those that an experiment meets:\n{}{notes}", table.text("  "))
}

/// As many digits as there are, at most six.
fn percent(percent: f64) -> String {
    let text = format!("{percent:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

pub(super) fn versions(list: &VersionList) -> String {
    let mut table = Table::new(&[
        "VERSION",
        "STATE",
        "ACTION",
        "SELECTION",
        "PLACEMENT",
        "ACTOR",
        "DIGEST",
        "REASON",
    ]);
    for record in &list.versions {
        table.row(version_cells(record));
    }
    table.text("")
}

fn version_cells(record: &VersionRecord) -> [String; 8] {
    let action = match (record.action, record.restores) {
        (_, Some(restores)) => format!("rollback to {restores}"),
        (_, None) => "apply".to_owned(),
    };
    [
        record.version.to_string(),
        record.state.to_string(),
        action,
        record.selection.to_string(),
        record.placement.to_string(),
        record.actor.clone(),
        short(record.digest.as_deref().unwrap_or("-")),
        record.reason.clone().unwrap_or_default(),
    ]
}

/// The first digits of a digest tell two of them apart.
fn short(digest: &str) -> String {
    digest.chars().take(12).collect()
}

pub(super) fn status(status: &Status) -> String {
    let mut text = format!("group    {}\nkey id   {}\n", status.group, status.key_id);
    match &status.active {
        Some(active) => {
            let digest = short(active.digest.as_deref().unwrap_or("-"));
            let objectives = status.objectives;
            text.push_str(&format!(
                "active   version {}, digest {digest}, {objectives} Objectives, by {}, {}\n",
                active.version,
                active.actor,
                ago(active.updated_ms)
            ));
        }
        None => text.push_str("active   none yet\n"),
    }
    for pending in &status.pending {
        text.push_str(&format!("pending  version {}, {}\n", pending.version, pending.state));
    }
    if let Some(failed) = &status.last_failure {
        let reason = failed.reason.as_deref().unwrap_or("no reason given");
        text.push_str(&format!("failed   version {}: {reason}\n", failed.version));
    }
    if status.routers.is_empty() {
        text.push_str("routers  none\n");
        return text;
    }
    let mut table =
        Table::new(&["ROUTER", "STANDING", "VERSION", "DIGEST", "HEALTH", "HEARD", "SOCKET"]);
    for router in &status.routers {
        table.row(router_cells(router));
    }
    text.push('\n');
    text.push_str(&table.text(""));
    for router in &status.routers {
        let name = router.router.as_deref().unwrap_or(&router.socket);
        if let Some(refusal) = &router.refusal {
            text.push_str(&format!(
                "{name} refused version {} at {}, {}: {}: {}\n",
                refusal.version,
                refusal.step,
                ago(refusal.at_ms),
                refusal.reason,
                refusal.detail
            ));
        }
        if let Some(error) = &router.error {
            let now = router.standing == Standing::Away;
            let about = if now { "is away" } else { "was lost before" };
            text.push_str(&format!("{name} {about}: {error}\n"));
        }
    }
    text
}

fn router_cells(router: &RouterStatus) -> [String; 7] {
    let nothing = || "-".to_owned();
    let running = router.running.as_ref();
    [
        router.router.clone().unwrap_or_else(nothing),
        router.standing.label().to_owned(),
        running.map_or_else(nothing, |running| running.version.to_string()),
        running.map_or_else(nothing, |running| short(&running.digest)),
        router.health.map_or_else(nothing, |health| format!("{health:?}").to_lowercase()),
        router.heard_ms.map_or_else(nothing, ago),
        router.socket.clone(),
    ]
}

fn ago(at_ms: u64) -> String {
    match clock::unix_ms().saturating_sub(at_ms) / 1_000 {
        0 => "just now".to_owned(),
        seconds @ 1..=119 => format!("{seconds} s ago"),
        seconds @ 120..=7_199 => format!("{} min ago", seconds / 60),
        seconds => format!("{} h ago", seconds / 3_600),
    }
}

/// `None` where the answer is not of the form that this build knows.
pub(super) fn explanation(answer: &Value) -> Option<String> {
    let text = |name: &str| answer.get(name).and_then(Value::as_str);
    let (objective, arm, model) = (text("objective")?, text("arm")?, text("model")?);
    let mut told = format!("{objective} → Arm {arm}, Model {model}, reason {}\n", text("reason")?);
    for (number, rule) in (1..).zip(answer.get("tried")?.as_array()?) {
        told.push_str(&tried(number, rule)?);
    }
    if text("rule").is_none() {
        told.push_str("No Rule decided: the default Arm answers.\n");
    }
    Some(told)
}

fn tried(number: u32, rule: &Value) -> Option<String> {
    let name = rule.get("rule")?.as_str()?;
    let slot = rule.get("slot").and_then(Value::as_u64);
    let outcome = match rule.get("outcome")? {
        Value::String(outcome) => match outcome.as_str() {
            "not_held" => "does not hold".to_owned(),
            "no_unit" => "holds, but the request carries no Unit".to_owned(),
            "outside_layer" => {
                "holds, but the Unit is outside of its share of the Layer".to_owned()
            }
            "unowned" => "holds, but nobody owns the Unit's Slot: falls through".to_owned(),
            other => other.to_owned(),
        },
        other => format!("decides: Arm {}", other.get("arm")?.as_str()?),
    };
    let mut told = format!("  {number}. {name}: {outcome}\n");
    for test in rule.get("tests")?.as_array()? {
        let found = match test.get("found")? {
            Value::Null => "absent".to_owned(),
            found => format!("found {found}"),
        };
        let passed = if test.get("passed")?.as_bool()? { "true" } else { "not true" };
        told.push_str(&format!("       {} is {passed} ({found})\n", test.get("test")?.as_str()?));
    }
    if let Some(layer) = rule.get("layer") {
        let inside = if layer.get("inside")?.as_bool()? { "inside" } else { "outside" };
        let (name, slot) = (layer.get("layer")?.as_str()?, layer.get("slot")?);
        told.push_str(&format!("       Layer {name}: Slot {slot}, {inside}\n"));
    }
    if let Some(slot) = slot {
        told.push_str(&format!("       Slot {slot}\n"));
    }
    Some(told)
}
