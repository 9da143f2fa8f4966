//! Every maximum of the HTTP/1 code, with its reason.

/// Header lines of a request. httparse's and nginx's usual bound; a 101st line is a 431, never dropped.
pub const REQUEST_HEADERS_MAX: usize = 100;

/// Header lines of a response. Twice a request's: a legal answer with 60 `Link` lines must not become a 502.
pub const RESPONSE_HEADERS_MAX: usize = 200;

/// The largest head that can be configured: positions in a head are kept as `u16`.
pub const HEAD_BYTES_CEILING: usize = u16::MAX as usize;

/// Bytes of a response's head: the ceiling itself, since the model servers are the operator's own.
pub const RESPONSE_HEAD_BYTES_MAX: usize = HEAD_BYTES_CEILING;

/// Longest method that is looked at; the registered ones have at most 17 bytes (`UPDATEREDIRECTREF`).
pub const METHOD_BYTES_MAX: usize = 32;

/// What a request line has beside its target: method, two blanks, `HTTP/1.1`, CR LF.
pub const REQUEST_LINE_OVERHEAD_MAX: usize = METHOD_BYTES_MAX + 2 + 8 + 2;

/// Options in all `Connection` fields of one message. Each is compared with every header line, so their number
/// times [`RESPONSE_HEADERS_MAX`] is the work that a hostile head can cause.
pub const CONNECTION_OPTIONS_MAX: usize = 32;

/// Bytes of chunk extensions in one body. Signed-chunk clients send about 85 per chunk; a flood sends kilobytes.
pub const CHUNK_EXTENSION_BYTES_MAX: u32 = 16 * 1024;

/// Digits of a chunk size: 16 hexadecimal digits hold every `u64`, so nothing can overflow.
pub const CHUNK_SIZE_DIGITS_MAX: u8 = 16;

/// Bytes of one body's trailer section. They are read and dropped, so this bounds work, not memory.
pub const TRAILER_BYTES_MAX: u32 = 8 * 1024;

/// Interim (1xx) answers before the final one. One or two are usual (100, 103); an endless row is an attack.
pub const INTERIM_RESPONSES_MAX: u8 = 8;

/// Unread request body that is read and dropped after an early answer, so that the connection can live on.
/// Beyond it closing is cheaper than reading.
pub const DRAIN_BYTES_MAX: u64 = 64 * 1024;

/// Bounds of one request's head; see [`HeadLimits::new`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HeadLimits {
    head_bytes_max: usize,
    target_bytes_max: usize,
}

/// Why two limits cannot be used together.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum HeadLimitsError {
    /// Positions in a head are 16 bits wide.
    #[error("a head of {asked} bytes is above the ceiling of {HEAD_BYTES_CEILING}")]
    HeadAboveCeiling {
        /// What the settings say.
        asked: usize,
    },
    /// Then 414 could never be told from 431.
    #[error("a target of {target} bytes and its request line do not fit a head of {head} bytes")]
    TargetAboveHead {
        /// What the settings say for the target.
        target: usize,
        /// What the settings say for the whole head.
        head: usize,
    },
}

impl HeadLimits {
    /// A head of 16 KiB with a target of 8 KiB: what nginx and Apache take by default, and twice what clients need.
    pub const DEFAULT: Self = Self { head_bytes_max: 16 * 1024, target_bytes_max: 8 * 1024 };

    /// Checks that both bounds can hold: bytes of a whole head, bytes of its request target.
    ///
    /// # Errors
    /// A head above [`HEAD_BYTES_CEILING`], or a target whose request line cannot fit the head.
    pub const fn new(
        head_bytes_max: usize,
        target_bytes_max: usize,
    ) -> Result<Self, HeadLimitsError> {
        if head_bytes_max > HEAD_BYTES_CEILING {
            return Err(HeadLimitsError::HeadAboveCeiling { asked: head_bytes_max });
        }
        if target_bytes_max.saturating_add(REQUEST_LINE_OVERHEAD_MAX) > head_bytes_max {
            return Err(HeadLimitsError::TargetAboveHead {
                target: target_bytes_max,
                head: head_bytes_max,
            });
        }
        Ok(Self { head_bytes_max, target_bytes_max })
    }

    /// Bytes of a whole head, from its first line to the empty line.
    #[must_use]
    pub const fn head_bytes_max(&self) -> usize {
        self.head_bytes_max
    }

    /// Bytes of a request target.
    #[must_use]
    pub const fn target_bytes_max(&self) -> usize {
        self.target_bytes_max
    }
}

const _: () =
    assert!(RESPONSE_HEADERS_MAX < u8::MAX as usize, "a header's place in its table fits a u8");
const _: () =
    assert!(HeadLimits::DEFAULT.head_bytes_max <= HEAD_BYTES_CEILING, "positions fit a u16");
