//! Who is at the other end of a Unix socket.

use std::io;
use std::mem::size_of;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;

/// The user that the peer had when it connected, as the kernel vouches for it (`SO_PEERCRED`).
///
/// Read here and not with `rustix`, whose process id type cannot hold the 0 that the kernel gives
/// for a peer outside of our PID namespace, such as in another container.
///
/// # Errors
/// What the kernel said.
pub fn user_of(stream: &UnixStream) -> io::Result<u32> {
    let mut credentials = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let size = size_of::<libc::ucred>();
    let mut length = libc::socklen_t::try_from(size).map_err(io::Error::other)?;
    // SAFETY: the descriptor is open while `stream` is borrowed; the kernel writes at most `length`
    // bytes into `credentials`, which has that size, and any bytes are a valid `ucred`.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    if length as usize != size {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(credentials.uid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_end_of_an_own_pair_is_oneself() {
        let (stream, _other) = UnixStream::pair().unwrap();
        assert_eq!(user_of(&stream).unwrap(), rustix::process::geteuid().as_raw());
    }
}
