//! Values of response header fields, each kept once. What does not fit is counted as "other".

use std::collections::HashMap;

use crate::limits::{LABEL_BYTES_MAX, LABELS_MAX};

/// Number of a kept value.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Label(u32);

impl Label {
    /// The field is missing.
    pub const ABSENT: Self = Self(0);
    /// The value found no room, or is too long.
    pub const OTHER: Self = Self(1);
}

/// The kept values of one thread.
#[derive(Debug)]
pub struct Labels {
    numbers: HashMap<Box<[u8]>, Label>,
    names: Vec<String>,
}

impl Default for Labels {
    fn default() -> Self {
        Self { numbers: HashMap::new(), names: vec![String::new(), "(other)".to_owned()] }
    }
}

impl Labels {
    /// The label of a value, new or not.
    pub fn of(&mut self, value: &[u8]) -> Label {
        if let Some(label) = self.numbers.get(value) {
            return *label;
        }
        if self.names.len() >= LABELS_MAX || value.len() > LABEL_BYTES_MAX {
            return Label::OTHER;
        }
        let Ok(number) = u32::try_from(self.names.len()) else { return Label::OTHER };
        self.names.push(String::from_utf8_lossy(value).into_owned());
        self.numbers.insert(value.into(), Label(number));
        Label(number)
    }

    /// The value behind a label; empty where the field is missing.
    pub fn name(&self, label: Label) -> &str {
        self.names.get(label.0 as usize).map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_keeps_its_label_and_the_table_stays_bounded() {
        let mut labels = Labels::default();
        let first = labels.of(b"stable");
        assert_eq!(labels.of(b"stable"), first);
        assert_eq!(labels.name(first), "stable");
        for number in 0..2 * LABELS_MAX {
            labels.of(number.to_string().as_bytes());
        }
        assert_eq!(labels.of(b"one more"), Label::OTHER);
        assert_eq!(labels.of(b"stable"), first);
        assert_eq!(labels.names.len(), LABELS_MAX);
        assert_eq!(labels.name(Label::ABSENT), "");
    }

    #[test]
    fn a_value_that_is_too_long_is_other() {
        assert_eq!(Labels::default().of(&[b'x'; LABEL_BYTES_MAX + 1]), Label::OTHER);
    }
}
