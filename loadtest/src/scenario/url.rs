//! The target's URL: `http://host:port/path?query`.

use std::str::FromStr;

/// A plain HTTP URL.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Url {
    /// Sent as the Host header field.
    pub authority: String,
    /// Connected to: the authority with the port that it may leave out.
    pub host_and_port: String,
    /// Path and query, at least `/`; may hold places of a template.
    pub path: String,
}

/// Why a text is no such URL.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
pub enum UrlError {
    /// Another scheme, or none.
    #[error("`{0}` is no http:// URL; TLS is left to the proxy in front")]
    Scheme(String),
    /// Nothing between `//` and `/`.
    #[error("`{0}` names no host")]
    Host(String),
    /// Would break the request line.
    #[error("`{0}` holds blanks or control characters")]
    Characters(String),
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        if text.bytes().any(|byte| byte.is_ascii_control() || byte == b' ') {
            return Err(UrlError::Characters(text.to_owned()));
        }
        let rest = text.strip_prefix("http://").ok_or_else(|| UrlError::Scheme(text.to_owned()))?;
        let split = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(split);
        let path = path.split('#').next().unwrap_or_default();
        if authority.is_empty() || authority.contains('@') {
            return Err(UrlError::Host(text.to_owned()));
        }
        let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
        let host_and_port = if has_port { authority.to_owned() } else { format!("{authority}:80") };
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok(Self { authority: authority.to_owned(), host_and_port, path: format!("{slash}{path}") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (String, String, String) {
        let url: Url = text.parse().unwrap();
        (url.authority, url.host_and_port, url.path)
    }

    #[test]
    fn a_url_falls_into_authority_port_and_path() {
        let expected = |authority: &str, host_and_port: &str, path: &str| {
            (authority.to_owned(), host_and_port.to_owned(), path.to_owned())
        };
        assert_eq!(parts("http://h:81/a?b=1#c"), expected("h:81", "h:81", "/a?b=1"));
        assert_eq!(parts("http://h"), expected("h", "h:80", "/"));
        assert_eq!(parts("http://h?x"), expected("h", "h:80", "/?x"));
        assert_eq!(parts("http://[::1]/{user}"), expected("[::1]", "[::1]:80", "/{user}"));
        assert_eq!(parts("http://[::1]:8"), expected("[::1]:8", "[::1]:8", "/"));
    }

    #[test]
    fn what_is_no_plain_http_url_is_refused() {
        assert!(matches!("https://h/".parse::<Url>(), Err(UrlError::Scheme(_))));
        assert!(matches!("h:80".parse::<Url>(), Err(UrlError::Scheme(_))));
        assert!(matches!("http:///x".parse::<Url>(), Err(UrlError::Host(_))));
        assert!(matches!("http://u:p@h/".parse::<Url>(), Err(UrlError::Host(_))));
        assert!(matches!("http://h/a b".parse::<Url>(), Err(UrlError::Characters(_))));
    }
}
