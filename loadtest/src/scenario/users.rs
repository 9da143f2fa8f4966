//! Whom requests are sent for: `u0`, `u1` … by turns, evenly, or a few much more than the rest.

use std::fmt::Write;
use std::str::FromStr;

use rand::{Rng, RngExt};
use rand_distr::{Distribution, Zipf};

/// A population of users.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Users {
    /// How many there are; at least one.
    pub count: u64,
    /// Who comes next.
    pub choice: Choice,
}

/// Who comes next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Choice {
    /// One after the other, by the request's number.
    Sequence,
    /// Each with the same probability.
    Uniform,
    /// User `k` (from 1) with probability in proportion to `k` to the power of minus this exponent.
    Zipf(f64),
}

/// Why a text is no choice.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` is no choice of users; write sequence, uniform or zipf:EXPONENT, as in zipf:1.1")]
pub struct ChoiceError(String);

impl FromStr for Choice {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        let refused = || ChoiceError(text.to_owned());
        match text.split_once(':') {
            None if text == "sequence" => Ok(Self::Sequence),
            None if text == "uniform" => Ok(Self::Uniform),
            Some(("zipf", exponent)) => {
                let exponent: f64 = exponent.parse().map_err(|_| refused())?;
                let usable = exponent.is_finite() && exponent > 0.0;
                if usable { Ok(Self::Zipf(exponent)) } else { Err(refused()) }
            }
            _ => Err(refused()),
        }
    }
}

/// One thread's draws.
#[derive(Clone, Copy, Debug)]
pub struct UserDraw {
    users: Users,
    zipf: Option<Zipf<f64>>,
}

impl Users {
    /// Prepares the draws.
    #[expect(clippy::cast_precision_loss, reason = "beyond 2^53 users their order is immaterial")]
    pub fn draw(self) -> UserDraw {
        let zipf = match self.choice {
            Choice::Zipf(exponent) => Zipf::new(self.count as f64, exponent).ok(),
            Choice::Sequence | Choice::Uniform => None,
        };
        UserDraw { users: self, zipf }
    }
}

impl UserDraw {
    /// The user of request `number`, `0..count`.
    pub fn next(&self, number: u64, random: &mut impl Rng) -> u64 {
        match (self.users.choice, &self.zipf) {
            (Choice::Sequence, _) => number % self.users.count,
            (Choice::Zipf(_), Some(zipf)) => {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a rank is a whole number from 1 to count"
                )]
                let rank = zipf.sample(random) as u64;
                rank.clamp(1, self.users.count) - 1
            }
            _ => random.random_range(0..self.users.count),
        }
    }
}

/// Writes a user's name in place of what `name` held.
pub fn name(user: u64, name: &mut String) {
    name.clear();
    write!(name, "u{user}").ok(); // writing to memory cannot fail
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::Xoshiro256PlusPlus;

    use super::*;

    fn counts(choice: Choice) -> Vec<u32> {
        let draw = Users { count: 100, choice }.draw();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
        let mut counts = vec![0; 100];
        for number in 0..100_000 {
            counts[usize::try_from(draw.next(number, &mut random)).unwrap()] += 1;
        }
        counts
    }

    #[test]
    fn a_sequence_takes_turns() {
        assert!(counts(Choice::Sequence).iter().all(|count| *count == 1000));
    }

    #[test]
    fn a_uniform_choice_prefers_nobody() {
        // Four standard deviations are 126.
        assert!(counts(Choice::Uniform).iter().all(|count| (870..=1130).contains(count)));
    }

    #[test]
    fn a_zipf_choice_prefers_the_first() {
        let counts = counts(Choice::Zipf(1.0));
        // The harmonic number of 100 is 5.187: 19 279 for the first, half of it for the second.
        assert!((18_700..=19_900).contains(&counts[0]), "{}", counts[0]);
        assert!((9200..=10_100).contains(&counts[1]), "{}", counts[1]);
        assert_eq!(counts.iter().sum::<u32>(), 100_000);
    }

    #[test]
    fn what_is_no_choice_is_refused() {
        assert_eq!("zipf:1.1".parse(), Ok(Choice::Zipf(1.1)));
        for text in ["zipf", "zipf:0", "zipf:x", "random", "uniform:1"] {
            assert_eq!(text.parse::<Choice>(), Err(ChoiceError(text.to_owned())));
        }
    }
}
