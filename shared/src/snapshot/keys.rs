//! Who signs Snapshots, and whom a router trusts.
//!
//! Both keys are one line of text: `switchboard-secret-1 <64 hex digits>` (the Ed25519 seed) and
//! `switchboard-public-1 <64 hex digits>`. The word in front keeps one from being pasted where the
//! other belongs, and its number tells the format.

use std::{fmt, str::FromStr};

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};

use crate::limits::TRUSTED_KEYS_MAX;

/// Begins a secret key's line.
const SECRET_WORD: &str = "switchboard-secret-1";
/// Begins a public key's line.
const PUBLIC_WORD: &str = "switchboard-public-1";

/// Why a key is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum KeyError {
    /// Not one line that begins with the expected word.
    #[error("expected one line: `{expected}` and 64 hex digits")]
    Format {
        /// The word.
        expected: &'static str,
    },
    /// A secret key where a public one belongs. Whoever sees it can sign: make a new one.
    #[error(
        "this is a SECRET key where a public key belongs; it must be replaced if it was shared"
    )]
    SecretAsPublic,
    /// A public key where a secret one belongs.
    #[error("this is a public key where a secret key belongs")]
    PublicAsSecret,
    /// Not 64 hex digits.
    #[error("expected 64 hex digits after `{expected}`")]
    Hex {
        /// The word before them.
        expected: &'static str,
    },
    /// 32 bytes that are no point of the curve.
    #[error("these 32 bytes are no Ed25519 public key")]
    NotOnCurve,
    /// A small-order point: one signature of it can fit two messages.
    #[error("this is a weak (small-order) Ed25519 public key")]
    Weak,
    /// The same key twice.
    #[error("key {0} is trusted twice")]
    Twice(KeyId),
    /// More than `TRUSTED_KEYS_MAX`.
    #[error("more than {TRUSTED_KEYS_MAX} trusted keys")]
    TooMany,
}

/// Names a public key: the first 8 bytes of its BLAKE3 hash.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct KeyId(pub [u8; 8]);

impl fmt::Display for KeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, formatter)
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "KeyId({self})")
    }
}

/// Signs Snapshots. Wiped from memory when it is dropped; never printed by `Debug`.
#[derive(Clone)]
pub struct SecretKey(SigningKey);

impl SecretKey {
    /// Makes the key of a seed, which must come from the operating system's randomness.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    /// Its public half.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// The line for a key file, which must be readable by its owner only.
    pub fn to_line(&self) -> String {
        let mut line = format!("{SECRET_WORD} ");
        for byte in self.0.as_bytes() {
            line.push_str(&format!("{byte:02x}"));
        }
        line.push('\n');
        line
    }

    pub(super) fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

impl FromStr for SecretKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        if text.trim_start().starts_with(PUBLIC_WORD) {
            return Err(KeyError::PublicAsSecret);
        }
        read_line(text, SECRET_WORD).map(|seed| Self::from_seed(&seed))
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SecretKey(of {})", self.public().id())
    }
}

/// Verifies Snapshots. Never weak.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// Reads the 32 bytes of an Ed25519 public key.
    ///
    /// # Errors
    /// [`KeyError::NotOnCurve`] or [`KeyError::Weak`].
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, KeyError> {
        let key = VerifyingKey::from_bytes(bytes).map_err(|_| KeyError::NotOnCurve)?;
        if key.is_weak() { Err(KeyError::Weak) } else { Ok(Self(key)) }
    }

    /// Its 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    /// Its name in a Snapshot's header.
    pub fn id(&self) -> KeyId {
        let [a, b, c, d, e, f, g, h, ..] = *blake3::hash(self.as_bytes()).as_bytes();
        KeyId([a, b, c, d, e, f, g, h])
    }

    /// Whether the signature fits. Strict: refuses malleated and small-order signatures.
    pub(super) fn verifies(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        self.0.verify_strict(message, &Signature::from_bytes(signature)).is_ok()
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        if text.trim_start().starts_with(SECRET_WORD) {
            return Err(KeyError::SecretAsPublic);
        }
        Self::from_bytes(&read_line(text, PUBLIC_WORD)?)
    }
}

/// The line for a configuration file.
impl fmt::Display for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{PUBLIC_WORD} ")?;
        write_hex(self.as_bytes(), formatter)
    }
}

/// Several public keys at once, so that keys can rotate without a gap.
#[derive(Clone, Debug, Default)]
pub struct TrustedKeys(Vec<(KeyId, PublicKey)>);

impl TrustedKeys {
    /// Trusts these keys.
    ///
    /// # Errors
    /// [`KeyError::Twice`], [`KeyError::TooMany`]. No key at all is allowed: nothing is accepted.
    pub fn new(keys: impl IntoIterator<Item = PublicKey>) -> Result<Self, KeyError> {
        let mut trusted: Vec<(KeyId, PublicKey)> = Vec::new();
        for key in keys {
            let id = key.id();
            if trusted.iter().any(|(other, _)| *other == id) {
                return Err(KeyError::Twice(id));
            }
            if trusted.len() >= TRUSTED_KEYS_MAX {
                return Err(KeyError::TooMany);
            }
            trusted.push((id, key));
        }
        Ok(Self(trusted))
    }

    /// The key of that name.
    pub fn get(&self, id: KeyId) -> Option<&PublicKey> {
        self.0.iter().find(|(other, _)| *other == id).map(|(_, key)| key)
    }

    /// Names of all of them.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = KeyId> {
        self.0.iter().map(|(id, _)| *id)
    }
}

/// `word`, one space, 64 hex digits; white space around the line is ignored.
fn read_line(text: &str, word: &'static str) -> Result<[u8; 32], KeyError> {
    let rest = text.trim().strip_prefix(word).ok_or(KeyError::Format { expected: word })?;
    let digits = rest.strip_prefix(' ').ok_or(KeyError::Format { expected: word })?;
    // BLAKE3's own reader: exactly 64 hex digits.
    let bytes = blake3::Hash::from_hex(digits).map_err(|_| KeyError::Hex { expected: word })?;
    Ok(*bytes.as_bytes())
}

/// Lower-case hex.
pub(super) fn write_hex(bytes: &[u8], formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
}
