//! Text with places for `{user}`, `{n}`, `{objective}`, `{padding}` and a scenario's attributes.
//! Other braces are text, as in JSON.

use super::attributes::{Attribute, Form};

/// A parsed template.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Template(Vec<Segment>);

#[derive(Clone, Debug, Eq, PartialEq)]
enum Segment {
    Text(Vec<u8>),
    User,
    Number,
    Objective,
    Padding,
    Attribute { position: usize, form: Form },
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
    /// The scenario's attributes.
    pub attributes: &'a [Attribute],
    /// Which value each of them has.
    pub drawn: &'a [usize],
    /// How many letters `{padding}` stands for.
    pub padding: usize,
}

impl Template {
    /// Finds the places. Values of `attributes` are written in the given form.
    pub fn parse(text: &str, attributes: &[Attribute], form: Form) -> Self {
        let mut segments = Vec::new();
        let mut text_start = 0;
        let mut at = 0;
        while let Some(brace) = text[at..].find('{') {
            let start = at + brace;
            let Some((segment, length)) = place(&text[start..], attributes, form) else {
                at = start + 1;
                continue;
            };
            if text_start < start {
                segments.push(Segment::Text(text.as_bytes()[text_start..start].to_vec()));
            }
            segments.push(segment);
            at = start + length;
            text_start = at;
        }
        if text_start < text.len() {
            segments.push(Segment::Text(text.as_bytes()[text_start..].to_vec()));
        }
        Self(segments)
    }

    /// Bytes without any place in them.
    pub fn literal(bytes: Vec<u8>) -> Self {
        Self(vec![Segment::Text(bytes)])
    }

    /// Puts another template behind this one.
    pub fn append(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Whether nothing comes out of it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it has a place for padding.
    pub fn has_padding(&self) -> bool {
        self.0.contains(&Segment::Padding)
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
                Segment::Padding => out.resize(out.len() + values.padding, b'x'),
                Segment::Attribute { position, form } => {
                    let attribute = &values.attributes[*position];
                    out.extend_from_slice(attribute.text(values.drawn[*position], *form));
                }
            }
        }
    }
}

/// The place that a text starts with, and its length.
fn place(text: &str, attributes: &[Attribute], form: Form) -> Option<(Segment, usize)> {
    let end = text.find('}')?;
    let segment = match &text[1..end] {
        "user" => Segment::User,
        "n" => Segment::Number,
        "objective" => Segment::Objective,
        "padding" => Segment::Padding,
        name => {
            let position = attributes.iter().position(|attribute| attribute.name() == name)?;
            Segment::Attribute { position, form }
        }
    };
    Some((segment, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values<'a>(attributes: &'a [Attribute], drawn: &'a [usize]) -> Values<'a> {
        Values { user: "u7", number: 42, objective: "HOME", attributes, drawn, padding: 3 }
    }

    fn render(text: &str) -> String {
        let mut out = Vec::new();
        Template::parse(text, &[], Form::Plain).render(&values(&[], &[]), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn places_are_filled_and_other_braces_are_text() {
        assert_eq!(render("{n}-{user}/{objective}{n}"), "42-u7/HOME42");
        assert_eq!(render(r#"{"user":"{user}","x":{"n":1}}"#), r#"{"user":"u7","x":{"n":1}}"#);
        assert_eq!(render(r#"{"p":"{padding}"}"#), r#"{"p":"xxx"}"#);
        assert_eq!(render(""), "");
        assert_eq!(render("{users} {} {n"), "{users} {} {n");
    }

    #[test]
    fn an_attribute_is_written_as_its_place_needs_it() {
        let attribute = Attribute::evenly("city", ["Köln \"a\"/b"]).unwrap();
        let attributes = [attribute];
        let rendered = |form| {
            let mut out = Vec::new();
            Template::parse("<{city}>", &attributes, form)
                .render(&values(&attributes, &[0]), &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(rendered(Form::Plain), "<Köln \"a\"/b>");
        assert_eq!(rendered(Form::Json), r#"<Köln \"a\"/b>"#);
        assert_eq!(rendered(Form::Url), "<K%C3%B6ln%20%22a%22%2Fb>");
    }

    #[test]
    fn a_literal_has_no_places() {
        let mut out = Vec::new();
        Template::literal(b"{user}".to_vec()).render(&values(&[], &[]), &mut out);
        assert_eq!(out, b"{user}");
    }
}
