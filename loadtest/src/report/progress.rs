//! The live line: on a terminal it stays in place, elsewhere it comes every ten seconds.

use std::cell::Cell;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::timeline::Row;

/// Tells on standard error how a run goes.
#[derive(Debug)]
pub struct Progress(Kind);

#[derive(Debug)]
enum Kind {
    /// A bar over the run's time.
    Bar(ProgressBar),
    /// A line now and then; the time of the last one.
    Lines(Cell<Duration>),
}

/// A log of a day should not be full of these.
const LINES_EVERY: Duration = Duration::from_secs(10);

impl Progress {
    /// Starts it; without a length it only tells rates.
    pub fn over(length: Option<Duration>) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self(Kind::Lines(Cell::new(Duration::ZERO)));
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
        Self(Kind::Bar(bar))
    }

    /// Shows how far the run is, its newest second, and how many requests have failed so far.
    pub fn show(&self, elapsed: Duration, newest: Option<&Row>, failures_total: u64) {
        let text = newest.map(|row| {
            let Row { requests, p50_us, p99_us, .. } = row;
            format!("{requests}/s  p50 {p50_us:.0} us  p99 {p99_us:.0} us  {failures_total} failed")
        });
        match &self.0 {
            Kind::Bar(bar) => {
                bar.set_position(elapsed.as_millis().try_into().unwrap_or(u64::MAX));
                if let Some(text) = text {
                    bar.set_message(text);
                }
            }
            Kind::Lines(last) => {
                if elapsed >= last.get() + LINES_EVERY
                    && let Some(text) = text
                {
                    last.set(elapsed);
                    eprintln!("{:>5} s  {text}", elapsed.as_secs());
                }
            }
        }
    }

    /// Takes the line away.
    pub fn clear(&self) {
        if let Kind::Bar(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
