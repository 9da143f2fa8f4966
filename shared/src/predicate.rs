//! What a Rule asks of the Context, in the flat form that is evaluated in place.
//!
//! [`compile`] turns the nested [`crate::definition::Predicate`] into short-circuit code: one entry
//! per test, each with the entry to go on with where it passes and where it does not. Entries only
//! point forward, so evaluation is one bounded loop: no recursion, no stack, no allocation.
//!
//! **Why a missing attribute is simply false here.** By definition a test of an absent attribute is
//! unknown, and a Rule holds only where its Predicate is certainly true (Kleene). The compiler
//! pushes every negation down into the tests, so only `and` and `or` remain above them. Those two
//! are monotone: they give "true" with some inputs unknown exactly where they give "true" with these
//! inputs false. So a test that may be negated answers false both times where its attribute is
//! absent, and no third value has to be carried. `Exists` has no third value to begin with.

mod check;
mod compile;
mod version;

use std::fmt;

use rkyv::{Archive, Serialize};

pub(crate) use self::check::{check_start, check_tests};
pub use self::{
    check::PredicateFault,
    compile::{CompileError, compile},
    version::{ArchivedVersionRange, VersionRange},
};
use crate::{
    context::{Context, Value},
    definition::Comparison,
    limits::TESTS_MAX,
    snapshot::AttributeIndex,
    text_table::{self, Bucket},
};

/// Ends evaluation: the Predicate holds.
pub(crate) const HOLDS: u16 = 0xffff;
/// Ends evaluation: it does not.
pub(crate) const FAILS: u16 = 0xfffe;

/// The flat form of one Predicate, with targets of its own. An archived Objective has the tests of
/// all its Rules in one list.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicate {
    /// Where to begin: a test, `HOLDS` or `FAILS`.
    pub start: u16,
    /// In the order of evaluation.
    pub tests: Vec<Test>,
}

impl Predicate {
    /// Moves its tests to the end of `code`; returns where it begins there. `None`: no room, and
    /// `code` is as before.
    pub(crate) fn append_to(self, code: &mut Vec<Test>) -> Option<u16> {
        let before = u16::try_from(code.len()).ok()?;
        if code.len() + self.tests.len() > TESTS_MAX {
            return None;
        }
        let moved = |target: u16| if target >= FAILS { target } else { before + target };
        code.extend(self.tests.into_iter().map(|test| Test {
            on_true: moved(test.on_true),
            on_false: moved(test.on_false),
            ..test
        }));
        Some(moved(self.start))
    }
}

/// One check of one attribute, and where to go on.
#[derive(Archive, Clone, Debug, PartialEq, Serialize)]
pub struct Test {
    /// What is checked.
    pub attribute: AttributeIndex,
    /// Turns the answer round, unless the attribute is absent or no version.
    pub negated: bool,
    /// A later test, `HOLDS` or `FAILS`.
    pub on_true: u16,
    /// A later test, `HOLDS` or `FAILS`.
    pub on_false: u16,
    /// The check.
    pub check: Check,
}

/// A check of an attribute that is present; its type is the attribute's.
#[derive(Archive, Clone, Debug, PartialEq, Serialize)]
pub enum Check {
    /// It is present.
    Exists,
    /// Stands in this relation to a text, byte by byte.
    Text(Comparison, String),
    /// Stands in this relation to a number.
    Number(Comparison, f64),
    /// Equals a boolean.
    Boolean(bool),
    /// Is either boolean, so that only its absence matters.
    AnyBoolean,
    /// Is one of these texts.
    TextIn(TextSet),
    /// Is one of these numbers: ascending, distinct.
    NumberIn(Vec<f64>),
    /// Starts with this text.
    Prefix(String),
    /// Is a version in this range.
    Version(VersionRange),
}

/// Distinct texts, and the table that finds them.
#[derive(Archive, Clone, Debug, PartialEq, Serialize)]
pub struct TextSet {
    /// See [`crate::text_table`].
    pub table: Vec<Bucket>,
    /// At most `IN_VALUES_MAX`.
    pub texts: Vec<String>,
}

impl TextSet {
    /// The set of these texts, which must be distinct.
    pub fn new(texts: Vec<String>) -> Self {
        Self { table: text_table::build(texts.iter().map(String::as_str)), texts }
    }
}

impl ArchivedTextSet {
    fn contains(&self, text: &str) -> bool {
        text_table::find(&self.table, text.as_bytes(), |place| self.text_at(place)).is_some()
    }

    fn text_at(&self, place: usize) -> Option<&str> {
        self.texts.get(place).map(|text| text.as_str())
    }
}

/// Whether the Predicate that begins at `start` holds. `seen` is told each test as it is evaluated.
///
/// Hot path: at most `PREDICATE_TESTS_MAX` steps, no allocation.
pub(crate) fn holds<'a>(
    tests: &'a [ArchivedTest],
    start: u16,
    context: &Context<'_>,
    mut seen: impl FnMut(Evaluated<'a>),
) -> bool {
    let mut next = start;
    while let Some(test) = tests.get(usize::from(next)) {
        let passed = test.passes(context);
        seen(Evaluated { test, passed });
        next = if passed { test.on_true } else { test.on_false }.to_native();
    }
    next == HOLDS
}

