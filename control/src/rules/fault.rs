//! What is wrong with rule files: where, what was found, what was expected.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where something was written.
#[derive(Clone, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, ToSchema)]
pub struct Place {
    /// The file as the caller named it, or `registry: KIND NAME` for what was stored before.
    pub file: String,
    /// From 1; 0 where the file has no such thing as a line.
    pub line: u64,
    /// From 1, in characters; 0 with line 0.
    pub column: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => formatter.write_str(&self.file),
            line => write!(formatter, "{}:{}:{}", self.file, line, self.column),
        }
    }
}

/// What sort of mistake it is: a stable label.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// No YAML, or YAML that this reader refuses (aliases, duplicate keys, too deep).
    Syntax,
    /// A value of another type than the field's.
    Type,
    /// A value of the right type that the field does not take.
    Value,
    /// A field that the object does not have.
    UnknownField,
    /// A field that the object needs.
    MissingField,
    /// The second object of the same kind and name.
    Duplicate,
    /// A name that refers to nothing.
    Dangling,
    /// Something that the design has and this build does not.
    Unsupported,
    /// A `when` that is no CEL, mistyped, or beyond the subset.
    Expression,
    /// More Slots than there are.
    Capacity,
    /// Larger, longer or more than a limit.
    Limit,
    /// A change of what may never change.
    Immutable,
}

/// One mistake in a rule file. All text is whole: `found …, expected …`.
#[derive(
    Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize, ToSchema, thiserror::Error,
)]
#[error("{place}: found {found}, expected {expected}")]
pub struct RuleFault {
    /// Where.
    pub place: Place,
    /// What sort.
    pub kind: FaultKind,
    /// What stands there.
    pub found: String,
    /// What should.
    pub expected: String,
}
