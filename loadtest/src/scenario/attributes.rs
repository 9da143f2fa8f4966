//! Context attributes: named values that are drawn for each request, or once for each user.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::limits::ATTRIBUTE_VALUES_MAX;

/// One attribute with its values.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Attribute {
    name: String,
    values: Vec<Value>,
    /// Of each value: its weight and those of all before it.
    sums: Vec<u64>,
    per: Per,
}

/// How often a value is drawn.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Per {
    /// For each request.
    #[default]
    Request,
    /// Once: a user has the same value each time.
    User,
}

/// How a value is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Form {
    /// As it is: header fields.
    Plain,
    /// Percent-encoded (RFC 3986): path and query.
    Url,
    /// As the inside of a JSON string (RFC 8259): bodies.
    Json,
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct Value {
    plain: Box<[u8]>,
    url: Box<[u8]>,
    json: Box<[u8]>,
}

/// Why there is no such attribute.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
pub enum AttributeError {
    /// Could not be written as a place.
    #[error(
        "attribute `{0}`: a name has letters, digits, `_` and `-`, and is not user, n, objective or padding"
    )]
    Name(String),
    /// Nothing could be drawn.
    #[error("attribute `{0}` has no value with a weight above 0")]
    NoValue(String),
    /// More than anyone writes by hand.
    #[error("attribute `{name}` has {count} values, over {ATTRIBUTE_VALUES_MAX}")]
    TooMany {
        /// Which one.
        name: String,
        /// How many.
        count: usize,
    },
    /// Would break a head.
    #[error("attribute `{0}`: a value holds a line break or another control character")]
    Characters(String),
}

impl Attribute {
    /// An attribute with values and their weights.
    ///
    /// # Errors
    /// See [`AttributeError`].
    pub fn new<'a>(
        name: &str,
        values: impl IntoIterator<Item = (&'a str, u32)>,
        per: Per,
    ) -> Result<Self, AttributeError> {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let is_taken = ["user", "n", "objective", "padding"].contains(&name);
        if name.is_empty() || is_taken || !name.bytes().all(is_letter) {
            return Err(AttributeError::Name(name.to_owned()));
        }
        let mut attribute =
            Self { name: name.to_owned(), values: Vec::new(), sums: Vec::new(), per };
        let mut sum = 0;
        for (value, weight) in values {
            if value.chars().any(char::is_control) {
                return Err(AttributeError::Characters(name.to_owned()));
            }
            sum += u64::from(weight);
            attribute.sums.push(sum);
            attribute.values.push(Value {
                plain: value.as_bytes().into(),
                url: percent_encoded(value).into_bytes().into(),
                json: json_inside(value).into_bytes().into(),
            });
        }
        match attribute.values.len() {
            _ if sum == 0 => Err(AttributeError::NoValue(name.to_owned())),
            count if count > ATTRIBUTE_VALUES_MAX => {
                Err(AttributeError::TooMany { name: name.to_owned(), count })
            }
            _ => Ok(attribute),
        }
    }

    /// An attribute whose values are equally likely for each request.
    ///
    /// # Errors
    /// See [`AttributeError`].
    pub fn evenly<'a>(
        name: &str,
        values: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, AttributeError> {
        Self::new(name, values.into_iter().map(|value| (value, 1)), Per::Request)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Draws the position of a value.
    pub fn draw(&self, user: u64, seed: u64, random: &mut Xoshiro256PlusPlus) -> usize {
        let sum = self.sums.last().copied().unwrap_or(1);
        let draw = if self.per == Per::User {
            // Two attributes of one user must not go together, so the name is in it.
            let name = self
                .name
                .bytes()
                .fold(seed, |sum, byte| sum.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte));
            let seed = name ^ user.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            Xoshiro256PlusPlus::seed_from_u64(seed).random_range(0..sum)
        } else {
            random.random_range(0..sum)
        };
        self.sums.partition_point(|sum| *sum <= draw)
    }

    /// A value's text.
    pub fn text(&self, position: usize, form: Form) -> &[u8] {
        let value = &self.values[position];
        match form {
            Form::Plain => &value.plain,
            Form::Url => &value.url,
            Form::Json => &value.json,
        }
    }
}

fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'-' | b'.' | b'_' | b'~' => encoded.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => encoded.push(char::from(byte)),
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

fn json_inside(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_by_their_weights() {
        let attribute =
            Attribute::new("c", [("DE", 3), ("XX", 0), ("AT", 1)], Per::Request).unwrap();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut counts = [0_u32; 3];
        for user in 0..10_000 {
            counts[attribute.draw(user, 1, &mut random)] += 1;
        }
        // Four standard deviations are 173.
        assert!((7327..=7673).contains(&counts[0]), "{counts:?}");
        assert_eq!(counts[1], 0);
    }

    #[test]
    fn a_user_keeps_a_value_that_is_drawn_per_user() {
        let attribute = Attribute::new("c", [("a", 1), ("b", 1)], Per::User).unwrap();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut counts = [0_u32; 2];
        for user in 0..1000 {
            let drawn = attribute.draw(user, 1, &mut random);
            assert_eq!(attribute.draw(user, 1, &mut random), drawn);
            counts[drawn] += 1;
        }
        assert!(counts.iter().all(|count| (437..=563).contains(count)), "{counts:?}");
    }

    #[test]
    fn what_would_break_a_request_is_refused() {
        let refusal = |name: &str, value: &str| Attribute::evenly(name, [value]).unwrap_err();
        assert!(matches!(refusal("user", "x"), AttributeError::Name(_)));
        assert!(matches!(refusal("a b", "x"), AttributeError::Name(_)));
        assert!(matches!(refusal("a", "x\r\ny"), AttributeError::Characters(_)));
        let none = Attribute::new("a", [("x", 0)], Per::Request);
        assert_eq!(none, Err(AttributeError::NoValue("a".to_owned())));
    }
}
