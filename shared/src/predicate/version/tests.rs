use rkyv::{rancor, vec::ArchivedVec};

use super::*;

/// Every version of numbers below three, plain and with pre-releases of each kind.
fn versions() -> Vec<String> {
    let pre_releases = ["", "-0", "-alpha", "-alpha.1", "-alpha.beta", "-1"];
    numbers().flat_map(|number| pre_releases.map(|pre| format!("{number}{pre}"))).collect()
}

fn numbers() -> impl Iterator<Item = String> {
    (0..27).map(|number| format!("{}.{}.{}", number / 9, number / 3 % 3, number % 3))
}

/// Every relation to each of 0, 0.0, …, 2.2.2, with and without a pre-release.
fn comparators() -> Vec<String> {
    let mut written: Vec<String> = (0..3).map(|major| major.to_string()).collect();
    written.extend((0..9).map(|number| format!("{}.{}", number / 3, number % 3)));
    written.extend(
        numbers().flat_map(|number| ["", "-alpha", "-alpha.1"].map(|pre| format!("{number}{pre}"))),
    );
    let relations = ["", "=", ">", ">=", "<", "<=", "~", "^"];
    let mut comparators: Vec<String> = written
        .iter()
        .flat_map(|number| relations.map(|relation| format!("{relation}{number}")))
        .collect();
    comparators.extend(["*", "1.*", "1.2.*", "0.*", "0.0.*"].map(str::to_owned));
    comparators
}

/// Asks the `semver` crate and ours about each range and version; tells how many are inside.
fn compare(questions: &[(VersionReq, Vec<&String>)]) -> u32 {
    let ranges: Vec<VersionRange> =
        questions.iter().map(|(range, _)| VersionRange::from(range)).collect();
    let bytes = rkyv::to_bytes::<rancor::Error>(&ranges).expect("plain data");
    let ranges = rkyv::access::<ArchivedVec<ArchivedVersionRange>, rancor::Error>(&bytes)
        .expect("as it was written");
    let mut inside = 0;
    for (ours, (range, versions)) in ranges.iter().zip(questions) {
        for text in versions {
            let expected = range.matches(&semver::Version::parse(text).expect("a version"));
            assert_eq!(ours.contains(text), Some(expected), "{text} in {range}");
            inside += u32::from(expected);
        }
    }
    inside
}

fn read(range: &str) -> VersionReq {
    VersionReq::parse(range).expect("a range")
}

#[test]
fn one_comparator_matches_as_the_semver_crate_says_for_every_small_version() {
    let (comparators, versions) = (comparators(), versions());
    let questions: Vec<_> =
        comparators.iter().map(|range| (read(range), versions.iter().collect())).collect();
    let inside = compare(&questions);
    assert!(inside > 5_000, "{inside} of {}", comparators.len() * versions.len());
}

/// A second comparator that names a pre-release lets pre-releases in, and so shows what the first
/// one says of them.
#[test]
fn a_pre_release_that_is_asked_for_matches_as_the_semver_crate_says() {
    let (comparators, versions) = (comparators(), versions());
    let questions: Vec<_> = comparators
        .iter()
        .filter(|range| !range.contains('*'))
        .flat_map(|range| {
            numbers().map(move |number| (read(&format!("{range}, >={number}-0")), number))
        })
        .map(|(range, number)| {
            (range, versions.iter().filter(|one| one.starts_with(&number)).collect())
        })
        .collect();
    let inside = compare(&questions);
    assert!(inside > 5_000, "{inside}");
}

#[test]
fn what_is_no_version_is_unknown() {
    let bytes =
        rkyv::to_bytes::<rancor::Error>(&VersionRange::from(&VersionReq::STAR)).expect("plain");
    let any = rkyv::access::<ArchivedVersionRange, rancor::Error>(&bytes).expect("as written");
    assert_eq!(any.contains("18446744073709551615.0.0"), Some(true));
    for text in [
        "",
        "1",
        "1.2",
        "1.2.",
        "1.2.3.4",
        "v1.2.3",
        " 1.2.3",
        "1.2.3 ",
        "01.2.3",
        "1.02.3",
        "+1.2.3",
        "1.2.-3",
        "1.2.3-",
        "1.2.3-a..b",
        "1.2.3-01",
        "1.2.3-ä",
        "1.2.3+",
        "1.2.3+a+b",
        "1.2.3a",
        "1.2.3-+a",
        "1.2.3+a..b",
        "18446744073709551616.0.0",
        "1.99999999999999999999999999.0",
    ] {
        assert!(semver::Version::parse(text).is_err(), "{text:?}");
        assert_eq!(any.contains(text), None, "{text:?}");
    }
}
