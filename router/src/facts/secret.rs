//! A password: read once, never shown.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::limits::SECRET_BYTES_MAX;

/// A password. Its `Debug` form does not show it, and there is no `Display`.
pub struct Secret(Box<[u8]>);

/// Why there is no password where one was named.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The environment lacks the variable.
    #[error("the environment has no {name}")]
    Unset {
        /// Its name.
        name: String,
    },
    /// Nothing, or more than `SECRET_BYTES_MAX`.
    #[error("a password has 1 to {SECRET_BYTES_MAX} bytes")]
    Length,
}

impl Secret {
    /// Reads it from a file, whose last line end is not part of it, or else from the environment. `None`: neither
    /// is named.
    ///
    /// # Errors
    /// See [`SecretError`].
    pub fn read(file: &Path, variable: &str) -> Result<Option<Self>, SecretError> {
        let bytes = if !file.as_os_str().is_empty() {
            let text = std::fs::read(file)
                .map_err(|source| SecretError::Read { path: file.to_owned(), source })?;
            let end = text.strip_suffix(b"\n").unwrap_or(&text);
            end.strip_suffix(b"\r").unwrap_or(end).to_vec()
        } else if !variable.is_empty() {
            let unset = || SecretError::Unset { name: variable.to_owned() };
            std::env::var_os(variable).ok_or_else(unset)?.into_encoded_bytes()
        } else {
            return Ok(None);
        };
        if bytes.is_empty() || bytes.len() > SECRET_BYTES_MAX {
            return Err(SecretError::Length);
        }
        Ok(Some(Self(bytes.into())))
    }

    /// The bytes, for the one who sends them.
    pub(super) fn reveal(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_read_without_its_line_end_and_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        std::fs::write(&file, "s3cret\r\n").unwrap();
        let secret = Secret::read(&file, "").unwrap().unwrap();
        assert_eq!(secret.reveal(), b"s3cret");
        assert!(!format!("{secret:?}").contains("s3"));
        std::fs::write(&file, "\n").unwrap();
        assert!(matches!(Secret::read(&file, ""), Err(SecretError::Length)));
        let absent = Secret::read(Path::new(""), "SWITCHBOARD_NO_SUCH_VARIABLE");
        assert!(matches!(absent, Err(SecretError::Unset { .. })));
        assert!(matches!(Secret::read(Path::new(""), ""), Ok(None)));
    }
}
