//! From the first signal to the end: who asks to stop, and how long that may take.

use std::io;
use std::process::exit;
use std::time::Duration;

use crate::log;
use crate::net::clock;
use crate::net::signal::{Signal, Signals};

/// Exit code after a second SIGTERM or SIGINT: the drain was cut.
const CUT: i32 = 1;

/// Waits for SIGTERM or SIGINT.
///
/// # Errors
/// What the kernel said.
pub fn wait(signals: &Signals) -> io::Result<()> {
    loop {
        match signals.wait()? {
            Signal::Stop => {
                log::info("stopping: not ready from now on", &[]);
                return Ok(());
            }
            Signal::Reload => {
                let why = "router.toml and its keys are read at start only; snapshots are pushed";
                log::warn("SIGHUP changes nothing", &[("reason", &why)]);
            }
        }
    }
}

/// From now on the next SIGTERM or SIGINT ends the process at once.
///
/// # Errors
/// No thread to wait for it.
pub fn at_once_on_the_next(signals: Signals) -> io::Result<()> {
    let thread = std::thread::Builder::new().name("signals".into());
    thread.spawn(move || {
        while let Ok(signal) = signals.wait() {
            if signal == Signal::Stop {
                log::warn("stopped at once: requests were cut", &[]);
                exit(CUT);
            }
        }
    })?;
    Ok(())
}

/// Lets this thread sleep; no worker runs on it.
pub fn pause(span: Duration) {
    let deadline = clock::now() + span;
    loop {
        let left = deadline.saturating_duration_since(clock::now());
        if left.is_zero() {
            return;
        }
        std::thread::park_timeout(left);
    }
}
