//! A frame from the push socket: refused, not yet whole, or read and written back the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_shared::push::read_frame;

fuzz_target!(|input: &[u8]| {
    if let Ok(Some((frame, taken))) = read_frame(input) {
        let written = frame.to_bytes().expect("what was read is within every limit");
        assert_eq!(written, &input[..taken], "one frame has one form");
    }
});
