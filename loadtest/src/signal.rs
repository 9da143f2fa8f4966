//! What a process owes its host: it ends when told to, and takes the files it may open.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::{SIGINT, SIGTERM};

/// Set by the first SIGINT or SIGTERM. A second SIGINT ends the process at once.
#[derive(Clone, Debug)]
pub struct StopSignal(Arc<AtomicBool>);

impl StopSignal {
    /// Takes the signals over.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn install() -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        // Registered first, so it sees the flag as it was before this signal.
        signal_hook::flag::register_conditional_shutdown(SIGINT, 130, Arc::clone(&stop))?;
        signal_hook::flag::register(SIGINT, Arc::clone(&stop))?;
        signal_hook::flag::register(SIGTERM, Arc::clone(&stop))?;
        Ok(Self(stop))
    }

    /// Whether the process was told to end.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Waits until it is.
    pub fn wait(&self) {
        while !self.is_set() {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Raises the soft limit of open files to the hard one: a connection each.
pub fn raise_open_files_limit() {
    let limit = getrlimit(Resource::Nofile);
    // Refused: then the connections themselves tell.
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).ok();
}
