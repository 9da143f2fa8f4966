//! The `Connection` fields of a head: does the connection persist, and which headers are for it alone.

use super::error::HeadError;
use super::header::{HeaderKind, HeaderTable};
use super::limits::CONNECTION_OPTIONS_MAX;
use super::version::Version;

/// What all `Connection` fields together say about the connection itself.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct ConnectionOptions {
    close: bool,
    keep_alive: bool,
}

impl ConnectionOptions {
    /// Reads the options and marks the headers that they name (RFC 9110 §7.6.1).
    ///
    /// # Errors
    /// More options than are compared: each costs a look at every header.
    pub(super) fn read<const N: usize>(
        headers: &mut HeaderTable<N>,
        buffer: &[u8],
    ) -> Result<Self, HeadError> {
        let mut options = Self::default();
        if !headers.has(HeaderKind::Connection) {
            return Ok(options);
        }
        let mut seen = 0;
        for place in 0..headers.lines().len() {
            let Some(line) =
                headers.lines().get(place).filter(|line| line.kind == HeaderKind::Connection)
            else {
                continue;
            };
            for option in
                line.value.of_buffer(buffer).split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
            {
                seen += 1;
                if seen > CONNECTION_OPTIONS_MAX {
                    return Err(HeadError::ConnectionOptionsTooMany);
                }
                if option.eq_ignore_ascii_case(b"close") {
                    options.close = true;
                } else if option.eq_ignore_ascii_case(b"keep-alive") {
                    options.keep_alive = true;
                } else if !option.is_empty() {
                    mark_named(headers, option, buffer);
                }
            }
        }
        Ok(options)
    }

    /// Whether the sender wants the connection to live on (RFC 9112 §9.3).
    pub(super) fn persists(self, version: Version) -> bool {
        match version {
            Version::Http11 => !self.close,
            Version::Http10 => self.keep_alive && !self.close,
        }
    }
}

fn mark_named<const N: usize>(headers: &mut HeaderTable<N>, name: &[u8], buffer: &[u8]) {
    for line in headers.lines_mut() {
        if line.name.len() == name.len() && line.name.of_buffer(buffer).eq_ignore_ascii_case(name) {
            line.named_by_connection = true;
        }
    }
}
