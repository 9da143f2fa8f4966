//! Comparing two JSON documents, place by place.

use serde_json::Value;

use super::{Comparison, Difference, Reason, Tolerance, Verdict, excerpt};
use crate::shadow::limits::DIFFERENCES_MAX;

/// What does not count when two JSON documents are compared. The order of members and how a number is written never do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JsonRules {
    /// For numbers.
    pub tolerance: Tolerance,
    /// JSON Pointers of places that are not compared, with all below them; a segment `*` stands for any.
    pub ignored: Vec<String>,
}

impl JsonRules {
    /// Compares two documents.
    pub(super) fn compare(&self, primary: &Value, candidate: &Value) -> Comparison {
        let ignored = self.ignored.iter().map(|pointer| segments(pointer)).collect();
        let mut walk = Walk {
            tolerance: self.tolerance,
            ignored,
            place: Vec::new(),
            leaves: 0,
            distance: 0.0,
            differences: Vec::new(),
        };
        walk.compare(Some(primary), Some(candidate));
        if walk.distance == 0.0 {
            return Comparison::SAME;
        }
        Comparison {
            verdict: Verdict::Different,
            reason: Some(Reason::Values),
            distance: walk.distance / f64::from(walk.leaves.max(1)),
            differences: walk.differences,
        }
    }
}

/// The unescaped segments of a JSON Pointer.
fn segments(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|one| one.replace("~1", "/").replace("~0", "~")).collect()
}

struct Walk {
    tolerance: Tolerance,
    ignored: Vec<Vec<String>>,
    place: Vec<String>,
    leaves: u32,
    /// Sum over all leaves.
    distance: f64,
    differences: Vec<Difference>,
}

impl Walk {
    /// The parsed documents are at most 128 deep, and so is this.
    fn compare(&mut self, primary: Option<&Value>, candidate: Option<&Value>) {
        if self.ignored.iter().any(|ignored| self.is_at(ignored)) {
            return;
        }
        match (primary, candidate) {
            (Some(Value::Object(one)), Some(Value::Object(other))) => {
                for (name, value) in one {
                    self.at(name, Some(value), other.get(name));
                }
                for (name, value) in other.iter().filter(|(name, _)| !one.contains_key(*name)) {
                    self.at(name, None, Some(value));
                }
            }
            (Some(Value::Array(one)), Some(Value::Array(other))) => {
                for index in 0..one.len().max(other.len()) {
                    self.at(&index.to_string(), one.get(index), other.get(index));
                }
            }
            (primary, candidate) => self.leaf(primary, candidate),
        }
    }

    fn at(&mut self, segment: &str, primary: Option<&Value>, candidate: Option<&Value>) {
        self.place.push(segment.to_owned());
        self.compare(primary, candidate);
        self.place.pop();
    }

    fn is_at(&self, ignored: &[String]) -> bool {
        ignored.len() == self.place.len()
            && ignored.iter().zip(&self.place).all(|(one, other)| one == "*" || one == other)
    }

    fn leaf(&mut self, primary: Option<&Value>, candidate: Option<&Value>) {
        self.leaves = self.leaves.saturating_add(1);
        let apart = match (primary, candidate) {
            (Some(Value::Number(one)), Some(Value::Number(other))) => {
                self.tolerance.distance(one, other)
            }
            (one, other) => (one != other).then_some(1.0),
        };
        let Some(apart) = apart else { return };
        self.distance += apart;
        if self.differences.len() < DIFFERENCES_MAX {
            let escaped = |segment: &String| segment.replace('~', "~0").replace('/', "~1");
            let pointer: String =
                self.place.iter().map(|segment| format!("/{}", escaped(segment))).collect();
            let shown = |value: &Value| excerpt(&value.to_string());
            self.differences.push(Difference {
                pointer: excerpt(&pointer),
                primary: primary.map(shown),
                candidate: candidate.map(shown),
            });
        }
    }
}
