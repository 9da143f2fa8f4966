//! Replies of the cache: at once and in pieces they are the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_router::facts::resp::{Reply, read};

/// Small, so that inputs reach them.
const VALUE_MAX: usize = 10;
const SKIP_MAX: usize = 100;

fuzz_target!(|input: &[u8]| {
    let Some((bytes, step)) = switchboard_fuzz::split(input) else { return };
    let at_once = feed([bytes]);
    assert_eq!(feed(bytes.chunks(step)), at_once);
});

/// All replies and the final error, as text.
fn feed<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let (mut pending, mut seen, mut skip) = (Vec::new(), Vec::new(), 0_usize);
    for piece in pieces {
        pending.extend_from_slice(piece);
        loop {
            let skipped = skip.min(pending.len());
            pending.drain(..skipped);
            skip -= skipped;
            if skip > 0 {
                break;
            }
            match read(&pending, VALUE_MAX, SKIP_MAX) {
                Ok(None) => break,
                Ok(Some((reply, taken))) => {
                    if let Reply::Value(value) = reply {
                        assert!(value.len() <= VALUE_MAX);
                    }
                    if let Reply::Oversized { skip: bytes } = reply {
                        assert!(bytes <= SKIP_MAX + 2);
                        skip = bytes;
                    }
                    seen.push(format!("{reply:?}"));
                    assert!((1..=pending.len()).contains(&taken));
                    pending.drain(..taken);
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
