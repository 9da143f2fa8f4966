//! A request's head: parsed in place, kept as positions, read through a view.

use super::bytes::is_token_byte;
use super::connection::ConnectionOptions;
use super::error::HeadError;
use super::framing::{self, RequestFraming};
use super::header::{Header, HeaderKind, HeaderTable, Span, headers_error, scratch};
use super::limits::{HeadLimits, METHOD_BYTES_MAX, REQUEST_HEADERS_MAX, REQUEST_LINE_OVERHEAD_MAX};
use super::method::Method;
use super::scan::{Bounds, EmptyLine, HeadExtent, Scan};
use super::target::{Target, is_host};
use super::version::Version;

/// How far a head has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Progress {
    /// Call again with the same bytes and more behind them.
    Partial,
    /// All of it was read.
    Complete,
}

/// A request's head as positions in the buffer that held it, so that the buffer may move or grow.
///
/// About 1 KiB; owned by a connection and reused for each of its requests, so that parsing allocates nothing.
/// Read it through [`RequestHead::view`] with the same bytes.
#[derive(Clone, Debug)]
pub struct RequestHead {
    scan: Scan,
    bytes: usize,
    method: Method,
    version: Version,
    method_span: Span,
    authority: Option<Span>,
    host: Option<Span>,
    path: Span,
    query: Option<Span>,
    framing: RequestFraming,
    persists: bool,
    expects_continue: bool,
    headers: HeaderTable<REQUEST_HEADERS_MAX>,
}

impl Default for RequestHead {
    fn default() -> Self {
        Self::new()
    }
}

impl RequestHead {
    /// An empty head, ready for [`RequestHead::parse`].
    #[must_use]
    pub fn new() -> Self {
        Self {
            scan: Scan::default(),
            bytes: 0,
            method: Method::default(),
            version: Version::default(),
            method_span: Span::default(),
            authority: None,
            host: None,
            path: Span::default(),
            query: None,
            framing: RequestFraming::None,
            persists: false,
            expects_continue: false,
            headers: HeaderTable::new(),
        }
    }

    /// Forgets everything: the next call of [`RequestHead::parse`] starts a new head.
    pub fn reset(&mut self) {
        self.scan = Scan::default();
        self.bytes = 0;
    }

    /// Reads a head from the front of `buffer`, which may hold less or more than it.
    ///
    /// After `Partial`, call again with the same bytes followed by new ones; only those are looked at. How the
    /// bytes were split never changes the result.
    ///
    /// # Errors
    /// See [`HeadError`]; final for the connection.
    pub fn parse(&mut self, buffer: &[u8], limits: &HeadLimits) -> Result<Progress, HeadError> {
        let bounds = Bounds {
            head_bytes_max: limits.head_bytes_max(),
            first_line_bytes_max: limits.target_bytes_max() + REQUEST_LINE_OVERHEAD_MAX,
            headers_max: REQUEST_HEADERS_MAX,
            empty_line: EmptyLine::OneTolerated,
        };
        if self.scan.is_fresh()
            && self.parse_at_once(buffer, &bounds, limits)? == Progress::Complete
        {
            return Ok(Progress::Complete);
        }
        let had_first_line = self.scan.first_line().is_some();
        match self.scan.advance(buffer, &bounds) {
            Ok(Some(extent)) => {
                self.parse_found(buffer, extent, limits)?;
                Ok(Progress::Complete)
            }
            Ok(None) => {
                if !had_first_line {
                    self.check_start(buffer, limits)?;
                }
                Ok(Progress::Partial)
            }
            Err(error) => {
                // A faulty first line comes first, whether or not it arrived together with what follows it.
                self.check_start(buffer, limits)?;
                Err(error)
            }
        }
    }

    /// The head's bytes at the front of the buffer; 0 until it is complete.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether no byte of a request was seen yet: then a silent connection is idle, not slow.
    #[must_use]
    pub fn is_untouched(&self, buffer: &[u8]) -> bool {
        self.scan.is_untouched(buffer)
    }

    /// The request's method.
    #[must_use]
    pub fn method(&self) -> Method {
        self.method
    }

    /// The version the client speaks.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// How the body ends.
    #[must_use]
    pub fn framing(&self) -> RequestFraming {
        self.framing
    }

    /// Whether the client wants the connection to live on (RFC 9112 §9.3).
    #[must_use]
    pub fn keep_alive(&self) -> bool {
        self.persists
    }

    /// Whether the client waits for a 100 before it sends the body. Never for HTTP/1.0 or without a body.
    #[must_use]
    pub fn expects_continue(&self) -> bool {
        self.expects_continue
    }

