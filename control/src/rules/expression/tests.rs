use cel::{Context as CelContext, ExecutionError, Value as CelValue};
use proptest::prelude::*;
use switchboard_shared::{
    context::{Context, Value as Found},
    decide::{Reason, decide},
    definition::{
        self, Arm, Balance, Definition, Endpoint, FactsInto, ModelVersion, Outcome, Rule, Shard,
        Source,
    },
    snapshot::{Expectations, SecretKey, Snapshot, SnapshotVersion, TrustedKeys, build},
};

use super::*;

/// `t`, `u`: string, `n`: number, `b`: bool.
fn context() -> BTreeMap<String, Attribute> {
    let attribute = |kind| Attribute { from: "query:x".to_owned(), kind, default: None };
    BTreeMap::from([
        ("t".to_owned(), attribute(ValueKind::String)),
        ("u".to_owned(), attribute(ValueKind::String)),
        ("n".to_owned(), attribute(ValueKind::Number)),
        ("b".to_owned(), attribute(ValueKind::Bool)),
    ])
}

fn test(attribute: &str, check: Check) -> Predicate {
    Predicate::Test { attribute: attribute.to_owned(), check }
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

#[test]
fn each_form_compiles_to_its_test() {
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    let number = Value::Number;
    for (when, expected) in [
        ("t == 'DE'", test("t", Check::Is(Equal, text("DE")))),
        ("'DE' != t", test("t", Check::Is(NotEqual, text("DE")))),
        ("n < 5", test("n", Check::Is(Less, number(5.0)))),
        ("5 < n", test("n", Check::Is(Greater, number(5.0)))),
        ("-5u != n || true", Predicate::Any(vec![])),
        ("-5 <= n", test("n", Check::Is(GreaterOrEqual, number(-5.0)))),
        ("n <= 2.5", test("n", Check::Is(LessOrEqual, number(2.5)))),
        ("n >= 1u", test("n", Check::Is(GreaterOrEqual, number(1.0)))),
        ("b", test("b", Check::Is(Equal, Value::Boolean(true)))),
        ("b == false", test("b", Check::Is(Equal, Value::Boolean(false)))),
        ("t in ['a', \"b\"]", test("t", Check::In(vec![text("a"), text("b")]))),
        ("t.startsWith('é')", test("t", Check::Prefix("é".to_owned()))),
        ("exists(n)", test("n", Check::Exists)),
        ("semver(t, '>=1.2, <2')", test("t", Check::Semver(">=1.2, <2".to_owned()))),
        ("fact.x in ['a']", test("fact.x", Check::In(vec![text("a")]))),
        ("2 < fact.x", test("fact.x", Check::Is(Greater, number(2.0)))),
        ("fact.x", test("fact.x", Check::Is(Equal, Value::Boolean(true)))),
        ("exists(fact.x)", test("fact.x", Check::Exists)),
        ("!b", Predicate::Not(Box::new(test("b", Check::Is(Equal, Value::Boolean(true)))))),
    ] {
        if when.ends_with("true") {
            assert!(compile(when, &context()).is_err(), "{when}");
        } else {
            assert_eq!(compile(when, &context()), Ok(expected), "{when}");
        }
    }
}

#[test]
fn chains_are_flat_however_long() {
    let when = vec!["b"; 100].join(" && ");
    let Ok(Predicate::All(parts)) = compile(&when, &context()) else { panic!("a chain of and") };
    assert_eq!(parts.len(), 100);
    let when = "b && n == 1 && (t == 'x' || b) && b";
    let Ok(Predicate::All(parts)) = compile(when, &context()) else { panic!("a chain of and") };
    assert!(matches!(parts.as_slice(), [_, _, Predicate::Any(_), _]));
}

/// Offset, found and expected of the first fault.
fn fault(when: &str) -> (usize, String, String) {
    let fault = compile(when, &context()).expect_err(when).remove(0);
    (fault.offset, fault.found, fault.expected)
}

#[test]
fn what_is_beyond_the_subset_is_refused_at_its_place() {
    for (when, offset, found) in [
        ("country == 'DE'", 0, "`country`"),
        ("b && t == 5", 10, "the number 5"),
        ("b && n == '5'", 10, "the text literal \"5\""),
        ("b && b < true", 7, "an order of `b`, which is a bool"),
        ("b && t", 5, "`t`, which is a string"),
        ("t == u", 2, "two attributes"),
        ("1 == 1", 0, "the number 1"),
        ("true", 0, "the literal true"),
        ("t in u", 5, "`u`"),
        ("t in []", 5, "a list of 0 values"),
        ("t in ['a', 1]", 11, "the number 1"),
        ("b ? b : b", 2, "the operator `? :`"),
        ("n + 1 == 2", 2, "the operator `+`"),
        ("b && t.matches('x')", 7, "the function `matches` with 1 arguments"),
        ("b && size(t) == 1", 5, "the function `size` with 1 arguments"),
        (
            "semver(t, '>=')",
            10,
            "`>=` (unexpected end of input while parsing major version number)",
        ),
        ("semver(n, '>1')", 7, "`n`, which is a number"),
        ("exists('t')", 7, "the text literal \"t\""),
        ("n == 9007199254740993", 5, "the number 9007199254740993"),
        ("t == null", 5, "null"),
        ("[1].exists(i, i == 1)", 10, "a macro over a list"),
        ("t.x == 'a'", 1, "a selection of `.x`"),
        ("t == b'x'", 5, "a bytes literal"),
    ] {
        let (found_offset, found_text, _) = fault(when);
        assert_eq!((found_offset, found_text.as_str()), (offset, found), "{when}");
    }
}

#[test]
fn what_is_no_cel_is_refused_at_its_place() {
    for (when, offset) in
        [("", 0), ("  ", 0), ("t ==", 4), ("t = 'x'", 2), ("(b", 2), ("b &&\n n ==", 10), ("in", 0)]
    {
        assert_eq!(fault(when).0, offset, "{when:?}");
    }
    let (_, found, expected) = fault("t = 'x'");
    assert_eq!(found, "what is no CEL (token recognition error at: '= ')");
    assert!(expected.contains("exists(x)"), "{expected}");
}

#[test]
fn every_mistake_of_a_condition_is_told() {
    let faults = compile("x == 1 && b && y == 2 || t == 3", &context()).expect_err("three faults");
    assert_eq!(faults.iter().map(|fault| fault.offset).collect::<Vec<_>>(), [0, 15, 30]);
}

#[test]
fn a_condition_that_is_too_long_too_deep_or_too_wide_is_refused() {
    let deep = format!("{}b{}", "(".repeat(20_000), ")".repeat(20_000));
    assert_eq!(fault(&deep).1, "deeper nesting");
    assert_eq!(fault(&"(".repeat(1_000)).0, 32);
    let negated = format!("{}b", "!(".repeat(1_000));
    assert_eq!(fault(&negated).1, "deeper nesting");
    let long = format!("t == '{}'", "x".repeat(WHEN_BYTES_MAX));
    assert_eq!(fault(&long).1, "a longer condition");
    let wide = vec!["b"; 257].join(" || ");
    assert_eq!(fault(&wide).1, "257 tests");
}

#[test]
fn nesting_up_to_the_limit_compiles() {
    let deep = format!("{}b{}", "!(".repeat(31), ")".repeat(31));
    assert!(compile(&deep, &context()).is_ok());
}

#[test]
fn an_in_list_may_be_as_long_as_a_snapshot_takes() {
    let list = |count: usize| {
        let names: Vec<_> = (0..count).map(|number| format!("'u{number}'")).collect();
        format!("t in [{}]", names.join(", "))
    };
    assert!(compile(&list(IN_VALUES_MAX), &context()).is_ok());
    assert_eq!(fault(&list(IN_VALUES_MAX + 1)).1, "a list of 10001 values");
}

/// A condition as rule files write it, and as CEL's own interpreter gets it.
#[derive(Clone, Debug)]
struct Pair {
    ours: String,
    cels: String,
}

/// What a request carries.
#[derive(Clone, Debug)]
struct Request {
    t: Option<String>,
    u: Option<String>,
    n: Option<f64>,
    b: Option<bool>,
}

fn words() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "a", "ab", "b", "é", "1.2.3", "2.0.0", "1.2.3-rc.1", "Z"])
        .prop_map(str::to_owned)
}

