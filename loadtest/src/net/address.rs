//! Where a server listens: `host:port`, `[IPv6]:port` or `unix:/path`.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

/// One resolved address.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Address {
    /// TCP over IPv4 or IPv6.
    Tcp(SocketAddr),
    /// A Unix stream socket at this path.
    Unix(PathBuf),
}

/// Why a text is no address.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// Nothing follows `unix:`.
    #[error("`unix:` needs a path, such as unix:/run/model.sock")]
    EmptyPath,
    /// The resolver refused it; the text may lack its port.
    #[error("cannot resolve `{text}` (expected host:port, [IPv6]:port or unix:/path)")]
    Unresolved {
        /// What was given.
        text: String,
        /// What the resolver said.
        #[source]
        source: std::io::Error,
    },
    /// The name has no address at all.
    #[error("`{0}` resolves to no address")]
    NoAddress(String),
}

impl FromStr for Address {
    type Err = AddressError;

    /// Resolves names once; the first address wins.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        if let Some(path) = text.strip_prefix("unix:") {
            if path.is_empty() {
                return Err(AddressError::EmptyPath);
            }
            return Ok(Self::Unix(PathBuf::from(path)));
        }
        let mut addresses = text
            .to_socket_addrs()
            .map_err(|source| AddressError::Unresolved { text: text.to_owned(), source })?;
        let first = addresses.next().ok_or_else(|| AddressError::NoAddress(text.to_owned()))?;
        Ok(Self::Tcp(first))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(formatter),
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_prints_as_it_was_written() {
        for text in ["127.0.0.1:80", "[::1]:8080", "unix:/run/model.sock"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn an_address_without_port_or_path_is_refused() {
        assert!(matches!("unix:".parse::<Address>(), Err(AddressError::EmptyPath)));
        assert!(matches!("127.0.0.1".parse::<Address>(), Err(AddressError::Unresolved { .. })));
    }
}
