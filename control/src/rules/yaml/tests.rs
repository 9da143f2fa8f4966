use super::*;

fn error(text: &str) -> (u64, u64, String, &'static str) {
    let error = documents(text).expect_err(text);
    (error.mark.line, error.mark.column, error.found, error.expected)
}

#[test]
fn a_tree_knows_where_each_value_stands() {
    let text = "a: 1\n---\n# nothing\n---\nb: [x, { c: 'é', d: true }]\n";
    let documents = documents(text).expect("good YAML");
    assert_eq!(documents.len(), 2);
    let mark = |path: &[&str]| {
        let mark = documents[1].under(path).mark;
        (mark.line, mark.column)
    };
    assert_eq!(mark(&[]), (5, 1));
    assert_eq!(mark(&["b", "0"]), (5, 5));
    assert_eq!(mark(&["b", "1", "c"]), (5, 13));
    assert_eq!(mark(&["b", "1", "d"]), (5, 21));
    // As far as the path goes.
    assert_eq!(mark(&["b", "7"]), (5, 4));
}

#[test]
fn scalars_have_yaml_1_2_types() {
    let text = "[1, '1', 1.5, true, yes, off, ~, null, 0x10, -3, 1e3, x, 18446744073709551615]";
    let documents = documents(text).expect("good YAML");
    let Value::Sequence(items) = &documents[0].value else { panic!("a list") };
    let shown: Vec<_> = items.iter().map(Node::describe).collect();
    let expected = [
        "the number 1",
        "`1`",
        "the number 1.5",
        "the boolean true",
        "`yes`",
        "`off`",
        "nothing",
        "nothing",
        "the number 16",
        "the number -3",
        "the number 1000",
        "`x`",
        "the number 18446744073709552000",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn what_could_grow_or_surprise_is_refused_with_its_place() {
    assert_eq!(error("a: 1\na: 2"), (2, 1, "the field `a` again".to_owned(), "each field once"));
    assert_eq!(error("a: &x 1").2, "an anchor");
    assert_eq!(error("a: *x").2, "alias references unknown anchor");
    assert_eq!(error("<<: {a: 1}").2, "YAML merge keys are not allowed by configured policy");
    assert_eq!(error("a: [1").0, 1);
    assert_eq!(error("a:\n\tb: 1").0, 2);
    assert_eq!(error("a: .nan").3, "well-formed YAML");
    assert!(error("a: !foo 1").2.contains("tag"), "{}", error("a: !foo 1").2);
    assert!(error("? [1]\n: 2").2.contains("a field's name is a text"));
}

#[test]
fn a_bomb_is_refused_before_it_grows() {
    let bomb = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n";
    assert_eq!(error(bomb).2, "an anchor");
    for deep in ["[".repeat(100_000), "{a: ".repeat(100_000), "- ".repeat(100_000)] {
        let found = error(&deep).2; // by the parser, or by our budget
        assert!(found == "recursion limit exceeded" || found.contains("depth: 25"), "{found}");
    }
    let deep = format!("{}{}", "[".repeat(30), "]".repeat(30));
    assert_eq!(error(&deep).2, "more than a rule file may have (Depth { depth: 25 })");
}

#[test]
fn what_a_terminal_would_obey_is_not_shown() {
    assert_eq!(shown("a\u{1b}[31mb"), "a\u{fffd}[31mb");
    assert_eq!(shown(&"x".repeat(61)), format!("{}…", "x".repeat(60)));
}
