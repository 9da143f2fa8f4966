//! The flat Predicates against the definition that they are compiled from.

use proptest::prelude::*;
use switchboard_shared::{
    context::{Context, Value},
    decide::{Reason, decide},
    definition::{
        self, Check, Comparison, Definition, Objective, Outcome, Predicate, Rule, ValueKind,
    },
    limits::{IN_VALUES_MAX, PREDICATE_DEPTH_MAX, PREDICATE_TESTS_MAX},
    predicate::{CompileError, compile},
};

use crate::sample;

/// The definition of what a Predicate means: Kleene's three-valued logic, `None` is unknown.
fn naive(predicate: &Predicate, values: &Values) -> Option<bool> {
    match predicate {
        Predicate::All(parts) => {
            let parts: Vec<_> = parts.iter().map(|part| naive(part, values)).collect();
            if parts.contains(&Some(false)) {
                Some(false)
            } else {
                (!parts.contains(&None)).then_some(true)
            }
        }
        Predicate::Any(parts) => {
            let parts: Vec<_> = parts.iter().map(|part| naive(part, values)).collect();
            if parts.contains(&Some(true)) {
                Some(true)
            } else {
                (!parts.contains(&None)).then_some(false)
            }
        }
        Predicate::Not(part) => naive(part, values).map(|answer| !answer),
        Predicate::Test { attribute, check } => {
            let value = values.get(attribute);
            if *check == Check::Exists {
                return Some(value.is_some());
            }
            naive_check(check, value?)
        }
    }
}

fn naive_check(check: &Check, found: &definition::Value) -> Option<bool> {
    use definition::Value::{Boolean, Number, Text};

    match (check, found) {
        (Check::Is(comparison, expected), found) => {
            let order = match (found, expected) {
                (Text(found), Text(expected)) => found.as_bytes().cmp(expected.as_bytes()),
                (Number(found), Number(expected)) => found.partial_cmp(expected)?,
                (Boolean(found), Boolean(expected)) => found.cmp(expected),
                _ => unreachable!("the generator keeps to the types"),
            };
            Some(match comparison {
                Comparison::Equal => order.is_eq(),
                Comparison::NotEqual => order.is_ne(),
                Comparison::Less => order.is_lt(),
                Comparison::LessOrEqual => order.is_le(),
                Comparison::Greater => order.is_gt(),
                Comparison::GreaterOrEqual => order.is_ge(),
            })
        }
        (Check::In(list), found) => Some(list.contains(found)),
        (Check::Prefix(prefix), Text(found)) => Some(found.starts_with(prefix.as_str())),
        (Check::Semver(range), Text(found)) => {
            let version = semver::Version::parse(found).ok()?;
            Some(semver::VersionReq::parse(range).expect("generated").matches(&version))
        }
        _ => unreachable!("the generator keeps to the types"),
    }
}

/// What a request carries.
#[derive(Clone, Debug)]
struct Values {
    user_id: Option<definition::Value>,
    age: Option<definition::Value>,
    beta: Option<definition::Value>,
    app_version: Option<definition::Value>,
}

const NAMES: [&str; 4] = ["user_id", "age", "beta", "app_version"];

impl Values {
    fn get(&self, name: &str) -> Option<&definition::Value> {
        match name {
            "user_id" => self.user_id.as_ref(),
            "age" => self.age.as_ref(),
            "beta" => self.beta.as_ref(),
            _ => self.app_version.as_ref(),
        }
    }
}

fn text() -> impl Strategy<Value = definition::Value> {
    prop_oneof![Just(""), Just("a"), Just("ab"), Just("abc"), Just("b"), Just("é"), Just("ab\u{0}")]
        .prop_map(|text| definition::Value::Text(text.to_owned()))
}

fn number() -> impl Strategy<Value = definition::Value> {
    prop_oneof![Just(0.0), Just(-0.0), Just(1.0), Just(1.5), Just(-1.0), Just(1e300)]
        .prop_map(definition::Value::Number)
}

fn boolean() -> impl Strategy<Value = definition::Value> {
    any::<bool>().prop_map(definition::Value::Boolean)
}

fn number_part() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..3_u64, 1 => Just(10), 1 => Just(u64::MAX)]
}

