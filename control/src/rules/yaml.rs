//! YAML text into trees that know where each value was written.
//!
//! Aliases, merge keys, includes and unknown tags are refused: a rule file says what it means where
//! it means it, and cannot grow while it is read.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Error, MergeKeyPolicy, Options, Spanned, budget::BudgetBreach};

/// Deepest nesting: the deepest field of a rule file is half of it.
const DEPTH_MAX: usize = 24;
/// Values of one file: 10 000 Objectives × 8 Rules take about 2 million.
const NODES_MAX: usize = 8_000_000;
/// Documents of one file.
const DOCUMENTS_MAX: usize = 200_000;

/// Where a value begins.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Mark {
    /// From 1.
    pub(crate) line: u64,
    /// From 1, in characters.
    pub(crate) column: u64,
    /// From 0, in bytes of the file.
    pub(crate) byte: usize,
    /// Bytes that it takes in the file.
    pub(crate) length: usize,
}

/// A value and where it was written.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// What.
    pub(crate) value: Value,
    /// Where.
    pub(crate) mark: Mark,
}

/// A field's name and where it was written.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    /// What.
    pub(crate) name: String,
    /// Where.
    pub(crate) mark: Mark,
}

/// A YAML value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// `null`, `~` or nothing.
    Null,
    /// `true` or `false`, nothing else.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// Another number, finite.
    Number(f64),
    /// A text.
    Text(String),
    /// A list.
    Sequence(Vec<Node>),
    /// Fields, no name twice.
    Mapping(Vec<(Key, Node)>),
}

/// Why a text is no YAML that this reader takes.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("found {found}, expected {expected}")]
pub(crate) struct YamlError {
    /// Where.
    pub(crate) mark: Mark,
    /// What stands there, in the parser's words.
    pub(crate) found: String,
    /// What should.
    pub(crate) expected: &'static str,
}

/// Reads all documents of a file; empty ones are left out.
///
/// # Errors
/// The first place where the text is no YAML, or breaks a limit.
pub(crate) fn documents(text: &str) -> Result<Vec<Node>, YamlError> {
    serde_saphyr::from_multiple_with_options(text, options()).map_err(|error| {
        let mark = error.location().map(mark_of).unwrap_or_default();
        let error = error.without_snippet();
        let (found, expected) = match error {
            Error::DuplicateMappingKey { key, .. } => {
                let key = key.as_deref().unwrap_or_default();
                (format!("the field `{}` again", shown(key)), "each field once")
            }
            Error::Budget { breach: BudgetBreach::Aliases { .. }, .. } => {
                ("an alias".to_owned(), "the value itself: aliases are not read here")
            }
            Error::Budget { breach: BudgetBreach::Anchors { .. }, .. } => {
                ("an anchor".to_owned(), "a plain value: anchors are not read here")
            }
            Error::Budget { breach, .. } => {
                (format!("more than a rule file may have ({breach:?})"), "a smaller file")
            }
            other => (in_one_line(&other.to_string()), "well-formed YAML"),
        };
        YamlError { mark, found, expected }
    })
}

/// The library's words without the place, which it puts behind them.
fn in_one_line(detail: &str) -> String {
    const CHARACTERS_MAX: usize = 200;
    let end = detail.rfind(" at line ").unwrap_or(detail.len());
    detail[..end].replace(char::is_control, " ").chars().take(CHARACTERS_MAX).collect()
}

fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_aliases: 0,
            max_anchors: 0,
            max_depth: DEPTH_MAX,
            max_nodes: NODES_MAX,
            max_events: 2 * NODES_MAX,
            max_documents: DOCUMENTS_MAX,
        },
        merge_keys: MergeKeyPolicy::Error,
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    }
}

fn mark_of(location: serde_saphyr::Location) -> Mark {
    let span = location.span();
    let bytes = |count: Option<u64>| count.and_then(|count| usize::try_from(count).ok());
    Mark {
        line: location.line(),
        column: location.column(),
        byte: bytes(span.byte_offset()).unwrap_or_default(),
        length: bytes(span.byte_len()).unwrap_or_default(),
    }
}

impl Node {
    /// The value under a path of field names and list positions; as far as the path goes.
    pub(crate) fn under(&self, path: &[&str]) -> &Self {
        let Some((step, rest)) = path.split_first() else { return self };
        let next = match &self.value {
            Value::Mapping(entries) => {
                entries.iter().find(|(key, _)| key.name == *step).map(|(_, node)| node)
            }
            Value::Sequence(items) => step.parse::<usize>().ok().and_then(|place| items.get(place)),
            _ => None,
        };
        next.map_or(self, |next| next.under(rest))
    }

    /// What it is, for people.
    pub(crate) fn describe(&self) -> String {
        match &self.value {
            Value::Null => "nothing".to_owned(),
            Value::Boolean(boolean) => format!("the boolean {boolean}"),
            Value::Integer(number) => format!("the number {number}"),
            Value::Number(number) => format!("the number {number}"),
            Value::Text(text) => format!("`{}`", shown(text)),
            Value::Sequence(items) => format!("a list of {}", items.len()),
            Value::Mapping(_) => "a mapping".to_owned(),
        }
    }
}

impl Key {
    /// The name, for people.
    pub(crate) fn shown(&self) -> String {
        shown(&self.name)
    }
}

/// At most a line of a text, without what a terminal would obey.
pub(crate) fn shown(text: &str) -> String {
    const CHARACTERS_MAX: usize = 60;
    let mut shown: String = text
        .chars()
        .take(CHARACTERS_MAX)
        .map(|character| if character.is_control() { '\u{fffd}' } else { character })
        .collect();
    if text.chars().nth(CHARACTERS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value>::deserialize(deserializer)?;
        Ok(Self { value: spanned.value, mark: mark_of(spanned.referenced) })
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Node { value, mark } = Node::deserialize(deserializer)?;
        match value {
            Value::Text(name) => Ok(Self { name, mark }),
            // `1: x`, `true: x`: no object has such a field, so its text tells enough.
            Value::Null => Ok(Self { name: "null".to_owned(), mark }),
            Value::Boolean(boolean) => Ok(Self { name: boolean.to_string(), mark }),
            Value::Integer(number) => Ok(Self { name: number.to_string(), mark }),
            Value::Number(number) => Ok(Self { name: number.to_string(), mark }),
            Value::Sequence(_) | Value::Mapping(_) => {
                Err(D::Error::custom("a field's name is a text"))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, boolean: bool) -> Result<Value, E> {
        Ok(Value::Boolean(boolean))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Integer(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        #[expect(clippy::cast_precision_loss, reason = "no field takes so large a number exactly")]
        Ok(i64::try_from(number).map_or(Value::Number(number as f64), Value::Integer))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Value, E> {
        if number.is_finite() {
            Ok(Value::Number(number))
        } else {
            Err(E::custom("no finite number"))
        }
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Value::Sequence(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Value::Mapping(entries))
    }
}

#[cfg(test)]
mod tests;
