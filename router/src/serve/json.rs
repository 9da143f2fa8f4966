//! Reading single members of a JSON body, and where they stand in it. The body itself is never changed.
//!
//! simd-json writes into its input, so it gets a scratch copy; positions in the copy are positions in the
//! body. No value tree is built, and nothing is allocated once the scratch has grown to the usual size.

pub mod place;

use std::ops::Range;

use arrayvec::ArrayVec;
use simd_json::{Buffers, Node, StaticNode, Tape};

use crate::limits::{JSON_DEPTH_MAX, JSON_NUMBERS_BEYOND_MAX, JSON_SCRATCH_BYTES_MAX};

/// Why a body could not be read as JSON.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum JsonError {
    /// Not JSON (RFC 8259).
    #[error("the body is not JSON at byte {offset}")]
    Malformed {
        /// Where in the body the fault was found, in bytes.
        offset: usize,
    },
    /// More than [`JSON_DEPTH_MAX`] containers inside each other.
    #[error("the body nests deeper than {JSON_DEPTH_MAX}")]
    TooDeep,
    /// A member that the router reads stands there twice: readers would disagree which one holds.
    #[error("the body has a member twice that decides the route")]
    DuplicateMember,
}

impl JsonError {
    /// Stable label for answers and metrics.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Malformed { .. } => "json_malformed",
            Self::TooDeep => "json_too_deep",
            Self::DuplicateMember => "json_duplicate_member",
        }
    }
}

/// What stands at a JSON Pointer.
#[derive(Clone, Debug, PartialEq)]
pub enum Found<'a> {
    /// `null`
    Null,
    /// A string: its value, and its literal's place in the body, quotes included.
    Text(&'a str, Range<usize>),
    /// A number.
    Number(f64),
    /// `true` or `false`
    Boolean(bool),
    /// An object or array.
    Container,
}

/// Space that is reused from body to body.
pub struct JsonScratch {
    copy: Vec<u8>,
    buffers: Buffers,
    tape: Tape<'static>,
}

impl Default for JsonScratch {
    fn default() -> Self {
        Self { copy: Vec::new(), buffers: Buffers::default(), tape: Tape(Vec::new()) }
    }
}

impl JsonScratch {
    /// Parses `body` and hands it to `read`.
    ///
    /// # Errors
    /// `Malformed` or `TooDeep`; `read` was not called then.
    pub fn read<T>(
        &mut self,
        body: &[u8],
        read: impl FnOnce(&Document<'_>) -> T,
    ) -> Result<T, JsonError> {
        let mut beyond = ArrayVec::new();
        let mut tape = std::mem::replace(&mut self.tape, Tape(Vec::new())).reset();
        let outcome = loop {
            self.copy.clear();
            self.copy.extend_from_slice(body);
            blank(&mut self.copy, &beyond);
            let start = self.copy.as_ptr().addr();
            match simd_json::fill_tape(&mut self.copy, &mut self.buffers, &mut tape) {
                Ok(()) => {
                    let document = Document { nodes: &tape.0, start, body }.checked();
                    break document.map(|document| read(&document));
                }
                Err(error) => {
                    tape = tape.reset();
                    let offset = error.index().min(body.len());
                    let number = number_beyond_a_double(body, offset);
                    if number.is_none_or(|place| beyond.try_push(place).is_err()) {
                        break Err(JsonError::Malformed { offset: fault_place(body, offset) });
                    }
                }
            }
        };
        self.tape = tape.reset();
        outcome
    }

    /// Whether a huge body left more than is worth keeping.
    #[must_use]
    pub fn has_grown(&self) -> bool {
        self.copy.capacity() > JSON_SCRATCH_BYTES_MAX
    }
}

/// A parsed body.
pub struct Document<'a> {
    nodes: &'a [Node<'a>],
    start: usize,
    body: &'a [u8],
}

impl<'a> Document<'a> {
    fn checked(self) -> Result<Self, JsonError> {
        let mut ends = ArrayVec::<usize, JSON_DEPTH_MAX>::new();
        for (place, node) in self.nodes.iter().enumerate() {
            while ends.last().is_some_and(|end| place >= *end) {
                ends.pop();
            }
            if let Node::Object { count, .. } | Node::Array { count, .. } = node {
                ends.try_push(place + 1 + count).map_err(|_| JsonError::TooDeep)?;
            }
        }
        Ok(self)
    }