fn pre_release() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        6 => Just(""),
        1 => Just("-alpha"),
        1 => Just("-alpha.1"),
        1 => Just("-alpha.10"),
        1 => Just("-alpha.beta"),
        1 => Just("-0"),
        1 => Just("-a-very-long-pre-release.18446744073709551616"),
    ]
}

fn version() -> impl Strategy<Value = String> {
    let build = prop_oneof![3 => Just(""), 1 => Just("+build.01-x")];
    (number_part(), number_part(), number_part(), pre_release(), build).prop_map(
        |(major, minor, patch, pre, build)| format!("{major}.{minor}.{patch}{pre}{build}"),
    )
}

fn version_range() -> impl Strategy<Value = String> {
    let relation = prop_oneof![
        Just(""),
        Just("="),
        Just(">"),
        Just(">="),
        Just("<"),
        Just("<="),
        Just("~"),
        Just("^"),
    ];
    let rest = prop_oneof![
        Just(String::new()),
        number_part().prop_map(|minor| format!(".{minor}")),
        Just(".*".to_owned()),
        number_part().prop_map(|minor| format!(".{minor}.*")),
        (number_part(), number_part(), pre_release())
            .prop_map(|(minor, patch, pre)| format!(".{minor}.{patch}{pre}")),
    ];
    let comparator = (relation, number_part(), rest)
        .prop_map(|(relation, major, rest)| format!("{relation}{major}{rest}"));
    prop_oneof![
        1 => Just("*".to_owned()),
        20 => proptest::collection::vec(comparator, 1..4).prop_map(|all| all.join(", ")),
    ]
    .prop_filter("the crate reads it", |range| semver::VersionReq::parse(range).is_ok())
}

fn version_text() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => version(),
        1 => "[0-3]{1,2}(\\.[0-3x]{0,2}){0,3}(-[a0.+-]{0,3})?(\\+[a0.+-]{0,3})?",
        1 => Just("18446744073709551616.0.0".to_owned()),
    ]
}

fn values() -> impl Strategy<Value = Values> {
    let app_version = version_text().prop_map(definition::Value::Text);
    (
        proptest::option::of(text()),
        proptest::option::of(number()),
        proptest::option::of(boolean()),
        proptest::option::of(app_version),
    )
        .prop_map(|(user_id, age, beta, app_version)| Values {
            user_id,
            age,
            beta,
            app_version,
        })
}

fn comparison() -> impl Strategy<Value = Comparison> {
    prop_oneof![
        Just(Comparison::Equal),
        Just(Comparison::NotEqual),
        Just(Comparison::Less),
        Just(Comparison::LessOrEqual),
        Just(Comparison::Greater),
        Just(Comparison::GreaterOrEqual),
    ]
}

fn list(value: impl Strategy<Value = definition::Value>) -> impl Strategy<Value = Check> {
    proptest::collection::vec(value, 1..5).prop_map(Check::In)
}

fn leaf() -> impl Strategy<Value = Predicate> {
    let equality = prop_oneof![Just(Comparison::Equal), Just(Comparison::NotEqual)];
    let test = |name: &'static str| move |check| sample::test(name, check);
    let text_check = prop_oneof![
        (comparison(), text()).prop_map(|(comparison, text)| Check::Is(comparison, text)),
        list(text()),
        "[ab]{0,2}".prop_map(Check::Prefix),
    ];
    let number_check = prop_oneof![
        (comparison(), number()).prop_map(|(comparison, number)| Check::Is(comparison, number)),
        list(number()),
    ];
    let boolean_check = prop_oneof![
        (equality, boolean()).prop_map(|(comparison, boolean)| Check::Is(comparison, boolean)),
        list(boolean()),
    ];
    prop_oneof![
        proptest::sample::select(&NAMES[..]).prop_map(|name| sample::test(name, Check::Exists)),
        text_check.prop_map(test("user_id")),
        number_check.prop_map(test("age")),
        boolean_check.prop_map(test("beta")),
        version_range().prop_map(Check::Semver).prop_map(test("app_version")),
    ]
}

fn predicate() -> impl Strategy<Value = Predicate> {
    leaf().prop_recursive(5, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Predicate::All),
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Predicate::Any),
            inner.prop_map(|part| Predicate::Not(Box::new(part))),
        ]
    })
}

