//! The typed attributes of one request, on the stack.

use crate::{
    definition::{ArchivedValue, ValueKind},
    limits::{ATTRIBUTES_MAX, TEXT_BYTES_MAX},
    slot::Unit,
    snapshot::{ArchivedAttribute, ArchivedObjective, AttributeIndex},
};

/// A borrowed typed value: of the request's bytes, or of the Snapshot's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// UTF-8 text, at most `TEXT_BYTES_MAX`.
    Text(&'a str),
    /// An IEEE 754 double, finite.
    Number(f64),
    /// `true` or `false`.
    Boolean(bool),
}

impl Value<'_> {
    /// Its type.
    pub const fn kind(&self) -> ValueKind {
        match self {
            Self::Text(_) => ValueKind::Text,
            Self::Number(_) => ValueKind::Number,
            Self::Boolean(_) => ValueKind::Boolean,
        }
    }
}

impl<'a> From<&'a ArchivedValue> for Value<'a> {
    fn from(value: &'a ArchivedValue) -> Self {
        match value {
            ArchivedValue::Text(text) => Self::Text(text),
            ArchivedValue::Number(number) => Self::Number(number.to_native()),
            ArchivedValue::Boolean(boolean) => Self::Boolean(*boolean),
        }
    }
}

/// Why a request's attribute is refused. It is the client's fault: 400.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ContextError {
    /// A value of another type than the Objective declares.
    #[error("is no {expected}")]
    WrongType {
        /// What the Objective declares.
        expected: ValueKind,
    },
    /// Infinite or not a number.
    #[error("is no finite number")]
    NotFinite,
    /// A text above `TEXT_BYTES_MAX`.
    #[error("is longer than {TEXT_BYTES_MAX} bytes")]
    TooLong,
}

impl ContextError {
    /// A stable label.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::WrongType { .. } => "attribute_type",
            Self::NotFinite => "attribute_not_finite",
            Self::TooLong => "attribute_too_long",
        }
    }
}

impl ArchivedAttribute {
    /// Reads the text of a header field or a query parameter (already percent-decoded) as this
    /// attribute's type: text as it is, a number as Rust's `f64` reads it but only in JSON's
    /// characters, a boolean exactly as `true` or `false`.
    ///
    /// # Errors
    /// See [`ContextError`]. A value of the wrong type is an error and never the default.
    pub fn parse_text<'a>(&self, text: &'a str) -> Result<Value<'a>, ContextError> {
        let expected = self.kind.to_native();
        let value = match expected {
            ValueKind::Text => Value::Text(text),
            ValueKind::Number => parse_number(text)?,
            ValueKind::Boolean => match text {
                "true" => Value::Boolean(true),
                "false" => Value::Boolean(false),
                _ => return Err(ContextError::WrongType { expected }),
            },
        };
        self.accept(value)
    }

    /// Checks a value that came with a type, as one from a JSON body does.
    ///
    /// # Errors
    /// See [`ContextError`].
    pub fn accept<'a>(&self, value: Value<'a>) -> Result<Value<'a>, ContextError> {
        let expected = self.kind.to_native();
        if value.kind() != expected {
            return Err(ContextError::WrongType { expected });
        }
        match value {
            Value::Text(text) if text.len() > TEXT_BYTES_MAX => Err(ContextError::TooLong),
            Value::Number(number) if !number.is_finite() => Err(ContextError::NotFinite),
            Value::Text(_) | Value::Number(_) | Value::Boolean(_) => Ok(value),
        }
    }
}

/// `f64::from_str` without `inf`, `nan` and their kin.
fn parse_number(text: &str) -> Result<Value<'static>, ContextError> {
    let wrong = ContextError::WrongType { expected: ValueKind::Number };
    let plain =
        |byte: u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E');
    if !text.bytes().all(plain) {
        return Err(wrong);
    }
    text.parse().map(Value::Number).map_err(|_| wrong)
}

/// What one request says about itself, as far as its Objective asks. Lives on the stack.
///
/// A value is absent until it is set or its attribute has a default.
#[derive(Clone, Debug, Default)]
pub struct Context<'a> {
    /// By attribute. Not only as many as there are: writing 32 empty places is quicker than
    /// counting them, as no growing vector has to be moved to the caller.
    values: [Option<Value<'a>>; ATTRIBUTES_MAX],
}

impl<'a> Context<'a> {
    /// Every attribute of `objective` is absent or has its default.
    #[inline]
    pub fn with_defaults(objective: &'a ArchivedObjective) -> Self {
        let mut context = Self { values: [None; ATTRIBUTES_MAX] };
        // Usually none: then the attributes themselves are not read, which may be in no cache.
        let mut defaults = objective.defaults.to_native();
        while defaults != 0 {
            let place = defaults.trailing_zeros() as usize;
            let attribute = objective.context.get(place);
            if let (Some(value), Some(attribute)) = (context.values.get_mut(place), attribute) {
                *value = attribute.default.as_ref().map(Value::from);
            }
            defaults &= defaults - 1;
        }
        context
    }

    /// Sets what [`ArchivedAttribute::parse_text`] or [`ArchivedAttribute::accept`] let through.
    ///
    /// An index beyond `ATTRIBUTES_MAX` changes nothing; no Objective declares such an attribute.
    #[inline]
    pub fn set(&mut self, attribute: AttributeIndex, value: Value<'a>) {
        debug_assert!(
            !matches!(value, Value::Number(number) if !number.is_finite()),
            "`accept` refuses what is not finite"
        );
        if let Some(place) = self.values.get_mut(attribute.get()) {
            *place = Some(value);
        }
    }

    /// The value, or its attribute's default; `None` where it is absent.
    #[inline]
    pub fn get(&self, attribute: AttributeIndex) -> Option<Value<'a>> {
        self.values.get(attribute.get()).copied().flatten()
    }

    /// The attribute as what is bucketed; `None` where it is absent, blank, or no integer.
    pub fn unit(&self, attribute: AttributeIndex) -> Option<Unit<'a>> {
        match self.get(attribute)? {
            Value::Text(text) => Unit::text(text),
            Value::Number(number) => Unit::number(number),
            Value::Boolean(_) => None,
        }
    }
}