    /// What stands at a JSON Pointer (RFC 6901) of at least one token; `None` if nothing does.
    ///
    /// # Errors
    /// `DuplicateMember`, at any level on the way.
    pub fn find(&self, pointer: &str) -> Result<Option<Found<'a>>, JsonError> {
        let mut place = 0;
        for token in pointer.split('/').skip(1) {
            let Some(below) = self.step(place, token)? else { return Ok(None) };
            place = below;
        }
        Ok(self.nodes.get(place).map(|node| self.found(node)))
    }

    fn step(&self, place: usize, token: &str) -> Result<Option<usize>, JsonError> {
        match self.nodes.get(place) {
            Some(Node::Object { len, .. }) => self.member(place, *len, token),
            Some(Node::Array { len, .. }) => Ok(self.element(place, *len, token)),
            _ => Ok(None),
        }
    }

    fn member(&self, object: usize, len: usize, token: &str) -> Result<Option<usize>, JsonError> {
        let mut found = None;
        let mut place = object + 1;
        for _ in 0..len {
            let Some(Node::String(name)) = self.nodes.get(place) else { break };
            if is_token(token, name) && found.replace(place + 1).is_some() {
                return Err(JsonError::DuplicateMember);
            }
            place = self.behind(place + 1);
        }
        Ok(found)
    }

    fn element(&self, array: usize, len: usize, token: &str) -> Option<usize> {
        let is_index = token == "0" || !token.starts_with('0');
        let index: usize = token.parse().ok().filter(|index| is_index && *index < len)?;
        (0..index).try_fold(array + 1, |place, _| Some(self.behind(place)))
    }

    /// The place behind a value with all that it contains.
    fn behind(&self, place: usize) -> usize {
        match self.nodes.get(place) {
            Some(Node::Object { count, .. } | Node::Array { count, .. }) => place + 1 + count,
            _ => place + 1,
        }
    }

    fn found(&self, node: &Node<'a>) -> Found<'a> {
        match node {
            Node::String(text) => Found::Text(text, self.literal(text)),
            Node::Object { .. } | Node::Array { .. } => Found::Container,
            Node::Static(StaticNode::Null) => Found::Null,
            Node::Static(StaticNode::Bool(value)) => Found::Boolean(*value),
            Node::Static(StaticNode::F64(number)) => Found::Number(*number),
            #[expect(clippy::cast_precision_loss, reason = "a JSON number is read as a double")]
            Node::Static(StaticNode::I64(number)) => Found::Number(*number as f64),
            #[expect(clippy::cast_precision_loss, reason = "a JSON number is read as a double")]
            Node::Static(StaticNode::U64(number)) => Found::Number(*number as f64),
        }
    }

    /// Where a string's literal stands in the body. simd-json unescapes a string where it stands, so
    /// its first byte is right behind the opening quote; the closing one is looked for.
    fn literal(&self, text: &str) -> Range<usize> {
        let first = text.as_ptr().addr().saturating_sub(self.start);
        let mut end = first;
        while let Some(byte) = self.body.get(end) {
            match byte {
                b'"' => return first.saturating_sub(1)..end + 1,
                b'\\' => end += 2,
                _ => end += 1,
            }
        }
        0..0
    }
}

/// Numbers that no double holds, such as `1e400`: JSON, but more than simd-json reads.
type Beyond = ArrayVec<Range<usize>, JSON_NUMBERS_BEYOND_MAX>;

/// Puts `[]` in each number's place: for a member that the router reads that is a wrong type, and others it
/// does not look at.
fn blank(copy: &mut [u8], numbers: &Beyond) {
    for number in numbers {
        if let Some([first, second, rest @ ..]) = copy.get_mut(number.clone()) {
            (*first, *second) = (b'[', b']');
            rest.fill(b' ');
        }
    }
}

/// Where a body stops being JSON. simd-json tells the start of the token or container that it was in;
/// serde_json, which reads a body again only for this, tells the byte.
fn fault_place(body: &[u8], about: usize) -> usize {
    match serde_json::from_slice::<serde::de::IgnoredAny>(body) {
        Err(error) if error.is_eof() => body.len(),
        Err(error) if error.line() > 0 => {
            let lines_before = body.split_inclusive(|byte| *byte == b'\n').take(error.line() - 1);
            let line_start: usize = lines_before.map(<[u8]>::len).sum();
            (line_start + error.column().saturating_sub(1)).min(body.len())
        }
        Ok(_) | Err(_) => about, // nothing that serde_json minds, such as a number beyond a double
    }
}

