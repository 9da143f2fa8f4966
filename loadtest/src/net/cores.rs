//! Which cores the threads are pinned to.

use std::io;
use std::str::FromStr;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Cores to pin threads to, in order; thread `n` takes core `n` modulo their number.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Cores(Vec<usize>);

/// Why a list of cores was refused.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
pub enum CoresError {
    /// Neither a number nor a range.
    #[error("`{0}` is no core; write numbers and ranges, such as 0,2-3")]
    NotANumber(String),
    /// A range that runs backwards.
    #[error("`{0}` is an empty range")]
    EmptyRange(String),
    /// This process may not run there, or the host has no such core.
    #[error("this process may not run on core {0}")]
    NotAllowed(usize),
}

impl Cores {
    /// How many there are; at least one.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Both lists, one after the other.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self([&self.0[..], &other.0[..]].concat())
    }

    /// Allows the calling thread, and the programs that it starts, all of these cores.
    ///
    /// # Errors
    /// What the kernel says, such as a core that was taken offline.
    pub fn allow_current_thread(&self) -> io::Result<()> {
        let mut set = CpuSet::new();
        self.0.iter().for_each(|core| set.set(*core));
        Ok(sched_setaffinity(None, &set)?)
    }

    /// Pins the calling thread.
    ///
    /// # Errors
    /// What the kernel says, such as a core that was taken offline.
    pub fn pin_current_thread(&self, thread: usize) -> io::Result<()> {
        let mut set = CpuSet::new();
        set.set(self.0[thread % self.0.len()]);
        Ok(sched_setaffinity(None, &set)?)
    }
}

impl FromStr for Cores {
    type Err = CoresError;

    fn from_str(text: &str) -> Result<Self, CoresError> {
        let not_a_number = |part: &str| CoresError::NotANumber(part.to_owned());
        let number = |part: &str| part.trim().parse::<usize>().map_err(|_| not_a_number(part));
        let mut cores = Vec::new();
        for part in text.split(',') {
            let (first, last) = match part.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if first > last {
                return Err(CoresError::EmptyRange(part.to_owned()));
            }
            if last >= CpuSet::MAX_CPU {
                return Err(CoresError::NotAllowed(last));
            }
            cores.extend(first..=last);
        }
        let allowed = sched_getaffinity(None).map_err(|_| CoresError::NotAllowed(cores[0]))?;
        match cores.iter().find(|core| !allowed.is_set(**core)) {
            Some(core) => Err(CoresError::NotAllowed(*core)),
            None => Ok(Self(cores)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_cores_is_numbers_and_ranges_that_the_host_has() {
        assert_eq!("0".parse::<Cores>().unwrap(), Cores(vec![0]));
        assert_eq!("0,0-0".parse::<Cores>().unwrap(), Cores(vec![0, 0]));
        assert_eq!("".parse::<Cores>(), Err(CoresError::NotANumber(String::new())));
        assert_eq!("x".parse::<Cores>(), Err(CoresError::NotANumber("x".to_owned())));
        assert_eq!("1-0".parse::<Cores>(), Err(CoresError::EmptyRange("1-0".to_owned())));
        assert_eq!("1000000".parse::<Cores>(), Err(CoresError::NotAllowed(1_000_000)));
    }
}
