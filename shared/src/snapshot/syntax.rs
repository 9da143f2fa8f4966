//! Which texts are names: one place for rule files, the builder and the router.
//!
//! Names become header values and metric labels, so each is a small set of ASCII characters.

use crate::limits::{NAME_BYTES_MAX, TEXT_BYTES_MAX};

/// Stands for the Unit in a Fact's key template.
pub const UNIT_PLACE: &str = "{unit}";

/// An Objective's token: `[A-Z][A-Z0-9_]{0,63}`.
pub fn is_token(text: &str) -> bool {
    is_made_of(
        text,
        |first| first.is_ascii_uppercase(),
        |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_',
    )
}

/// The name of an Arm, a Model or a Shard: `[a-z0-9][a-z0-9_.-]{0,63}`.
pub fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    is_made_of(text, plain, |byte| plain(byte) || matches!(byte, b'_' | b'.' | b'-'))
}

/// The name of a Rule, a Layer or a router group: `[A-Za-z0-9][A-Za-z0-9_.-]{0,63}`.
pub fn is_label(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric();
    is_made_of(text, plain, |byte| plain(byte) || matches!(byte, b'_' | b'.' | b'-'))
}

/// The name of an attribute or a Fact: `[a-z][a-z0-9_]{0,63}`.
pub fn is_identifier(text: &str) -> bool {
    is_made_of(
        text,
        |first| first.is_ascii_lowercase(),
        |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_',
    )
}

/// A Model's version: `[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}`.
pub fn is_version(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric();
    is_made_of(text, plain, |byte| plain(byte) || matches!(byte, b'_' | b'.' | b'+' | b'-'))
}

/// A header field's name in lower case (RFC 9110 §5.6.2, without capitals).
pub fn is_header_name(text: &str) -> bool {
    let token = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(&byte)
    };
    is_made_of(text, token, token)
}

/// A query parameter's name, decoded: visible ASCII, so that it is compared byte by byte.
pub fn is_query_name(text: &str) -> bool {
    is_made_of(text, |byte| byte.is_ascii_graphic(), |byte| byte.is_ascii_graphic())
}

/// A JSON Pointer (RFC 6901) to a member: `/a/b`, with `~0` and `~1` as its only escapes.
pub fn is_pointer(text: &str) -> bool {
    text.len() <= TEXT_BYTES_MAX
        && text.len() > 1
        && text.starts_with('/')
        && !text.chars().any(char::is_control)
        && text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']))
}

/// What a Kafka topic is called, in words.
pub const TOPIC: &str = "[A-Za-z0-9._-]{1,249}, and neither `.` nor `..`";

/// A Kafka topic's name.
pub fn is_topic(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=249).contains(&text.len()) && text.bytes().all(plain) && !matches!(text, "." | "..")
}

/// What replaces a request's path: origin form without a query (RFC 9112 §3.2.1).
pub fn is_path(text: &str) -> bool {
    text.len() <= TEXT_BYTES_MAX
        && text.starts_with('/')
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#'))
}

/// What a model server calls its model: visible ASCII without quotes or backslashes, so that it
/// goes into JSON as it is.
pub fn is_served_name(text: &str) -> bool {
    (1..=256).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'))
}

/// A salt: any text that is not empty.
pub fn is_salt(text: &str) -> bool {
    (1..=TEXT_BYTES_MAX).contains(&text.len())
}

/// A Fact's key template: visible ASCII with exactly one `{unit}` and no other brace.
pub fn is_key_template(text: &str) -> bool {
    let plain =
        |part: &str| part.bytes().all(|byte| byte.is_ascii_graphic() && !b"{}".contains(&byte));
    text.len() <= 512
        && text.split_once(UNIT_PLACE).is_some_and(|(before, after)| plain(before) && plain(after))
}

/// A field of a hash in the cache: visible ASCII.
pub fn is_hash_field(text: &str) -> bool {
    (1..=512).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// An attribute that is a Fact: `fact.NAME`. Gives the Fact's name.
pub fn fact_of_attribute(text: &str) -> Option<&str> {
    text.strip_prefix("fact.").filter(|name| is_identifier(name))
}

/// One JSON value (RFC 8259), with nothing but white space around it.
pub fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

fn is_made_of(text: &str, first: impl Fn(u8) -> bool, rest: impl Fn(u8) -> bool) -> bool {
    let mut bytes = text.bytes();
    text.len() <= NAME_BYTES_MAX && bytes.next().is_some_and(first) && bytes.all(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_upper_case_and_at_most_64_bytes() {
        for good in ["A", "RECOMMEND_HOME_FEED", "A1_", &"A".repeat(64)] {
            assert!(is_token(good), "{good:?}");
        }
        for bad in ["", "a", "1A", "_A", "A-B", "A B", "Ä", "A\n", &"A".repeat(65)] {
            assert!(!is_token(bad), "{bad:?}");
        }
    }

    #[test]
    fn json_is_one_whole_value() {
        for good in ["null", " [1, 2] ", "{}", "\"é\"", "-1.5e3"] {
            assert!(is_json(good), "{good:?}");
        }
        for bad in ["", "nul", "[1, 2", "{} {}", "{a: 1}", "\"\n\"", "NaN"] {
            assert!(!is_json(bad), "{bad:?}");
        }
    }

    #[test]
    fn no_name_can_break_a_header_line() {
        for bad in ["a\r\nb", "a\nb", "a\0b", "a b", "a\u{7f}b", "a,b", "a\"b", "é", ""] {
            for check in [is_name, is_label, is_identifier, is_version, is_header_name] {
                assert!(!check(bad), "{bad:?}");
            }
        }
        for bad in ["a\r\nb", "a b", "a\0", "", "a\"b", "a\\b"] {
            assert!(!is_served_name(bad), "{bad:?}");
        }
    }

    #[test]
    fn a_pointer_has_a_member_and_only_the_two_escapes() {
        for good in ["/a", "/context/country", "/a~0b/~1", "/0", "/ä"] {
            assert!(is_pointer(good), "{good:?}");
        }
        for bad in ["", "/", "a", "a/b", "/a~", "/a~2", "/a\n"] {
            assert!(!is_pointer(bad), "{bad:?}");
        }
    }

    #[test]
    fn a_path_has_no_query_or_fragment() {
        assert!(is_path("/"));
        assert!(is_path("/v2/models/feed/infer%20"));
        for bad in ["", "v2", "/a?b", "/a#b", "/a b", "/a\r\nHost: x", "/ä"] {
            assert!(!is_path(bad), "{bad:?}");
        }
    }

    #[test]
    fn a_key_template_has_exactly_one_place_for_the_unit() {
        assert!(is_key_template("user:{unit}:country"));
        assert!(is_key_template("{unit}"));
        for bad in ["", "user", "{unit}{unit}", "{user}:{unit}", "{unit}\r\n", "a {unit}", "{unit"]
        {
            assert!(!is_key_template(bad), "{bad:?}");
        }
    }
}