fn numbers() -> impl Strategy<Value = f64> {
    prop::sample::select(vec![-1.5, -1.0, 0.0, 0.5, 1.0, 2.0, 1e10])
}

fn requests() -> impl Strategy<Value = Request> {
    use prop::option::weighted;
    let texts = (weighted(0.8, words()), weighted(0.8, words()));
    (texts, weighted(0.8, numbers()), weighted(0.8, any::<bool>()))
        .prop_map(|((t, u), n, b)| Request { t, u, n, b })
}

fn leaf() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["t", "u"]);
    let relation = prop::sample::select(vec!["==", "!=", "<", "<=", ">", ">="]);
    let equality = prop::sample::select(vec!["==", "!="]);
    let range = prop::sample::select(vec![">=1.2, <2", "1.2", "*", ">1.2.2-rc"]);
    let name = move || name.clone();
    prop_oneof![
        (name(), relation.clone(), words()).prop_map(|(t, r, w)| format!("{t} {r} '{w}'")),
        (name(), relation.clone(), words()).prop_map(|(t, r, w)| format!("'{w}' {r} {t}")),
        (relation.clone(), numbers()).prop_map(|(r, n)| format!("n {r} {n:?}")),
        (relation, numbers()).prop_map(|(r, n)| format!("{n:?} {r} n")),
        (equality, any::<bool>()).prop_map(|(r, b)| format!("b {r} {b}")),
        Just("b".to_owned()),
        (name(), prop::collection::vec(words(), 1..4))
            .prop_map(|(t, words)| format!("{t} in ['{}']", words.join("', '"))),
        prop::collection::vec(numbers(), 1..4).prop_map(|numbers| format!("n in {numbers:?}")),
        (name(), words()).prop_map(|(t, w)| format!("{t}.startsWith('{w}')")),
        prop::sample::select(vec!["t", "u", "n", "b"]).prop_map(|name| format!("exists({name})")),
        (name(), range).prop_map(|(t, r)| format!("semver({t}, '{r}')")),
    ]
}

