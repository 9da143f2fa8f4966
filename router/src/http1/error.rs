//! Why bytes were refused, with the status that a client gets for it.

/// Why a head was refused. The connection that sent it is closed: where the next message starts is unknown.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum HeadError {
    /// A line that ends in LF without CR (RFC 9112 §2.2 would let us accept it; smuggling lives on that).
    #[error("a line ends with a bare line feed")]
    BareLineFeed,
    /// More than the one empty line that RFC 9112 §2.2 asks to tolerate.
    #[error("more than one empty line before the request")]
    EmptyLines,
    /// Not `method SP target SP version`.
    #[error("malformed request line")]
    RequestLine,
    /// Not `version SP status [SP reason]`.
    #[error("malformed status line")]
    StatusLine,
    /// A well-formed version other than 1.0 and 1.1.
    #[error("HTTP version is neither 1.0 nor 1.1")]
    Version,
    /// `CONNECT`, or a method longer than any that is registered.
    #[error("method not supported")]
    Method,
    /// The target is longer than the limit.
    #[error("request target too long")]
    TargetTooLong,
    /// The target has none of the forms of RFC 9112 §3.2, or a byte that no target may have.
    #[error("malformed request target")]
    Target,
    /// The head is longer than the limit.
    #[error("head too large")]
    HeadTooLarge,
    /// More header lines than the table holds.
    #[error("too many header lines")]
    HeadersTooMany,
    /// A header line that starts with a blank (obs-fold, RFC 9112 §5.2).
    #[error("folded header line")]
    FoldedLine,
    /// A header name that is empty, has a byte that is no token character, or a blank before its colon.
    #[error("malformed header name")]
    HeaderName,
    /// A header value with CR, NUL or another control byte.
    #[error("malformed header value")]
    HeaderValue,
    /// HTTP/1.1 without `Host`.
    #[error("host missing")]
    HostMissing,
    /// Several `Host` lines, also equal ones.
    #[error("host repeated")]
    HostRepeated,
    /// A `Host` (or authority of an absolute-form target) that is no `uri-host [":" port]`.
    #[error("malformed host")]
    Host,
    /// Not one plain decimal number below 2^63.
    #[error("malformed content-length")]
    ContentLength,
    /// Several `Content-Length` lines, also equal ones.
    #[error("content-length repeated")]
    ContentLengthRepeated,
    /// `Transfer-Encoding` that is not exactly `chunked`, or repeated, or in an HTTP/1.0 message.
    #[error("transfer-encoding is not plainly chunked")]
    TransferEncoding,
    /// Both `Content-Length` and `Transfer-Encoding`.
    #[error("content-length and transfer-encoding in one message")]
    LengthAndEncoding,
    /// `Expect` with anything but `100-continue`.
    #[error("unknown expectation")]
    Expectation,
    /// More connection options than are compared.
    #[error("too many connection options")]
    ConnectionOptionsTooMany,
}

impl HeadError {
    /// The status that a client gets for such a request. (Such an answer of a model server is a 502.)
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::BareLineFeed
            | Self::EmptyLines
            | Self::RequestLine
            | Self::StatusLine
            | Self::Target
            | Self::FoldedLine
            | Self::HeaderName
            | Self::HeaderValue
            | Self::HostMissing
            | Self::HostRepeated
            | Self::Host
            | Self::ContentLength
            | Self::ContentLengthRepeated
            | Self::TransferEncoding
            | Self::LengthAndEncoding => 400,
            Self::TargetTooLong => 414,
            Self::Expectation => 417,
            Self::HeadTooLarge | Self::HeadersTooMany | Self::ConnectionOptionsTooMany => 431,
            Self::Method => 501,
            Self::Version => 505,
        }
    }

    /// Stable label for metrics, logs and the answer's body.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::BareLineFeed => "bare_line_feed",
            Self::EmptyLines => "empty_lines",
            Self::RequestLine => "request_line",
            Self::StatusLine => "status_line",
            Self::Version => "http_version",
            Self::Method => "method",
            Self::TargetTooLong => "target_too_long",
            Self::Target => "target",
            Self::HeadTooLarge => "head_too_large",
            Self::HeadersTooMany => "headers_too_many",
            Self::FoldedLine => "folded_line",
            Self::HeaderName => "header_name",
            Self::HeaderValue => "header_value",
            Self::HostMissing => "host_missing",
            Self::HostRepeated => "host_repeated",
            Self::Host => "host",
            Self::ContentLength => "content_length",
            Self::ContentLengthRepeated => "content_length_repeated",
            Self::TransferEncoding => "transfer_encoding",
            Self::LengthAndEncoding => "length_and_encoding",
            Self::Expectation => "expectation",
            Self::ConnectionOptionsTooMany => "connection_options_too_many",
        }
    }
}

