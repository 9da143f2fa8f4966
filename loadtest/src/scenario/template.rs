//! Text with places for `{user}`, `{n}` and `{objective}`. Other braces are text, as in JSON.

/// A parsed template.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Template(Vec<Segment>);

#[derive(Clone, Debug, Eq, PartialEq)]
enum Segment {
    Text(Vec<u8>),
    User,
    Number,
    Objective,
}

/// What goes into the places.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    /// The user's name.
    pub user: &'a str,
    /// Number of the request in its run, from zero.
    pub number: u64,
    /// The Objective's token, or nothing.
    pub objective: &'a str,
}

impl Template {
    /// Finds the places.
    pub fn parse(text: &str) -> Self {
        let mut segments = Vec::new();
        let mut rest = text;
        while let Some((before, place, after)) = next_place(rest) {
            if !before.is_empty() {
                segments.push(Segment::Text(before.as_bytes().to_vec()));
            }
            segments.push(place);
            rest = after;
        }
        if !rest.is_empty() {
            segments.push(Segment::Text(rest.as_bytes().to_vec()));
        }
        Self(segments)
    }

    /// Bytes without any place in them.
    pub fn literal(bytes: Vec<u8>) -> Self {
        Self(vec![Segment::Text(bytes)])
    }

    /// Whether nothing comes out of it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends the text with its places filled.
    pub fn render(&self, values: &Values<'_>, out: &mut Vec<u8>) {
        for segment in &self.0 {
            match segment {
                Segment::Text(text) => out.extend_from_slice(text),
                Segment::User => out.extend_from_slice(values.user.as_bytes()),
                Segment::Number => {
                    out.extend_from_slice(itoa::Buffer::new().format(values.number).as_bytes());
                }
                Segment::Objective => out.extend_from_slice(values.objective.as_bytes()),
            }
        }
    }
}

fn next_place(text: &str) -> Option<(&str, Segment, &str)> {
    let places =
        [("{user}", Segment::User), ("{n}", Segment::Number), ("{objective}", Segment::Objective)];
    places
        .into_iter()
        .filter_map(|(place, segment)| Some((text.find(place)?, place, segment)))
        .min_by_key(|(position, ..)| *position)
        .map(|(position, place, segment)| {
            (&text[..position], segment, &text[position + place.len()..])
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(text: &str) -> String {
        let values = Values { user: "u7", number: 42, objective: "HOME" };
        let mut out = Vec::new();
        Template::parse(text).render(&values, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn places_are_filled_and_other_braces_are_text() {
        assert_eq!(render("{n}-{user}/{objective}{n}"), "42-u7/HOME42");
        assert_eq!(render(r#"{"user":"{user}","x":{"n":1}}"#), r#"{"user":"u7","x":{"n":1}}"#);
        assert_eq!(render(""), "");
        assert_eq!(render("{users} {} {n"), "{users} {} {n");
    }

    #[test]
    fn a_literal_has_no_places() {
        let mut out = Vec::new();
        let values = Values { user: "u", number: 1, objective: "O" };
        Template::literal(b"{user}".to_vec()).render(&values, &mut out);
        assert_eq!(out, b"{user}");
    }
}
