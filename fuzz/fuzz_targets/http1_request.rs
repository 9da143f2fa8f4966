//! A client's bytes: the same head and body whether they arrive at once or one by one, and nothing read twice.

#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_router::http1::{BodyDecoder, BodyError, HeadError, HeadLimits, Progress, RequestHead};

const BODY_BYTES_MAX: u64 = 1_000;

fuzz_target!(|input: &[u8]| {
    let (whole, whole_outcome) = parse(input, input.len().max(1));
    let (split, split_outcome) = parse(input, 1);
    assert_eq!(whole_outcome, split_outcome, "how the bytes were split changes nothing");
    if whole_outcome != Ok(Progress::Complete) {
        return;
    }
    assert!(whole.bytes() <= input.len());
    assert_eq!(whole.bytes(), split.bytes());
    assert_eq!(whole.framing(), split.framing());
    let view = whole.view(input);
    assert!(view.path().starts_with(b"/") || view.path() == b"*");
    for header in view.headers() {
        assert!(!header.name.is_empty());
        let line_end = |byte: &u8| matches!(byte, b'\r' | b'\n' | 0);
        assert!(!header.name.iter().chain(header.value).any(line_end), "one line stays one line");
    }

    let rest = &input[whole.bytes()..];
    let decoder = BodyDecoder::for_request(whole.framing());
    let (body, consumed, outcome) = decode(decoder.clone(), rest, rest.len().max(1));
    assert_eq!((body, consumed, outcome), decode(decoder, rest, 1));
});

fn parse(input: &[u8], step: usize) -> (RequestHead, Result<Progress, HeadError>) {
    let mut head = RequestHead::new();
    let mut outcome = Ok(Progress::Partial);
    let mut end = 0;
    while outcome == Ok(Progress::Partial) && end < input.len() {
        end = (end + step).min(input.len());
        outcome = head.parse(&input[..end], &HeadLimits::DEFAULT);
    }
    (head, outcome)
}

/// Body data, bytes consumed, and the error if there was one; the input comes in pieces of `step`.
fn decode(mut decoder: BodyDecoder, input: &[u8], step: usize) -> (Vec<u8>, usize, Result<(), BodyError>) {
    let (mut body, mut consumed) = (Vec::new(), 0);
    if let Err(error) = decoder.limit(BODY_BYTES_MAX) {
        return (body, consumed, Err(error));
    }
    let mut end = 0;
    while end < input.len() {
        end = (end + step).min(input.len());
        while consumed < end && !decoder.is_complete() {
            let piece = &input[consumed..end];
            match decoder.decode(piece) {
                Ok(decoded) => {
                    assert!(decoded.consumed > 0, "no call without progress");
                    body.extend_from_slice(&piece[decoded.data]);
                    consumed += decoded.consumed;
                }
                // How far it came before the fault depends on the pieces; what it gave out does not.
                Err(error) => return (body, 0, Err(error)),
            }
        }
    }
    assert!(body.len() as u64 <= BODY_BYTES_MAX);
    (body, consumed, Ok(()))
}