fn conditions() -> impl Strategy<Value = String> {
    leaf().prop_recursive(4, 24, 3, |inner| {
        let parts = prop::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            parts.clone().prop_map(|parts| format!("({})", parts.join(" && "))),
            parts.prop_map(|parts| format!("({})", parts.join(" || "))),
            inner.prop_map(|inner| format!("!({inner})")),
        ]
    })
}

/// Only `exists` asks whether a variable is there, which CEL itself cannot.
fn pair(ours: &str, request: &Request) -> Pair {
    let Request { t, u, n, b } = request;
    let present = [("t", t.is_some()), ("u", u.is_some()), ("n", n.is_some()), ("b", b.is_some())];
    let cels = present.iter().fold(ours.to_owned(), |condition, (name, present)| {
        condition.replace(&format!("exists({name})"), &present.to_string())
    });
    Pair { ours: ours.to_owned(), cels }
}

fn cel_holds(condition: &str, request: &Request) -> bool {
    let mut context = CelContext::default();
    let add = |context: &mut CelContext<'_, '_>, name: &str, value: Option<CelValue>| {
        if let Some(value) = value {
            context.add_variable_from_value(name, value);
        }
    };
    add(&mut context, "t", request.t.clone().map(CelValue::from));
    add(&mut context, "u", request.u.clone().map(CelValue::from));
    add(&mut context, "n", request.n.map(CelValue::from));
    add(&mut context, "b", request.b.map(CelValue::from));
    let semver = |text: std::sync::Arc<String>, range: std::sync::Arc<String>| {
        let error = |_| ExecutionError::function_error("semver", "no version");
        let version = semver::Version::parse(&text).map_err(error)?;
        let range = VersionReq::parse(&range).map_err(error)?;
        Ok::<bool, ExecutionError>(range.matches(&version))
    };
    context.add_function("semver", semver).expect("a name of our own");
    let program = Program::compile(condition).expect("a good condition");
    matches!(program.execute(&context), Ok(CelValue::Bool(true)))
}