/// Why a body was refused or ended early. Final: the connection is closed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum BodyError {
    /// More bytes than the limit, declared or received.
    #[error("body too large")]
    TooLarge,
    /// A chunk size without digits, with another byte, or with more than 16 digits.
    #[error("malformed chunk size")]
    ChunkSize,
    /// The sizes of all chunks do not fit 64 bits.
    #[error("chunk sizes overflow")]
    ChunkSizeOverflow,
    /// A line or a chunk's data that does not end in CR LF (RFC 9112 §7.1, erratum 7633).
    #[error("chunk not ended by CR LF")]
    ChunkEnd,
    /// A control byte in a chunk extension.
    #[error("malformed chunk extension")]
    ChunkExtension,
    /// More extension bytes than one body may have.
    #[error("too many bytes of chunk extensions")]
    ChunkExtensionsTooLong,
    /// A trailer line that is no header line.
    #[error("malformed trailer")]
    Trailer,
    /// A longer trailer section than is read.
    #[error("trailer section too long")]
    TrailersTooLong,
    /// The connection ended before the body did.
    #[error("body cut off")]
    Truncated,
}

impl BodyError {
    /// The status that a client gets for such a request body. (Such an answer of a model server is a 502.)
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::ChunkSize
            | Self::ChunkSizeOverflow
            | Self::ChunkEnd
            | Self::ChunkExtension
            | Self::ChunkExtensionsTooLong
            | Self::Trailer
            | Self::Truncated => 400,
            Self::TooLarge => 413,
            Self::TrailersTooLong => 431,
        }
    }

    /// Stable label for metrics, logs and the answer's body.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::TooLarge => "body_too_large",
            Self::ChunkSize => "chunk_size",
            Self::ChunkSizeOverflow => "chunk_size_overflow",
            Self::ChunkEnd => "chunk_end",
            Self::ChunkExtension => "chunk_extension",
            Self::ChunkExtensionsTooLong => "chunk_extensions_too_long",
            Self::Trailer => "trailer",
            Self::TrailersTooLong => "trailers_too_long",
            Self::Truncated => "body_truncated",
        }
    }
}

/// What a model server did wrong; the client gets a 502 unless its answer has begun.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum UpstreamError {
    /// Its head could not be read.
    #[error("the model server's answer has a faulty head")]
    Head(#[source] HeadError),
    /// Its body could not be read, or ended early.
    #[error("the model server's answer has a faulty body")]
    Body(#[source] BodyError),
    /// 101 without our asking for an upgrade.
    #[error("the model server switched protocols unasked")]
    UnaskedUpgrade,
    /// More 1xx answers than are skipped.
    #[error("the model server sent too many interim answers")]
    InterimTooMany,
    /// The connection ended before a byte of the answer: on a reused connection the request may be tried again.
    #[error("the model server closed the connection before it answered")]
    ClosedUnanswered,
    /// The connection ended inside the head.
    #[error("the model server closed the connection inside the head")]
    HeadTruncated,
}

impl UpstreamError {
    /// Stable label for metrics, logs and the answer's body.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Head(_) => "upstream_head",
            Self::Body(BodyError::Truncated) => "upstream_truncated",
            Self::Body(_) => "upstream_body",
            Self::UnaskedUpgrade => "upstream_upgrade",
            Self::InterimTooMany => "upstream_interim_too_many",
            Self::ClosedUnanswered => "upstream_closed_unanswered",
            Self::HeadTruncated => "upstream_head_truncated",
        }
    }
}
