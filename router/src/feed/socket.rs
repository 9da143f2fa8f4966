//! The Unix socket's file: made, guarded, taken away.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _,
};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// A listening socket, whose file is removed with it.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) listener: UnixListener,
    path: PathBuf,
    /// Device and inode: another router may have taken the path over since.
    file: (u64, u64),
}

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// A router, or something else, listens there.
    #[error("another process listens on {}", path.display())]
    InUse {
        /// The path.
        path: PathBuf,
    },
    /// Something else is in its place, and is not touched.
    #[error("{} exists and is no socket", path.display())]
    NoSocket {
        /// The path.
        path: PathBuf,
    },
    /// Permissions, space, a missing folder.
    #[error("cannot {step} {}", path.display())]
    System {
        /// What was tried.
        step: &'static str,
        /// With which file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl Socket {
    /// Listens at `path`. Its folder is created with mode 0700 if missing; a file that a dead router
    /// left there is removed, one that somebody listens on is not.
    pub(super) fn bind(path: &Path, mode: u32) -> Result<Self, SocketError> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)
                .map_err(failed("create folder", folder))?;
        }
        remove_stale(path)?;
        let listener = UnixListener::bind(path).map_err(failed("listen on", path))?;
        // Until here the umask decided. A peer that slipped in is asked for its credentials like any.
        fs::set_permissions(path, Permissions::from_mode(mode))
            .map_err(failed("set the mode of", path))?;
        listener.set_nonblocking(true).map_err(failed("listen on", path))?;
        let file = identity(path).map_err(failed("look at", path))?;
        Ok(Self { listener, path: path.to_owned(), file })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|file| file == self.file) {
            // A file that stays is removed as stale by the next router.
            let _stays: io::Result<()> = fs::remove_file(&self.path);
        }
    }
}

fn remove_stale(path: &Path) -> Result<(), SocketError> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed("look at", path)(error)),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            Err(SocketError::NoSocket { path: path.into() })
        }
        Ok(_) => match UnixStream::connect(path) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                fs::remove_file(path).map_err(failed("remove stale socket", path))
            }
            Ok(_) => Err(SocketError::InUse { path: path.into() }),
            Err(error) => Err(failed("probe", path)(error)),
        },
    }
}

fn failed(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> SocketError {
    let path = path.to_owned();
    move |source| SocketError::System { step, path, source }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_folder_is_made_private_and_the_socket_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/a/router.sock");
        let socket = Socket::bind(&path, 0o600).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        drop(socket);
        assert!(!path.exists());
    }

    #[test]
    fn a_stale_file_is_replaced_and_a_live_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("router.sock");
        drop(UnixListener::bind(&path).unwrap()); // leaves its file, as a killed router does
        let socket = Socket::bind(&path, 0o600).unwrap();
        assert!(matches!(Socket::bind(&path, 0o600), Err(SocketError::InUse { .. })));
        assert!(UnixStream::connect(&path).is_ok());
        drop(socket);
    }

    #[test]
    fn what_is_no_socket_is_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("router.sock");
        fs::write(&path, "precious").unwrap();
        assert!(matches!(Socket::bind(&path, 0o600), Err(SocketError::NoSocket { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }

    #[test]
    fn a_socket_that_another_router_took_over_is_left_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("router.sock");
        let first = Socket::bind(&path, 0o600).unwrap();
        fs::remove_file(&path).unwrap();
        let second = Socket::bind(&path, 0o600).unwrap();
        drop(first);
        assert!(UnixStream::connect(&path).is_ok());
        drop(second);
    }
}