/// The whole way that a request goes: compiled, built, signed, opened, decided.
fn ours_holds(condition: &str, request: &Request) -> bool {
    let predicate = compile(condition, &context()).expect("a good condition");
    let key = SecretKey::from_seed(&[7; 32]);
    let file = build(&definition(predicate), SnapshotVersion::FIRST, 0, &key).expect("buildable");
    let trusted = TrustedKeys::new([key.public()]).expect("one key");
    let snapshot =
        Snapshot::open(&file, &trusted, Expectations::of_group("test")).expect("what was built");
    let objective = snapshot.objective(b"O").expect("it was defined");
    let mut context = Context::with_defaults(objective);
    for (index, attribute) in objective.attributes() {
        let found = match attribute.name.as_str() {
            "t" => request.t.as_deref().map(Found::Text),
            "u" => request.u.as_deref().map(Found::Text),
            "n" => request.n.map(Found::Number),
            _ => request.b.map(Found::Boolean),
        };
        if let Some(found) = found {
            context.set(index, found);
        }
    }
    decide(snapshot.payload(), objective, &context).reason == Reason::Rule
}

fn definition(when: Predicate) -> Definition {
    let attribute = |name: &str, kind| definition::Attribute {
        name: name.to_owned(),
        source: Source::Query(name.to_owned()),
        kind,
        default: None,
    };
    let arm = |name: &str| Arm {
        name: name.to_owned(),
        model: "m@1".to_owned(),
        facts: Vec::new(),
        facts_into: FactsInto::default(),
        timeouts: definition::Timeouts::default(),
    };
    let rule =
        Rule { name: "r".to_owned(), when: Some(when), then: Outcome::Arm("hit".to_owned()) };
    Definition {
        group: "test".to_owned(),
        objectives: vec![definition::Objective {
            token: "O".to_owned(),
            context: vec![
                attribute("b", definition::ValueKind::Boolean),
                attribute("n", definition::ValueKind::Number),
                attribute("t", definition::ValueKind::Text),
                attribute("u", definition::ValueKind::Text),
            ],
            unit: None,
            default_arm: "miss".to_owned(),
            arms: vec![arm("hit"), arm("miss")],
            rules: vec![rule],
            idempotent: false,
            timeouts: definition::Timeouts::default(),
            body_bytes_max: None,
            shadow: Vec::new(),
        }],
        models: vec![ModelVersion {
            name: "m".to_owned(),
            version: "1".to_owned(),
            shard: "s".to_owned(),
            served_name: "m".to_owned(),
            path: None,
        }],
        shards: vec![Shard {
            name: "s".to_owned(),
            endpoints: vec![Endpoint { address: "127.0.0.1:1".to_owned(), weight: 1 }],
            balance: Balance::LeastInFlight,
        }],
        ..Definition::default()
    }
}

proptest! {
    #[test]
    fn a_condition_holds_where_cels_own_interpreter_says_true(
        condition in conditions(),
        request in requests(),
    ) {
        let pair = pair(&condition, &request);
        let (ours, cels) = (ours_holds(&pair.ours, &request), cel_holds(&pair.cels, &request));
        prop_assert_eq!(ours, cels, "{} with {:?}", condition, request);
    }

    #[test]
    fn no_text_whatever_breaks_the_compiler(condition in "[ -~é\n\"'()!&|=<>tunb.0-9\\[\\]]{0,60}") {
        match compile(&condition, &context()) {
            Ok(_) => {}
            Err(faults) => {
                prop_assert!(!faults.is_empty());
                let characters = condition.chars().count();
                prop_assert!(faults.iter().all(|fault| fault.offset <= characters));
            }
        }
    }
}