/// The number around `offset`, where parsing stopped, if it is well-formed (RFC 8259 §6).
fn number_beyond_a_double(body: &[u8], offset: usize) -> Option<Range<usize>> {
    let is_part =
        |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E');
    let before = body.get(..offset)?.iter().rev().take_while(|byte| is_part(byte)).count();
    let behind = body.get(offset..)?.iter().take_while(|byte| is_part(byte)).count();
    let place = offset - before..offset + behind;
    let number = body.get(place.clone())?;
    (place.len() > 2 && is_number(number)).then_some(place)
}

/// Whether the text is a number as JSON writes it (RFC 8259 §6).
#[must_use]
pub fn is_number(text: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = text.strip_prefix(b"-").unwrap_or(text);
    let whole = digits(rest);
    let (integer, mut rest) = rest.split_at(whole);
    if integer.is_empty() || (whole > 1 && integer.starts_with(b"0")) {
        return false;
    }
    if let [b'.', fraction @ ..] = rest {
        let count = digits(fraction);
        if count == 0 {
            return false;
        }
        rest = fraction.get(count..).unwrap_or_default();
    }
    match rest {
        [] => true,
        [b'e' | b'E', b'+' | b'-', exponent @ ..] | [b'e' | b'E', exponent @ ..] => {
            !exponent.is_empty() && digits(exponent) == exponent.len()
        }
        _ => false,
    }
}

