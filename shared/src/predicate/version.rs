//! Semantic version ranges, matched without allocation.
//!
//! `semver::Version` allocates for a pre-release of more than eight bytes, so a request's version is
//! read in place. What matches is what `semver::VersionReq::matches` says; a property test holds
//! the two together.

#[cfg(test)]
mod tests;

use std::{cmp::Ordering, fmt};

use rkyv::{Archive, Serialize};
use semver::{Op, VersionReq};

/// A range: each comparator holds, and a pre-release is asked for by name.
#[derive(Archive, Clone, Debug, PartialEq, Serialize)]
pub struct VersionRange {
    /// At most `SEMVER_COMPARATORS_MAX`; none is `*`.
    pub comparators: Vec<Comparator>,
}

/// One side of a range.
#[derive(Archive, Clone, Debug, PartialEq, Serialize)]
pub struct Comparator {
    /// The relation.
    pub relation: Relation,
    /// Always written.
    pub major: u64,
    /// May be left out.
    pub minor: Option<u64>,
    /// May be left out; is, where the minor version is.
    pub patch: Option<u64>,
    /// After the `-`; empty where there is none.
    pub pre: String,
}

/// How a version stands to a comparator's.
#[derive(Archive, Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[rkyv(derive(Clone, Copy, Debug, Eq, PartialEq))]
pub enum Relation {
    /// `=1.2.3`, `1.2.*`
    Exact,
    /// `>1.2.3`
    Greater,
    /// `>=1.2.3`
    GreaterOrEqual,
    /// `<1.2.3`
    Less,
    /// `<=1.2.3`
    LessOrEqual,
    /// `~1.2.3`: only the patch may grow.
    Tilde,
    /// `^1.2.3`: compatible, nothing left of the first non-zero number may change.
    Caret,
}

impl From<&VersionReq> for VersionRange {
    fn from(range: &VersionReq) -> Self {
        let comparators = range.comparators.iter().map(|comparator| Comparator {
            relation: match comparator.op {
                Op::Greater => Relation::Greater,
                Op::GreaterEq => Relation::GreaterOrEqual,
                Op::Less => Relation::Less,
                Op::LessEq => Relation::LessOrEqual,
                Op::Tilde => Relation::Tilde,
                Op::Caret => Relation::Caret,
                // `=` and `*`. `Op` is open, but there is no other in the syntax.
                _ => Relation::Exact,
            },
            major: comparator.major,
            minor: comparator.minor,
            patch: comparator.patch,
            pre: comparator.pre.as_str().to_owned(),
        });
        Self { comparators: comparators.collect() }
    }
}

impl ArchivedVersionRange {
    /// Whether `text` is in the range; `None` where it is no semantic version.
    pub(super) fn contains(&self, text: &str) -> Option<bool> {
        let version = Version::read(text)?;
        let each_holds = self.comparators.iter().all(|comparator| comparator.holds(&version));
        // 1.2.3-alpha is in a range only where the range itself names a pre-release of 1.2.3.
        let asked_for = version.pre.is_empty()
            || self.comparators.iter().any(|comparator| comparator.names_pre_release_of(&version));
        Some(each_holds && asked_for)
    }
}

impl ArchivedComparator {
    fn holds(&self, version: &Version<'_>) -> bool {
        match self.relation {
            ArchivedRelation::Exact => self.order(version) == Some(Ordering::Equal),
            ArchivedRelation::Greater => self.order(version) == Some(Ordering::Greater),
            ArchivedRelation::Less => self.order(version) == Some(Ordering::Less),
            ArchivedRelation::GreaterOrEqual => {
                matches!(self.order(version), Some(Ordering::Greater | Ordering::Equal))
            }
            ArchivedRelation::LessOrEqual => {
                matches!(self.order(version), Some(Ordering::Less | Ordering::Equal))
            }
            ArchivedRelation::Tilde => {
                self.major == version.major
                    && self.has_same_minor(version)
                    && self.order(version).is_some_and(Ordering::is_ge)
            }
            ArchivedRelation::Caret => {
                let fixes_minor = self.major == 0 && self.minor.is_some();
                let fixes_patch = fixes_minor && self.minor.as_ref().is_some_and(|one| *one == 0);
                self.major == version.major
                    && (!fixes_minor || self.has_same_minor(version))
                    && (!fixes_patch || self.has_same_patch(version))
                    && self.order(version).is_none_or(Ordering::is_ge)
            }
        }
    }

    /// Also where the minor version was left out.
    fn has_same_minor(&self, version: &Version<'_>) -> bool {
        self.minor.as_ref().is_none_or(|minor| *minor == version.minor)
    }

