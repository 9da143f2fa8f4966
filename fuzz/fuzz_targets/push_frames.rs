//! Push frames: at once and in pieces they are the same, and what was read can be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_shared::push::{FrameReader, read_frame};

fuzz_target!(|input: &[u8]| {
    let Some((bytes, step)) = switchboard_fuzz::split(input) else { return };
    let at_once = feed([bytes]);
    assert_eq!(feed(bytes.chunks(step)), at_once);
});

/// All frames and the final error, as text.
fn feed<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let mut reader = FrameReader::new();
    let mut seen = Vec::new();
    for piece in pieces {
        reader.push(piece);
        loop {
            match reader.next_frame() {
                Ok(None) => break,
                Ok(Some(frame)) => {
                    let text = format!("{frame:?}");
                    let written = frame.to_bytes().expect("what was read can be written");
                    let (again, length) = read_frame(&written).expect("readable").expect("whole");
                    assert_eq!((format!("{again:?}"), length), (text.clone(), written.len()));
                    seen.push(text);
                }
                Err(error) => {
                    seen.push(error.to_string());
                    return seen;
                }
            }
        }
    }
    seen
}
