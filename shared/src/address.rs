//! Where an endpoint listens, as text: the one parser for rule files, Snapshots and configuration.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::limits::{HOST_BYTES_MAX, UNIX_PATH_BYTES_MAX};

/// An address that was checked; nothing is resolved here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Address<'a> {
    /// `127.0.0.1:80` or `[::1]:80`.
    Socket(SocketAddr),
    /// `host:80`, to be resolved, again and again.
    Host {
        /// A DNS name.
        name: &'a str,
        /// Never zero.
        port: u16,
    },
    /// `unix:/path`: a model on the same host.
    Unix(&'a str),
}

/// Why a text is no address.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum AddressError {
    /// The part after the last colon is missing, zero, or no port.
    #[error("needs a port from 1 to 65535, as in host:8080")]
    Port,
    /// More than one colon outside brackets, such as a bare `::1`.
    #[error("an IPv6 address stands in brackets, as in [::1]:8080")]
    Brackets,
    /// Not an IPv6 address between the brackets.
    #[error("no IPv6 address between the brackets")]
    Ipv6,
    /// Only digits and dots, but no IPv4 address; resolvers read such names in surprising ways.
    #[error("neither an IPv4 address nor a host name")]
    Ipv4,
    /// Not a DNS name.
    #[error("no host name: letters, digits, `-`, `_` and `.`, at most 253 bytes, labels up to 63")]
    Host,
    /// Not an absolute path, too long, or with a control character.
    #[error(
        "a Unix socket needs an absolute path of at most 107 bytes, as in unix:/run/model.sock"
    )]
    UnixPath,
}

impl<'a> Address<'a> {
    /// Reads `host:port`, `IPv4:port`, `[IPv6]:port` or `unix:/path`.
    ///
    /// # Errors
    /// Tells what was expected; see [`AddressError`].
    pub fn parse(text: &'a str) -> Result<Self, AddressError> {
        if let Some(path) = text.strip_prefix("unix:") {
            let good = path.starts_with('/')
                && path.len() <= UNIX_PATH_BYTES_MAX
                && !path.chars().any(char::is_control);
            return if good { Ok(Self::Unix(path)) } else { Err(AddressError::UnixPath) };
        }
        if let Some(rest) = text.strip_prefix('[') {
            let (ip, port) = rest.split_once(']').ok_or(AddressError::Ipv6)?;
            let ip: Ipv6Addr = ip.parse().map_err(|_| AddressError::Ipv6)?;
            let port = parse_port(port.strip_prefix(':').ok_or(AddressError::Port)?)?;
            return Ok(Self::Socket(SocketAddr::from((ip, port))));
        }
        let (name, port) = text.split_once(':').ok_or(AddressError::Port)?;
        if port.contains(':') {
            return Err(AddressError::Brackets);
        }
        let port = parse_port(port)?;
        if name.split('.').next_back().is_some_and(is_number) {
            let ip: Ipv4Addr = name.parse().map_err(|_| AddressError::Ipv4)?;
            return Ok(Self::Socket(SocketAddr::from((ip, port))));
        }
        if !is_host(name) {
            return Err(AddressError::Host);
        }
        Ok(Self::Host { name, port })
    }
}

/// Plain digits only: `u16::from_str` would also take `+80`.
fn parse_port(text: &str) -> Result<u16, AddressError> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(AddressError::Port);
    }
    match text.parse() {
        Ok(0) | Err(_) => Err(AddressError::Port),
        Ok(port) => Ok(port),
    }
}

/// A last label that resolvers take for a number (WHATWG URL, "ends in a number").
fn is_number(label: &str) -> bool {
    let hex = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits(label) || hex.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// DNS labels (RFC 1123 §2.1); `_` too, as container names have it. One final dot is fine.
fn is_host(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    name.len() <= HOST_BYTES_MAX && name.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms_are_told_apart() {
        assert_eq!(
            Address::parse("127.0.0.1:9001"),
            Ok(Address::Socket(([127, 0, 0, 1], 9001).into()))
        );
        assert_eq!(
            Address::parse("[::1]:65535"),
            Ok(Address::Socket((Ipv6Addr::LOCALHOST, 65535).into()))
        );
        for name in ["localhost", "a", "gpu-1.cluster.local", "my_model", "host.", "1a", "0xfg.b"] {
            let text = format!("{name}:80");
            assert_eq!(Address::parse(&text), Ok(Address::Host { name, port: 80 }));
        }
        assert_eq!(Address::parse("unix:/run/m.sock"), Ok(Address::Unix("/run/m.sock")));
    }

    #[test]
    fn what_is_no_address_is_refused_with_what_was_expected() {
        let long_path = format!("unix:/{}", "x".repeat(107));
        let long_label = format!("{}:80", "x".repeat(64));
        let long_name = format!("{}:80", ["x".repeat(63).as_str(); 4].join("."));
        for (text, expected) in [
            ("", AddressError::Port),
            ("localhost", AddressError::Port),
            ("localhost:", AddressError::Port),
            ("localhost:0", AddressError::Port),
            ("localhost:65536", AddressError::Port),
            ("localhost:+80", AddressError::Port),
            ("localhost:80 ", AddressError::Port),
            ("localhost:http", AddressError::Port),
            ("[::1]", AddressError::Port),
            ("[::1]80", AddressError::Port),
            ("::1", AddressError::Brackets),
            ("fe80::1:80", AddressError::Brackets),
            ("[::1:80", AddressError::Ipv6),
            ("[127.0.0.1]:80", AddressError::Ipv6),
            ("[fe80::1%eth0]:80", AddressError::Ipv6),
            ("127.1:80", AddressError::Ipv4),
            ("0x7f000001:80", AddressError::Ipv4),
            ("2130706433:80", AddressError::Ipv4),
            ("256.0.0.1:80", AddressError::Ipv4),
            (":80", AddressError::Host),
            (".:80", AddressError::Host),
            ("a..b:80", AddressError::Host),
            ("-a:80", AddressError::Host),
            ("a-:80", AddressError::Host),
            ("user@host:80", AddressError::Host),
            ("ho st:80", AddressError::Host),
            ("hôte:80", AddressError::Host),
            ("host\r\n:80", AddressError::Host),
            (&long_label, AddressError::Host),
            (&long_name, AddressError::Host),
            ("unix:", AddressError::UnixPath),
            ("unix:run/m.sock", AddressError::UnixPath),
            ("unix:/run/\0.sock", AddressError::UnixPath),
            (&long_path, AddressError::UnixPath),
        ] {
            assert_eq!(Address::parse(text), Err(expected), "{text:?}");
        }
        // A scheme is a host name with a bad port.
        assert_eq!(Address::parse("http://host:80"), Err(AddressError::Brackets));
        assert_eq!(Address::parse("http://host"), Err(AddressError::Port));
    }
}
