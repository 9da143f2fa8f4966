//! The index of all results, `bench-results/README.md`: how to read them, and what is not good.

use std::path::Path;

use serde::Deserialize;

use super::page::targets_table;
use crate::compare::CompareError;
use crate::compare::target::{Target, Verdict};

/// What is said of every result.
const ABOUT: &str = include_str!("../../../peers/results.md");

/// What the index needs of a `summary.json`.
#[derive(Deserialize)]
struct Entry {
    machine: Machine,
    rounds: usize,
    quick: bool,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Machine {
    date: String,
    commit: String,
    cpu: String,
    cores: usize,
    kernel: String,
}

/// Writes the index over everything that is in the folder.
///
/// # Errors
/// A full disk.
pub(super) fn write(parent: &Path) -> Result<(), CompareError> {
    let mut names: Vec<_> = std::fs::read_dir(parent)
        .map_err(CompareError::file(parent))?
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let results: Vec<_> = names
        .into_iter()
        .rev()
        .map(|name| {
            let summary = std::fs::read(parent.join(&name).join("summary.json")).ok();
            let entry = summary.and_then(|summary| serde_json::from_slice(&summary).ok());
            (name, entry)
        })
        .collect();
    let path = parent.join("README.md");
    std::fs::write(&path, render(&results)).map_err(CompareError::file(&path))
}

/// The newest first.
fn render(results: &[(String, Option<Entry>)]) -> String {
    let mut text = format!("{}\n\n## Results\n\n", ABOUT.trim_end());
    text.push_str(
        "| folder | host | rounds | targets met, not met, not measured |\n|---|---|---|---|\n",
    );
    for (name, entry) in results {
        let rest = match entry {
            Some(entry) => row(entry),
            None => "| | | another kind of measurement: see its own page |".to_owned(),
        };
        text.push_str(&format!("| [{name}]({name}) {rest}\n"));
    }
    let newest = results.iter().filter_map(|(name, entry)| Some((name, entry.as_ref()?))).max_by(
        |(_, one), (_, other)| {
            (!one.quick, &one.machine.date).cmp(&(!other.quick, &other.machine.date))
        },
    );
    if let Some((name, entry)) = newest {
        text.push_str(&format!("\n## Targets in [{name}]({name})\n\n"));
        text.push_str(&targets_table(&entry.targets));
    }
    text
}

fn row(entry: &Entry) -> String {
    let Machine { date, commit, cpu, cores, kernel } = &entry.machine;
    let count = |is: fn(&Verdict) -> bool| {
        entry.targets.iter().filter(|target| is(&target.verdict)).count()
    };
    let (met, not_met) = (count(|it| *it == Verdict::Met), count(|it| *it == Verdict::NotMet));
    let unknown = entry.targets.len() - met - not_met;
    let quick = if entry.quick { " (quick: not for publication)" } else { "" };
    let rounds = entry.rounds;
    format!(
        "{date}, {commit} | {cpu}, {cores} cores, Linux {kernel} | {rounds}{quick} | {met}, {not_met}, {unknown} |"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(date: &str, rounds: usize, verdict: &str) -> Entry {
        let quick = rounds < 5;
        let text = format!(
            r#"{{"machine":{{"date":"{date}","commit":"abc","cpu":"Some CPU","cores":2,"kernel":"6.1"}},
            "rounds":{rounds},"quick":{quick},"targets":[{{"what":"speed {date}","goal":"much","seen":"some",
            "ratios":"","verdict":{verdict}}}]}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn the_targets_shown_are_those_of_the_newest_run_that_may_be_published() {
        let text = render(&[
            ("c".to_owned(), Some(entry("2026-03-01", 1, "\"met\""))),
            ("b".to_owned(), Some(entry("2026-02-01", 5, "\"not_met\""))),
            ("a".to_owned(), Some(entry("2026-01-01", 5, r#"{"not_measured":"why"}"#))),
            ("old".to_owned(), None),
        ]);
        assert!(text.contains("## Targets in [b](b)"), "{text}");
        assert!(text.contains("speed 2026-02-01") && !text.contains("speed 2026-03-01"), "{text}");
        assert!(text.contains("1 (quick: not for publication) | 1, 0, 0 |"), "{text}");
        assert!(text.contains("| [old](old) | | | another kind"), "{text}");
    }
}
