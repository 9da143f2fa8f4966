//! Header lines as positions in the caller's buffer, with the known ones recognised once.

use std::mem::MaybeUninit;
use std::ops::Range;

use arrayvec::ArrayVec;

use super::error::HeadError;

/// A place in a head: heads end below 64 KiB.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Span {
    start: u16,
    len: u16,
}

impl Span {
    /// The place of `part`, which must be a slice of `buffer`.
    pub(super) fn of(part: &[u8], buffer: &[u8]) -> Self {
        let start = part.as_ptr().addr().wrapping_sub(buffer.as_ptr().addr());
        debug_assert!(start <= buffer.len(), "the part lies in the buffer");
        Self::new(start, part.len())
    }

    pub(super) fn new(start: usize, len: usize) -> Self {
        debug_assert!(start + len <= usize::from(u16::MAX), "HEAD_BYTES_CEILING holds");
        Self {
            start: u16::try_from(start).unwrap_or(u16::MAX),
            len: u16::try_from(len).unwrap_or(0),
        }
    }

    pub(super) fn start(self) -> usize {
        usize::from(self.start)
    }

    pub(super) fn len(self) -> usize {
        usize::from(self.len)
    }

    fn range(self) -> Range<usize> {
        self.start()..self.start() + self.len()
    }

    /// The bytes at this place; empty if `buffer` is not the one that was parsed.
    pub(super) fn of_buffer(self, buffer: &[u8]) -> &[u8] {
        debug_assert!(buffer.len() >= self.range().end, "the buffer that was parsed");
        buffer.get(self.range()).unwrap_or_default()
    }
}

/// The header names that the router knows; each is recognised once, while its head is parsed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum HeaderKind {
    /// `Host`
    Host,
    /// `Content-Length`
    ContentLength,
    /// `Transfer-Encoding`
    TransferEncoding,
    /// `Connection`
    Connection,
    /// `Keep-Alive`
    KeepAlive,
    /// `TE`
    Te,
    /// `Trailer`
    Trailer,
    /// `Upgrade`
    Upgrade,
    /// `HTTP2-Settings`, which belongs to `Upgrade: h2c`
    Http2Settings,
    /// `Proxy-Connection`, `Proxy-Authenticate`, `Proxy-Authorization`, `Proxy-Authentication-Info`
    Proxy,
    /// `Expect`
    Expect,
    /// `Content-Type`
    ContentType,
    /// `Content-Encoding`
    ContentEncoding,
    /// `Content-MD5`, `Digest`, `Content-Digest`, `Repr-Digest`: wrong once the body was edited
    BodyDigest,
    /// `Authorization`
    Authorization,
    /// `X-Request-Id`
    RequestId,
    /// `Traceparent`
    Traceparent,
    /// `Forwarded`, `X-Forwarded-*`, `X-Real-Ip`: who the client is said to be
    Forwarded,
    /// `Via`
    Via,
    /// `Retry-After`
    RetryAfter,
    /// `X-Switchboard-*`
    Switchboard,
    /// Everything else
    Other,
}

impl HeaderKind {
    const COUNT: usize = Self::Other as usize + 1;

