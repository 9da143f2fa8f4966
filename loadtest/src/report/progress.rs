//! The live line on a terminal.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::timeline::Row;

/// A progress bar over the run's time; nothing where standard error is no terminal.
#[derive(Debug)]
pub struct Progress(Option<ProgressBar>);

impl Progress {
    /// A bar of this length; without a length it only tells rates.
    pub fn over(length: Option<Duration>) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self(None);
        }
        let bar = match length {
            Some(length) => ProgressBar::new(length.as_millis().try_into().unwrap_or(u64::MAX)),
            None => ProgressBar::new_spinner(),
        };
        let template =
            if length.is_some() { "{bar:30} {elapsed} {msg}" } else { "{spinner} {elapsed} {msg}" };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self(Some(bar))
    }

    /// Shows how far the run is, and its newest second.
    pub fn show(&self, elapsed: Duration, newest: Option<&Row>) {
        let Some(bar) = &self.0 else { return };
        bar.set_position(elapsed.as_millis().try_into().unwrap_or(u64::MAX));
        if let Some(row) = newest {
            bar.set_message(format!(
                "{}/s  p50 {:.0} us  p99 {:.0} us  {} failed",
                row.requests, row.p50_us, row.p99_us, row.failures
            ));
        }
    }

    /// Takes the line away.
    pub fn clear(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
