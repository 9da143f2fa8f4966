//! An address that clients connect to.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::limits::SOCKET_PATH_BYTES_MAX;

/// An address that clients connect to: `127.0.0.1:8080`, `[::1]:8080` or `unix:/path`.
///
/// Host names are refused: what a name means may change, what a router listens on may not.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Listen {
    /// TCP; port 0 lets the kernel choose one.
    Tcp(SocketAddr),
    /// A Unix socket of at most `SOCKET_PATH_BYTES_MAX` bytes.
    Unix(PathBuf),
}

/// A text is no [`Listen`] address.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("expected {EXPECTED}")]
pub struct ListenError;

const EXPECTED: &str =
    r#"an address and port such as "127.0.0.1:8080" or "[::1]:8080", or "unix:/path""#;

impl FromStr for Listen {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        match text.strip_prefix("unix:") {
            Some(path) if path.is_empty() || path.len() > SOCKET_PATH_BYTES_MAX => Err(ListenError),
            Some(path) => Ok(Self::Unix(PathBuf::from(path))),
            None => text.parse().map(Self::Tcp).map_err(|_| ListenError),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(to),
            Self::Unix(path) => write!(to, "unix:{}", path.display()),
        }
    }
}

impl<'de> Deserialize<'de> for Listen {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(|_| D::Error::invalid_value(Unexpected::Str(&text), &EXPECTED))
    }
}

impl Serialize for Listen {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_never_guessed() {
        for text in ["::1", "127.0.0.1", "localhost:80", "8080", ":8080", "unix:", "", "1.2.3.4:x"]
        {
            assert_eq!(text.parse::<Listen>(), Err(ListenError), "{text}");
        }
        for text in ["127.0.0.1:8080", "[::1]:0", "unix:/run/router.sock"] {
            assert_eq!(text.parse::<Listen>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_socket_path_that_the_kernel_cannot_hold_is_refused() {
        let longest = format!("unix:{}", "a".repeat(SOCKET_PATH_BYTES_MAX));
        assert!(longest.parse::<Listen>().is_ok());
        assert_eq!(format!("{longest}a").parse::<Listen>(), Err(ListenError));
    }
}