/// A test that was evaluated.
#[derive(Clone, Copy)]
pub(crate) struct Evaluated<'a> {
    /// Which one.
    pub(crate) test: &'a ArchivedTest,
    /// Whether evaluation went on with `on_true`.
    pub(crate) passed: bool,
}

impl ArchivedTest {
    /// Whether the test passes: false where the attribute is absent, `Exists` apart.
    fn passes(&self, context: &Context<'_>) -> bool {
        let value = context.get(self.attribute.to_native());
        if let ArchivedCheck::Exists = self.check {
            return value.is_some() != self.negated;
        }
        let answer = value.and_then(|value| self.check.answer(value));
        answer.is_some_and(|answer| answer != self.negated)
    }
}

impl ArchivedCheck {
    /// `None`: unknown, as the value is no version.
    ///
    /// A value of another type cannot come here: `Context` takes only accepted values, and opening
    /// the Snapshot checks each test against its attribute. It would be unknown too.
    fn answer(&self, value: Value<'_>) -> Option<bool> {
        match (self, value) {
            (Self::Text(comparison, expected), Value::Text(found)) => {
                Some(comparison.to_native().holds(found, expected.as_str()))
            }
            (Self::Number(comparison, expected), Value::Number(found)) => {
                Some(comparison.to_native().holds(&found, &expected.to_native()))
            }
            (Self::Boolean(expected), Value::Boolean(found)) => Some(found == *expected),
            (Self::AnyBoolean, Value::Boolean(_)) => Some(true),
            (Self::TextIn(set), Value::Text(found)) => Some(set.contains(found)),
            (Self::NumberIn(list), Value::Number(found)) => {
                // Not `total_cmp`: 0.0 and -0.0 are one number here.
                let place = list.partition_point(|number| number.to_native() < found);
                Some(list.get(place).is_some_and(|number| number.to_native() == found))
            }
            (Self::Prefix(prefix), Value::Text(found)) => Some(found.starts_with(prefix.as_str())),
            (Self::Version(range), Value::Text(found)) => range.contains(found),
            (
                Self::Exists
                | Self::Text(..)
                | Self::Number(..)
                | Self::Boolean(_)
                | Self::AnyBoolean
                | Self::TextIn(_)
                | Self::NumberIn(_)
                | Self::Prefix(_)
                | Self::Version(_),
                Value::Text(_) | Value::Number(_) | Value::Boolean(_),
            ) => None,
        }
    }
}

impl Comparison {
    /// Whether `found` stands in this relation to `expected`.
    fn holds<T: PartialOrd + ?Sized>(self, found: &T, expected: &T) -> bool {
        match self {
            Self::Equal => found == expected,
            Self::NotEqual => found != expected,
            Self::Less => found < expected,
            Self::LessOrEqual => found <= expected,
            Self::Greater => found > expected,
            Self::GreaterOrEqual => found >= expected,
        }
    }
}

impl ArchivedTest {
    /// As a rule file would write it. Long lists are cut short.
    pub(crate) fn display<'a>(&'a self, attribute: &'a str) -> impl fmt::Display {
        Displayed { test: self, attribute }
    }
}

struct Displayed<'a> {
    test: &'a ArchivedTest,
    attribute: &'a str,
}

/// Values of an `in` list that are shown.
const SHOWN_VALUES_MAX: usize = 8;

impl fmt::Display for Displayed<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { test, attribute } = self;
        if test.negated {
            formatter.write_str("not ")?;
        }
        match &test.check {
            ArchivedCheck::Exists => write!(formatter, "has({attribute})"),
            ArchivedCheck::Text(comparison, text) => {
                write!(formatter, "{attribute} {} {:?}", comparison.to_native(), text.as_str())
            }
            ArchivedCheck::Number(comparison, number) => {
                write!(formatter, "{attribute} {} {number}", comparison.to_native())
            }
            ArchivedCheck::Boolean(boolean) => write!(formatter, "{attribute} == {boolean}"),
            ArchivedCheck::AnyBoolean => write!(formatter, "{attribute} in [false, true]"),
            ArchivedCheck::TextIn(set) => {
                write!(formatter, "{attribute} in ")?;
                write_list(formatter, set.texts.iter().map(|text| text.as_str()))
            }
            ArchivedCheck::NumberIn(list) => {
                write!(formatter, "{attribute} in ")?;
                write_list(formatter, list.iter().map(|number| number.to_native()))
            }
            ArchivedCheck::Prefix(prefix) => {
                write!(formatter, "{attribute}.startsWith({:?})", prefix.as_str())
            }
            ArchivedCheck::Version(range) => {
                write!(formatter, "semver({attribute}, \"{range}\")")
            }
        }
    }
}

fn write_list(
    formatter: &mut fmt::Formatter<'_>,
    mut values: impl ExactSizeIterator<Item = impl fmt::Debug>,
) -> fmt::Result {
    let mut list = formatter.debug_list();
    list.entries(values.by_ref().take(SHOWN_VALUES_MAX));
    if values.len() > 0 { list.finish_non_exhaustive() } else { list.finish() }
}
