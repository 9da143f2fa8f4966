//! A model server's bytes: never a panic, never a body longer than it says, and no split changes the result.

#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_router::http1::{BodyDecoder, HeadError, Method, Progress, ResponseFraming, ResponseHead};

fuzz_target!(|input: &[u8]| {
    for method in [Method::of(b"GET"), Method::of(b"HEAD")] {
        let (whole, whole_outcome) = parse(input, input.len().max(1), method);
        let (split, split_outcome) = parse(input, 1, method);
        assert_eq!(whole_outcome, split_outcome, "how the bytes were split changes nothing");
        if whole_outcome != Ok(Progress::Complete) {
            continue;
        }
        assert_eq!(
            (whole.bytes(), whole.status(), whole.framing()),
            (split.bytes(), split.status(), split.framing())
        );
        let mut rest = &input[whole.bytes()..];
        let mut decoder = BodyDecoder::for_response(whole.framing());
        let mut received = 0;
        while !rest.is_empty() && !decoder.is_complete() {
            let Ok(decoded) = decoder.decode(rest) else { break };
            assert!(decoded.consumed > 0, "no call without progress");
            received += decoded.data.len() as u64;
            rest = &rest[decoded.consumed..];
        }
        if let ResponseFraming::Length(length) = whole.framing() {
            assert!(received <= length);
        }
    }
});

fn parse(input: &[u8], step: usize, method: Method) -> (ResponseHead, Result<Progress, HeadError>) {
    let mut head = ResponseHead::new();
    let mut outcome = Ok(Progress::Partial);
    let mut end = 0;
    while outcome == Ok(Progress::Partial) && end < input.len() {
        end = (end + step).min(input.len());
        outcome = head.parse(&input[..end], method);
    }
    (head, outcome)
}