/// The sample, with one Objective of one Rule for each Predicate.
fn definition_of(predicates: &[Predicate]) -> Definition {
    let mut definition = sample::definition();
    let one = definition.objectives.remove(0);
    definition.objectives = predicates
        .iter()
        .enumerate()
        .map(|(number, predicate)| Objective {
            token: format!("OBJECTIVE_{number}"),
            rules: vec![Rule {
                name: "rule".to_owned(),
                when: Some(predicate.clone()),
                then: Outcome::Arm("heavy".to_owned()),
            }],
            ..one.clone()
        })
        .collect();
    definition
}

fn borrowed(value: &definition::Value) -> Value<'_> {
    match value {
        definition::Value::Text(text) => Value::Text(text),
        definition::Value::Number(number) => Value::Number(*number),
        definition::Value::Boolean(boolean) => Value::Boolean(*boolean),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_rule_holds_exactly_where_its_predicate_is_certainly_true(
        predicates in proptest::collection::vec(predicate(), 1..8),
        requests in proptest::collection::vec(values(), 1..8),
    ) {
        let snapshot = sample::open(&definition_of(&predicates));
        for (number, predicate) in predicates.iter().enumerate() {
            let token = format!("OBJECTIVE_{number}");
            let objective = snapshot.objective(token.as_bytes()).expect("it was built");
            for values in &requests {
                let mut context = Context::with_defaults(objective);
                for name in NAMES {
                    if let Some(value) = values.get(name) {
                        sample::set(&mut context, objective, name, borrowed(value));
                    }
                }
                let decision = decide(snapshot.payload(), objective, &context);
                let holds = naive(predicate, values) == Some(true);
                let expected = if holds { Reason::Rule } else { Reason::Default };
                prop_assert_eq!(decision.reason, expected, "{:?} of {:?}", predicate, values);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Many versions against many ranges: the matcher that borrows and the `semver` crate agree.
    #[test]
    fn a_version_is_in_a_range_exactly_where_the_semver_crate_says_so(
        ranges in proptest::collection::vec(version_range(), 1..12),
        versions in proptest::collection::vec(version_text(), 1..24),
    ) {
        let predicates: Vec<_> = ranges
            .iter()
            .flat_map(|range| {
                let test = sample::test("app_version", Check::Semver(range.clone()));
                [test.clone(), Predicate::Not(Box::new(test))]
            })
            .collect();
        let snapshot = sample::open(&definition_of(&predicates));
        for (number, range) in ranges.iter().enumerate() {
            for text in &versions {
                let holds = |number: usize| {
                    let token = format!("OBJECTIVE_{number}");
                    let objective = snapshot.objective(token.as_bytes()).expect("it was built");
                    let mut context = Context::with_defaults(objective);
                    sample::set(&mut context, objective, "app_version", Value::Text(text));
                    decide(snapshot.payload(), objective, &context).reason == Reason::Rule
                };
                let version = semver::Version::parse(text).ok();
                let range_read = semver::VersionReq::parse(range).expect("filtered");
                let expected = version.map(|version| range_read.matches(&version));
                prop_assert_eq!(holds(2 * number), expected == Some(true), "{} in {}", text, range);
                let negated = expected == Some(false);
                prop_assert_eq!(holds(2 * number + 1), negated, "not {} in {}", text, range);
            }
        }
    }
}

fn compile_error(predicate: &Predicate) -> CompileError {
    let context = &sample::definition().objectives[0].context;
    compile(predicate, context).map(drop).expect_err("it must not compile")
}

#[test]
fn what_does_not_fit_its_attribute_is_refused() {
    use definition::Value::{Boolean, Number, Text};

    let is = |value| Check::Is(Comparison::Less, value);
    for (attribute, check, expected) in [
        ("user", Check::Exists, "the context has no attribute `user`"),
        (
            "age",
            is(Text("7".to_owned())),
            "attribute `age` is a number, but the check is for a text",
        ),
        (
            "user_id",
            is(Number(7.0)),
            "attribute `user_id` is a text, but the check is for a number",
        ),
        (
            "user_id",
            Check::In(vec![Text(String::new()), Boolean(true)]),
            "attribute `user_id` is a text, but the check is for a boolean",
        ),
        (
            "age",
            Check::Prefix("1".to_owned()),
            "attribute `age` is a number, but the check is for a text",
        ),
        (
            "beta",
            Check::Semver("1".to_owned()),
            "attribute `beta` is a boolean, but the check is for a text",
        ),
        ("beta", is(Boolean(true)), "attribute `beta` is a boolean, which has no order"),
        (
            "age",
            is(Number(f64::NAN)),
            "attribute `age` is compared with a number that is not finite",
        ),
        (
            "age",
            Check::In(vec![Number(f64::INFINITY)]),
            "attribute `age` is compared with a number that is not finite",
        ),
        ("age", Check::In(Vec::new()), "attribute `age` is looked for in an empty list"),
        (
            "age",
            Check::In(vec![Number(0.0); IN_VALUES_MAX + 1]),
            "attribute `age` is looked for in a list of more than 10000 values",
        ),
        (
            "user_id",
            Check::Prefix("x".repeat(8_193)),
            "attribute `user_id` is compared with a text of more than 8192 bytes",
        ),
        (
            "user_id",
            Check::Semver("one".to_owned()),
            "attribute `user_id` is compared with what is no version range",
        ),
        (
            "user_id",
            Check::Semver(String::new()),
            "attribute `user_id` is compared with what is no version range",
        ),
    ] {
        assert_eq!(compile_error(&sample::test(attribute, check)).to_string(), expected);
    }
}

#[test]
fn nesting_is_bounded_before_the_compiler_descends() {
    let nested = |depth: usize| {
        (0..depth)
            .fold(sample::test("age", Check::Exists), |inner, _| Predicate::Not(Box::new(inner)))
    };
    let context = &sample::definition().objectives[0].context;
    assert!(compile(&nested(PREDICATE_DEPTH_MAX), context).is_ok());
    for depth in [PREDICATE_DEPTH_MAX + 1, 5_000] {
        assert!(matches!(compile_error(&nested(depth)), CompileError::TooDeep), "{depth}");
    }
}

#[test]
fn the_number_of_tests_is_bounded() {
    let many = |count| Predicate::Any(vec![sample::test("age", Check::Exists); count]);
    let context = &sample::definition().objectives[0].context;
    let compiled = compile(&many(PREDICATE_TESTS_MAX), context).map(|code| code.tests.len());
    assert_eq!(compiled.ok(), Some(PREDICATE_TESTS_MAX));
    assert!(matches!(compile_error(&many(PREDICATE_TESTS_MAX + 1)), CompileError::TooManyTests));
}

/// EX-04 and JS-05: a header's text is read as its type or refused, never guessed.
#[test]
fn a_text_is_read_as_its_attributes_type_or_refused() {
    let snapshot = sample::open(&sample::definition());
    let objective = snapshot.objective(b"RECOMMEND_HOME_FEED").expect("it was built");
    let attribute =
        |name: &str| objective.attributes().find(|(_, one)| one.name == name).expect("declared").1;
    let wrong = |expected: ValueKind| format!("is no {expected}");
    for (text, expected) in [
        ("0", Ok(0.0)),
        ("-1.5", Ok(-1.5)),
        ("1e3", Ok(1_000.0)),
        ("", Err(wrong(ValueKind::Number))),
        (" 1", Err(wrong(ValueKind::Number))),
        ("1,5", Err(wrong(ValueKind::Number))),
        ("0x10", Err(wrong(ValueKind::Number))),
        ("nan", Err(wrong(ValueKind::Number))),
        ("inf", Err(wrong(ValueKind::Number))),
        ("-infinity", Err(wrong(ValueKind::Number))),
        ("1e400", Err("is no finite number".to_owned())),
    ] {
        let found = attribute("age").parse_text(text).map_err(|error| error.to_string());
        assert_eq!(found, expected.map(Value::Number), "{text:?}");
    }
    for (text, expected) in [("true", Some(true)), ("false", Some(false))] {
        assert_eq!(attribute("beta").parse_text(text).ok(), expected.map(Value::Boolean));
    }
    for text in ["", "True", "1", "yes", "true "] {
        assert!(attribute("beta").parse_text(text).is_err(), "{text:?}");
    }
    let long = "x".repeat(8_193);
    assert!(attribute("user_id").parse_text(&long).is_err());
    assert!(attribute("user_id").parse_text(&long[1..]).is_ok());
    assert!(attribute("age").accept(Value::Text("1")).is_err());
    assert!(attribute("user_id").accept(Value::Number(1.0)).is_err());
    assert!(attribute("age").accept(Value::Number(f64::NAN)).is_err());
}
