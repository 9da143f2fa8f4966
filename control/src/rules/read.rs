//! Reading trees into typed values; every mistake is kept, none ends the reading.

use super::{
    fault::{FaultKind, Place, RuleFault},
    pattern::Pattern,
    yaml::{Key, Mark, Node, Value},
};

/// Which fields a mapping may have.
pub(crate) struct Shape {
    /// What the mapping is, with an article.
    pub(crate) what: &'static str,
    /// All that are read.
    pub(crate) known: &'static [&'static str],
    /// What the design has and this build does not, and what to say then.
    pub(crate) unsupported: &'static [(&'static str, &'static str)],
}

/// The mistakes of one file, while it is read.
pub(crate) struct Reader<'a> {
    file: &'a str,
    pub(crate) faults: Vec<RuleFault>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(file: &'a str) -> Self {
        Self { file, faults: Vec::new() }
    }

    pub(crate) fn fault(
        &mut self,
        mark: Mark,
        kind: FaultKind,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) {
        let place = Place { file: self.file.to_owned(), line: mark.line, column: mark.column };
        let (found, expected) = (found.into(), expected.into());
        self.faults.push(RuleFault { place, kind, found, expected });
    }

    /// A fault where something else than `expected` stands.
    pub(crate) fn wrong<T>(&mut self, node: &Node, expected: &str) -> Option<T> {
        self.fault(node.mark, FaultKind::Type, node.describe(), expected);
        None
    }

    /// A fault where the type is right and the value is not.
    pub(crate) fn bad<T>(&mut self, node: &Node, expected: impl Into<String>) -> Option<T> {
        self.fault(node.mark, FaultKind::Value, node.describe(), expected);
        None
    }

    /// The fields of a mapping, all of which are in `shape`.
    pub(crate) fn fields<'n>(
        &mut self,
        node: &'n Node,
        shape: &'static Shape,
    ) -> Option<Fields<'n>> {
        let entries = self.mapping(node, shape.what)?;
        for (key, _) in entries {
            let name = key.name.as_str();
            if shape.known.contains(&name) {
                continue;
            }
            let found = format!("the field `{}`", key.shown());
            if let Some((_, why)) = shape.unsupported.iter().find(|(field, _)| *field == name) {
                self.fault(key.mark, FaultKind::Unsupported, found, format!("it left out: {why}"));
            } else {
                let expected = format!("only fields of {}: {}", shape.what, shape.known.join(", "));
                self.fault(key.mark, FaultKind::UnknownField, found, expected);
            }
        }
        Some(Fields { entries, mark: node.mark, what: shape.what })
    }

    /// The entries of a mapping whose keys are names.
    pub(crate) fn mapping<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n [(Key, Node)]> {
        match &node.value {
            Value::Mapping(entries) => Some(entries),
            _ => self.wrong(node, &format!("{what}, as a mapping")),
        }
    }

    pub(crate) fn sequence<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n [Node]> {
        match &node.value {
            Value::Sequence(items) => Some(items),
            _ => self.wrong(node, &format!("a list of {what}")),
        }
    }

    pub(crate) fn text<'n>(&mut self, node: &'n Node, expected: &str) -> Option<&'n str> {
        match &node.value {
            Value::Text(text) => Some(text),
            Value::Integer(_) | Value::Number(_) | Value::Boolean(_) => {
                self.wrong(node, &format!("{expected}, in quotes"))
            }
            Value::Null | Value::Sequence(_) | Value::Mapping(_) => self.wrong(node, expected),
        }
    }

    /// A text that `pattern` takes.
    pub(crate) fn matching(&mut self, node: &Node, pattern: Pattern) -> Option<String> {
        let text = self.text(node, pattern.expected())?;
        if pattern.matches(text) {
            return Some(text.to_owned());
        }
        self.bad(node, pattern.expected())
    }

    pub(crate) fn boolean(&mut self, node: &Node) -> Option<bool> {
        match node.value {
            Value::Boolean(boolean) => Some(boolean),
            _ => self.wrong(node, "true or false"),
        }
    }

    /// A whole number of `0..=max`.
    pub(crate) fn count(&mut self, node: &Node, min: u16, max: u16) -> Option<u16> {
        let expected = format!("a whole number from {min} to {max}");
        match node.value {
            Value::Integer(number) => match u16::try_from(number) {
                Ok(number) if (min..=max).contains(&number) => Some(number),
                Ok(_) | Err(_) => self.bad(node, expected),
            },
            _ => self.wrong(node, &expected),
        }
    }

    /// One of a few words.
    pub(crate) fn word<T: Copy>(&mut self, node: &Node, words: &[(&str, T)]) -> Option<T> {
        let list = words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        let expected = format!("one of: {list}");
        let text = self.text(node, &expected)?;
        match words.iter().find(|(word, _)| *word == text) {
            Some((_, value)) => Some(*value),
            None => self.bad(node, expected),
        }
    }

    /// A number and its unit, such as `250ms`, in the smallest unit.
    pub(crate) fn quantity(
        &mut self,
        node: &Node,
        units: &[(&str, u64)],
        max: u64,
        expected: &str,
    ) -> Option<u64> {
        let text = self.text(node, expected)?;
        let digits = text.trim_start_matches(|character: char| character.is_ascii_digit());
        let (number, unit) = text.split_at(text.len() - digits.len());
        let factor = units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
        let value = number.parse::<u64>().ok().zip(factor);
        match value.and_then(|(number, factor)| number.checked_mul(factor)) {
            Some(value) if (1..=max).contains(&value) => Some(value),
            Some(_) | None => self.bad(node, expected),
        }
    }
}

/// The fields of one mapping.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'n> {
    entries: &'n [(Key, Node)],
    mark: Mark,
    what: &'static str,
}

impl<'n> Fields<'n> {
    pub(crate) fn optional(&self, name: &str) -> Option<&'n Node> {
        self.entries.iter().find(|(key, _)| key.name == name).map(|(_, node)| node)
    }

    /// Where the key itself stands.
    pub(crate) fn key_mark(&self, name: &str) -> Option<Mark> {
        self.entries.iter().find(|(key, _)| key.name == name).map(|(key, _)| key.mark)
    }

    /// A fault where the field is missing.
    pub(crate) fn required(&self, reader: &mut Reader<'_>, name: &str) -> Option<&'n Node> {
        let node = self.optional(name);
        if node.is_none() {
            let found = format!("{} without `{name}`", self.what);
            let expected = format!("the field `{name}`");
            reader.fault(self.mark, FaultKind::MissingField, found, expected);
        }
        node
    }
}
