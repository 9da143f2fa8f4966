//! Opens a Snapshot: from hostile bytes to what every core evaluates.

use rkyv::{rancor, util::AlignedVec};

use super::{
    archive::{ArchivedObjective, ArchivedPayload, ObjectiveIndex},
    check,
    error::SnapshotError,
    header::{Digest, HEADER_BYTES, Header, SnapshotId, SnapshotVersion},
    keys::{KeyId, TrustedKeys},
};
use crate::limits::{CLOCK_SKEW_MS_MAX, SNAPSHOT_BYTES_MAX};

/// The only way so far in which Units become Slots.
pub const HASH_VERSION: u16 = 1;

/// Bytes put before the header, so that the payload is aligned as `rkyv` needs it.
const PAD_BYTES: usize = HEADER_BYTES.next_multiple_of(16) - HEADER_BYTES;
/// Where the payload begins in memory.
const PAYLOAD_AT: usize = PAD_BYTES + HEADER_BYTES;

const _: () = assert!(PAYLOAD_AT.is_multiple_of(16), "the payload is aligned");
const _: () = assert!(
    align_of::<ArchivedPayload>() <= 16,
    "the payload's alignment is not above the vector's"
);

/// What a router asks of a Snapshot beyond a good signature.
#[derive(Clone, Copy, Debug)]
pub struct Expectations<'a> {
    /// Its own group.
    pub group: &'a str,
    /// The newest Snapshot that it ever activated, also before a restart; `None`: none yet.
    pub newest: Option<SnapshotId>,
    /// The wall clock, for `not_before` and `expires`. `None` does not ask: the last good Snapshot
    /// on disk serves on after it has expired, with an alarm.
    pub now_unix_ms: Option<u64>,
    /// Size cap, header included.
    pub bytes_max: usize,
}

impl<'a> Expectations<'a> {
    /// Nothing but the group and the default size cap.
    pub const fn of_group(group: &'a str) -> Self {
        Self { group, newest: None, now_unix_ms: None, bytes_max: SNAPSHOT_BYTES_MAX }
    }
}

/// An opened Snapshot: signed, checked, immutable. Reading it allocates nothing and cannot fail.
pub struct Snapshot {
    /// `PAD_BYTES`, then the file. Private and never written after `open`.
    memory: AlignedVec<16>,
    header: Header,
    is_newest_already: bool,
}

impl Snapshot {
    /// Checks `file` and keeps an aligned copy of it.
    ///
    /// In this order, so that nothing is believed before it is proven, and cheap refusals come
    /// first: size, magic, format, flags, length, trusted key, signature, digest, version, archive
    /// (bytecheck), hash version, group, times, meaning. Takes time linear in the size.
    ///
    /// The newest version again, with the same content, is fine (see
    /// [`Snapshot::is_newest_already`]), so that a push can be repeated.
    ///
    /// # Errors
    /// See [`SnapshotError`]; each has a stable [`SnapshotError::reason`].
    pub fn open(
        file: &[u8],
        trusted: &TrustedKeys,
        expected: Expectations<'_>,
    ) -> Result<Self, SnapshotError> {
        let Expectations { group, newest, now_unix_ms, bytes_max } = expected;
        if file.len() > bytes_max {
            return Err(SnapshotError::TooLarge { bytes: file.len(), bytes_max });
        }
        let (header, _) = Header::verify(file, trusted)?;
        let is_newest_already = check_version(header.id, newest)?;

        let mut memory = AlignedVec::with_capacity(PAD_BYTES + file.len());
        memory.extend_from_slice(&[0; PAD_BYTES]);
        memory.extend_from_slice(file);
        let bytes = memory.get(PAYLOAD_AT..).ok_or(SnapshotError::Truncated)?;
        let payload = rkyv::access::<ArchivedPayload, rancor::Error>(bytes)
            .map_err(SnapshotError::Archive)?;
        let hash_version = payload.hash_version.to_native();
        if hash_version != HASH_VERSION {
            return Err(SnapshotError::HashVersion { found: hash_version });
        }
        if payload.group != *group {
            let found = payload.group.as_str().to_owned();
            return Err(SnapshotError::Group { found, expected: group.to_owned() });
        }
        if let Some(now) = now_unix_ms {
            check_times(payload, now)?;
        }
        check::check(payload)?;
        Ok(Self { memory, header, is_newest_already })
    }

