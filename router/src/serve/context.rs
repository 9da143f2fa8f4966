//! The Context of one request: only what its Objective declares, typed as declared.

use std::ops::Range;

use switchboard_shared::context::{Context, ContextError, Value};
use switchboard_shared::definition::ArchivedSource;
use switchboard_shared::limits::ATTRIBUTES_MAX;
use switchboard_shared::snapshot::{ArchivedAttribute, ArchivedObjective, AttributeIndex};

use super::json::{Document, Found, JsonError};
use crate::http1::RequestView;

/// Why a request's Context could not be read: the client's fault, always.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Unreadable {
    /// An attribute is not of its declared type.
    #[error("an attribute {fault}")]
    Attribute {
        /// Which one.
        index: AttributeIndex,
        /// What is wrong with it.
        fault: ContextError,
    },
    /// Not UTF-8, or a broken percent-encoding.
    #[error("an attribute's text is not UTF-8, or its percent-encoding is broken")]
    Encoding,
    /// The body.
    #[error("{0}")]
    Json(#[from] JsonError),
}

impl Unreadable {
    /// Stable label for answers and metrics.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Attribute { fault, .. } => fault.reason(),
            Self::Encoding => "attribute_encoding",
            Self::Json(error) => error.reason(),
        }
    }
}

/// Whether an Objective's Context needs the request's body.
pub fn needs_body(objective: &ArchivedObjective) -> bool {
    objective.context.iter().any(|attribute| matches!(attribute.source, ArchivedSource::Body(_)))
}

/// Reads the Context. `text` is space for decoded query parameters, reused from request to request.
///
/// # Errors
/// The first attribute that cannot be read: present with the wrong type is a fault, not a default.
pub fn read<'a>(
    objective: &'a ArchivedObjective,
    head: &RequestView<'a>,
    body: Option<&'a Document<'a>>,
    text: &'a mut Vec<u8>,
) -> Result<Context<'a>, Unreadable> {
    let places = decode_query(objective, head.query(), text)?;
    let text: &'a [u8] = text;
    let mut context = Context::with_defaults(objective);
    for (index, attribute) in objective.attributes() {
        let refused = |fault| Unreadable::Attribute { index, fault };
        let value = match &attribute.source {
            ArchivedSource::Header(name) => match head.header(name.as_bytes()) {
                Some(bytes) => Some(attribute.parse_text(utf8(bytes)?).map_err(refused)?),
                None => None,
            },
            ArchivedSource::Query(_) => match places.get(index.get()).cloned().flatten() {
                Some(place) => {
                    let bytes = text.get(place).unwrap_or_default();
                    Some(attribute.parse_text(utf8(bytes)?).map_err(refused)?)
                }
                None => None,
            },
            ArchivedSource::Body(pointer) => match body {
                Some(body) => value_of(body.find(pointer)?, attribute).map_err(refused)?,
                None => None,
            },
            // Not of the request: `serve::facts` sets these.
            ArchivedSource::Fact(_) => None,
        };
        if let Some(value) = value {
            context.set(index, value);
        }
    }
    Ok(context)
}

/// A JSON value as a Context value; `null` is the same as absent.
fn value_of<'a>(
    found: Option<Found<'a>>,
    attribute: &ArchivedAttribute,
) -> Result<Option<Value<'a>>, ContextError> {
    let value = match found {
        None | Some(Found::Null) => return Ok(None),
        Some(Found::Text(text, _)) => Value::Text(text),
        Some(Found::Number(number)) => Value::Number(number),
        Some(Found::Boolean(value)) => Value::Boolean(value),
        Some(Found::Container) => {
            return Err(ContextError::WrongType { expected: attribute.kind.to_native() });
        }
    };
    attribute.accept(value).map(Some)
}

fn utf8(bytes: &[u8]) -> Result<&str, Unreadable> {
    std::str::from_utf8(bytes).map_err(|_| Unreadable::Encoding)
}

type Places = [Option<Range<usize>>; ATTRIBUTES_MAX];

/// Decodes the declared query parameters into `text` and tells where each attribute's value stands. The
/// first of several parameters of one name counts.
fn decode_query(
    objective: &ArchivedObjective,
    query: Option<&[u8]>,
    text: &mut Vec<u8>,
) -> Result<Places, Unreadable> {
    text.clear();
    let mut places: Places = [const { None }; ATTRIBUTES_MAX];
    let Some(query) = query else { return Ok(places) };
    for pair in query.split(|byte| *byte == b'&') {
        let mut halves = pair.splitn(2, |byte| *byte == b'=');
        let (name, value) = (halves.next().unwrap_or_default(), halves.next().unwrap_or_default());
        for (index, attribute) in objective.attributes() {
            let ArchivedSource::Query(wanted) = &attribute.source else { continue };
            let Some(place) = places.get_mut(index.get()).filter(|place| place.is_none()) else {
                continue;
            };
            if wanted.as_bytes() == name {
                let start = text.len();
                percent_decode(value, text)?;
                *place = Some(start..text.len());
            }
        }
    }
    Ok(places)
}

/// `application/x-www-form-urlencoded` (WHATWG URL §5.1): `%41` and `+`.
fn percent_decode(value: &[u8], text: &mut Vec<u8>) -> Result<(), Unreadable> {
    let mut rest = value;
    while let [first, tail @ ..] = rest {
        rest = tail;
        match first {
            b'+' => text.push(b' '),
            b'%' => {
                let [high, low, tail @ ..] = rest else { return Err(Unreadable::Encoding) };
                rest = tail;
                text.push(hex(*high)? << 4 | hex(*low)?);
            }
            byte => text.push(*byte),
        }
    }
    Ok(())
}

fn hex(digit: u8) -> Result<u8, Unreadable> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        b'A'..=b'F' => Ok(digit - b'A' + 10),
        _ => Err(Unreadable::Encoding),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(value: &str) -> Option<String> {
        let mut text = Vec::new();
        percent_decode(value.as_bytes(), &mut text).ok()?;
        String::from_utf8(text).ok()
    }

    #[test]
    fn query_values_are_decoded_once() {
        assert_eq!(decoded("a%20b+c%2Bd").as_deref(), Some("a b c+d"));
        assert_eq!(decoded("%25%34%31").as_deref(), Some("%41"));
        assert_eq!(decoded("%C3%a9").as_deref(), Some("é"));
        for broken in ["%", "%4", "%zz", "a%4x"] {
            assert_eq!(decoded(broken), None, "{broken}");
        }
    }
}
