//! Comparing one value of two answers.

use serde_json::Value;

use super::{Comparison, Difference, JsonRules, Reason, Tolerance};

pub(super) fn compare(
    pointer: &str,
    tolerance: Tolerance,
    primary: &Value,
    candidate: &Value,
) -> Comparison {
    let Some(primary) = primary.pointer(pointer) else {
        return Comparison::impossible(Reason::PrimaryLacksField);
    };
    let Some(candidate) = candidate.pointer(pointer) else {
        return Comparison::different(Reason::CandidateLacksField);
    };
    let rules = JsonRules { tolerance, ignored: Vec::new() };
    let inner = rules.compare(primary, candidate);
    let placed =
        |one: Difference| Difference { pointer: format!("{pointer}{}", one.pointer), ..one };
    Comparison { differences: inner.differences.into_iter().map(placed).collect(), ..inner }
}
