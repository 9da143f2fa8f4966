//! The Facts of one request as its model server gets them.

use std::ops::Range;

use arrayvec::ArrayVec;
use switchboard_shared::decide::Reason;
use switchboard_shared::definition::{ArchivedFactsObject, ArchivedValue, FactKind};
use switchboard_shared::limits::FACTS_PER_ARM_MAX;
use switchboard_shared::snapshot::{ArchivedFact, FactIndex};

use crate::facts::Asked;
use crate::facts::lookup::{Answer, Cut};
use crate::facts::resp::ErrorClass;
use crate::facts::value::{self, Typed};
use crate::limits::FACTS_SERVED_BYTES_MAX;

/// One request's Facts, and what they change in it. Reused from request to request.
#[derive(Debug, Default)]
pub struct Served {
    text: Vec<u8>,
    items: ArrayVec<Item, FACTS_PER_ARM_MAX>,
    edits: ArrayVec<(Range<usize>, Range<usize>), EDITS_MAX>,
    lines: Vec<u8>,
    defaults: usize,
}

/// One value for each Fact that the client wrote itself, and one place for all others.
const EDITS_MAX: usize = FACTS_PER_ARM_MAX + 1;

/// A Fact with its value.
#[derive(Clone, Debug)]
pub struct Item {
    /// Which one, of the Snapshot.
    pub fact: FactIndex,
    /// Its type.
    pub kind: FactKind,
    /// The value's text, without quotes.
    plain: Range<usize>,
    /// The same as JSON.
    literal: Range<usize>,
}

/// A place in the body, and what takes it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Edit<'a> {
    /// Where it begins.
    pub start: usize,
    /// Where it ends; an insertion ends where it begins.
    pub end: usize,
    /// What takes it.
    pub text: &'a [u8],
}

impl Served {
    /// Forgets all of it; the room stays.
    pub fn clear(&mut self) {
        self.text.clear();
        self.items.clear();
        self.edits.clear();
        self.lines.clear();
        self.defaults = 0;
    }

    /// Whether it holds more room than is worth keeping.
    pub fn has_grown(&self) -> bool {
        self.text.capacity() > FACTS_SERVED_BYTES_MAX
    }

    /// Takes the answer to the question of a Fact, the one at `place` of what was asked.
    ///
    /// # Errors
    /// Why its Arm cannot have it.
    pub fn take(
        &mut self,
        (index, fact): (FactIndex, &ArchivedFact),
        asked: &Asked,
        place: usize,
    ) -> Result<(), Reason> {
        let lookup = match asked {
            Asked::Lookup(lookup) => lookup,
            Asked::NoUnit => return self.take_default((index, fact), Reason::FactsMissing),
            Asked::Unavailable => return Err(Reason::FactsUnavailable),
        };
        let values = lookup.values();
        match values.get(place) {
            (Answer::Found(_), bytes) => {
                let kind = fact.kind.to_native();
                let typed = value::typed(kind, bytes).ok_or(Reason::FactsWrongType)?;
                self.push(index, kind, typed);
                Ok(())
            }
            (Answer::Absent, _) => self.take_default((index, fact), Reason::FactsMissing),
            (Answer::Unfit | Answer::Failed(ErrorClass::WrongType), _) => {
                Err(Reason::FactsWrongType)
            }
            (
                Answer::Failed(
                    ErrorClass::Busy | ErrorClass::Denied | ErrorClass::Moved | ErrorClass::Other,
                ),
                _,
            ) => Err(Reason::FactsFailed),
            (Answer::Awaited, _) => Err(match values.cut() {
                Some(Cut::Lost) => Reason::FactsUnavailable,
                Some(Cut::Late) | None => Reason::FactsLate,
            }),
        }
    }

    /// Takes a Fact's default.
    ///
    /// # Errors
    /// `reason`, if it has none.
    pub fn take_default(
        &mut self,
        (index, fact): (FactIndex, &ArchivedFact),
        reason: Reason,
    ) -> Result<(), Reason> {
        let default = fact.default.as_ref().ok_or(reason)?;
        let kind = fact.kind.to_native();
        self.defaults += 1;
        match (kind, default) {
            (FactKind::Json, ArchivedValue::Text(text)) => {
                self.push(index, kind, Typed::Json(text))
            }
            (_, ArchivedValue::Text(text)) => self.push(index, kind, Typed::Text(text)),
            (_, ArchivedValue::Boolean(value)) => self.push(index, kind, Typed::Boolean(*value)),
            (_, ArchivedValue::Number(number)) => {
                let start = self.text.len();
                write_number(&mut self.text, number.to_native());
                self.push_item(index, kind, start..self.text.len(), start..self.text.len());
            }
        }
        Ok(())
    }

