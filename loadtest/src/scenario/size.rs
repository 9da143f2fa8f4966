//! How long bodies are.

use std::str::FromStr;

use rand::{Rng, RngExt};
use rand_distr::{Distribution, LogNormal};

use crate::limits::REQUEST_BODY_BYTES_MAX;

/// A distribution of body sizes in bytes, at most `REQUEST_BODY_BYTES_MAX` each.
#[derive(Clone, Debug, PartialEq)]
pub enum Size {
    /// `600`: always the same.
    Fixed(usize),
    /// `uniform:MIN,MAX`: each size with the same probability, both ends included.
    Uniform(usize, usize),
    /// `lognormal:MEDIAN,SIGMA`: many small ones and a long tail, as prompts are. The tail is cut
    /// off at `REQUEST_BODY_BYTES_MAX`.
    LogNormal(LogNormal<f64>),
    /// `choice:600=9,65536=1`: these sizes with these weights.
    Choice(Vec<(usize, u32)>),
}

/// Why a text is no size.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SizeError {
    /// Another form.
    #[error(
        "`{0}` is no size; write 600, uniform:200,2000, lognormal:600,0.8 or choice:600=9,65536=1"
    )]
    Syntax(String),
    /// Would use up the memory.
    #[error("a body of {0} bytes is over {REQUEST_BODY_BYTES_MAX}")]
    TooLong(usize),
}

impl Size {
    /// Draws one size.
    pub fn draw(&self, random: &mut impl Rng) -> usize {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Uniform(low, high) => random.random_range(*low..=*high),
            Self::LogNormal(distribution) => {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "not negative, and a cast saturates"
                )]
                let bytes = distribution.sample(random).round() as usize;
                bytes.min(REQUEST_BODY_BYTES_MAX)
            }
            Self::Choice(sizes) => {
                let sum: u64 = sizes.iter().map(|(_, weight)| u64::from(*weight)).sum();
                let mut draw = random.random_range(0..sum.max(1));
                for (bytes, weight) in sizes {
                    match draw.checked_sub(u64::from(*weight)) {
                        Some(rest) => draw = rest,
                        None => return *bytes,
                    }
                }
                0
            }
        }
    }
}

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let refused = || SizeError::Syntax(text.to_owned());
        let bytes = |number: &str| -> Result<usize, SizeError> {
            let bytes = number.trim().parse().map_err(|_| refused())?;
            if bytes > REQUEST_BODY_BYTES_MAX { Err(SizeError::TooLong(bytes)) } else { Ok(bytes) }
        };
        let Some((name, values)) = text.split_once(':') else {
            return bytes(text).map(Self::Fixed);
        };
        let pair = || values.split_once(',').ok_or_else(refused);
        match name {
            "uniform" => {
                let (low, high) = (bytes(pair()?.0)?, bytes(pair()?.1)?);
                if low <= high { Ok(Self::Uniform(low, high)) } else { Err(refused()) }
            }
            "lognormal" => {
                let median = bytes(pair()?.0)?;
                let sigma: f64 = pair()?.1.trim().parse().map_err(|_| refused())?;
                if median == 0 || !(sigma.is_finite() && sigma >= 0.0) {
                    return Err(refused());
                }
                let location = (median as f64).ln();
                LogNormal::new(location, sigma).map(Self::LogNormal).map_err(|_| refused())
            }
            "choice" => {
                let sizes = values.split(',').map(|part| {
                    let (size, weight) = part.split_once('=').ok_or_else(refused)?;
                    Ok((bytes(size)?, weight.trim().parse().map_err(|_| refused())?))
                });
                let sizes: Vec<(usize, u32)> = sizes.collect::<Result<_, _>>()?;
                let any = sizes.iter().any(|(_, weight)| *weight > 0);
                if any { Ok(Self::Choice(sizes)) } else { Err(refused()) }
            }
            _ => Err(refused()),
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::Xoshiro256PlusPlus;

    use super::*;

    fn draws(text: &str) -> Vec<usize> {
        let size: Size = text.parse().unwrap();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut draws: Vec<_> = (0..10_000).map(|_| size.draw(&mut random)).collect();
        draws.sort_unstable();
        draws
    }

    #[test]
    fn sizes_are_drawn_as_their_distribution_says() {
        assert!(draws("600").iter().all(|bytes| *bytes == 600));
        let uniform = draws("uniform:100,300");
        assert_eq!((uniform[0], uniform[9999]), (100, 300));
        assert!((195..=205).contains(&uniform[5000]), "{}", uniform[5000]);
        let lognormal = draws("lognormal:600,0.8");
        assert!((580..=620).contains(&lognormal[5000]), "{}", lognormal[5000]);
        assert!(lognormal[9900] > 3000 && lognormal[9900] < 5000, "{}", lognormal[9900]);
        let choice = draws("choice:600=9,65536=1");
        let large = choice.iter().filter(|bytes| **bytes == 65_536).count();
        // Four standard deviations are 120.
        assert!((880..=1120).contains(&large), "{large}");
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "-1", "x", "uniform:3", "uniform:3,2", "lognormal:0,1", "lognormal:5,-1"] {
            assert!(matches!(text.parse::<Size>(), Err(SizeError::Syntax(_))), "{text}");
        }
        for text in ["choice:", "choice:1=0", "choice:1", "normal:1,2", "lognormal:5,NaN"] {
            assert!(matches!(text.parse::<Size>(), Err(SizeError::Syntax(_))), "{text}");
        }
        assert!(matches!("99999999999".parse::<Size>(), Err(SizeError::TooLong(_))));
    }
}
