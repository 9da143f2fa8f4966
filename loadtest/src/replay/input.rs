//! Where records come from: lines of a dump, or messages of a topic.

use std::io::{self, BufRead, Read};

use super::record::{Form, Line, Refusal};
use super::topic::Topic;
use crate::limits::RECORD_LINE_BYTES_MAX;

/// An input of records.
pub enum Input {
    /// JSON lines, as `switchboard-router spool dump` writes them.
    Lines(Box<dyn BufRead + Send>),
    /// Records as the router writes them.
    Topic(Box<Topic>),
}

impl Input {
    /// The next record that can be sent, or why this one cannot. `None` at the end. `line` is the memory for it.
    ///
    /// # Errors
    /// What ends the reading.
    pub fn next(
        &mut self,
        form: &Form,
        line: &mut Vec<u8>,
    ) -> io::Result<Option<Result<Line, Refusal>>> {
        match self {
            Self::Lines(input) => loop {
                match read_line(input, line)? {
                    LineEnd::Input => return Ok(None),
                    LineEnd::Long => return Ok(Some(Err(Refusal::TooLong))),
                    LineEnd::Line if line.trim_ascii().is_empty() => {}
                    LineEnd::Line => return Ok(Some(form.read(line))),
                }
            },
            Self::Topic(topic) => topic.next(form).map_err(io::Error::other),
        }
    }
}

enum LineEnd {
    Line,
    Long,
    Input,
}

/// Reads one line without its end. Of one that is too long nothing is kept.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<LineEnd> {
    line.clear();
    let limit = RECORD_LINE_BYTES_MAX as u64 + 1;
    if input.by_ref().take(limit).read_until(b'\n', line)? == 0 {
        return Ok(LineEnd::Input);
    }
    if line.pop_if(|last| *last == b'\n').is_some() || line.len() <= RECORD_LINE_BYTES_MAX {
        return Ok(LineEnd::Line);
    }
    line.clear();
    input.skip_until(b'\n')?;
    Ok(LineEnd::Long)
}
