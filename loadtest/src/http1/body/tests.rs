use proptest::prelude::*;

use super::*;

/// Decodes `input` in pieces of `step` bytes; returns the data and what lies behind the body.
fn decode(framing: Framing, input: &[u8], step: usize) -> Result<(Vec<u8>, Vec<u8>), FramingError> {
    let mut decoder = BodyDecoder::new(framing);
    let mut data = Vec::new();
    let mut position = 0;
    while !decoder.is_done() && position < input.len() {
        let end = input.len().min(position + step);
        let piece = decoder.next(&input[position..end])?;
        data.extend_from_slice(piece.data);
        assert!(piece.consumed > 0, "a byte is always enough to go on");
        position += piece.consumed;
    }
    Ok((data, input[position..].to_vec()))
}

#[test]
fn a_chunked_body_with_extensions_and_trailers_ends_where_the_next_message_starts() {
    let input = b"4;name=\"v\"\r\nWiki\r\n005 \r\npedia\r\n0\r\nx-sum: 1\r\ny: 2\r\n\r\nGET /";
    for step in [1, 2, 3, 7, 1000] {
        let (data, rest) = decode(Framing::Chunked, input, step).unwrap();
        assert_eq!(data, b"Wikipedia", "step {step}");
        assert_eq!(rest, b"GET /", "step {step}");
    }
}

#[test]
fn a_body_of_known_length_ends_after_it() {
    let (data, rest) = decode(Framing::Length(5), b"helloGET", 3).unwrap();
    assert_eq!((data.as_slice(), rest.as_slice()), (&b"hello"[..], &b"GET"[..]));
    assert!(BodyDecoder::new(Framing::Length(0)).is_done());
}

#[test]
fn a_body_until_close_takes_everything_and_may_end_anywhere() {
    let (data, rest) = decode(Framing::UntilClose, b"anything", 4).unwrap();
    assert_eq!((data.as_slice(), rest.len()), (&b"anything"[..], 0));
    assert!(BodyDecoder::new(Framing::UntilClose).may_end_here());
    assert!(!BodyDecoder::new(Framing::Length(1)).may_end_here());
    assert!(!BodyDecoder::new(Framing::Chunked).may_end_here());
}

#[test]
fn malformed_chunks_are_refused() {
    let bad: [&[u8]; 9] = [
        b"\r\n",
        b"g\r\n",
        b"-1\r\nx\r\n",
        b"0x1\r\nx\r\n",
        b"1\nx\r\n",
        b"1\r\nxy\r\n",
        b"1\r\nx\n",
        b"1;a\nx\r\n",
        b"fffffffffffffffff\r\n",
    ];
    for input in bad {
        let result = decode(Framing::Chunked, input, 1);
        assert_eq!(result, Err(FramingError::Chunk), "{:?}", String::from_utf8_lossy(input));
    }
}

#[test]
fn endless_extensions_and_trailers_are_refused() {
    let flood = "a".repeat(20_000);
    for input in [format!("1;{flood}"), format!("0\r\nx: {flood}")] {
        let result = decode(Framing::Chunked, input.as_bytes(), 4096);
        assert_eq!(result, Err(FramingError::ChunkExtras));
    }
}

proptest! {
    #[test]
    fn whatever_was_chunked_comes_out_again(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..8),
        step in 1_usize..50,
    ) {
        let mut wire = Vec::new();
        for chunk in &chunks {
            wire.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            wire.extend_from_slice(chunk);
            wire.extend_from_slice(b"\r\n");
        }
        wire.extend_from_slice(b"0\r\n\r\nnext");
        let (data, rest) = decode(Framing::Chunked, &wire, step).unwrap();
        prop_assert_eq!(data, chunks.concat());
        prop_assert_eq!(rest, b"next");
    }

    #[test]
    fn no_input_makes_the_decoder_panic(input in prop::collection::vec(any::<u8>(), 0..200), step in 1_usize..20) {
        drop(decode(Framing::Chunked, &input, step));
    }
}