    /// The head with the bytes that it was parsed from (at least [`RequestHead::bytes`] of them).
    #[must_use]
    pub fn view<'a>(&'a self, buffer: &'a [u8]) -> RequestView<'a> {
        RequestView { head: self, buffer: buffer.get(..self.bytes).unwrap_or_default() }
    }

    /// Refuses early what can never become a request: another protocol's first byte, a faulty first line.
    fn check_start(&self, buffer: &[u8], limits: &HeadLimits) -> Result<(), HeadError> {
        let Some((start, end)) = self.scan.first_line() else {
            return match buffer.get(self.scan.line_start()) {
                None | Some(b'\r' | b'\n') => Ok(()),
                Some(first) if is_token_byte(*first) => Ok(()),
                Some(_) => Err(HeadError::RequestLine),
            };
        };
        let line = buffer.get(start..end).unwrap_or_default();
        let mut request = httparse::Request::new(&mut []);
        // Without an error it asks for header lines now: the first line itself is well-formed.
        request.parse(line).map_err(|error| first_line_error(error, line))?;
        let method = request.method.unwrap_or_default().as_bytes();
        let target = request.path.unwrap_or_default().as_bytes();
        read_line(method, target, limits).map(|_| ())
    }

    /// The usual case, a whole and well-formed head in the first read, without a separate look for its end.
    ///
    /// `Partial` is no verdict here: everything unusual is left to the scan, which knows the order of faults.
    fn parse_at_once(
        &mut self,
        buffer: &[u8],
        bounds: &Bounds,
        limits: &HeadLimits,
    ) -> Result<Progress, HeadError> {
        let seen = buffer.get(..bounds.head_bytes_max).unwrap_or(buffer);
        let mut found = scratch::<REQUEST_HEADERS_MAX>();
        let mut request = httparse::Request::new(&mut []);
        let Ok(httparse::Status::Complete(end)) =
            request.parse_with_uninit_headers(seen, &mut found)
        else {
            return Ok(Progress::Partial);
        };
        self.headers.fill(request.headers, buffer)?;
        let head = seen.get(..end).unwrap_or_default();
        let first_line_fits = self.headers.start(end) <= bounds.first_line_bytes_max;
        if matches!(head, [b'\r' | b'\n', ..])
            || !first_line_fits
            || !self.headers.lines_end_in_cr_lf(head)
        {
            return Ok(Progress::Partial);
        }
        self.take(&request, buffer, end, limits)?;
        Ok(Progress::Complete)
    }

    fn parse_found(
        &mut self,
        buffer: &[u8],
        extent: HeadExtent,
        limits: &HeadLimits,
    ) -> Result<(), HeadError> {
        let head = buffer.get(extent.start..extent.end).unwrap_or_default();
        let mut found = scratch::<REQUEST_HEADERS_MAX>();
        let mut request = httparse::Request::new(&mut []);
        match request.parse_with_uninit_headers(head, &mut found) {
            Ok(httparse::Status::Complete(bytes)) if bytes == head.len() => {}
            Ok(_) => return Err(HeadError::RequestLine),
            Err(error) => {
                self.check_start(buffer, limits)?;
                return Err(headers_error(error));
            }
        }
        self.headers.fill(request.headers, buffer)?;
        self.take(&request, buffer, extent.end, limits)
    }

    /// Takes over a tokenised head whose headers are in the table already.
    fn take(
        &mut self,
        request: &httparse::Request<'_, '_>,
        buffer: &[u8],
        end: usize,
        limits: &HeadLimits,
    ) -> Result<(), HeadError> {
        let method = request.method.unwrap_or_default().as_bytes();
        let target = request.path.unwrap_or_default().as_bytes();
        self.version = request.version.and_then(Version::from_minor).ok_or(HeadError::Version)?;
        let (method_kind, target) = read_line(method, target, limits)?;
        self.method = method_kind;
        self.method_span = Span::of(method, buffer);
        self.authority = target.authority.map(|authority| Span::of(authority, buffer));
        self.path = Span::of(target.path, buffer);
        self.query = target.query.map(|query| Span::of(query, buffer));
        self.read_fields(buffer)?;
        self.bytes = end;
        Ok(())
    }

    fn read_fields(&mut self, buffer: &[u8]) -> Result<(), HeadError> {
        let host = self.headers.value(HeaderKind::Host, buffer);
        if self.headers.is_repeated(HeaderKind::Host) {
            return Err(HeadError::HostRepeated);
        }
        match (host, self.version) {
            (Some(host), _) if is_host(host) => {}
            (Some(_), _) => return Err(HeadError::Host),
            (None, Version::Http11) => return Err(HeadError::HostMissing),
            (None, Version::Http10) => {}
        }
        self.host = self.authority.or(host.map(|host| Span::of(host, buffer)));
        self.framing = framing::declared(&self.headers, self.version, buffer)?;
        let expects_continue = self.expectation(buffer)?;
        self.expects_continue = expects_continue
            && !matches!(self.framing, RequestFraming::None | RequestFraming::Length(0));
        let options = ConnectionOptions::read(&mut self.headers, buffer)?;
        self.persists = options.persists(self.version);
        Ok(())
    }

