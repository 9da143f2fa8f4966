//! What is exported and read again is the same.

use switchboard_control::rules::{Draft, Object, read, write};

use crate::rules::{GOOD, draft, file};

/// As `export` prints a version.
pub(crate) fn exported(draft: &Draft) -> String {
    let allocations = draft.allocations.documents(&draft.set).into_iter().map(Object::Allocation);
    let objects: Vec<_> =
        draft.set.selection().chain(draft.set.placement()).chain(allocations).collect();
    write(&objects).expect("writable")
}

#[test]
fn an_export_on_an_empty_registry_is_the_same_version() {
    let before = draft(&read(&[file(GOOD)]).expect("good rules")).expect("a good draft");
    let text = exported(&before);
    let after = draft(&read(&[file(&text)]).expect("good rules")).expect("a good draft");
    assert_eq!(after, before);
    assert_eq!(exported(&after), text);
}

#[test]
fn texts_that_yaml_could_misread_survive() {
    let odd = [
        ("\"u1\", \"u2\"", "\"yes\", \"1\", \"é\", \"''\", \"#x\""),
        ("version: \"1\"", "version: 1e3"),
        ("ranker@1 ", "ranker@1e3 "),
        ("served_name: big", "served_name: \"0x10\""),
        ("salt: trial-1", "salt: \"null\""),
        ("default: \"\" }\n  age", "default: \"~\" }\n  age"),
        ("country == \"DE\" && age >= 18", "|\n      country == \"DE\"\n        || age >= 18.5\n"),
        ("name: ranking }", "name: ranking, salt: \"line\\nbreak: \\t x \" }"),
    ];
    let text = odd.iter().fold(GOOD.to_owned(), |text, (before, after)| {
        assert!(text.contains(before), "{before} is there");
        text.replacen(before, after, 1)
    });
    let text = text.replacen("version: 1e3", "version: \"1e3\"", 1);
    let before = draft(&read(&[file(&text)]).unwrap_or_else(|faults| panic!("{faults:?}")))
        .expect("a good draft");
    let text = exported(&before);
    let documents = read(&[file(&text)]).unwrap_or_else(|faults| panic!("{faults:?}\n{text}"));
    let after = draft(&documents).unwrap_or_else(|faults| panic!("{faults:?}\n{text}"));
    assert_eq!(after, before, "{text}");
}
