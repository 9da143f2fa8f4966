//! Why a Snapshot is refused.

use std::error::Error;

use super::{
    check::CheckError,
    header::{FORMAT, MAGIC, SnapshotVersion},
    keys::KeyId,
};
use crate::limits::CLOCK_SKEW_MS_MAX;

/// Why a Snapshot was refused. The one that runs keeps serving.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// Above the size cap; nothing of it was read.
    #[error("{bytes} bytes, more than {bytes_max}")]
    TooLarge {
        /// What came.
        bytes: usize,
        /// What is allowed.
        bytes_max: usize,
    },
    /// Does not begin with the magic bytes.
    #[error("no Snapshot: it does not begin with {}", String::from_utf8_lossy(&MAGIC))]
    NoSnapshot,
    /// Built by a newer or older program.
    #[error("format {found}, but only {FORMAT} is known here")]
    Format {
        /// What it says.
        found: u16,
    },
    /// A flag is set; none is known.
    #[error("unknown flags {found:#06x}")]
    Flags {
        /// What it says.
        found: u16,
    },
    /// It ends before its header, or before its payload does.
    #[error("truncated")]
    Truncated,
    /// Something follows the payload.
    #[error("{bytes} bytes follow the payload")]
    Trailing {
        /// How many.
        bytes: u64,
    },
    /// Signed with a key that is not trusted.
    #[error("signed with key {0}, which is not trusted")]
    UnknownKey(KeyId),
    /// The signature does not fit.
    #[error("the signature does not fit")]
    Signature,
    /// The payload is not the one that was signed.
    #[error("the payload is not the one that was signed")]
    Digest,
    /// Version 0.
    #[error("version 0")]
    VersionZero,
    /// An older one.
    #[error("version {offered} is not newer than {running}")]
    NotNewer {
        /// Its version.
        offered: SnapshotVersion,
        /// The highest that ever ran.
        running: SnapshotVersion,
    },
    /// The running version with another content: two signers gave one version away twice.
    #[error("version {version} runs with another content")]
    SameVersion {
        /// Of both.
        version: SnapshotVersion,
    },
    /// The payload is no well-formed archive.
    #[error("the payload is not well-formed")]
    Archive(#[source] rkyv::rancor::Error),
    /// Buckets Units in another way.
    #[error("hash version {found} is not known here")]
    HashVersion {
        /// What it says.
        found: u16,
    },
    /// Meant for other routers.
    #[error("meant for group `{found}`, not for `{expected}`")]
    Group {
        /// Whom it is meant for.
        found: String,
        /// Who this is.
        expected: String,
    },
    /// Too early, by more than the clock skew that is tolerated.
    #[error(
        "valid from {not_before_unix_ms}, now is {now_unix_ms} (unix ms, {CLOCK_SKEW_MS_MAX} ms tolerated)"
    )]
    NotYetValid {
        /// From when.
        not_before_unix_ms: u64,
        /// This host's clock.
        now_unix_ms: u64,
    },
    /// Too late, by more than the clock skew that is tolerated.
    #[error(
        "expired at {expires_unix_ms}, now is {now_unix_ms} (unix ms, {CLOCK_SKEW_MS_MAX} ms tolerated)"
    )]
    Expired {
        /// Until when.
        expires_unix_ms: u64,
        /// This host's clock.
        now_unix_ms: u64,
    },
    /// Well-formed, but it says what makes no sense.
    #[error("refused by the semantic check")]
    Check(#[from] CheckError),
}

impl SnapshotError {
    /// A stable label, for metrics and `REFUSED` frames.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "too_large",
            Self::NoSnapshot => "no_snapshot",
            Self::Format { .. } => "format",
            Self::Flags { .. } => "flags",
            Self::Truncated => "truncated",
            Self::Trailing { .. } => "trailing",
            Self::UnknownKey(_) => "unknown_key",
            Self::Signature => "signature",
            Self::Digest => "digest",
            Self::VersionZero => "version_zero",
            Self::NotNewer { .. } => "not_newer",
            Self::SameVersion { .. } => "same_version",
            Self::Archive(_) => "archive",
            Self::HashVersion { .. } => "hash_version",
            Self::Group { .. } => "group",
            Self::NotYetValid { .. } => "not_yet_valid",
            Self::Expired { .. } => "expired",
            Self::Check(_) => "semantic",
        }
    }
    /// The whole chain in one line, for logs and `REFUSED` frames.
    pub fn detail(&self) -> String {
        let mut text = self.to_string();
        let mut error: &dyn Error = self;
        while let Some(source) = error.source() {
            text.push_str(": ");
            text.push_str(&source.to_string());
            error = source;
        }
        text
    }
}
