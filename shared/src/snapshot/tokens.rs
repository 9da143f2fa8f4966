//! Finds an Objective by its token: an open-addressing table in the archive itself.
//!
//! Binary search over 10 000 tokens takes 14 dependent cache misses, this one or two. The table is
//! a power of two of at least twice the Objectives, so that a search meets an empty place soon;
//! opening a Snapshot checks that each token is found, and that there is an empty place at all.

use rkyv::vec::ArchivedVec;

use super::archive::{
    ArchivedObjective, ArchivedTokenBucket, Objective, ObjectiveIndex, TokenBucket,
};

impl TokenBucket {
    /// A place without an Objective.
    pub const EMPTY: u32 = u32::MAX;
}

/// The table for these Objectives.
pub(super) fn build(objectives: &[Objective]) -> Vec<TokenBucket> {
    let places = (objectives.len() * 2).next_power_of_two().max(2);
    let mut table = vec![TokenBucket { tag: 0, objective: TokenBucket::EMPTY }; places];
    for (number, objective) in (0..).zip(objectives) {
        let hash = Hash::of(objective.token.as_bytes());
        let mut place = hash.place(places);
        while table[place].objective != TokenBucket::EMPTY {
            place = (place + 1) & (places - 1);
        }
        table[place] = TokenBucket { tag: hash.tag(), objective: number };
    }
    table
}

/// The Objective of this token. Bounded by the table's length whatever the table says.
pub(super) fn find(
    table: &ArchivedVec<ArchivedTokenBucket>,
    objectives: &ArchivedVec<ArchivedObjective>,
    token: &[u8],
) -> Option<ObjectiveIndex> {
    let hash = Hash::of(token);
    let start = hash.place(table.len());
    let (before, from) = table.split_at_checked(start)?;
    for bucket in from.iter().chain(before) {
        let objective = ObjectiveIndex(bucket.objective.to_native());
        if objective.0 == TokenBucket::EMPTY {
            return None;
        }
        if bucket.tag.to_native() == hash.tag()
            && objectives.get(objective.get())?.token.as_bytes() == token
        {
            return Some(objective);
        }
    }
    None
}

/// A quick hash of a token: the table's places are the Snapshot author's, so nobody can attack it
/// with chosen collisions, and a client's token only searches. Part of the format.
#[derive(Clone, Copy)]
struct Hash(u64);

impl Hash {
    /// 2⁶⁴ divided by the golden ratio: odd, with its bits well spread.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

    /// Eight bytes at a time, little-endian, the last ones padded with zeros.
    fn of(token: &[u8]) -> Self {
        let mut hash = token.len() as u64;
        let mut chunks = token.chunks_exact(8);
        for chunk in &mut chunks {
            let word = chunk.try_into().map_or(0, u64::from_le_bytes);
            hash = Self::mix(hash, word);
        }
        let last =
            chunks.remainder().iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
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
        (self.0 >> 32).try_into().unwrap_or_default()
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is what is asked for")]
fn low(product: u128) -> u64 {
    product as u64
}
