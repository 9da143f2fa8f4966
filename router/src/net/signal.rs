//! Signals, taken one by one by a thread that waits for them; no handler interrupts anything.

use std::io;
use std::mem::MaybeUninit;

/// What an operator asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Signal {
    /// SIGTERM or SIGINT.
    Stop,
    /// SIGHUP.
    Reload,
}

/// SIGTERM, SIGINT and SIGHUP, blocked in this thread and in all that it spawns.
#[derive(Clone, Copy, Debug)]
pub struct Signals {
    set: libc::sigset_t,
}

impl Signals {
    /// Blocks them. Call it before any thread is spawned, or that thread dies of the next signal.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn block() -> io::Result<Self> {
        let mut set = MaybeUninit::uninit();
        // SAFETY: `sigemptyset` writes the whole set that the pointer leads to.
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        // SAFETY: the call above has initialised it.
        let mut set = unsafe { set.assume_init() };
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            // SAFETY: `set` is initialised and borrowed for the call; the signal numbers are valid.
            unsafe { libc::sigaddset(&raw mut set, signal) };
        }
        // SAFETY: `set` is initialised; no old set is asked for.
        let error =
            unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
        if error == 0 { Ok(Self { set }) } else { Err(io::Error::from_raw_os_error(error)) }
    }

    /// Waits for the next one. Two threads must not wait at once: one of them gets it.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn wait(&self) -> io::Result<Signal> {
        let mut signal = 0;
        // SAFETY: `set` is initialised, and `signal` is borrowed for the call.
        let error = unsafe { libc::sigwait(&raw const self.set, &raw mut signal) };
        match (error, signal) {
            (0, libc::SIGHUP) => Ok(Signal::Reload),
            (0, _) => Ok(Signal::Stop),
            (error, _) => Err(io::Error::from_raw_os_error(error)),
        }
    }
}
