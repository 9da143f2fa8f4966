//! Bucketing: which Slot a Unit falls into for one salt. Frozen; other languages reproduce it.
//!
//! `docs/bucketing.md` tells it in full, `shared/vectors/slots.json` holds golden values.

use std::fmt;

use crate::limits::TEXT_BYTES_MAX;

/// Where a Unit falls for one salt: `0..Slot::COUNT`; one Slot is 0.01 % of the Units.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Slot(u16);

impl Slot {
    /// Frozen: another value moves every Unit of every Experiment.
    pub const COUNT: u16 = 10_000;

    /// The first one.
    pub const FIRST: Self = Self(0);

    /// The last one.
    pub const LAST: Self = Self(Self::COUNT - 1);

    /// `None` from `Slot::COUNT` on.
    pub const fn new(slot: u16) -> Option<Self> {
        if slot < Self::COUNT { Some(Self(slot)) } else { None }
    }

    /// Where `unit` falls under `key`.
    ///
    /// Multiply-shift of 8 hash bytes (Lemire, arXiv:1805.10941): no division, bias below 2⁻⁵⁰.
    ///
    /// Hot path: one short keyed hash, no allocation.
    pub fn of(key: &SlotKey, unit: &Unit<'_>) -> Self {
        let hash = blake3::keyed_hash(&key.0, unit.as_str().as_bytes());
        let [a, b, c, d, e, f, g, h, ..] = *hash.as_bytes();
        let word = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        let slot = (u128::from(word) * u128::from(Self::COUNT)) >> 64;
        Self(slot_of_fraction(slot))
    }

    /// The number itself, below `Slot::COUNT`.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// All of them, in order.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> {
        (0..Self::COUNT).map(Self)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a 64-bit fraction of COUNT is below COUNT")]
fn slot_of_fraction(slot: u128) -> u16 {
    debug_assert!(slot < u128::from(Slot::COUNT));
    slot as u16
}

impl fmt::Display for Slot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Slots from `first` to `last`, both of them in it.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SlotRange {
    first: Slot,
    last: Slot,
}

impl SlotRange {
    /// Every Slot.
    pub const ALL: Self = Self { first: Slot::FIRST, last: Slot::LAST };

    /// `None` where `first` is after `last`.
    pub fn new(first: Slot, last: Slot) -> Option<Self> {
        (first <= last).then_some(Self { first, last })
    }

    /// The same from plain numbers; `None` too where one of them is no Slot.
    pub fn of(first: u16, last: u16) -> Option<Self> {
        Self::new(Slot::new(first)?, Slot::new(last)?)
    }

    /// The lowest Slot.
    pub const fn first(self) -> Slot {
        self.first
    }

    /// The highest Slot.
    pub const fn last(self) -> Slot {
        self.last
    }

    /// How many Slots; at least one.
    #[expect(clippy::len_without_is_empty, reason = "a range is never empty")]
    pub const fn len(self) -> u16 {
        self.last.0 - self.first.0 + 1
    }

    /// Whether `slot` is in it.
    pub fn contains(self, slot: Slot) -> bool {
        (self.first..=self.last).contains(&slot)
    }

    /// Its Slots, in order.
    pub fn slots(self) -> impl DoubleEndedIterator<Item = Slot> {
        (self.first.0..=self.last.0).map(Slot)
    }
}

/// What a salt becomes once, when the Snapshot is built: the key of all hashes under that salt.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct SlotKey([u8; 32]);

impl SlotKey {
    /// Frozen: another text moves every Unit of every Experiment.
    pub const DOMAIN: &'static str = "switchboard 2026-11 experiment slot v1";

    /// Derives the key from a salt (BLAKE3 key derivation). Off the request path.
    pub fn derive(salt: &str) -> Self {
        Self(blake3::derive_key(Self::DOMAIN, salt.as_bytes()))
    }

    /// Frozen: what Units are drawn for shadow traffic under. Another domain than [`Self::DOMAIN`], so
    /// that no experiment's salt can correlate with it (cases.md EX-01).
    pub const SAMPLE_DOMAIN: &'static str = "switchboard 2026-11 shadow sample v1";

    /// Derives the key under which the Units of an Objective's shadow traffic are drawn, from its token:
    /// a Unit whose Slot is below the sample is in it. Off the request path.
    pub fn derive_sample(token: &str) -> Self {
        Self(blake3::derive_key(Self::SAMPLE_DOMAIN, token.as_bytes()))
    }

    /// A key that [`SlotKey::derive`] made before.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes, as a Snapshot stores them.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for SlotKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SlotKey({})", blake3::Hash::from_bytes(self.0).to_hex())
    }
}

/// What is bucketed: a text that is not blank, or an integer in its decimal form.
///
/// An integer and its decimal text are the same Unit on purpose: `7` in a JSON body and `7` in a
/// header name the same user.
#[derive(Clone, Copy, Debug)]
pub struct Unit<'a>(Form<'a>);

#[derive(Clone, Copy, Debug)]
enum Form<'a> {
    Text(&'a str),
    Integer { digits: [u8; Unit::INTEGER_BYTES_MAX], length: u8 },
}

