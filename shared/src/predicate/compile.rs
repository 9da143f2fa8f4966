//! Compiles a nested Predicate into the flat form.

use semver::VersionReq;

use super::{Check, FAILS, HOLDS, Predicate, Test, TextSet, VersionRange};
use crate::{
    definition::{self, Attribute, Comparison, Value, ValueKind},
    limits::{
        IN_VALUES_MAX, PREDICATE_DEPTH_MAX, PREDICATE_TESTS_MAX, SEMVER_COMPARATORS_MAX,
        TEXT_BYTES_MAX,
    },
    snapshot::AttributeIndex,
};

/// Why a Predicate cannot be compiled. It is the rule author's fault.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The Objective declares no such attribute.
    #[error("the context has no attribute `{0}`")]
    UnknownAttribute(String),
    /// The check needs another type than the attribute has.
    #[error("attribute `{attribute}` is a {declared}, but the check is for a {checked}")]
    WrongType {
        /// Its name.
        attribute: String,
        /// What the Objective declares.
        declared: ValueKind,
        /// What the check is for.
        checked: ValueKind,
    },
    /// `<` and its kin of a boolean.
    #[error("attribute `{0}` is a boolean, which has no order")]
    NotOrdered(String),
    /// A number that is infinite or none.
    #[error("attribute `{0}` is compared with a number that is not finite")]
    NotFinite(String),
    /// `in` of nothing never holds; it is a mistake.
    #[error("attribute `{0}` is looked for in an empty list")]
    EmptyList(String),
    /// More than `IN_VALUES_MAX`.
    #[error("attribute `{0}` is looked for in a list of more than {IN_VALUES_MAX} values")]
    LongList(String),
    /// More than `TEXT_BYTES_MAX`.
    #[error("attribute `{0}` is compared with a text of more than {TEXT_BYTES_MAX} bytes")]
    LongText(String),
    /// Not what `semver::VersionReq` reads.
    #[error("attribute `{attribute}` is compared with what is no version range")]
    Range {
        /// Its name.
        attribute: String,
        /// What is wrong with the range.
        source: semver::Error,
    },
    /// More than `SEMVER_COMPARATORS_MAX`.
    #[error("attribute `{0}` is compared with more than {SEMVER_COMPARATORS_MAX} versions")]
    LongRange(String),
    /// Nested deeper than `PREDICATE_DEPTH_MAX`.
    #[error("nested deeper than {PREDICATE_DEPTH_MAX}")]
    TooDeep,
    /// More than `PREDICATE_TESTS_MAX`.
    #[error("more than {PREDICATE_TESTS_MAX} tests")]
    TooManyTests,
}

/// Compiles `predicate` against the attributes that its Objective declares.
///
/// # Errors
/// See [`CompileError`]; the first one that is met.
pub fn compile(
    predicate: &definition::Predicate,
    context: &[Attribute],
) -> Result<Predicate, CompileError> {
    let mut compiler = Compiler { context, backwards: Vec::new() };
    let start = compiler.node(
        predicate,
        Polarity::Plain,
        Targets { on_true: HOLDS, on_false: FAILS },
        0,
    )?;

    // The last test was emitted first; turning the list round makes every target point forward.
    let mut tests = compiler.backwards;
    tests.reverse();
    let count = u16::try_from(tests.len()).map_err(|_| CompileError::TooManyTests)?;
    let forward = |target: u16| if target >= FAILS { target } else { count - 1 - target };
    for test in &mut tests {
        test.on_true = forward(test.on_true);
        test.on_false = forward(test.on_false);
    }
    Ok(Predicate { start: forward(start), tests })
}

/// Where to go on.
#[derive(Clone, Copy)]
struct Targets {
    on_true: u16,
    on_false: u16,
}

/// Whether an answer has to be turned round.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Polarity {
    Plain,
    Negated,
}

impl Polarity {
    fn turned(self) -> Self {
        match self {
            Self::Plain => Self::Negated,
            Self::Negated => Self::Plain,
        }
    }
}

struct Compiler<'a> {
    context: &'a [Attribute],
    /// Tests from the last to the first: a test's targets exist before it does.
    backwards: Vec<Test>,
}

