//! Reads what `cargo bench --bench decide` measured (criterion's files).

use std::path::Path;
use std::time::{Duration, SystemTime};

use serde::Deserialize;

use super::{Estimate, Known};

/// `benchmark.json`: which one it is.
#[derive(Deserialize)]
struct Benchmark {
    function_id: Option<String>,
}

/// `estimates.json`: what it found, in nanoseconds.
#[derive(Deserialize)]
struct Estimates {
    median: Point,
}

#[derive(Deserialize)]
struct Point {
    point_estimate: f64,
}

/// Estimates that were made longer ago are about another build.
const AGE_MAX: Duration = Duration::from_secs(6 * 3600);

/// The decisions among the estimates in `folder` (criterion's folder of the group `decide`).
pub(super) fn estimates(folder: &Path) -> Known<Vec<Estimate>> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Known::NotMeasured("run `cargo bench --workspace --bench decide` first".to_owned());
    };
    let mut estimates: Vec<_> =
        entries.flatten().filter_map(|entry| estimate(&entry.path().join("new"))).collect();
    estimates.sort_by(|one, other| one.what.cmp(&other.what));
    if estimates.is_empty() {
        return Known::NotMeasured("there is no new estimate of the decision benchmark".to_owned());
    }
    Known::Seen(estimates)
}

fn estimate(folder: &Path) -> Option<Estimate> {
    let estimates = folder.join("estimates.json");
    let made = std::fs::metadata(&estimates).ok()?.modified().ok()?;
    let age = SystemTime::now().duration_since(made).unwrap_or_default();
    let benchmark: Benchmark = read(&folder.join("benchmark.json"))?;
    // The lookup alone is measured there, too.
    let what = benchmark.function_id.filter(|what| what.starts_with("8 rules"))?;
    let nanoseconds = read::<Estimates>(&estimates)?.median.point_estimate;
    (age <= AGE_MAX).then_some(Estimate { what, nanoseconds })
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(folder: &Path, name: &str, what: &str, median: f64) {
        let folder = folder.join(name).join("new");
        std::fs::create_dir_all(&folder).unwrap();
        let benchmark = format!(r#"{{"group_id":"decide","function_id":"{what}"}}"#);
        std::fs::write(folder.join("benchmark.json"), benchmark).unwrap();
        let estimates = format!(
            r#"{{"mean":{{"point_estimate":1.0}},"median":{{"point_estimate":{median}}}}}"#
        );
        std::fs::write(folder.join("estimates.json"), estimates).unwrap();
    }

    #[test]
    fn decisions_are_read_and_lookups_are_not() {
        let folder = tempfile::tempdir().unwrap();
        put(folder.path(), "a", "8 rules, one experiment, any objective", 345.5);
        put(folder.path(), "b", "find any objective with one experiment", 80.0);
        let Known::Seen(estimates) = estimates(folder.path()) else { panic!("there is one") };
        assert_eq!(estimates.len(), 1);
        assert_eq!(estimates[0].nanoseconds, 345.5);
    }

    #[test]
    fn without_new_estimates_nothing_is_known() {
        let folder = tempfile::tempdir().unwrap();
        put(folder.path(), "a", "8 rules, one experiment, any objective", 345.5);
        let path = folder.path().join("a/new/estimates.json");
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - AGE_MAX * 2).unwrap();
        assert!(matches!(estimates(folder.path()), Known::NotMeasured(_)));
        assert!(matches!(estimates(Path::new("/no/such")), Known::NotMeasured(_)));
    }
}
