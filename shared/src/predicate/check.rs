//! What the evaluator relies on, checked when a Snapshot is opened.

use super::{ArchivedCheck, ArchivedTest, FAILS};
use crate::{
    definition::ValueKind,
    limits::{IN_VALUES_MAX, SEMVER_COMPARATORS_MAX, TESTS_MAX, TEXT_BYTES_MAX},
    snapshot::ArchivedAttribute,
    text_table,
};

/// Why archived predicate code is refused. The compiler makes none of these.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PredicateFault {
    /// More than `TESTS_MAX`.
    #[error("there are more than {TESTS_MAX} tests")]
    TooManyTests,
    /// A jump to itself, backwards, or past the end: evaluation might never end.
    #[error("jumps from test {test} to {target}, which is not forward")]
    Jump {
        /// Where from.
        test: usize,
        /// Where to.
        target: u16,
    },
    /// A Rule's Predicate begins past the end.
    #[error("begins at test {target}, which is not there")]
    Start {
        /// Where.
        target: u16,
    },
    /// The Objective has no such attribute.
    #[error("test {test} asks for an attribute that is not there")]
    Attribute {
        /// Which test.
        test: usize,
    },
    /// The check does not fit the attribute's type.
    #[error("test {test} does not fit its attribute, which is a {declared}")]
    WrongType {
        /// Which test.
        test: usize,
        /// What the Objective declares.
        declared: ValueKind,
    },
    /// Too long, not ascending, not finite, or an order of booleans.
    #[error("test {test} compares with what no test may")]
    Operand {
        /// Which test.
        test: usize,
    },
}

/// Everything that evaluating an Objective's tests relies on, wherever it begins.
pub(crate) fn check_tests(
    tests: &[ArchivedTest],
    context: &[ArchivedAttribute],
) -> Result<(), PredicateFault> {
    if tests.len() > TESTS_MAX {
        return Err(PredicateFault::TooManyTests);
    }
    for (place, test) in tests.iter().enumerate() {
        for target in [test.on_true.to_native(), test.on_false.to_native()] {
            let forward = (place + 1..tests.len()).contains(&usize::from(target));
            if target < FAILS && !forward {
                return Err(PredicateFault::Jump { test: place, target });
            }
        }
        test.check(place, context)?;
    }
    Ok(())
}

/// Where a Rule's Predicate begins.
pub(crate) fn check_start(tests: &[ArchivedTest], start: u16) -> Result<(), PredicateFault> {
    if start >= FAILS || usize::from(start) < tests.len() {
        Ok(())
    } else {
        Err(PredicateFault::Start { target: start })
    }
}

impl ArchivedTest {
    fn check(&self, test: usize, context: &[ArchivedAttribute]) -> Result<(), PredicateFault> {
        let attribute = context.get(self.attribute.get());
        let declared = attribute.ok_or(PredicateFault::Attribute { test })?.kind.to_native();
        if self.check.kind().is_some_and(|kind| kind != declared) {
            return Err(PredicateFault::WrongType { test, declared });
        }
        if self.check.operand_is_good() { Ok(()) } else { Err(PredicateFault::Operand { test }) }
    }
}

impl ArchivedCheck {
    /// The type that the attribute must have; `None`: any.
    const fn kind(&self) -> Option<ValueKind> {
        match self {
            Self::Exists => None,
            Self::Text(..) | Self::TextIn(_) | Self::Prefix(_) | Self::Version(_) => {
                Some(ValueKind::Text)
            }
            Self::Number(..) | Self::NumberIn(_) => Some(ValueKind::Number),
            Self::Boolean(_) | Self::AnyBoolean => Some(ValueKind::Boolean),
        }
    }

    fn operand_is_good(&self) -> bool {
        let short = |text: &str| text.len() <= TEXT_BYTES_MAX;
        match self {
            Self::Exists | Self::Boolean(_) | Self::AnyBoolean => true,
            Self::Text(_, text) | Self::Prefix(text) => short(text),
            Self::Number(_, number) => number.to_native().is_finite(),
            Self::TextIn(set) => {
                let count = set.texts.len();
                (1..=IN_VALUES_MAX).contains(&count)
                    && set.texts.iter().all(|text| short(text))
                    && text_table::is_sound(&set.table, count, |place| set.text_at(place))
            }
            Self::NumberIn(list) => {
                (1..=IN_VALUES_MAX).contains(&list.len())
                    && list.iter().all(|number| number.to_native().is_finite())
                    && list
                        .windows(2)
                        .all(|pair| matches!(pair, [a, b] if a.to_native() < b.to_native()))
            }
            Self::Version(range) => {
                range.comparators.len() <= SEMVER_COMPARATORS_MAX
                    && range.comparators.iter().all(|comparator| {
                        short(&comparator.pre)
                            && (comparator.minor.is_some() || comparator.patch.is_none())
                    })
            }
        }
    }
}
