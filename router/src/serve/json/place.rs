//! Where an object stands in a body, so that members can be put into it without writing the rest anew.

use std::ops::Range;

use simd_json::Node;

use super::{Document, JsonError};

/// What stands at a JSON Pointer through objects.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Place<'p> {
    /// An object.
    Object(ObjectPlace),
    /// Nothing: the deepest object on the way, and the names that are missing in it, `/` before each.
    Missing {
        /// The object that there is.
        within: ObjectPlace,
        /// What is left of the pointer.
        names: &'p str,
    },
    /// Something else than an object, or `null`.
    Other {
        /// Its place.
        value: Range<usize>,
        /// Whether it is `null`.
        is_null: bool,
        /// Whether it is what the pointer points at, and not on the way there.
        is_last: bool,
    },
}

/// An object of the body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ObjectPlace {
    node: usize,
    /// Its members.
    pub members: usize,
    /// Its opening brace.
    pub start: usize,
}

impl Document<'_> {
    /// What stands at `pointer`; an empty one is the body itself.
    ///
    /// # Errors
    /// `DuplicateMember`, at any level on the way.
    pub fn place<'p>(&self, pointer: &'p str) -> Result<Place<'p>, JsonError> {
        let (mut node, mut start) = (0, skip_space(self.body, 0));
        let mut names = pointer;
        loop {
            let Some(Node::Object { len, .. }) = self.nodes.get(node) else {
                let is_null = self.body.get(start) == Some(&b'n');
                let value = start..value_end(self.body, start);
                return Ok(Place::Other { value, is_null, is_last: names.is_empty() });
            };
            let object = ObjectPlace { node, members: *len, start };
            let Some(rest) = names.strip_prefix('/') else { return Ok(Place::Object(object)) };
            let name = rest.split('/').next().unwrap_or_default();
            let Some(value) = self.member(node, *len, name)? else {
                return Ok(Place::Missing { within: object, names });
            };
            names = rest.get(name.len()..).unwrap_or_default();
            (node, start) = (value, self.value_start(value));
        }
    }

    /// The place of the value of an object's member.
    ///
    /// # Errors
    /// `DuplicateMember`
    pub fn member_value(
        &self,
        object: ObjectPlace,
        name: &str,
    ) -> Result<Option<Range<usize>>, JsonError> {
        let value = self.member(object.node, object.members, name)?;
        Ok(value.map(|value| {
            let start = self.value_start(value);
            start..value_end(self.body, start)
        }))
    }

    /// The place of an object, from brace to brace.
    pub fn object_range(&self, object: ObjectPlace) -> Range<usize> {
        object.start..value_end(self.body, object.start)
    }

    /// Where a member's value begins. Only strings know their place, so it is found from its name.
    fn value_start(&self, value: usize) -> usize {
        let name = match value.checked_sub(1).and_then(|name| self.nodes.get(name)) {
            Some(Node::String(name)) => self.literal(name),
            _ => 0..0,
        };
        let colon = skip_space(self.body, name.end);
        debug_assert_eq!(self.body.get(colon), Some(&b':'), "a name stands before its value");
        skip_space(self.body, colon + 1)
    }
}

fn skip_space(body: &[u8], from: usize) -> usize {
    let rest = body.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|byte| b" \t\r\n".contains(byte)).count()
}

/// The end of the value that begins at `start` in a body that is known to be JSON.
fn value_end(body: &[u8], start: usize) -> usize {
    let (mut depth, mut place) = (0_usize, start);
    while let Some(byte) = body.get(place) {
        match byte {
            b'"' => {
                place = string_end(body, place);
                if depth == 0 {
                    return place;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return place,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return place + 1;
                }
            }
            b',' | b' ' | b'\t' | b'\r' | b'\n' if depth == 0 => return place,
            _ => {}
        }
        place += 1;
    }
    place
}

/// The end of the string whose opening quote stands at `quote`.
fn string_end(body: &[u8], quote: usize) -> usize {
    let mut place = quote + 1;
    while let Some(byte) = body.get(place) {
        match byte {
            b'"' => return place + 1,
            b'\\' => place += 2,
            _ => place += 1,
        }
    }
    place
}

#[cfg(test)]
mod tests {
    use super::super::JsonScratch;
    use super::*;

    fn with<T>(body: &str, read: impl FnOnce(&Document<'_>) -> T) -> T {
        JsonScratch::default().read(body.as_bytes(), read).expect("the body is JSON")
    }

    #[test]
    fn an_object_is_found_at_each_depth() {
        let body =
            " { \"pad\" : [ {} , \"{\" ] , \"a\" : { \"b\" :{\"c\":1}}, \"n\": null , \"x\":[1] } ";
        for (pointer, expected) in [("", " { \"pad"), ("/a", "{ \"b\""), ("/a/b", "{\"c\":1}")] {
            let start = body.find(expected.trim_start()).unwrap();
            let found = with(body, |document| document.place(pointer));
            let Ok(Place::Object(object)) = found else { panic!("{pointer}: {found:?}") };
            assert_eq!(object.start, start, "{pointer}");
        }
        let missing = with(body, |document| document.place("/a/q/r"));
        let Ok(Place::Missing { within, names }) = missing else { panic!("{missing:?}") };
        assert_eq!((names, within.members), ("/q/r", 1));
        for (pointer, value, is_null, is_last) in [
            ("/n", "null", true, true),
            ("/n/m", "null", true, false),
            ("/x", "[1]", false, true),
            ("/a/b/c", "1", false, true),
        ] {
            let start = body.find(value).unwrap();
            let value = start..start + value.len();
            let found = with(body, |document| document.place(pointer));
            assert_eq!(found, Ok(Place::Other { value, is_null, is_last }), "{pointer}");
        }
    }

    #[test]
    fn a_members_value_ends_where_it_ends() {
        for value in ["1e400", "\"a\\\\\\\"}\"", "{\"x\":[\"]\",{}]}", "[[],[{}]]", "null", "-0.1"]
        {
            for space in ["", " ", "\n\t"] {
                let body = format!("{{\"k\\u0065y\"{space}:{space}{value}{space},\"z\":1}}");
                let found = with(&body, |document| {
                    let Ok(Place::Object(object)) = document.place("") else { panic!("an object") };
                    document.member_value(object, "key")
                });
                let place = found.unwrap().unwrap();
                assert_eq!(&body[place], value, "{body}");
            }
        }
    }

    /// JS-02
    #[test]
    fn a_name_on_the_way_must_not_stand_twice() {
        let body = r#"{"a":{"b":1,"\u0062":2},"a2":1}"#;
        let found = with(body, |document| {
            let Ok(Place::Object(object)) = document.place("/a") else { panic!("an object") };
            document.member_value(object, "b")
        });
        assert_eq!(found, Err(JsonError::DuplicateMember));
        let twice = r#"{"a":{},"a":{}}"#;
        assert_eq!(with(twice, |document| document.place("/a")), Err(JsonError::DuplicateMember));
    }
}
