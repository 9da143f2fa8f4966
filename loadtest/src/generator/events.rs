//! Finds server-sent events in a body, in whatever pieces it arrives, and what they carry.

use memchr::{memchr, memmem};

use crate::limits::EVENT_BYTES_MAX;

/// Walks through one stream (WHATWG HTML, "Server-sent events").
#[derive(Debug, Default)]
pub struct EventScanner {
    in_line: bool,
    has_data: bool,
    event: Vec<u8>,
}

/// What one event carries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Event {
    /// Text of an answer: in JSON, a `content` or `text` that is not empty (OpenAI's chunks, and
    /// what is made like them); else any data.
    Token,
    /// `[DONE]`: the answer is whole.
    Done,
    /// Anything else, such as the first chunk's role.
    Other,
}

impl EventScanner {
    /// Tells each event that ends in `data`. Comments are none.
    pub fn scan(&mut self, data: &[u8], mut tell: impl FnMut(Event)) {
        let mut rest = data;
        while !rest.is_empty() {
            let end = memchr(b'\n', rest);
            let (line, after) = match end {
                Some(end) => (&rest[..end], &rest[end + 1..]),
                None => (rest, &[][..]),
            };
            self.take(line);
            rest = after;
            if end.is_none() {
                return;
            }
            if self.in_line {
                self.take(b"\n");
                self.in_line = false;
                self.has_data |= last_line(&self.event).starts_with(b"data");
            } else {
                if self.has_data {
                    tell(classify(&self.event));
                }
                self.event.clear();
                self.has_data = false;
            }
        }
    }

    /// Whether the stream stands within an event: one that ends here was cut off.
    pub fn is_within_event(&self) -> bool {
        self.has_data || !self.event.is_empty()
    }

    fn take(&mut self, piece: &[u8]) {
        self.in_line |= piece.iter().any(|byte| *byte != b'\r');
        if self.in_line {
            let room = EVENT_BYTES_MAX.saturating_sub(self.event.len());
            self.event.extend_from_slice(&piece[..piece.len().min(room)]);
        }
    }
}

/// The line that was just ended.
fn last_line(event: &[u8]) -> &[u8] {
    let event = event.strip_suffix(b"\n").unwrap_or(event);
    event.rsplit(|byte| *byte == b'\n').next().unwrap_or_default()
}

fn classify(event: &[u8]) -> Event {
    let data = event
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.strip_prefix(b"data"))
        .map(|line| line.strip_prefix(b":").unwrap_or(line).trim_ascii());
    let mut is_json = false;
    for line in data {
        if line == b"[DONE]" {
            return Event::Done;
        }
        is_json |= line.starts_with(b"{");
        let has_text = [&b"content\":"[..], b"text\":"].iter().any(|name| has_text(line, name));
        if has_text || (!is_json && !line.is_empty()) {
            return Event::Token;
        }
    }
    Event::Other
}

/// Whether a member of this name holds a string that is not empty.
fn has_text(json: &[u8], name: &[u8]) -> bool {
    memmem::find_iter(json, name).any(|position| {
        let value = json[position + name.len()..].trim_ascii_start();
        value.first() == Some(&b'"') && value.get(1).is_some_and(|byte| *byte != b'"')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = b"data: {\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}\n\n\
        data: {\"delta\":{\"content\": \"a\"}}\n\n: comment\r\n\r\n\
        event: x\ndata: {\"choices\":[{\"text\":\"b\"}]}\r\n\r\ndata: plain\n\n\n\
        data: {\"usage\":1}\n\ndata: [DONE]\n\ndata: unfinished\n";

    fn events(pieces: impl Iterator<Item = &'static [u8]>) -> (Vec<Event>, bool) {
        let mut scanner = EventScanner::default();
        let mut events = Vec::new();
        for piece in pieces {
            scanner.scan(piece, |event| events.push(event));
        }
        (events, scanner.is_within_event())
    }

    #[test]
    fn events_are_told_by_what_they_carry_however_they_are_cut() {
        use Event::{Done, Other, Token};
        let whole = events(std::iter::once(BODY));
        assert_eq!(whole.0, [Other, Token, Token, Token, Other, Done]);
        for step in 1..BODY.len() {
            assert_eq!(events(BODY.chunks(step)), whole, "step {step}");
        }
    }

    #[test]
    fn a_stream_that_ends_within_an_event_was_cut_off() {
        assert!(events(std::iter::once(BODY)).1);
        assert!(events(std::iter::once(&b"data: a\n"[..])).1);
        assert!(events(std::iter::once(&b"dat"[..])).1);
        assert!(!events(std::iter::once(&b"data: a\n\n"[..])).1);
    }

    #[test]
    fn an_event_of_any_length_takes_bounded_memory() {
        let mut scanner = EventScanner::default();
        for _ in 0..100 {
            scanner.scan(&[b'x'; 4096], |_| {});
        }
        assert!(scanner.event.len() <= EVENT_BYTES_MAX);
        let mut count = 0;
        scanner.scan(b"\n\ndata: next\n\n", |_| count += 1);
        assert_eq!(count, 1, "what has no data line is no event");
    }
}
