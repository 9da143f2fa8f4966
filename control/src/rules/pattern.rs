//! What names and other short texts look like: the shapes are `shared`'s, the words are ours.

use switchboard_shared::snapshot::syntax;

/// CEL's keywords and reserved words: an attribute of such a name could not be asked for.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The shape of one kind of text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Pattern {
    /// An Objective's token.
    Token,
    /// An attribute's name, which expressions use.
    Attribute,
    /// A Fact's name.
    Fact,
    /// The name of an Arm, Model or Shard.
    Name,
    /// The name of a Rule or Layer.
    Label,
    /// The version of a Model.
    Version,
    /// `name@version` of a Model.
    ModelReference,
    /// A salt.
    Salt,
    /// The path of an HTTP request.
    Path,
    /// A name that a model server knows.
    ServedName,
    /// A key template in the cache tier.
    KeyTemplate,
    /// A hash's field in the cache tier.
    HashField,
    /// A Kafka topic.
    Topic,
    /// A place in a JSON document, or the whole of it.
    JsonPlace,
}

impl Pattern {
    /// What stands after "expected".
    pub(crate) const fn expected(self) -> &'static str {
        match self {
            Self::Token => "a token of A-Z, 0-9 and _, a letter first, at most 64 characters",
            Self::Attribute => {
                "a name of a-z, 0-9 and _, a letter first, at most 64 characters, no word of CEL"
            }
            Self::Fact => "a name of a-z, 0-9 and _, a letter first, at most 64 characters",
            Self::Name => {
                "a name of a-z, 0-9, `_`, `.` and `-`, a letter or digit first, at most 64 \
                 characters"
            }
            Self::Label => {
                "a name of letters, digits, `_`, `.` and `-`, a letter or digit first, at most 64 \
                 characters"
            }
            Self::Version => {
                "a version of letters, digits, `_`, `.`, `+` and `-`, at most 64 characters"
            }
            Self::ModelReference => "a Model version as name@version",
            Self::Salt => "a salt of 1 to 8192 bytes",
            Self::Path => "a path of visible ASCII that begins with /, without ? and #",
            Self::ServedName => "1 to 256 visible ASCII characters without quotes and backslashes",
            Self::KeyTemplate => {
                "a key of visible ASCII with one {unit} and no other brace, such as \
                 user:{unit}:country"
            }
            Self::HashField => "1 to 512 visible ASCII characters",
            Self::Topic => syntax::TOPIC,
            Self::JsonPlace => "a JSON Pointer such as /outputs/0/data/0",
        }
    }

    /// Whether `text` has this shape.
    pub(crate) fn matches(self, text: &str) -> bool {
        match self {
            Self::Token => syntax::is_token(text),
            Self::Attribute => syntax::is_identifier(text) && !RESERVED.contains(&text),
            Self::Fact => syntax::is_identifier(text),
            Self::Name => syntax::is_name(text),
            Self::Label => syntax::is_label(text),
            Self::Version => syntax::is_version(text),
            Self::ModelReference => text.split_once('@').is_some_and(|(name, version)| {
                syntax::is_name(name) && syntax::is_version(version)
            }),
            Self::Salt => syntax::is_salt(text),
            Self::Path => syntax::is_path(text),
            Self::ServedName => syntax::is_served_name(text),
            Self::KeyTemplate => syntax::is_key_template(text),
            Self::HashField => syntax::is_hash_field(text),
            Self::Topic => syntax::is_topic(text),
            Self::JsonPlace => text.is_empty() || syntax::is_pointer(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_that_no_expression_could_name_is_refused() {
        for word in RESERVED {
            assert!(!Pattern::Attribute.matches(word), "{word}");
        }
        assert!(Pattern::Attribute.matches("inner"));
    }

    #[test]
    fn a_model_reference_has_one_name_and_one_version() {
        assert!(Pattern::ModelReference.matches("feed-ranker@3-rc"));
        for bad in ["feed-ranker", "@1", "m@", "m@1@2", "M@1", "m @1"] {
            assert!(!Pattern::ModelReference.matches(bad), "{bad}");
        }
    }
}
