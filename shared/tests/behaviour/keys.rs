//! Key texts, and which keys are trusted.

use switchboard_shared::{
    limits::TRUSTED_KEYS_MAX,
    snapshot::{KeyError, PublicKey, SecretKey, TrustedKeys},
};

use crate::sample;

#[test]
fn a_key_survives_its_text() {
    let secret = sample::key();
    let line = secret.to_line();
    assert_eq!(line, format!("switchboard-secret-1 {}\n", "07".repeat(32)));
    let again: SecretKey = line.parse().expect("its own line");
    assert_eq!(again.public(), secret.public());

    let public = secret.public();
    let text = public.to_string();
    assert!(text.starts_with("switchboard-public-1 "));
    assert_eq!(format!("  {text}\r\n").parse(), Ok(public));
    assert_eq!(public.id().to_string().len(), 16);
}

#[test]
fn a_secret_is_not_printed_by_accident() {
    let debug = format!("{:?}", sample::key());
    assert!(!debug.contains("07070707"), "{debug}");
    assert!(debug.contains(&sample::key().public().id().to_string()));
}

#[test]
fn a_key_text_that_is_none_is_refused_with_what_was_expected() {
    const WORD: &str = "switchboard-public-1";
    let hex = "ab".repeat(32);
    for (text, expected) in [
        (String::new(), KeyError::Format { expected: WORD }),
        (hex.clone(), KeyError::Format { expected: WORD }),
        (format!("switchboard-public-2 {hex}"), KeyError::Format { expected: WORD }),
        (format!("{WORD}{hex}"), KeyError::Format { expected: WORD }),
        (format!("{WORD} "), KeyError::Format { expected: WORD }),
        (format!("{WORD} {}", &hex[1..]), KeyError::Hex { expected: WORD }),
        (format!("{WORD} {hex}0"), KeyError::Hex { expected: WORD }),
        (format!("{WORD}  {hex}"), KeyError::Hex { expected: WORD }),
        (format!("{WORD} {hex} comment"), KeyError::Hex { expected: WORD }),
        (format!("{WORD} {hex}\n{WORD} {hex}"), KeyError::Hex { expected: WORD }),
        (format!("{WORD} {}", "zz".repeat(32)), KeyError::Hex { expected: WORD }),
        (sample::key().to_line(), KeyError::SecretAsPublic),
    ] {
        assert_eq!(text.parse::<PublicKey>(), Err(expected), "{text:?}");
    }
    let public = sample::key().public().to_string();
    assert_eq!(public.parse::<SecretKey>().map(drop), Err(KeyError::PublicAsSecret));
}

/// CF-02: a small-order key is refused when it is loaded; one of its signatures could fit any two
/// messages. These are the eight small-order points in their canonical encodings, and the
/// non-canonical ones of the identity and of y = -1.
#[test]
fn a_weak_public_key_is_refused_at_load() {
    for hex in [
        "0100000000000000000000000000000000000000000000000000000000000000",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0000000000000000000000000000000000000000000000000000000000000080",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    ] {
        let refused = format!("switchboard-public-1 {hex}").parse::<PublicKey>();
        assert_eq!(refused, Err(KeyError::Weak), "{hex}");
    }
    let no_point = format!("switchboard-public-1 02{}", "00".repeat(31));
    assert_eq!(no_point.parse::<PublicKey>(), Err(KeyError::NotOnCurve));
}

#[test]
fn keys_rotate_by_trusting_both_but_none_twice() {
    let public = |seed: u8| SecretKey::from_seed(&[seed; 32]).public();
    let both = TrustedKeys::new([public(1), public(2)]).expect("two keys");
    assert_eq!(both.ids().len(), 2);
    assert_eq!(both.get(public(2).id()), Some(&public(2)));
    assert_eq!(both.get(public(3).id()), None);
    let twice = TrustedKeys::new([public(1), public(1)]).map(drop);
    assert_eq!(twice, Err(KeyError::Twice(public(1).id())));
    let many = (0..=TRUSTED_KEYS_MAX).map(|seed| public(u8::try_from(seed).expect("few")));
    assert_eq!(TrustedKeys::new(many).map(drop), Err(KeyError::TooMany));
}