    /// The kind of a header name; ASCII case does not matter.
    #[must_use]
    pub fn of(name: &[u8]) -> Self {
        let ([first, ..], [.., last]) = (name, name) else { return Self::Other };
        // Length, first and last letter leave one candidate, so that most names cost no comparison.
        let (known, kind) = match (name.len(), first | 0x20, last | 0x20) {
            (2, b't', b'e') => ("te", Self::Te),
            (3, b'v', b'a') => ("via", Self::Via),
            (4, b'h', b't') => ("host", Self::Host),
            (6, b'e', b't') => ("expect", Self::Expect),
            (6, b'd', b't') => ("digest", Self::BodyDigest),
            (7, b'u', b'e') => ("upgrade", Self::Upgrade),
            (7, b't', b'r') => ("trailer", Self::Trailer),
            (9, b'f', b'd') => ("forwarded", Self::Forwarded),
            (9, b'x', b'p') => ("x-real-ip", Self::Forwarded),
            (10, b'c', b'n') => ("connection", Self::Connection),
            (10, b'k', b'e') => ("keep-alive", Self::KeepAlive),
            (11, b't', b't') => ("traceparent", Self::Traceparent),
            (11, b'r', b'r') => ("retry-after", Self::RetryAfter),
            (11, b'c', b'5') => ("content-md5", Self::BodyDigest),
            (11, b'r', b't') => ("repr-digest", Self::BodyDigest),
            (12, b'c', b'e') => ("content-type", Self::ContentType),
            (12, b'x', b'd') => ("x-request-id", Self::RequestId),
            (13, b'a', b'n') => ("authorization", Self::Authorization),
            (14, b'c', b'h') => ("content-length", Self::ContentLength),
            (14, b'c', b't') => ("content-digest", Self::BodyDigest),
            (14, b'h', b's') => ("http2-settings", Self::Http2Settings),
            (16, b'c', b'g') => ("content-encoding", Self::ContentEncoding),
            (16, b'p', b'n') => ("proxy-connection", Self::Proxy),
            (17, b't', b'g') => ("transfer-encoding", Self::TransferEncoding),
            (18, b'p', b'e') => ("proxy-authenticate", Self::Proxy),
            (19, b'p', b'n') => ("proxy-authorization", Self::Proxy),
            (25, b'p', b'o') => ("proxy-authentication-info", Self::Proxy),
            (_, b'x', _) => return Self::by_prefix(name),
            _ => return Self::Other,
        };
        if name.eq_ignore_ascii_case(known.as_bytes()) { kind } else { Self::Other }
    }

    fn by_prefix(name: &[u8]) -> Self {
        let starts_with = |prefix: &[u8]| {
            name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
        };
        match name {
            [_, b'-', b's' | b'S', ..] if starts_with(b"x-switchboard-") => Self::Switchboard,
            [_, b'-', b'f' | b'F', ..] if starts_with(b"x-forwarded-") => Self::Forwarded,
            _ => Self::Other,
        }
    }
}

/// A set of header kinds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct HeaderSet(u32);

impl HeaderSet {
    /// No kind.
    pub const EMPTY: Self = Self(0);

    /// What concerns one connection only (RFC 9110 §7.6.1), or is set anew by whoever forwards: these never
    /// leave with a copied head. `Trailer` is here since trailers are dropped.
    pub const NEVER_COPIED: Self = Self::of(&[
        HeaderKind::Host,
        HeaderKind::ContentLength,
        HeaderKind::TransferEncoding,
        HeaderKind::Connection,
        HeaderKind::KeepAlive,
        HeaderKind::Te,
        HeaderKind::Trailer,
        HeaderKind::Upgrade,
        HeaderKind::Http2Settings,
        HeaderKind::Proxy,
        HeaderKind::Expect,
    ]);

    /// The set of these kinds.
    #[must_use]
    pub const fn of(kinds: &[HeaderKind]) -> Self {
        let mut set = 0;
        let mut rest = kinds;
        while let [kind, others @ ..] = rest {
            set |= 1 << *kind as u8;
            rest = others;
        }
        Self(set)
    }

    /// Both sets' kinds.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether `kind` is in the set.
    #[must_use]
    pub const fn contains(self, kind: HeaderKind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    fn insert(&mut self, kind: HeaderKind) {
        self.0 |= 1 << kind as u8;
    }
}

/// One header line by its places.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeaderLine {
    pub(super) name: Span,
    pub(super) value: Span,
    pub(super) kind: HeaderKind,
    /// A `Connection` field names it: it is for this connection only.
    pub(super) named_by_connection: bool,
}

/// One header line, readable.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Header<'a> {
    /// As it came; compare without regard to ASCII case.
    pub name: &'a [u8],
    /// Without the blanks around it. May be empty, may hold bytes 0x80 to 0xFF; never CR, LF or NUL.
    pub value: &'a [u8],
    /// What the router takes it for.
    pub kind: HeaderKind,
}

/// The header lines of one head: at most `N`, in order. Reused for each head; nothing is allocated.
#[derive(Clone, Debug)]
pub(super) struct HeaderTable<const N: usize> {
    lines: ArrayVec<HeaderLine, N>,
    /// Place in `lines` of the first header of each kind, meaningful if `seen` has the kind.
    first: [u8; HeaderKind::COUNT],
    seen: HeaderSet,
    repeated: HeaderSet,
}

