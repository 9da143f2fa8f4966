//! A chunked body: at once and in pieces, decoded and passed on, it is the same body, and the limits hold.
#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_router::http1::{BodyDecoder, BodyError, Decoded, RequestFraming};

const BYTES_MAX: u64 = 4096;

type Take = fn(&mut BodyDecoder, &[u8]) -> Result<Decoded, BodyError>;

fuzz_target!(|input: &[u8]| {
    let Some((bytes, step)) = switchboard_fuzz::split(input) else { return };
    let decoded = feed(BodyDecoder::decode, [bytes]);
    assert!(decoded.0.len() as u64 <= BYTES_MAX);
    assert_eq!(feed(BodyDecoder::decode, bytes.chunks(step)), decoded);
    let passed = feed(BodyDecoder::pass, [bytes]);
    assert_eq!(feed(BodyDecoder::pass, bytes.chunks(step)), passed);
    assert_eq!(passed.1, decoded.1);
    let again = feed(BodyDecoder::decode, [&passed.0[..]]);
    assert_eq!(again.0, decoded.0, "what is passed on has the same data");
    assert_eq!(
        matches!(again.1, Ok(Some(_))),
        matches!(decoded.1, Ok(Some(_))),
        "and the same end"
    );
});

/// What was given out, and how the body ended: how many bytes a complete one had.
fn feed<'a>(
    take: Take,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<u8>, Result<Option<usize>, BodyError>) {
    let mut decoder = BodyDecoder::for_request(RequestFraming::Chunked);
    decoder.limit(BYTES_MAX).expect("nothing was read yet");
    let (mut out, mut total) = (Vec::new(), 0);
    for piece in pieces {
        let mut rest = piece;
        while !rest.is_empty() && !decoder.is_complete() {
            match take(&mut decoder, rest) {
                Ok(Decoded { consumed, data }) => {
                    assert!(consumed > 0 && data.end <= consumed, "each call makes progress");
                    out.extend_from_slice(&rest[data]);
                    rest = &rest[consumed..];
                    total += consumed;
                }
                Err(error) => return (out, Err(error)),
            }
        }
    }
    (out, Ok(decoder.is_complete().then_some(total)))
}
