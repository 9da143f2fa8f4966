//! How many files and sockets this process may have open.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard one, and returns what holds then; `None`: no limit.
///
/// The soft limit is 1 024 nearly everywhere, for the sake of programs that use `select(2)`.
///
/// # Errors
/// What the kernel said; the old limit holds.
pub fn raise_limit() -> io::Result<Option<u64>> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    }
    Ok(maximum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_is_the_hard_one_afterwards() {
        let limit = raise_limit().unwrap();
        assert_eq!(getrlimit(Resource::Nofile).current, limit);
    }
}