impl Compiler<'_> {
    /// Emits the code that goes on at one of `targets`; returns where it begins.
    ///
    /// `polarity` is the pushed-down negation: by De Morgan it turns "all" into "any" on the way.
    fn node(
        &mut self,
        predicate: &definition::Predicate,
        polarity: Polarity,
        targets: Targets,
        depth: usize,
    ) -> Result<u16, CompileError> {
        use definition::Predicate as Node;

        if depth > PREDICATE_DEPTH_MAX {
            return Err(CompileError::TooDeep);
        }
        let (parts, all) = match predicate {
            Node::Not(inner) => {
                return self.node(inner, polarity.turned(), targets, depth + 1);
            }
            Node::Test { attribute, check } => {
                return self.test(attribute, check, polarity, targets);
            }
            Node::All(parts) => (parts, polarity == Polarity::Plain),
            Node::Any(parts) => (parts, polarity == Polarity::Negated),
        };
        // Nothing at all: "all" holds, "any" does not.
        let mut start = if all { targets.on_true } else { targets.on_false };
        for part in parts.iter().rev() {
            let targets = if all {
                Targets { on_true: start, ..targets }
            } else {
                Targets { on_false: start, ..targets }
            };
            start = self.node(part, polarity, targets, depth + 1)?;
        }
        Ok(start)
    }

    fn test(
        &mut self,
        name: &str,
        check: &definition::Check,
        polarity: Polarity,
        targets: Targets,
    ) -> Result<u16, CompileError> {
        let unknown = || CompileError::UnknownAttribute(name.to_owned());
        let place = self.context.iter().position(|attribute| attribute.name == name);
        let place = place.ok_or_else(unknown)?;
        let declared = self.context.get(place).ok_or_else(unknown)?.kind;
        let attribute = AttributeIndex::new(place).ok_or_else(unknown)?;

        let (check, turned) = compile_check(name, declared, check)?;
        let Targets { on_true, on_false } = targets;
        let entry = self.backwards.len();
        if entry >= PREDICATE_TESTS_MAX {
            return Err(CompileError::TooManyTests);
        }
        self.backwards.push(Test {
            attribute,
            negated: polarity != turned,
            on_true,
            on_false,
            check,
        });
        u16::try_from(entry).map_err(|_| CompileError::TooManyTests)
    }
}

/// The flat check, and whether its answer has to be turned round.
fn compile_check(
    name: &str,
    declared: ValueKind,
    check: &definition::Check,
) -> Result<(Check, Polarity), CompileError> {
    use definition::Check as Written;

    let of_kind = |checked: ValueKind| {
        if checked == declared {
            Ok(())
        } else {
            Err(CompileError::WrongType { attribute: name.to_owned(), declared, checked })
        }
    };
    Ok(match check {
        Written::Exists => (Check::Exists, Polarity::Plain),
        Written::Is(comparison, value) => {
            of_kind(value.kind())?;
            compile_comparison(name, *comparison, value)?
        }
        Written::In(values) => {
            for value in values {
                of_kind(value.kind())?;
            }
            (compile_list(name, values)?, Polarity::Plain)
        }
        Written::Prefix(prefix) => {
            of_kind(ValueKind::Text)?;
            (Check::Prefix(short_text(name, prefix)?.to_owned()), Polarity::Plain)
        }
        Written::Semver(range) => {
            of_kind(ValueKind::Text)?;
            let range = VersionReq::parse(range)
                .map_err(|source| CompileError::Range { attribute: name.to_owned(), source })?;
            if range.comparators.len() > SEMVER_COMPARATORS_MAX {
                return Err(CompileError::LongRange(name.to_owned()));
            }
            (Check::Version(VersionRange::from(&range)), Polarity::Plain)
        }
    })
}

fn compile_comparison(
    name: &str,
    comparison: Comparison,
    value: &Value,
) -> Result<(Check, Polarity), CompileError> {
    Ok(match value {
        Value::Text(text) => {
            (Check::Text(comparison, short_text(name, text)?.to_owned()), Polarity::Plain)
        }
        Value::Number(number) => {
            (Check::Number(comparison, finite(name, *number)?), Polarity::Plain)
        }
        Value::Boolean(boolean) => match comparison {
            Comparison::Equal => (Check::Boolean(*boolean), Polarity::Plain),
            Comparison::NotEqual => (Check::Boolean(*boolean), Polarity::Negated),
            Comparison::Less
            | Comparison::LessOrEqual
            | Comparison::Greater
            | Comparison::GreaterOrEqual => return Err(CompileError::NotOrdered(name.to_owned())),
        },
    })
}

/// A list of one type, which the caller has checked; sorted for binary search.
fn compile_list(name: &str, values: &[Value]) -> Result<Check, CompileError> {
    if values.len() > IN_VALUES_MAX {
        return Err(CompileError::LongList(name.to_owned()));
    }
    let mut texts = Vec::new();
    let mut numbers = Vec::new();
    let mut booleans = Vec::new();
    for value in values {
        match value {
            Value::Text(text) => texts.push(short_text(name, text)?.to_owned()),
            Value::Number(number) => numbers.push(finite(name, *number)?),
            Value::Boolean(boolean) => booleans.push(*boolean),
        }
    }
    texts.sort_unstable();
    texts.dedup();
    numbers.sort_unstable_by(f64::total_cmp);
    numbers.dedup(); // -0.0 equals 0.0
    booleans.sort_unstable();
    booleans.dedup();
    match (texts.is_empty(), numbers.is_empty(), booleans.as_slice()) {
        (false, _, _) => Ok(Check::TextIn(TextSet::new(texts))),
        (_, false, _) => Ok(Check::NumberIn(numbers)),
        (_, _, [one]) => Ok(Check::Boolean(*one)),
        // Either of the two: the same as being present, but unknown where it is not.
        (_, _, [_, ..]) => Ok(Check::AnyBoolean),
        (true, true, []) => Err(CompileError::EmptyList(name.to_owned())),
    }
}

fn short_text<'a>(name: &str, text: &'a str) -> Result<&'a str, CompileError> {
    if text.len() <= TEXT_BYTES_MAX {
        Ok(text)
    } else {
        Err(CompileError::LongText(name.to_owned()))
    }
}

fn finite(name: &str, number: f64) -> Result<f64, CompileError> {
    if number.is_finite() { Ok(number) } else { Err(CompileError::NotFinite(name.to_owned())) }
}