    fn push(&mut self, fact: FactIndex, kind: FactKind, value: Typed<'_>) {
        let start = self.text.len();
        value.write_plain(&mut self.text);
        let plain = start..self.text.len();
        let literal = match value {
            Typed::Text(_) => {
                value.write_json(&mut self.text);
                plain.end..self.text.len()
            }
            Typed::Number(..) | Typed::Boolean(_) | Typed::Json(_) => plain.clone(),
        };
        self.push_item(fact, kind, plain, literal);
    }

    fn push_item(
        &mut self,
        fact: FactIndex,
        kind: FactKind,
        plain: Range<usize>,
        literal: Range<usize>,
    ) {
        let pushed = self.items.try_push(Item { fact, kind, plain, literal });
        debug_assert!(pushed.is_ok(), "an Arm has at most FACTS_PER_ARM_MAX");
    }

    /// The Facts as they are served, each with the JSON literal of its value: what a shadow record holds.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (FactIndex, &[u8])> {
        self.items
            .iter()
            .map(|item| (item.fact, self.text.get(item.literal.clone()).unwrap_or_default()))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Whether a default stands in for some.
    pub fn has_defaults(&self) -> bool {
        self.defaults > 0
    }

    /// What changes in the body, by place, and disjoint.
    pub fn edits(&self) -> impl Iterator<Item = Edit<'_>> {
        self.edits.iter().map(|(place, text)| Edit {
            start: place.start,
            end: place.end,
            text: self.text.get(text.clone()).unwrap_or_default(),
        })
    }

    /// The header lines for the model server, each with its CR LF.
    pub fn lines(&self) -> &[u8] {
        &self.lines
    }

    /// The Fact at `place`.
    pub(super) fn item(&self, place: usize) -> Option<&Item> {
        self.items.get(place)
    }

    /// Where the next text will begin.
    pub(super) fn mark(&self) -> usize {
        self.text.len()
    }

    /// Appends bytes to the text that is being put together.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.text.extend_from_slice(bytes);
    }

    /// Appends a name as JSON writes it, from a token of a JSON Pointer.
    pub(super) fn append_name(&mut self, token: &str) {
        let mut characters = token.chars();
        let decoded = std::iter::from_fn(|| match characters.next()? {
            '~' if characters.next() == Some('1') => Some('/'),
            other => Some(other), // `~0`, of which the `0` was taken, is `~`
        });
        value::write_text(&mut self.text, decoded);
    }

    /// Appends the value of the Fact at `place`; as a text if it has to be one there.
    pub(super) fn append_value(&mut self, place: usize, into: &ArchivedFactsObject) {
        let Some(Item { kind, literal, .. }) = self.items.get(place) else { return };
        let (kind, literal) = (*kind, literal.clone());
        match kind {
            FactKind::Number | FactKind::Boolean if into.as_text => {
                self.text.push(b'"');
                self.text.extend_from_within(literal);
                self.text.push(b'"');
            }
            FactKind::Json if into.as_text => {
                // Not on the usual way: a JSON Fact in OpenAI's `metadata` is a text with JSON in it.
                let json = String::from_utf8_lossy(self.text.get(literal).unwrap_or_default());
                let json = json.into_owned();
                value::write_text(&mut self.text, json.chars());
            }
            _ => self.text.extend_from_within(literal),
        }
    }

    /// What was appended since `mark` takes this place of the body.
    pub(super) fn edit(&mut self, place: Range<usize>, mark: usize) {
        let text = mark..self.text.len();
        let at = self.edits.iter().position(|(other, _)| other.start > place.start);
        let pushed = self.edits.try_insert(at.unwrap_or(self.edits.len()), (place, text));
        debug_assert!(pushed.is_ok(), "one edit for each Fact, and one more");
    }

    /// Adds a header line for the model server with the Fact at `place`. `false`: the value cannot be one, or the
    /// lines are too many bytes.
    pub(super) fn push_line(&mut self, name: &str, place: usize, bytes_max: usize) -> bool {
        let Some(item) = self.items.get(place) else { return false };
        let value = self.text.get(item.plain.clone()).unwrap_or_default();
        let is_good = crate::http1::FieldValue::new(value).is_ok();
        let start = self.lines.len();
        self.lines.extend_from_slice(b"x-switchboard-fact-");
        self.lines.extend(name.bytes().map(|byte| if byte == b'_' { b'-' } else { byte }));
        self.lines.extend_from_slice(b": ");
        self.lines.extend_from_slice(value);
        self.lines.extend_from_slice(b"\r\n");
        let fits = is_good && self.lines.len() <= bytes_max;
        if !fits {
            self.lines.truncate(start);
        }
        fits
    }
}

/// Appends a default's number: whole ones without a fraction, as their author wrote them.
fn write_number(out: &mut Vec<u8>, number: f64) {
    // The shortest text that reads back as the same double; it allocates nothing.
    let written = serde_json::to_writer(&mut *out, &number);
    debug_assert!(written.is_ok(), "writing into a vector cannot fail");
    if out.ends_with(b".0") {
        out.truncate(out.len() - 2);
    }
}
