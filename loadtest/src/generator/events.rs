//! Finds server-sent events in a body, in whatever pieces it arrives.

/// Counts events: blocks of lines that an empty line ends.
#[derive(Debug, Default)]
pub struct EventScanner {
    in_line: bool,
    in_event: bool,
}

impl EventScanner {
    /// How many events end in `data`.
    pub fn scan(&mut self, data: &[u8]) -> u64 {
        let mut events = 0;
        for byte in data {
            match byte {
                b'\n' if !self.in_line && self.in_event => {
                    events += 1;
                    self.in_event = false;
                }
                b'\n' => self.in_line = false,
                b'\r' => {}
                _ => {
                    self.in_line = true;
                    self.in_event = true;
                }
            }
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_where_they_end_however_they_are_cut() {
        let body = b"data: a\n\ndata: b\ndata: c\n\n\n: comment\r\n\r\ndata: unfinished\n";
        assert_eq!(EventScanner::default().scan(body), 3);
        for step in 1..body.len() {
            let mut scanner = EventScanner::default();
            let events: u64 = body.chunks(step).map(|piece| scanner.scan(piece)).sum();
            assert_eq!(events, 3, "step {step}");
        }
    }
}