impl<'a> Unit<'a> {
    /// Largest integer that is a Unit. Above 2⁵³ a double no longer tells neighbours apart, so two
    /// users would share one Slot.
    pub const INTEGER_MAX: i64 = 1 << 53;

    /// A sign and the 16 digits of 2⁵³.
    const INTEGER_BYTES_MAX: usize = 17;

    /// `None` for a blank text (empty, or only Unicode `White_Space`), which would put all requests
    /// that lack a Unit into one Slot, and for one above `TEXT_BYTES_MAX`. Nothing is trimmed.
    pub fn text(text: &'a str) -> Option<Self> {
        let blank = text.chars().all(char::is_whitespace);
        (!blank && text.len() <= TEXT_BYTES_MAX).then_some(Self(Form::Text(text)))
    }

    /// `None` for what is no integer of at most `Unit::INTEGER_MAX` in size.
    pub fn number(number: f64) -> Option<Self> {
        #[expect(clippy::cast_precision_loss, reason = "INTEGER_MAX is a power of two")]
        let whole = number.trunc() == number && number.abs() <= Self::INTEGER_MAX as f64;
        if !whole {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
        let integer = number as i64; // -0.0 becomes 0
        let mut buffer = itoa::Buffer::new();
        let text = buffer.format(integer).as_bytes();
        let mut digits = [0; Self::INTEGER_BYTES_MAX];
        digits.get_mut(..text.len())?.copy_from_slice(text);
        Some(Self(Form::Integer { digits, length: u8::try_from(text.len()).ok()? }))
    }

    /// The canonical text that is hashed.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Form::Text(text) => text,
            Form::Integer { digits, length } => {
                let digits = digits.get(..usize::from(*length)).unwrap_or_default();
                debug_assert!(!digits.is_empty() && digits.is_ascii(), "`number` wrote digits");
                std::str::from_utf8(digits).unwrap_or_default()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number_text(number: f64) -> Option<String> {
        Unit::number(number).map(|unit| unit.as_str().to_owned())
    }

    #[test]
    fn the_count_is_the_first_number_that_is_no_slot() {
        assert_eq!(Slot::new(9_999), Some(Slot::LAST));
        assert_eq!(Slot::new(10_000), None);
        assert_eq!(Slot::new(u16::MAX), None);
        assert_eq!(Slot::all().count(), 10_000);
    }

    #[test]
    fn the_extreme_hash_words_fall_into_the_first_and_the_last_slot() {
        let of_word = |word: u64| (u128::from(word) * 10_000) >> 64;
        assert_eq!(slot_of_fraction(of_word(0)), 0);
        assert_eq!(slot_of_fraction(of_word(u64::MAX)), 9_999);
    }

    #[test]
    fn a_range_is_never_empty_or_reversed() {
        assert_eq!(SlotRange::of(5, 4), None);
        assert_eq!(SlotRange::of(0, 10_000), None);
        assert_eq!(SlotRange::of(7, 7).map(SlotRange::len), Some(1));
        assert_eq!(SlotRange::ALL.len(), 10_000);
        assert_eq!(SlotRange::ALL.slots().last(), Some(Slot::LAST));
    }

    /// EX-04: absent is the caller's `None`; empty and blank are no Unit either.
    #[test]
    fn a_blank_text_is_no_unit() {
        for blank in ["", " ", "  ", "\t\r\n", "\u{a0}", "\u{2003}\u{3000}"] {
            assert!(Unit::text(blank).is_none(), "{blank:?}");
        }
        for text in ["0", " u1", "u1 ", "\u{200b}"] {
            assert_eq!(
                Unit::text(text).map(|unit| unit.as_str().to_owned()),
                Some(text.to_owned())
            );
        }
    }

    #[test]
    fn a_text_above_the_limit_is_no_unit() {
        assert!(Unit::text(&"x".repeat(TEXT_BYTES_MAX)).is_some());
        assert!(Unit::text(&"x".repeat(TEXT_BYTES_MAX + 1)).is_none());
    }

    /// EX-04: `1e3` and `1000` are one Unit, and so are `1` and `"1"`.
    #[test]
    fn a_number_has_one_canonical_text() {
        assert_eq!(number_text(0.0).as_deref(), Some("0"));
        assert_eq!(number_text(-0.0).as_deref(), Some("0"));
        assert_eq!(number_text(1e3).as_deref(), Some("1000"));
        assert_eq!(number_text(-42.0).as_deref(), Some("-42"));
        assert_eq!(number_text(9_007_199_254_740_992.0).as_deref(), Some("9007199254740992"));
        assert_eq!(number_text(-9_007_199_254_740_992.0).as_deref(), Some("-9007199254740992"));
    }

    #[test]
    fn a_number_that_is_no_exact_integer_is_no_unit() {
        for number in [0.5, -1.25, 9_007_199_254_740_994.0, 1e300, f64::NAN, f64::INFINITY] {
            assert!(Unit::number(number).is_none(), "{number}");
        }
    }
}