    /// Also where the patch was left out.
    fn has_same_patch(&self, version: &Version<'_>) -> bool {
        self.patch.as_ref().is_none_or(|patch| *patch == version.patch)
    }

    /// How `version` stands to this one, over the numbers that are written; `None` where these are
    /// equal, but `version` is a pre-release and the rest was left out.
    fn order(&self, version: &Version<'_>) -> Option<Ordering> {
        let numbers = [
            (version.major, Some(self.major.to_native())),
            (version.minor, self.minor.as_ref().map(|minor| minor.to_native())),
            (version.patch, self.patch.as_ref().map(|patch| patch.to_native())),
        ];
        for (found, written) in numbers {
            let Some(written) = written else {
                return version.pre.is_empty().then_some(Ordering::Equal);
            };
            if found != written {
                return Some(found.cmp(&written));
            }
        }
        Some(compare_pre_releases(version.pre, &self.pre))
    }

    fn names_pre_release_of(&self, version: &Version<'_>) -> bool {
        self.major == version.major
            && self.minor.as_ref().is_some_and(|minor| *minor == version.minor)
            && self.patch.as_ref().is_some_and(|patch| *patch == version.patch)
            && !self.pre.is_empty()
    }
}

impl fmt::Display for ArchivedVersionRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.comparators.is_empty() {
            return formatter.write_str("*");
        }
        for (place, comparator) in self.comparators.iter().enumerate() {
            formatter.write_str(if place == 0 { "" } else { ", " })?;
            formatter.write_str(match comparator.relation {
                ArchivedRelation::Exact => "=",
                ArchivedRelation::Greater => ">",
                ArchivedRelation::GreaterOrEqual => ">=",
                ArchivedRelation::Less => "<",
                ArchivedRelation::LessOrEqual => "<=",
                ArchivedRelation::Tilde => "~",
                ArchivedRelation::Caret => "^",
            })?;
            write!(formatter, "{}", comparator.major)?;
            for number in
                [&comparator.minor, &comparator.patch].into_iter().filter_map(|n| n.as_ref())
            {
                write!(formatter, ".{number}")?;
            }
            if !comparator.pre.is_empty() {
                write!(formatter, "-{}", comparator.pre)?;
            }
        }
        Ok(())
    }
}

/// A semantic version (semver.org 2.0.0) that borrows its text. Build metadata is read, not kept:
/// it has no precedence.
struct Version<'a> {
    major: u64,
    minor: u64,
    patch: u64,
    pre: &'a str,
}

impl<'a> Version<'a> {
    /// In one pass: most versions of most requests are three numbers and nothing else.
    fn read(text: &'a str) -> Option<Self> {
        let (major, rest) = take_number(text)?;
        let (minor, rest) = take_number(rest.strip_prefix('.')?)?;
        let (patch, rest) = take_number(rest.strip_prefix('.')?)?;
        let version = Self { major, minor, patch, pre: "" };
        if rest.is_empty() {
            return Some(version);
        }
        let (pre, build) = match rest.split_once('+') {
            Some((pre, build)) => (pre, Some(build)),
            None => (rest, None),
        };
        if build.is_some_and(|build| !build.split('.').all(is_identifier)) {
            return None;
        }
        if pre.is_empty() {
            return Some(version);
        }
        let pre = pre.strip_prefix('-')?;
        pre.split('.').all(is_pre_release_part).then_some(Self { pre, ..version })
    }
}

/// Takes digits off the front: at least one, without a leading zero, and no more than fit.
fn take_number(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at_checked(digits)?;
    if digits == 0 || (digits > 1 && number.starts_with('0')) {
        return None;
    }
    let add = |sum: u64, digit: u8| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0'));
    number.bytes().try_fold(0, add).map(|number| (number, rest))
}

fn is_numeric(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn is_pre_release_part(text: &str) -> bool {
    is_identifier(text) && (!is_numeric(text) || text == "0" || !text.starts_with('0'))
}

/// Precedence (semver.org §11): without a pre-release is newer; numeric parts are older than others.
fn compare_pre_releases(one: &str, other: &str) -> Ordering {
    match (one.is_empty(), other.is_empty()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let mut others = other.split('.');
    for part in one.split('.') {
        let Some(other) = others.next() else { return Ordering::Greater };
        let order = match (is_numeric(part), is_numeric(other)) {
            // Without leading zeros, the longer number is the larger one, whatever its size.
            (true, true) => part.len().cmp(&other.len()).then_with(|| part.cmp(other)),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => part.cmp(other),
        };
        if order.is_ne() {
            return order;
        }
    }
    if others.next().is_some() { Ordering::Less } else { Ordering::Equal }
}