    /// HTTP/1.0 knows no expectations: they are ignored there (RFC 9110 §10.1.1).
    fn expectation(&self, buffer: &[u8]) -> Result<bool, HeadError> {
        match (self.version, self.headers.value(HeaderKind::Expect, buffer)) {
            (Version::Http10, _) | (Version::Http11, None) => Ok(false),
            (Version::Http11, Some(value)) => {
                let is_known = value.eq_ignore_ascii_case(b"100-continue")
                    && !self.headers.is_repeated(HeaderKind::Expect);
                if is_known { Ok(true) } else { Err(HeadError::Expectation) }
            }
        }
    }
}

/// A complete head with its bytes.
#[derive(Clone, Copy, Debug)]
pub struct RequestView<'a> {
    head: &'a RequestHead,
    buffer: &'a [u8],
}

impl<'a> RequestView<'a> {
    /// The positions behind this view.
    #[must_use]
    pub fn head(&self) -> &'a RequestHead {
        self.head
    }

    /// The method as it came: a token of at most [`METHOD_BYTES_MAX`] bytes.
    #[must_use]
    pub fn method_bytes(&self) -> &'a [u8] {
        self.head.method_span.of_buffer(self.buffer)
    }

    /// The target's path, byte for byte (HT-04); `/` (`*` for OPTIONS) if an absolute-form target had none.
    #[must_use]
    pub fn path(&self) -> &'a [u8] {
        match self.head.path.of_buffer(self.buffer) {
            b"" if self.head.method == Method::Options && self.head.query.is_none() => b"*",
            b"" => b"/",
            path => path,
        }
    }

    /// The target's query, byte for byte, without its question mark. `Some` and empty for `/path?`.
    #[must_use]
    pub fn query(&self) -> Option<&'a [u8]> {
        self.head.query.map(|query| query.of_buffer(self.buffer))
    }

    /// The one host of the request: of an absolute-form target, else of `Host` (RFC 9112 §3.2.2), with its
    /// brackets and port. `None` only for HTTP/1.0.
    #[must_use]
    pub fn host(&self) -> Option<&'a [u8]> {
        self.head.host.map(|host| host.of_buffer(self.buffer))
    }

    /// Value of the first header of a known kind.
    #[must_use]
    pub fn value(&self, kind: HeaderKind) -> Option<&'a [u8]> {
        self.head.headers.value(kind, self.buffer)
    }

    /// Whether a known kind came more than once.
    #[must_use]
    pub fn is_repeated(&self, kind: HeaderKind) -> bool {
        self.head.headers.is_repeated(kind)
    }

    /// Value of the first header of this name, compared without regard to ASCII case.
    #[must_use]
    pub fn header(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.head.headers.value_by_name(name, self.buffer)
    }

    /// All headers, in order.
    pub fn headers(&self) -> impl Iterator<Item = Header<'a>> + 'a {
        self.head.headers.iter(self.buffer)
    }

    pub(super) fn table(&self) -> &'a HeaderTable<REQUEST_HEADERS_MAX> {
        &self.head.headers
    }

    pub(super) fn buffer(&self) -> &'a [u8] {
        self.buffer
    }
}

fn read_line<'a>(
    method: &[u8],
    target: &'a [u8],
    limits: &HeadLimits,
) -> Result<(Method, Target<'a>), HeadError> {
    if method.len() > METHOD_BYTES_MAX {
        return Err(HeadError::Method);
    }
    if target.len() > limits.target_bytes_max() {
        return Err(HeadError::TargetTooLong);
    }
    let method = Method::of(method);
    Ok((method, Target::read(method, target)?))
}

fn first_line_error(error: httparse::Error, line: &[u8]) -> HeadError {
    match error {
        httparse::Error::Version if names_a_version(line) => HeadError::Version,
        httparse::Error::Version
        | httparse::Error::NewLine
        | httparse::Error::Status
        | httparse::Error::Token
        | httparse::Error::HeaderName
        | httparse::Error::HeaderValue
        | httparse::Error::TooManyHeaders => HeadError::RequestLine,
    }
}

/// Whether the third and last word of a request line is `HTTP/`, a digit, a point, a digit.
fn names_a_version(line: &[u8]) -> bool {
    let Some(version) = line.trim_ascii_end().splitn(3, |byte| *byte == b' ').nth(2) else {
        return false;
    };
    matches!(version, [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'])
}

#[cfg(test)]
mod tests;
