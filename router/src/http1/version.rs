//! The two versions that are spoken.

/// HTTP version of a message. Anything else is a 505.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Version {
    /// HTTP/1.0: no chunked coding, closes unless `keep-alive` is asked for.
    Http10,
    /// HTTP/1.1
    #[default]
    Http11,
}

impl Version {
    /// From httparse's minor version.
    pub(super) fn from_minor(minor: u8) -> Option<Self> {
        match minor {
            0 => Some(Self::Http10),
            1 => Some(Self::Http11),
            _ => None,
        }
    }
}