/// Whether a pointer's token, with `~1` for `/` and `~0` for `~`, is this member's name.
fn is_token(token: &str, name: &str) -> bool {
    if !token.contains('~') {
        return token == name;
    }
    let mut rest = name;
    let mut characters = token.chars();
    while let Some(character) = characters.next() {
        let wanted = match character {
            '~' if characters.next() == Some('1') => '/',
            '~' => '~',
            other => other,
        };
        let Some(tail) = rest.strip_prefix(wanted) else { return false };
        rest = tail;
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(body: &str, pointer: &str) -> Result<Option<Found<'static>>, JsonError> {
        let mut scratch = JsonScratch::default();
        scratch.read(body.as_bytes(), |document| {
            document.find(pointer).map(|found| {
                found.map(|found| match found {
                    Found::Text(text, place) => Found::Text(text.to_owned().leak(), place),
                    Found::Null => Found::Null,
                    Found::Number(number) => Found::Number(number),
                    Found::Boolean(value) => Found::Boolean(value),
                    Found::Container => Found::Container,
                })
            })
        })?
    }

    #[test]
    fn members_of_each_type_are_found_at_each_level() {
        let body = r#" {"a":{"b":[1,{"c":"x"},true]},"n":null,"d":-2.5,"o":{}} "#;
        assert_eq!(find(body, "/a/b/1/c"), Ok(Some(Found::Text("x", 19..22))));
        assert_eq!(find(body, "/a/b/0"), Ok(Some(Found::Number(1.0))));
        assert_eq!(find(body, "/a/b/2"), Ok(Some(Found::Boolean(true))));
        assert_eq!(find(body, "/n"), Ok(Some(Found::Null)));
        assert_eq!(find(body, "/d"), Ok(Some(Found::Number(-2.5))));
        assert_eq!(find(body, "/o"), Ok(Some(Found::Container)));
        for absent in ["/x", "/a/b/3", "/a/b/01", "/a/b/-", "/d/x", "/A", "/o/a"] {
            assert_eq!(find(body, absent), Ok(None), "{absent}");
        }
    }

    #[test]
    fn a_literal_is_found_whatever_it_escapes() {
        let body = "{\"k\\u0065y\":\"é\\\"\\\\\\n\\u00e9\",\"model\":\"a\\\\\"}";
        let Ok(Some(Found::Text(text, place))) = find(body, "/key") else { panic!("not found") };
        assert_eq!(text, "é\"\\\né");
        assert_eq!(&body[place], "\"é\\\"\\\\\\n\\u00e9\"");
        let Ok(Some(Found::Text(text, place))) = find(body, "/model") else { panic!("not found") };
        assert_eq!((text, &body[place]), ("a\\", "\"a\\\\\""));
    }

    #[test]
    fn the_place_of_a_long_string_is_exact() {
        for length in [0, 1, 30, 31, 32, 33, 63, 64, 65, 5000] {
            let value = "v".repeat(length);
            let body = format!("{{\"pad\":[1,2,\"x\"],\"model\":\"{value}\"}}");
            let Ok(Some(Found::Text(text, place))) = find(&body, "/model") else {
                panic!("absent")
            };
            assert_eq!((text, &body[place]), (value.as_str(), format!("\"{value}\"").as_str()));
        }
    }

    /// JS-02
    #[test]
    fn a_member_that_is_read_must_not_stand_twice() {
        assert_eq!(find(r#"{"a":1,"a":2}"#, "/a"), Err(JsonError::DuplicateMember));
        assert_eq!(find(r#"{"c":{"a":1,"a":1}}"#, "/c/a"), Err(JsonError::DuplicateMember));
        assert_eq!(find(r#"{"\u0061":1,"a":2}"#, "/a"), Err(JsonError::DuplicateMember));
        assert_eq!(find(r#"{"b":1,"b":2,"a":3,"A":4}"#, "/a"), Ok(Some(Found::Number(3.0))));
    }

    /// JS-03
    #[test]
    fn depth_is_bounded_and_siblings_do_not_add_up() {
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(find(&nested(JSON_DEPTH_MAX), "/0"), Ok(Some(Found::Container)));
        assert_eq!(find(&nested(JSON_DEPTH_MAX + 1), "/0"), Err(JsonError::TooDeep));
        assert!(find(&nested(100_000), "/0").is_err(), "refused by the parser itself");
        let siblings = format!("[{}[]]", "[],".repeat(1000));
        assert_eq!(find(&siblings, "/1000"), Ok(Some(Found::Container)));
        assert!(matches!(find(&"[".repeat(100_000), "/0"), Err(JsonError::Malformed { .. })));
        assert!(matches!(find(&"{\"a\":".repeat(100_000), "/a"), Err(JsonError::Malformed { .. })));
    }

    /// JS-04
    #[test]
    fn numbers_beyond_a_double_are_no_fault_of_the_client() {
        for number in ["1e400", "-12.5E+999", "990000000262240065999999999"] {
            let body = format!("{{\"x\":[{number},{number} ],\"y\":{number},\"a\":1,\"t\":\"v\"}}");
            assert_eq!(find(&body, "/a"), Ok(Some(Found::Number(1.0))), "{number}");
            assert_eq!(find(&body, "/y"), Ok(Some(Found::Container)), "read, it is a wrong type");
            let Ok(Some(Found::Text("v", place))) = find(&body, "/t") else { panic!("absent") };
            assert_eq!(&body[place], "\"v\"");
        }
        let many = format!("[{}1]", "1e400,".repeat(JSON_NUMBERS_BEYOND_MAX + 1));
        assert!(matches!(find(&many, "/0"), Err(JsonError::Malformed { .. })), "bounded");
        for wrong in ["01e400", "1e400e", "--1e400", "1.e400", "1e+", ".5e400"] {
            let result = find(&format!("[{wrong}]"), "/0");
            assert!(matches!(result, Err(JsonError::Malformed { .. })), "{wrong}");
        }
    }

    /// JS-05
    #[test]
    fn what_is_not_json_is_told_with_its_place() {
        for body in ["", "{\"a\":", "{\"a\":1}x", "nul", "{'a':1}", "\u{feff}{}", "{\"a\":01}"] {
            let result = find(body, "/a");
            assert!(matches!(result, Err(JsonError::Malformed { .. })), "{body:?}: {result:?}");
        }
        for (body, offset) in [
            ("{\"a\": }", 6),
            ("{\"a\": 1", 7),
            ("{\"a\": 1, \"b\": tru}", 17),
            ("{\n \"a\": 1,\n \"b\" 2}", 16),
            ("[1 2]", 3),
        ] {
            assert_eq!(find(body, "/a"), Err(JsonError::Malformed { offset }), "{body:?}");
        }
        assert_eq!(find("\"x\"", "/a"), Ok(None), "any JSON value may be a body");
    }

    #[test]
    fn the_scratch_can_be_used_again_after_a_fault() {
        let mut scratch = JsonScratch::default();
        assert!(scratch.read(b"{", |_| ()).is_err());
        let found = scratch
            .read(b"{\"a\":7}", |document| document.find("/a") == Ok(Some(Found::Number(7.0))));
        assert_eq!(found, Ok(true));
    }

    #[test]
    fn a_pointer_can_name_any_member() {
        assert_eq!(find(r#"{"a/b":1,"m~n":2,"":3}"#, "/a~1b"), Ok(Some(Found::Number(1.0))));
        assert_eq!(find(r#"{"a/b":1,"m~n":2,"":3}"#, "/m~0n"), Ok(Some(Found::Number(2.0))));
        assert_eq!(find(r#"{"a/b":1,"m~n":2,"":3}"#, "/"), Ok(Some(Found::Number(3.0))));
    }
}
