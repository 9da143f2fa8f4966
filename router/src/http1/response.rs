//! A response's head, as a model server sent it: parsed in place, kept as positions, read through a view.

use super::connection::ConnectionOptions;
use super::error::HeadError;
use super::framing::{self, RequestFraming, ResponseFraming};
use super::header::{Header, HeaderKind, HeaderTable, Span, headers_error, scratch};
use super::limits::{RESPONSE_HEAD_BYTES_MAX, RESPONSE_HEADERS_MAX};
use super::method::Method;
use super::request::Progress;
use super::scan::{Bounds, EmptyLine, HeadExtent, Scan};
use super::version::Version;

/// `HTTP/1.1 200`: what stands before the blank and the reason.
const STATUS_LINE_BYTES_MIN: usize = 12;

/// A response's head as positions in the buffer that held it.
///
/// About 2 KiB; owned by an exchange and reused. Read it through [`ResponseHead::view`] with the same bytes.
#[derive(Clone, Debug)]
pub struct ResponseHead {
    scan: Scan,
    bytes: usize,
    version: Version,
    status: u16,
    reason: Span,
    framing: ResponseFraming,
    declared_length: Option<u64>,
    persists: bool,
    headers: HeaderTable<RESPONSE_HEADERS_MAX>,
}

impl Default for ResponseHead {
    fn default() -> Self {
        Self::new()
    }
}

impl ResponseHead {
    /// An empty head, ready for [`ResponseHead::parse`].
    #[must_use]
    pub fn new() -> Self {
        Self {
            scan: Scan::default(),
            bytes: 0,
            version: Version::default(),
            status: 0,
            reason: Span::default(),
            framing: ResponseFraming::None,
            declared_length: None,
            persists: false,
            headers: HeaderTable::new(),
        }
    }

    /// Forgets everything: the next call of [`ResponseHead::parse`] starts a new head.
    pub fn reset(&mut self) {
        self.scan = Scan::default();
        self.bytes = 0;
    }

    /// Reads the answer to a request of `method` from the front of `buffer`, which may hold less or more.
    ///
    /// After `Partial`, call again with the same bytes followed by new ones; only those are looked at.
    ///
    /// # Errors
    /// See [`HeadError`]; each means that the connection is closed and the client gets a 502.
    pub fn parse(&mut self, buffer: &[u8], method: Method) -> Result<Progress, HeadError> {
        const BOUNDS: Bounds = Bounds {
            head_bytes_max: RESPONSE_HEAD_BYTES_MAX,
            first_line_bytes_max: RESPONSE_HEAD_BYTES_MAX,
            headers_max: RESPONSE_HEADERS_MAX,
            empty_line: EmptyLine::Refused,
        };
        if !could_be_http(buffer) {
            return Err(HeadError::StatusLine);
        }
        if self.scan.is_fresh() && self.parse_at_once(buffer, method)? == Progress::Complete {
            return Ok(Progress::Complete);
        }
        match self.scan.advance(buffer, &BOUNDS)? {
            None => Ok(Progress::Partial),
            Some(extent) => {
                self.parse_found(buffer, extent, method)?;
                Ok(Progress::Complete)
            }
        }
    }

    /// The head's bytes at the front of the buffer; 0 until it is complete.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The status code: three digits, not below 100.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Whether another head follows: 1xx, but not 101, after which HTTP ends.
    #[must_use]
    pub fn is_interim(&self) -> bool {
        (100..200).contains(&self.status) && self.status != 101
    }

    /// The version the model server speaks.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// How the body ends.
    #[must_use]
    pub fn framing(&self) -> ResponseFraming {
        self.framing
    }

    /// `Content-Length` of an answer that may state one: also of one to HEAD and of a 304, whose body is not sent.
    #[must_use]
    pub fn declared_length(&self) -> Option<u64> {
        self.declared_length
    }

    /// Whether the model server leaves the connection open after this answer.
    #[must_use]
    pub fn keep_alive(&self) -> bool {
        self.persists && self.framing != ResponseFraming::UntilClose
    }

    /// The head with the bytes that it was parsed from (at least [`ResponseHead::bytes`] of them).
    #[must_use]
    pub fn view<'a>(&'a self, buffer: &'a [u8]) -> ResponseView<'a> {
        ResponseView { head: self, buffer: buffer.get(..self.bytes).unwrap_or_default() }
    }

