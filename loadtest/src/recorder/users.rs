//! Which users met an Arm: a bit for each, so that a user who comes a thousand times counts once.

use crate::limits::USERS_COUNTED_MAX;

/// A set of users below `USERS_COUNTED_MAX`; others are not counted.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct UserSet {
    words: Vec<u64>,
}

impl UserSet {
    /// Adds a user. Allocates only where a larger number than before comes.
    pub fn add(&mut self, user: u64) {
        if user >= USERS_COUNTED_MAX {
            return;
        }
        let (word, bit) = place(user);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= bit;
    }

    /// Adds all users of another set.
    pub fn merge(&mut self, other: &Self) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (ours, theirs) in self.words.iter_mut().zip(&other.words) {
            *ours |= theirs;
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// How many are in both.
    pub fn count_common(&self, other: &Self) -> u64 {
        let pairs = self.words.iter().zip(&other.words);
        pairs.map(|(ours, theirs)| u64::from((ours & theirs).count_ones())).sum()
    }
}

fn place(user: u64) -> (usize, u64) {
    let word = usize::try_from(user / 64).unwrap_or(usize::MAX); // below USERS_COUNTED_MAX / 64
    (word, 1 << (user % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_counts_once_however_often_they_come() {
        let mut users = UserSet::default();
        for user in [0, 63, 64, 5000, 0, 64] {
            users.add(user);
        }
        assert_eq!(users.count(), 4);
        let mut others = UserSet::default();
        others.add(64);
        others.add(65);
        assert_eq!(users.count_common(&others), 1);
        others.merge(&users);
        assert_eq!(others.count(), 5);
    }

    #[test]
    fn users_beyond_the_maximum_take_no_memory() {
        let mut users = UserSet::default();
        users.add(USERS_COUNTED_MAX);
        users.add(u64::MAX);
        assert_eq!(users, UserSet::default());
        users.add(USERS_COUNTED_MAX - 1);
        assert_eq!((users.count(), users.words.len() as u64 * 64), (1, USERS_COUNTED_MAX));
    }
}
