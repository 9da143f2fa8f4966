use proptest::prelude::*;

use super::*;

fn json(rules: JsonRules, primary: &str, candidate: &str) -> Comparison {
    Measure::Json(rules).compare(Primary::Whole(primary.as_bytes()), candidate.as_bytes())
}

fn tolerant(absolute: f64, relative: f64) -> JsonRules {
    JsonRules { tolerance: Tolerance { absolute, relative }, ignored: Vec::new() }
}

fn ignoring(pointers: &[&str]) -> JsonRules {
    JsonRules {
        ignored: pointers.iter().map(|one| (*one).to_owned()).collect(),
        ..JsonRules::default()
    }
}

#[test]
fn exact_means_every_byte() {
    let compare = |one: &[u8], other: &[u8]| Measure::Bytes.compare(Primary::Whole(one), other);
    assert_eq!(compare(b"{\"a\":1}\xFF", b"{\"a\":1}\xFF"), Comparison::SAME);
    let different = compare(b"{\"a\":1}", b"{\"a\": 1}");
    assert_eq!((different.verdict, different.distance), (Verdict::Different, 1.0));
    assert_eq!(different.differences[0].candidate.as_deref(), Some("{\"a\": 1}"));
}

#[test]
fn json_ignores_order_of_members_and_how_numbers_are_written() {
    let same =
        json(JsonRules::default(), r#"{"a":1,"b":[1e1,"x"]}"#, r#" {"b":[10.0,"x"],"a":1.0}"#);
    assert_eq!(same, Comparison::SAME);
}

#[test]
fn the_order_of_items_counts() {
    assert_eq!(json(JsonRules::default(), "[1,2]", "[2,1]").verdict, Verdict::Different);
}

#[test]
fn numbers_within_either_tolerance_are_the_same() {
    let verdict = |absolute, relative, one: &str, other: &str| {
        json(tolerant(absolute, relative), one, other).verdict
    };
    assert_eq!(verdict(0.5, 0.0, "10", "10.5"), Verdict::Same);
    assert_eq!(verdict(0.5, 0.0, "10", "10.51"), Verdict::Different);
    assert_eq!(verdict(0.0, 0.01, "-100", "-101"), Verdict::Same);
    assert_eq!(verdict(0.0, 0.01, "-100", "100"), Verdict::Different);
    assert_eq!(verdict(0.0, 0.0, "0", "-0.0"), Verdict::Same);
}

#[test]
fn large_ids_that_are_the_same_as_doubles_differ() {
    let different = json(JsonRules::default(), "9007199254740993", "9007199254740992");
    assert_eq!(different.verdict, Verdict::Different);
    assert!(different.distance > 0.0);
}

#[test]
fn the_distance_is_the_mean_over_all_leaves() {
    let different = json(
        JsonRules::default(),
        r#"{"a":"x","b":[8,1],"c":null}"#,
        r#"{"a":"y","b":[4,1],"c":null}"#,
    );
    assert_eq!(different.distance, (1.0 + 0.5) / 4.0);
    let pointers: Vec<_> = different.differences.iter().map(|one| one.pointer.as_str()).collect();
    assert_eq!(pointers, ["/a", "/b/0"]);
}

#[test]
fn missing_and_additional_members_and_items_differ() {
    let different = json(JsonRules::default(), r#"{"a":{"x":1},"l":[1]}"#, r#"{"b":2,"l":[1,2]}"#);
    let told: Vec<_> = different
        .differences
        .iter()
        .map(|one| (one.pointer.as_str(), one.primary.as_deref(), one.candidate.as_deref()))
        .collect();
    assert_eq!(
        told,
        [("/a", Some(r#"{"x":1}"#), None), ("/l/1", None, Some("2")), ("/b", None, Some("2"))]
    );
    assert_eq!(different.distance, 3.0 / 4.0);
}

#[test]
fn ignored_places_do_not_count_with_all_below_them() {
    let rules = ignoring(&["/id", "/outputs/*/meta", "/a~1b"]);
    let one = r#"{"id":1,"outputs":[{"meta":{"t":1},"v":1},{"v":2}],"a/b":1}"#;
    let other = r#"{"outputs":[{"meta":[],"v":1},{"v":2,"meta":7}],"a/b":2,"id":"x"}"#;
    assert_eq!(json(rules.clone(), one, other), Comparison::SAME);
    assert_eq!(json(rules, one, &other.replace("\"v\":2", "\"v\":3")).verdict, Verdict::Different);
}

#[test]
fn one_field_decides_alone_where_that_is_asked() {
    let measure = Measure::Field {
        pointer: "/outputs/0/data/0".to_owned(),
        tolerance: Tolerance { absolute: 0.5, relative: 0.0 },
    };
    let compare =
        |one: &str, other: &str| measure.compare(Primary::Whole(one.as_bytes()), other.as_bytes());
    let answer = |value: &str| format!(r#"{{"x":{value},"outputs":[{{"data":[{value}]}}]}}"#);
    assert_eq!(compare(&answer("7"), &answer("7.5")), Comparison::SAME);
    let different = compare(&answer("8"), &answer("4"));
    assert_eq!((different.verdict, different.distance), (Verdict::Different, 0.5));
    assert_eq!(different.differences[0].pointer, "/outputs/0/data/0");
    let reason = |one: &str, other: &str| compare(one, other).reason;
    assert_eq!(reason("{}", &answer("1")), Some(Reason::PrimaryLacksField));
    assert_eq!(reason(&answer("1"), "{}"), Some(Reason::CandidateLacksField));
}

#[test]
fn what_cannot_be_compared_says_why() {
    let missing = Measure::Bytes.compare(Primary::Missing(Reason::PrimaryCut), b"x");
    assert_eq!(
        (missing.verdict, missing.reason),
        (Verdict::NotComparable, Some(Reason::PrimaryCut))
    );
    let primary = json(JsonRules::default(), "text", "{}");
    assert_eq!(
        (primary.verdict, primary.reason),
        (Verdict::NotComparable, Some(Reason::PrimaryNotJson))
    );
    let candidate = json(JsonRules::default(), "{}", "text");
    assert_eq!(
        (candidate.verdict, candidate.reason),
        (Verdict::Different, Some(Reason::CandidateNotJson))
    );
}

#[test]
fn a_result_stays_small_however_large_the_answers_are() {
    let long = format!("\"{}\"", "ä".repeat(10_000));
    let list = |value: &str| format!("[{}]", vec![value; 1_000].join(","));
    let different = json(JsonRules::default(), &list(&long), &list("1"));
    assert_eq!(different.distance, 1.0);
    let bytes = serde_json::to_vec(&different).unwrap().len();
    assert!(bytes < 8 * 1_024, "{bytes} bytes");
}

proptest! {
    #[test]
    fn a_document_is_the_same_as_itself_and_distances_stay_within_bounds(
        one in proptest::collection::vec(-1e9..1e9_f64, 0..20),
        other in proptest::collection::vec(-1e9..1e9_f64, 0..20),
    ) {
        let text = |list: &Vec<f64>| serde_json::to_string(list).unwrap();
        prop_assert_eq!(json(JsonRules::default(), &text(&one), &text(&one)), Comparison::SAME);
        let distance = json(JsonRules::default(), &text(&one), &text(&other)).distance;
        prop_assert!((0.0..=1.0).contains(&distance), "{}", distance);
    }
}