    /// What every core evaluates. Hot path: pointer arithmetic only.
    pub fn payload(&self) -> &ArchivedPayload {
        let bytes = &self.memory[PAYLOAD_AT..];
        // SAFETY: `open` ran `rkyv::access` over exactly these bytes at this address, and `memory`
        // is private and never written since; moving a `Snapshot` does not move its heap memory.
        unsafe { rkyv::access_unchecked::<ArchivedPayload>(bytes) }
    }

    /// The Objective of a token. Hot path: one hash, no allocation.
    pub fn objective(&self, token: &[u8]) -> Option<&ArchivedObjective> {
        let payload = self.payload();
        payload.objective(payload.find(token)?)
    }

    /// Its place among the Snapshot's Objectives, for per-Objective counters.
    pub fn find(&self, token: &[u8]) -> Option<ObjectiveIndex> {
        self.payload().find(token)
    }

    /// Version and content.
    pub const fn id(&self) -> SnapshotId {
        self.header.id
    }

    /// Its version.
    pub const fn version(&self) -> SnapshotVersion {
        self.header.id.version
    }

    /// Of its content.
    pub const fn digest(&self) -> Digest {
        self.header.id.digest
    }

    /// When it was built, by the signer's clock.
    pub const fn created_unix_ms(&self) -> u64 {
        self.header.created_unix_ms
    }

    /// Whose signature it bears.
    pub const fn key_id(&self) -> KeyId {
        self.header.key
    }

    /// Whether it is the very Snapshot that [`Expectations::newest`] named.
    pub const fn is_newest_already(&self) -> bool {
        self.is_newest_already
    }

    /// Whether it has expired by now; a router that serves it raises an alarm and serves on.
    pub fn is_expired(&self, now_unix_ms: u64) -> bool {
        let expires = self.payload().expires_unix_ms.as_ref();
        expires.is_some_and(|expires| is_late(expires.to_native(), now_unix_ms))
    }

    /// The file as it came, for the last good Snapshot on disk.
    pub fn bytes(&self) -> &[u8] {
        self.memory.get(PAD_BYTES..).unwrap_or_default()
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Snapshot").field("header", &self.header).finish_non_exhaustive()
    }
}

/// Whether this is the newest Snapshot again.
fn check_version(offered: SnapshotId, newest: Option<SnapshotId>) -> Result<bool, SnapshotError> {
    let Some(newest) = newest else { return Ok(false) };
    if offered.version < newest.version {
        return Err(SnapshotError::NotNewer { offered: offered.version, running: newest.version });
    }
    if offered.version == newest.version && offered.digest != newest.digest {
        return Err(SnapshotError::SameVersion { version: offered.version });
    }
    Ok(offered == newest)
}

fn check_times(payload: &ArchivedPayload, now_unix_ms: u64) -> Result<(), SnapshotError> {
    if let Some(not_before) = payload.not_before_unix_ms.as_ref() {
        let not_before_unix_ms = not_before.to_native();
        if not_before_unix_ms > now_unix_ms.saturating_add(CLOCK_SKEW_MS_MAX) {
            return Err(SnapshotError::NotYetValid { not_before_unix_ms, now_unix_ms });
        }
    }
    if let Some(expires) = payload.expires_unix_ms.as_ref() {
        let expires_unix_ms = expires.to_native();
        if is_late(expires_unix_ms, now_unix_ms) {
            return Err(SnapshotError::Expired { expires_unix_ms, now_unix_ms });
        }
    }
    Ok(())
}

fn is_late(expires_unix_ms: u64, now_unix_ms: u64) -> bool {
    now_unix_ms > expires_unix_ms.saturating_add(CLOCK_SKEW_MS_MAX)
}
