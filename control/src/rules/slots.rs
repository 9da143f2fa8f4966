//! Sets of Slots as text, such as `["0-4499", "7000"]`: both ends of a range are in it.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use switchboard_shared::slot::{Slot, SlotRange};

/// Slots in ascending, merged ranges.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SlotSet(Vec<SlotRange>);

/// Why ranges are no set of Slots.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SlotSetError {
    /// Not `N` or `FIRST-LAST` with `0 <= FIRST <= LAST <= 9999`.
    #[error("`{text}` is no range of Slots such as `0-4499` or `7000`")]
    Range {
        /// What was found.
        text: String,
    },
    /// A Slot stands in it twice.
    #[error("Slot {slot} stands in it twice")]
    Twice {
        /// The lowest such Slot.
        slot: Slot,
    },
}

impl SlotSet {
    /// Sorts and merges ranges.
    ///
    /// # Errors
    /// `Twice` where two of them overlap.
    pub fn of_ranges(mut ranges: Vec<SlotRange>) -> Result<Self, SlotSetError> {
        ranges.sort_unstable();
        let mut merged: Vec<SlotRange> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match merged.last_mut() {
                Some(last) if range.first() <= last.last() => {
                    return Err(SlotSetError::Twice { slot: range.first() });
                }
                Some(last) if range.first().get() == last.last().get() + 1 => {
                    // The later one ends after the earlier one begins, so there is always one.
                    *last = SlotRange::new(last.first(), range.last()).unwrap_or(*last);
                }
                Some(_) | None => merged.push(range),
            }
        }
        Ok(Self(merged))
    }

    /// Reads one text per range.
    ///
    /// # Errors
    /// `Range` for what is none, `Twice` where two of them overlap.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, SlotSetError> {
        let ranges = texts.into_iter().map(parse_range).collect::<Result<Vec<_>, _>>()?;
        Self::of_ranges(ranges)
    }

    /// The ranges, ascending, with a gap between any two.
    #[must_use]
    pub fn ranges(&self) -> &[SlotRange] {
        &self.0
    }

    /// One text per range.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|range| match (range.first(), range.last()) {
            (first, last) if first == last => first.to_string(),
            (first, last) => format!("{first}-{last}"),
        })
    }

    /// How many Slots.
    #[must_use]
    pub fn len(&self) -> u16 {
        self.0.iter().map(|range| range.len()).sum()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Its Slots, ascending.
    pub fn slots(&self) -> impl Iterator<Item = Slot> {
        self.0.iter().flat_map(|range| range.slots())
    }
}

fn parse_range(text: &str) -> Result<SlotRange, SlotSetError> {
    let number = |digits: &str| {
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        if plain { digits.parse::<u16>().ok() } else { None }
    };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    number(first)
        .zip(number(last))
        .and_then(|(first, last)| SlotRange::of(first, last))
        .ok_or_else(|| SlotSetError::Range { text: text.to_owned() })
}

impl FromIterator<Slot> for SlotSet {
    /// Slots in any order, repeated or not.
    fn from_iter<T: IntoIterator<Item = Slot>>(slots: T) -> Self {
        let mut slots: Vec<Slot> = slots.into_iter().collect();
        slots.sort_unstable();
        slots.dedup();
        let single = |slot| SlotRange::new(slot, slot).expect("a Slot is not after itself");
        Self::of_ranges(slots.into_iter().map(single).collect())
            .expect("distinct Slots do not overlap")
    }
}

impl Serialize for SlotSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.texts())
    }
}

impl<'de> Deserialize<'de> for SlotSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        Self::parse(texts.iter().map(String::as_str)).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_ranges_are_the_same_set() {
        let set = SlotSet::parse(["5-9", "0-4", "7000", "9998-9999"]).expect("good ranges");
        assert_eq!(set.texts().collect::<Vec<_>>(), ["0-9", "7000", "9998-9999"]);
        assert_eq!(set.len(), 13);
        assert_eq!(set, set.slots().collect());
    }

    #[test]
    fn what_is_no_range_is_named() {
        for text in ["", "-", "1-", "-1", "+1", "4-3", "0-10000", "10000", "1 -2", "99999", "1-2-3"]
        {
            let expected = SlotSetError::Range { text: text.to_owned() };
            assert_eq!(SlotSet::parse([text]), Err(expected));
        }
    }

    #[test]
    fn a_slot_twice_is_refused() {
        let slot = Slot::new(4).expect("a Slot");
        assert_eq!(SlotSet::parse(["0-4", "4-8"]), Err(SlotSetError::Twice { slot }));
    }
}