impl<const N: usize> HeaderTable<N> {
    pub(super) fn new() -> Self {
        Self {
            lines: ArrayVec::new_const(),
            first: [0; HeaderKind::COUNT],
            seen: HeaderSet::EMPTY,
            repeated: HeaderSet::EMPTY,
        }
    }

    pub(super) fn clear(&mut self) {
        self.lines.clear();
        self.seen = HeaderSet::EMPTY;
        self.repeated = HeaderSet::EMPTY;
    }

    /// Takes over what httparse found in `buffer`.
    pub(super) fn fill(
        &mut self,
        headers: &[httparse::Header<'_>],
        buffer: &[u8],
    ) -> Result<(), HeadError> {
        self.clear();
        for header in headers {
            let kind = HeaderKind::of(header.name.as_bytes());
            let place = u8::try_from(self.lines.len()).map_err(|_| HeadError::HeadersTooMany)?;
            let line = HeaderLine {
                name: Span::of(header.name.as_bytes(), buffer),
                value: Span::of(header.value, buffer),
                kind,
                named_by_connection: false,
            };
            self.lines.try_push(line).map_err(|_| HeadError::HeadersTooMany)?;
            if self.seen.contains(kind) {
                self.repeated.insert(kind);
            } else {
                self.seen.insert(kind);
                if let Some(first) = self.first.get_mut(kind as usize) {
                    *first = place;
                }
            }
        }
        Ok(())
    }

    /// Where the header lines start: past the first line; `end` is that of the head.
    pub(super) fn start(&self, end: usize) -> usize {
        self.lines.first().map_or(end.saturating_sub(b"\r\n".len()), |line| line.name.start())
    }

    /// Whether no line of `head` ends in a bare LF, which httparse takes.
    ///
    /// What stands before a name is the end of the line before it. Where a CR precedes that LF it belongs to it, as
    /// no first line and no value can hold one.
    pub(super) fn lines_end_in_cr_lf(&self, head: &[u8]) -> bool {
        let ends_before = |place: usize| {
            place.checked_sub(b"\r\n".len()).and_then(|end| head.get(end..place)) == Some(b"\r\n")
        };
        let empty_line = head.len().saturating_sub(b"\r\n".len());
        ends_before(head.len())
            && ends_before(empty_line)
            && self.lines.iter().all(|line| ends_before(line.name.start()))
    }

    pub(super) fn lines(&self) -> &[HeaderLine] {
        &self.lines
    }

    pub(super) fn lines_mut(&mut self) -> &mut [HeaderLine] {
        &mut self.lines
    }

    pub(super) fn has(&self, kind: HeaderKind) -> bool {
        self.seen.contains(kind)
    }

    pub(super) fn is_repeated(&self, kind: HeaderKind) -> bool {
        self.repeated.contains(kind)
    }

    /// Value of the first header of this kind.
    pub(super) fn value<'a>(&self, kind: HeaderKind, buffer: &'a [u8]) -> Option<&'a [u8]> {
        if !self.seen.contains(kind) {
            return None;
        }
        let place = *self.first.get(kind as usize)?;
        Some(self.lines.get(usize::from(place))?.value.of_buffer(buffer))
    }

    /// Value of the first header of this name.
    pub(super) fn value_by_name<'a>(&self, name: &[u8], buffer: &'a [u8]) -> Option<&'a [u8]> {
        self.lines
            .iter()
            .find(|line| {
                line.name.len() == name.len()
                    && line.name.of_buffer(buffer).eq_ignore_ascii_case(name)
            })
            .map(|line| line.value.of_buffer(buffer))
    }

    pub(super) fn iter<'a>(&'a self, buffer: &'a [u8]) -> impl Iterator<Item = Header<'a>> + 'a {
        self.lines.iter().map(move |line| line.readable(buffer))
    }
}

impl HeaderLine {
    fn readable<'a>(&self, buffer: &'a [u8]) -> Header<'a> {
        Header {
            name: self.name.of_buffer(buffer),
            value: self.value.of_buffer(buffer),
            kind: self.kind,
        }
    }

    /// Whether it may leave with a copied head: it concerns more than this connection, and is not in `dropped`.
    pub(super) fn is_copied(&self, dropped: HeaderSet) -> bool {
        !self.named_by_connection && !HeaderSet::NEVER_COPIED.and(dropped).contains(self.kind)
    }
}

