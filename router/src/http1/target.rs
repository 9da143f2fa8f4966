//! The request target and the host: which of the forms of RFC 9112 §3.2, and where its parts lie.

use super::bytes::is_host_name_byte;
use super::error::HeadError;
use super::method::Method;

/// The parts of a target.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Target<'a> {
    /// Of an absolute-form target: it wins over `Host` (RFC 9112 §3.2.2).
    pub(super) authority: Option<&'a [u8]>,
    /// As it came. Empty for an absolute-form target that ends with its authority.
    pub(super) path: &'a [u8],
    /// Without its question mark.
    pub(super) query: Option<&'a [u8]>,
}

impl<'a> Target<'a> {
    /// Reads a target that httparse took for one: no blanks, no control bytes.
    ///
    /// # Errors
    /// `Method` for CONNECT, the one method with an authority-form target. `Target` for every other form than
    /// origin, absolute (`http`, `https`) and asterisk (OPTIONS only), for a fragment and for bytes beyond ASCII.
    pub(super) fn read(method: Method, target: &'a [u8]) -> Result<Self, HeadError> {
        if method == Method::Connect {
            return Err(HeadError::Method);
        }
        if !target.is_ascii() || memchr::memchr(b'#', target).is_some() {
            return Err(HeadError::Target);
        }
        match target {
            [b'/', ..] => Ok(Self::with_authority(None, target)),
            b"*" if method == Method::Options => Ok(Self::with_authority(None, target)),
            _ => Self::absolute(target),
        }
    }

    fn absolute(target: &'a [u8]) -> Result<Self, HeadError> {
        let rest = strip_scheme(target, b"http://").or_else(|| strip_scheme(target, b"https://"));
        let rest = rest.ok_or(HeadError::Target)?;
        let end = memchr::memchr2(b'/', b'?', rest).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at_checked(end).ok_or(HeadError::Target)?;
        if !is_host(authority) {
            return Err(HeadError::Host);
        }
        Ok(Self::with_authority(Some(authority), rest))
    }

    fn with_authority(authority: Option<&'a [u8]>, path_and_query: &'a [u8]) -> Self {
        let (path, query) = match memchr::memchr(b'?', path_and_query) {
            None => (path_and_query, None),
            Some(mark) => {
                (path_and_query.get(..mark).unwrap_or_default(), path_and_query.get(mark + 1..))
            }
        };
        Self { authority, path, query }
    }
}

fn strip_scheme<'a>(target: &'a [u8], scheme: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = target.split_at_checked(scheme.len())?;
    start.eq_ignore_ascii_case(scheme).then_some(rest)
}

/// `uri-host [":" port]`, not empty, without user information (RFC 9110 §7.2, §4.2.4).
pub(super) fn is_host(host: &[u8]) -> bool {
    let after_name = match host {
        [b'[', rest @ ..] => {
            let Some(end) = memchr::memchr(b']', rest) else { return false };
            let address = rest.get(..end).unwrap_or_default();
            let is_address = !address.is_empty()
                && address.iter().all(|byte| byte.is_ascii_hexdigit() || b":.".contains(byte));
            if !is_address {
                return false;
            }
            rest.get(end + 1..).unwrap_or_default()
        }
        _ => {
            let end = memchr::memchr(b':', host).unwrap_or(host.len());
            let name = host.get(..end).unwrap_or_default();
            if name.is_empty() || !name.iter().all(|byte| is_host_name_byte(*byte)) {
                return false;
            }
            host.get(end..).unwrap_or_default()
        }
    };
    match after_name {
        [] => true,
        [b':', port @ ..] => port.len() <= 5 && port.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HT-03
    #[test]
    fn a_host_keeps_its_brackets_and_has_no_user_information() {
        for right in [
            &b"a"[..],
            b"a.test:8080",
            b"a:",
            b"[::1]",
            b"[::1]:8080",
            b"[2001:1122::3344]",
            b"127.0.0.1:80",
        ] {
            assert!(is_host(right), "{}", right.escape_ascii());
        }
        for wrong in [
            &b""[..],
            b":80",
            b"a b",
            b"a/b",
            b"user@a",
            b"::1",
            b"[::1",
            b"[]",
            b"[::1]x",
            b"a:80a",
            b"a:123456",
            b"a?",
            b"a#",
            b"a\\b",
            b"\xC3\xA9",
        ] {
            assert!(!is_host(wrong), "{}", wrong.escape_ascii());
        }
    }

    /// HT-03
    #[test]
    fn an_absolute_form_target_gives_its_authority() {
        let target = Target::read(Method::Post, b"HTTP://[::1]:80?x=http://b/").unwrap();
        let expected =
            Target { authority: Some(b"[::1]:80"), path: b"", query: Some(b"x=http://b/") };
        assert_eq!(target, expected);
    }

    #[test]
    fn every_other_form_is_refused() {
        for (method, target, error) in [
            (Method::Connect, &b"a:443"[..], HeadError::Method),
            (Method::Get, b"*", HeadError::Target),
            (Method::Get, b"*x", HeadError::Target),
            (Method::Post, b"ftp://a/", HeadError::Target),
            (Method::Get, b"a:443", HeadError::Target),
            (Method::Get, b"predict", HeadError::Target),
            (Method::Get, b"http:///x", HeadError::Host),
            (Method::Get, b"http://u:p@a/", HeadError::Host),
            (Method::Get, b"/x#fragment", HeadError::Target),
            (Method::Get, b"/\xC3\xA9", HeadError::Target),
        ] {
            assert_eq!(Target::read(method, target), Err(error), "{}", target.escape_ascii());
        }
    }
}