    /// The usual case, a whole and well-formed head in the first read, without a separate look for its end.
    ///
    /// `Partial` is no verdict here: everything unusual is left to the scan, which knows the order of faults.
    fn parse_at_once(&mut self, buffer: &[u8], method: Method) -> Result<Progress, HeadError> {
        let seen = buffer.get(..RESPONSE_HEAD_BYTES_MAX).unwrap_or(buffer);
        let mut found = scratch::<RESPONSE_HEADERS_MAX>();
        let mut response = httparse::Response::new(&mut []);
        let config = httparse::ParserConfig::default();
        let parsed = config.parse_response_with_uninit_headers(&mut response, seen, &mut found);
        let Ok(httparse::Status::Complete(end)) = parsed else { return Ok(Progress::Partial) };
        self.headers.fill(response.headers, buffer)?;
        if !self.headers.lines_end_in_cr_lf(seen.get(..end).unwrap_or_default()) {
            return Ok(Progress::Partial);
        }
        self.take(&response, buffer, end, method)?;
        Ok(Progress::Complete)
    }

    fn parse_found(
        &mut self,
        buffer: &[u8],
        extent: HeadExtent,
        method: Method,
    ) -> Result<(), HeadError> {
        let head = buffer.get(..extent.end).unwrap_or_default();
        let mut found = scratch::<RESPONSE_HEADERS_MAX>();
        let mut response = httparse::Response::new(&mut []);
        let config = httparse::ParserConfig::default();
        match config.parse_response_with_uninit_headers(&mut response, head, &mut found) {
            Ok(httparse::Status::Complete(bytes)) if bytes == head.len() => {}
            Ok(_) => return Err(HeadError::StatusLine),
            Err(httparse::Error::Version | httparse::Error::Status) => {
                return Err(HeadError::StatusLine);
            }
            Err(error) => return Err(headers_error(error)),
        }
        self.headers.fill(response.headers, buffer)?;
        self.take(&response, buffer, extent.end, method)
    }

    /// Takes over a tokenised head whose headers are in the table already.
    fn take(
        &mut self,
        response: &httparse::Response<'_, '_>,
        buffer: &[u8],
        end: usize,
        method: Method,
    ) -> Result<(), HeadError> {
        self.version = response.version.and_then(Version::from_minor).ok_or(HeadError::Version)?;
        self.status = response.code.filter(|code| *code >= 100).ok_or(HeadError::StatusLine)?;
        // httparse gives an empty reason for one with obs-text, which is passed on as it is.
        let reason_end = self.headers.start(end).saturating_sub(b"\r\n".len());
        let reason_start = (STATUS_LINE_BYTES_MIN + b" ".len()).min(reason_end);
        self.reason = Span::new(reason_start, reason_end - reason_start);
        self.read_fields(buffer, method)?;
        self.bytes = end;
        Ok(())
    }

    fn read_fields(&mut self, buffer: &[u8], method: Method) -> Result<(), HeadError> {
        let options = ConnectionOptions::read(&mut self.headers, buffer)?;
        self.persists = options.persists(self.version);
        // These end at the empty line whatever the fields say (RFC 9112 §6.3); a wrong field is dropped there.
        let states_no_length = self.status < 200 || self.status == 204;
        if states_no_length || method == Method::Head || self.status == 304 {
            self.framing = ResponseFraming::None;
            self.declared_length = match framing::declared(&self.headers, self.version, buffer) {
                Ok(RequestFraming::Length(length)) if !states_no_length => Some(length),
                Ok(_) | Err(_) => None,
            };
            return Ok(());
        }
        (self.framing, self.declared_length) =
            match framing::declared(&self.headers, self.version, buffer)? {
                RequestFraming::None => (ResponseFraming::UntilClose, None),
                RequestFraming::Length(length) => (ResponseFraming::Length(length), Some(length)),
                RequestFraming::Chunked => (ResponseFraming::Chunked, None),
            };
        Ok(())
    }
}

/// A complete head with its bytes.
#[derive(Clone, Copy, Debug)]
pub struct ResponseView<'a> {
    head: &'a ResponseHead,
    buffer: &'a [u8],
}

impl<'a> ResponseView<'a> {
    /// The positions behind this view.
    #[must_use]
    pub fn head(&self) -> &'a ResponseHead {
        self.head
    }

    /// The reason phrase as it came; may be empty, may hold bytes 0x80 to 0xFF; never CR, LF or NUL.
    #[must_use]
    pub fn reason(&self) -> &'a [u8] {
        self.head.reason.of_buffer(self.buffer)
    }

    /// Value of the first header of a known kind.
    #[must_use]
    pub fn value(&self, kind: HeaderKind) -> Option<&'a [u8]> {
        self.head.headers.value(kind, self.buffer)
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

    pub(super) fn table(&self) -> &'a HeaderTable<RESPONSE_HEADERS_MAX> {
        &self.head.headers
    }

    pub(super) fn buffer(&self) -> &'a [u8] {
        self.buffer
    }
}

/// Whether the first bytes are those of an answer: tells a wrong protocol at once instead of at the timeout.
fn could_be_http(buffer: &[u8]) -> bool {
    buffer.iter().zip(b"HTTP/1.").all(|(seen, expected)| seen == expected)
}

#[cfg(test)]
mod tests;