/// Room for httparse's findings: on the stack, never initialised.
pub(super) fn scratch<'b, const N: usize>() -> [MaybeUninit<httparse::Header<'b>>; N] {
    [const { MaybeUninit::uninit() }; N]
}

const _: () =
    assert!(HeaderKind::COUNT <= u32::BITS as usize, "a HeaderSet has a bit for each kind");

/// What httparse says about header lines, once the first line is known to be well-formed.
pub(super) fn headers_error(error: httparse::Error) -> HeadError {
    match error {
        httparse::Error::HeaderValue => HeadError::HeaderValue,
        httparse::Error::TooManyHeaders => HeadError::HeadersTooMany,
        httparse::Error::HeaderName
        | httparse::Error::NewLine
        | httparse::Error::Status
        | httparse::Error::Token
        | httparse::Error::Version => HeadError::HeaderName,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_name_is_recognised_in_any_case_and_no_other() {
        for (name, kind) in [
            ("host", HeaderKind::Host),
            ("content-length", HeaderKind::ContentLength),
            ("transfer-encoding", HeaderKind::TransferEncoding),
            ("connection", HeaderKind::Connection),
            ("keep-alive", HeaderKind::KeepAlive),
            ("te", HeaderKind::Te),
            ("trailer", HeaderKind::Trailer),
            ("upgrade", HeaderKind::Upgrade),
            ("http2-settings", HeaderKind::Http2Settings),
            ("proxy-connection", HeaderKind::Proxy),
            ("proxy-authenticate", HeaderKind::Proxy),
            ("proxy-authorization", HeaderKind::Proxy),
            ("proxy-authentication-info", HeaderKind::Proxy),
            ("expect", HeaderKind::Expect),
            ("content-type", HeaderKind::ContentType),
            ("content-encoding", HeaderKind::ContentEncoding),
            ("content-md5", HeaderKind::BodyDigest),
            ("digest", HeaderKind::BodyDigest),
            ("content-digest", HeaderKind::BodyDigest),
            ("repr-digest", HeaderKind::BodyDigest),
            ("authorization", HeaderKind::Authorization),
            ("x-request-id", HeaderKind::RequestId),
            ("traceparent", HeaderKind::Traceparent),
            ("forwarded", HeaderKind::Forwarded),
            ("x-forwarded-for", HeaderKind::Forwarded),
            ("x-forwarded-host", HeaderKind::Forwarded),
            ("x-real-ip", HeaderKind::Forwarded),
            ("via", HeaderKind::Via),
            ("retry-after", HeaderKind::RetryAfter),
            ("x-switchboard-objective", HeaderKind::Switchboard),
            ("x-switchboard-", HeaderKind::Switchboard),
        ] {
            assert_eq!(HeaderKind::of(name.as_bytes()), kind, "{name}");
            assert_eq!(HeaderKind::of(name.to_uppercase().as_bytes()), kind, "{name}");
            for place in 0..name.len().min(b"x-forwarded".len()) {
                let mut other = name.as_bytes().to_vec();
                if let Some(byte) = other.get_mut(place) {
                    *byte ^= 0x04;
                }
                assert_eq!(HeaderKind::of(&other), HeaderKind::Other, "{}", other.escape_ascii());
            }
        }
        for other in [
            "",
            "x",
            "x-",
            "accept",
            "x-forwarde",
            "x-switchboard",
            "hosts",
            "tee",
            "content_length",
        ] {
            assert_eq!(HeaderKind::of(other.as_bytes()), HeaderKind::Other, "{other}");
        }
    }

    #[test]
    fn a_set_holds_its_kinds_only() {
        let set = HeaderSet::of(&[HeaderKind::Via]).and(HeaderSet::of(&[HeaderKind::Other]));
        assert!(set.contains(HeaderKind::Via));
        assert!(set.contains(HeaderKind::Other));
        assert!(!set.contains(HeaderKind::Host));
        assert_eq!(HeaderSet::of(&[]), HeaderSet::EMPTY);
    }
}
