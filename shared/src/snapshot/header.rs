//! The fixed part of a Snapshot file: what is read before anything is trusted.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | magic `SWBDSNAP` |
//! | 8 | 2 | format, 3 |
//! | 10 | 2 | flags, 0 |
//! | 12 | 8 | version, never 0 |
//! | 20 | 8 | created, unix milliseconds |
//! | 28 | 8 | key id |
//! | 36 | 8 | payload length |
//! | 44 | 32 | BLAKE3 of the payload |
//! | 76 | 64 | Ed25519 over `SIGNATURE_DOMAIN` and bytes 0..76 |
//! | 140 | … | payload, to the end |
//!
//! Everything is little-endian. The signature covers the payload through its digest.

use std::{fmt, num::NonZeroU64};

use super::{
    error::SnapshotError,
    keys::{KeyId, SecretKey, TrustedKeys, write_hex},
};

/// Begins every Snapshot file.
pub const MAGIC: [u8; 8] = *b"SWBDSNAP";
/// The only format that is read and written. It grows with any change of the archive's types.
pub const FORMAT: u16 = 3;
/// Bytes before the payload.
pub const HEADER_BYTES: usize = SIGNED_BYTES + 64;
/// Bytes before the signature.
const SIGNED_BYTES: usize = 76;
/// Signed first: the same key never signs the same bytes for another purpose.
const SIGNATURE_DOMAIN: &[u8] = b"switchboard 2026-11 snapshot signature v1\0";

/// Grows with every published Snapshot; a router never goes back. Never zero.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SnapshotVersion(NonZeroU64);

impl SnapshotVersion {
    /// The first one.
    pub const FIRST: Self = Self(NonZeroU64::MIN);

    /// `None` for zero.
    pub const fn new(version: u64) -> Option<Self> {
        match NonZeroU64::new(version) {
            Some(version) => Some(Self(version)),
            None => None,
        }
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// The next one; `None` after 2⁶⁴ − 1.
    pub fn next(self) -> Option<Self> {
        self.0.checked_add(1).map(Self)
    }
}

impl fmt::Display for SnapshotVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// BLAKE3 of a payload: the same content has the same digest, whatever its version.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The digest of these bytes.
    pub fn of(payload: &[u8]) -> Self {
        Self(*blake3::hash(payload).as_bytes())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, formatter)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Digest({self})")
    }
}

/// A Snapshot's name: version and content.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct SnapshotId {
    /// Which one.
    pub version: SnapshotVersion,
    /// What it says.
    pub digest: Digest,
}

/// What the header says, after it was verified.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Header {
    /// Version and content.
    pub id: SnapshotId,
    /// When it was built, by the signer's clock.
    pub created_unix_ms: u64,
    /// Whose signature it bears.
    pub key: KeyId,
}

impl Header {
    /// The header and its signature for this payload.
    pub(super) fn write(
        payload: &[u8],
        version: SnapshotVersion,
        created_unix_ms: u64,
        key: &SecretKey,
    ) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        let fields: [&[u8]; 8] = [
            &MAGIC,
            &FORMAT.to_le_bytes(),
            &0_u16.to_le_bytes(),
            &version.get().to_le_bytes(),
            &created_unix_ms.to_le_bytes(),
            &key.public().id().0,
            &(payload.len() as u64).to_le_bytes(),
            &Digest::of(payload).0,
        ];
        let (signed, signature) = header.split_at_mut(SIGNED_BYTES);
        let mut rest = &mut *signed;
        for field in fields {
            let (place, after) = rest.split_at_mut(field.len());
            place.copy_from_slice(field);
            rest = after;
        }
        debug_assert!(rest.is_empty(), "the fields fill the signed part");
        signature.copy_from_slice(&key.sign(&message(signed)));
        header
    }

    /// The version that a file claims to have, signed or not: for reports about a refused one, and for
    /// nothing else. `None` if it does not begin like a Snapshot of this format.
    pub fn claimed_version(file: &[u8]) -> Option<u64> {
        let mut fields = Fields(file);
        let begins = fields.take().ok()? == MAGIC && fields.take().ok()? == FORMAT.to_le_bytes();
        let _flags: [u8; 2] = fields.take().ok()?;
        let version = u64::from_le_bytes(fields.take().ok()?);
        begins.then_some(version)
    }

    /// Reads and verifies the header, then the payload's digest: all that comes before parsing.
    ///
    /// Cheap checks first, and nothing of the payload is read before the signature has held.
    pub(super) fn verify<'a>(
        file: &'a [u8],
        trusted: &TrustedKeys,
    ) -> Result<(Self, &'a [u8]), SnapshotError> {
        let mut fields = Fields(file);
        if fields.take()? != MAGIC {
            return Err(SnapshotError::NoSnapshot);
        }
        let format = u16::from_le_bytes(fields.take()?);
        if format != FORMAT {
            return Err(SnapshotError::Format { found: format });
        }
        let flags = u16::from_le_bytes(fields.take()?);
        if flags != 0 {
            return Err(SnapshotError::Flags { found: flags });
        }
        let version = u64::from_le_bytes(fields.take()?);
        let created_unix_ms = u64::from_le_bytes(fields.take()?);
        let key = KeyId(fields.take()?);
        let length = u64::from_le_bytes(fields.take()?);
        let digest = Digest(fields.take()?);
        let signature = fields.take::<64>()?;
        let payload = fields.0;

        let found = payload.len() as u64;
        if found < length {
            return Err(SnapshotError::Truncated);
        }
        if found > length {
            return Err(SnapshotError::Trailing { bytes: found - length });
        }
        let public = trusted.get(key).ok_or(SnapshotError::UnknownKey(key))?;
        let signed = file.get(..SIGNED_BYTES).ok_or(SnapshotError::Truncated)?;
        if !public.verifies(&message(signed), &signature) {
            return Err(SnapshotError::Signature);
        }
        if Digest::of(payload) != digest {
            return Err(SnapshotError::Digest);
        }
        let version = SnapshotVersion::new(version).ok_or(SnapshotError::VersionZero)?;
        Ok((Self { id: SnapshotId { version, digest }, created_unix_ms, key }, payload))
    }
}

/// What is signed.
fn message(signed: &[u8]) -> Vec<u8> {
    [SIGNATURE_DOMAIN, signed].concat()
}

/// Takes fields off the front.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], SnapshotError> {
        let (field, rest) = self.0.split_first_chunk().ok_or(SnapshotError::Truncated)?;
        self.0 = rest;
        Ok(*field)
    }
}
