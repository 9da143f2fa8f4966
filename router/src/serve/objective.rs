//! Which Objective a request names, and where.

use crate::http1::{HeaderKind, RequestView};

const HEADER: &[u8] = b"x-switchboard-objective";
const PATH_PREFIX: &[u8] = b"/v1/objectives/";
/// What an OpenAI client's `model` starts with.
pub const MODEL_PREFIX: &str = "objective/";

/// Where a request names its Objective, in order of precedence.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Named<'a> {
    /// By header.
    Header(&'a [u8]),
    /// By path; the model server gets the path behind the first `prefix_bytes`.
    Path {
        /// The token as it came.
        token: &'a [u8],
        /// What is cut off the path's front.
        prefix_bytes: usize,
    },
    /// By neither; the JSON body's `model` may.
    Perhaps,
}

/// Looks where no body is needed.
pub fn named<'a>(head: &RequestView<'a>) -> Named<'a> {
    if head.value(HeaderKind::Switchboard).is_some()
        && let Some(token) = head.header(HEADER)
    {
        return Named::Header(token);
    }
    let Some(rest) = head.path().strip_prefix(PATH_PREFIX) else { return Named::Perhaps };
    let token = rest.split(|byte| *byte == b'/').next().unwrap_or_default();
    Named::Path { token, prefix_bytes: PATH_PREFIX.len() + token.len() }
}
