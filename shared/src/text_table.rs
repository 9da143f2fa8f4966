//! Finds a text in a list: an open-addressing table that lives in the archive.
//!
//! Used for the Objectives' tokens and for the texts of an `in` list. Binary search over 10 000
//! tokens takes 14 cache misses one after the other, and so does a list of 100 texts take seven;
//! this takes one or two. The table is a power of two of at least twice the texts, so that a search
//! meets an empty place soon.
//!
//! Its places follow from the texts of the Snapshot's author, so a client cannot attack it with
//! chosen collisions: a client's text only searches. Places and tags are part of the format.

use rkyv::{Archive, Serialize};

/// One place of a table.
#[derive(Archive, Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[rkyv(derive(Clone, Copy))]
pub struct Bucket {
    /// The upper half of the text's hash: a foreign text is nearly never read.
    pub tag: u32,
    /// The text's place in its list, or `Bucket::EMPTY`.
    pub text: u32,
}

impl Bucket {
    /// A place without a text.
    pub const EMPTY: u32 = u32::MAX;
}

/// The table for these texts, fewer than 2³¹. Of two that are equal, only the first is found.
pub(crate) fn build<'a>(texts: impl ExactSizeIterator<Item = &'a str>) -> Vec<Bucket> {
    let places = places_for(texts.len());
    let mut table = vec![Bucket { tag: 0, text: Bucket::EMPTY }; places];
    for (number, text) in (0..).zip(texts) {
        let hash = Hash::of(text.as_bytes());
        let mut place = hash.place(places);
        while table[place].text != Bucket::EMPTY {
            place = (place + 1) & (places - 1);
        }
        table[place] = Bucket { tag: hash.tag(), text: number };
    }
    table
}

/// The place of `text` in its list, whose texts `text_at` gives. Bounded by the table's length
/// whatever the table says. Hot path.
pub(crate) fn find<'a>(
    table: &[ArchivedBucket],
    text: &[u8],
    text_at: impl Fn(usize) -> Option<&'a str>,
) -> Option<usize> {
    let hash = Hash::of(text);
    let start = hash.place(table.len());
    let (before, from) = table.split_at_checked(start)?;
    for bucket in from.iter().chain(before) {
        let number = bucket.text.to_native();
        if number == Bucket::EMPTY {
            return None;
        }
        let place = number as usize;
        if bucket.tag.to_native() == hash.tag() && text_at(place)?.as_bytes() == text {
            return Some(place);
        }
    }
    None
}

/// Whether the table has the size that [`build`] gives it, and finds each text in its own place.
/// Then no two texts are equal, and each search ends.
pub(crate) fn is_sound<'a>(
    table: &[ArchivedBucket],
    count: usize,
    text_at: impl Fn(usize) -> Option<&'a str>,
) -> bool {
    table.len() == places_for(count)
        && (0..count).all(|place| {
            text_at(place).is_some_and(|text| find(table, text.as_bytes(), &text_at) == Some(place))
        })
}

fn places_for(count: usize) -> usize {
    (count * 2).next_power_of_two().max(2)
}

/// A quick hash of a text.
#[derive(Clone, Copy)]
struct Hash(u64);

impl Hash {
    /// 2⁶⁴ divided by the golden ratio: odd, with its bits well spread.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

    /// Eight bytes at a time, little-endian, the last ones padded with zeros.
    fn of(text: &[u8]) -> Self {
        let mut hash = text.len() as u64;
        let mut chunks = text.chunks_exact(8);
        for chunk in &mut chunks {
            let word = chunk.try_into().map_or(0, u64::from_le_bytes);
            hash = Self::mix(hash, word);
        }
        let rest = chunks.remainder();
        let last = rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        Self(Self::mix(hash, last))
    }

    /// Folds the 128-bit product, so that every bit of `word` reaches both halves.
    fn mix(hash: u64, word: u64) -> u64 {
        let product = u128::from(hash ^ word ^ Self::FACTOR) * u128::from(Self::FACTOR);
        low(product) ^ low(product >> 64)
    }

    #[expect(clippy::cast_possible_truncation, reason = "the low bits choose the place")]
    fn place(self, places: usize) -> usize {
        self.0 as usize & places.wrapping_sub(1)
    }

    fn tag(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is what is asked for")]
fn low(product: u128) -> u64 {
    product as u64
}

#[cfg(test)]
mod tests {
    use rkyv::{rancor, vec::ArchivedVec};

    use super::*;

    /// Builds the table of `texts` and hands it over as the archive has it.
    fn with_table(texts: &[String], test: impl FnOnce(&[ArchivedBucket])) {
        let table = build(texts.iter().map(String::as_str));
        let bytes = rkyv::to_bytes::<rancor::Error>(&table).expect("plain data");
        let table = rkyv::access::<ArchivedVec<ArchivedBucket>, rancor::Error>(&bytes);
        test(table.expect("as it was written"));
    }

    #[test]
    fn each_text_is_found_in_its_place_and_no_other_text_is() {
        for count in [0, 1, 2, 3, 1_000, 10_000] {
            let texts: Vec<String> = (0..count).map(|one| format!("RECOMMEND_{one}")).collect();
            let text_at = |place: usize| texts.get(place).map(String::as_str);
            with_table(&texts, |table| {
                assert!(is_sound(table, count, text_at));
                for (place, text) in texts.iter().enumerate() {
                    assert_eq!(find(table, text.as_bytes(), text_at), Some(place));
                    let other = format!("{text}_");
                    assert_eq!(find(table, other.as_bytes(), text_at), None);
                }
                for foreign in [&b""[..], b"\0", b"R", &[0xff; 100]] {
                    assert_eq!(find(table, foreign, text_at), None);
                }
            });
        }
    }

    /// Two texts with one hash cannot be written down here, but a list can tell another text.
    #[test]
    fn an_equal_hash_is_not_taken_for_an_equal_text() {
        let texts = ["a".to_owned()];
        with_table(&texts, |table| {
            assert_eq!(find(table, b"a", |_| Some("a")), Some(0));
            assert_eq!(find(table, b"a", |_| Some("b")), None);
            assert_eq!(find(table, b"a", |_| None), None);
        });
    }

    #[test]
    fn a_text_that_is_there_twice_is_no_sound_table() {
        let texts = ["a", "b", "a"].map(str::to_owned);
        with_table(&texts, |table| {
            assert!(!is_sound(table, 3, |place| texts.get(place).map(String::as_str)));
        });
    }

    /// Else a search would be slow in the very tables that people write: numbered names.
    #[test]
    fn searches_of_numbered_names_are_short() {
        let texts: Vec<String> = (0..10_000).map(|one| format!("SURFACE_{one:05}")).collect();
        let table = build(texts.iter().map(String::as_str));
        let mask = table.len() - 1;
        let distance = |(place, bucket): (usize, &Bucket)| {
            let text = texts.get(bucket.text as usize)?;
            Some(place.wrapping_sub(Hash::of(text.as_bytes()).place(table.len())) & mask)
        };
        let distances: Vec<usize> = table.iter().enumerate().filter_map(distance).collect();
        assert_eq!(distances.len(), texts.len());
        // Linear probing at a load of 0.31; the mean of a good hash is 0.22 (Knuth, TAOCP 6.4).
        assert!(distances.iter().sum::<usize>() < texts.len(), "{distances:?}");
        assert!(distances.iter().all(|one| *one < 40), "{:?}", distances.iter().max());
    }
}
