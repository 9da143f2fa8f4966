#![expect(clippy::indexing_slicing, reason = "a test may stop at once")]

use proptest::prelude::*;

use super::super::chunk::{CHUNK_END, ChunkHeader, LAST_CHUNK};
use super::*;

/// What a body turned out to be: its data, how it ended, and what it left behind it.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Outcome {
    data: Vec<u8>,
    end: Result<End, BodyError>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum End {
    Complete { consumed: usize },
    MoreWanted,
}

type Take = fn(&mut BodyDecoder, &[u8]) -> Result<Decoded, BodyError>;

/// Feeds the pieces one after the other, as a connection does: what is not consumed stays in front.
fn feed<'a>(
    mut decoder: BodyDecoder,
    take: Take,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Outcome {
    let mut data = Vec::new();
    let mut consumed = 0;
    for piece in pieces {
        let mut rest = piece;
        while !rest.is_empty() && !decoder.is_complete() {
            match take(&mut decoder, rest) {
                Ok(decoded) => {
                    assert!(decoded.consumed > 0, "a call with input makes progress");
                    assert!(decoded.data.end <= decoded.consumed);
                    data.extend_from_slice(&rest[decoded.data]);
                    rest = &rest[decoded.consumed..];
                    consumed += decoded.consumed;
                }
                Err(error) => {
                    assert_eq!(take(&mut decoder, rest), Err(error), "an error stays");
                    return Outcome { data, end: Err(error) };
                }
            }
        }
    }
    let end = if decoder.is_complete() { End::Complete { consumed } } else { End::MoreWanted };
    Outcome { data, end: Ok(end) }
}

/// Whole and byte by byte; both must tell the same.
fn decode_with(decoder: &BodyDecoder, take: Take, bytes: &[u8]) -> Outcome {
    let whole = feed(decoder.clone(), take, [bytes]);
    let by_byte = feed(decoder.clone(), take, bytes.chunks(1));
    assert_eq!(by_byte, whole, "byte by byte: {}", bytes.escape_ascii());
    whole
}

fn decode(decoder: &BodyDecoder, bytes: &[u8]) -> Outcome {
    decode_with(decoder, BodyDecoder::decode, bytes)
}

fn chunked(limit: u64) -> BodyDecoder {
    let mut decoder = BodyDecoder::for_request(RequestFraming::Chunked);
    decoder.limit(limit).unwrap();
    decoder
}

fn complete(data: &[u8], consumed: usize) -> Outcome {
    Outcome { data: data.to_vec(), end: Ok(End::Complete { consumed }) }
}

fn refused(data: &[u8], error: BodyError) -> Outcome {
    Outcome { data: data.to_vec(), end: Err(error) }
}

#[test]
fn a_length_body_ends_at_its_length() {
    let decoder = BodyDecoder::for_request(RequestFraming::Length(5));
    assert_eq!(decode(&decoder, b"helloGET /"), complete(b"hello", 5));
    assert_eq!(decode(&decoder, b"hell").end, Ok(End::MoreWanted));
    for empty in [RequestFraming::None, RequestFraming::Length(0)] {
        assert!(BodyDecoder::for_request(empty).is_complete());
    }
}

#[test]
fn nothing_behind_a_complete_body_is_consumed() {
    let mut decoder = chunked(u64::MAX);
    let decoded = decoder.decode(b"5\r\nhello\r\n0\r\n\r\nGET / HTTP/1.1\r\n").unwrap();
    assert_eq!(decoded, Decoded { consumed: 15, data: 3..8 });
    assert!(decoder.is_complete());
    assert_eq!(decoder.decode(b"GET / HTTP/1.1\r\n"), Ok(Decoded::default()));
}

#[test]
fn a_chunked_body_gives_its_data_only() {
    let bytes = b"5\r\nhello\r\n00A;a=b;c=\"d\"\r\n, chunked \r\n1 \t;x\r\n!\r\n0\r\n\r\nX";
    assert_eq!(decode(&chunked(u64::MAX), bytes), complete(b"hello, chunked !", bytes.len() - 1));
    assert_eq!(decode(&chunked(0), b"0\r\n\r\n"), complete(b"", 5));
}

#[test]
fn a_chunked_body_is_passed_without_extensions_and_trailers() {
    let bytes = b"5\r\nhello\r\n00A;a=b;c=\"d\"\r\n, chunked \r\n1 \t;x\r\n!\r\n0;y\r\nX-T: 1\r\nX-U:\r\n\r\nX";
    let clean = b"5\r\nhello\r\n00A\r\n, chunked \r\n1\r\n!\r\n0\r\n\r\n";
    assert_eq!(
        decode_with(&chunked(u64::MAX), BodyDecoder::pass, bytes),
        complete(clean, bytes.len() - 1)
    );
    let mut decoder = chunked(u64::MAX);
    assert_eq!(
        decoder.pass(clean),
        Ok(Decoded { consumed: clean.len(), data: 0..clean.len() }),
        "in one piece"
    );
}

#[test]
fn a_body_that_is_not_chunked_is_passed_as_it_is() {
    let decoder = BodyDecoder::for_response(ResponseFraming::Length(3));
    assert_eq!(decode_with(&decoder, BodyDecoder::pass, b"abcd"), complete(b"abc", 3));
    let decoder = BodyDecoder::for_response(ResponseFraming::UntilClose);
    let outcome = decode_with(&decoder, BodyDecoder::pass, b"abcd");
    assert_eq!(outcome, Outcome { data: b"abcd".to_vec(), end: Ok(End::MoreWanted) });
}

/// FR-05
#[test]
fn chunk_lines_end_in_cr_lf_only() {
    for (bytes, data, error) in [
        (&b"5\nhello\r\n0\r\n\r\n"[..], &b""[..], BodyError::ChunkEnd),
        (b"5;a\nbb\r\nhello\r\n0\r\n\r\n", b"", BodyError::ChunkEnd),
        (b"5;a=\nxx\r\nhello\r\n0\r\n\r\n", b"", BodyError::ChunkEnd),
        (b"5\rhello\r\n0\r\n\r\n", b"", BodyError::ChunkEnd),
        (b"5;a\rb\r\nhello", b"", BodyError::ChunkEnd),
        (b"5\r\nhello\n0\r\n\r\n", b"hello", BodyError::ChunkEnd),
        (b"5\r\nhello\r0\r\n\r\n", b"hello", BodyError::ChunkEnd),
        (b"5\r\nhelloX\r\n0\r\n\r\n", b"hello", BodyError::ChunkEnd),
        (b"0\r\n\n", b"", BodyError::Trailer),
        (b"0\r\n\rX", b"", BodyError::ChunkEnd),
        (b"0\n\n", b"", BodyError::ChunkEnd),
    ] {
        assert_eq!(
            decode(&chunked(u64::MAX), bytes),
            refused(data, error),
            "{}",
            bytes.escape_ascii()
        );
        assert_eq!(error.status(), 400);
    }
}

/// FR-06
#[test]
fn a_chunk_size_is_plain_hexadecimal() {
    for bytes in [
        &b"\r\n"[..],
        b";a\r\n",
        b" 5\r\nhello\r\n",
        b"+5\r\nhello\r\n",
        b"-1\r\n",
        b"0x5\r\nhello\r\n",
        b"5g\r\n",
        b"5 \r\nhello\r\n",
        b"5 5\r\n",
        b"5_0\r\n",
        b"10000000000000005\r\n",
        b"00000000000000005\r\nhello\r\n",
    ] {
        assert_eq!(
            decode(&chunked(u64::MAX), bytes),
            refused(b"", BodyError::ChunkSize),
            "{}",
            bytes.escape_ascii()
        );
    }
}

/// FR-06
#[test]
fn chunk_sizes_never_wrap() {
    let mut bytes = b"1000\r\n".to_vec();
    bytes.resize(6 + 4096, b'a');
    bytes.extend_from_slice(b"\r\nfffffffffffff000\r\n");
    let outcome = decode(&chunked(u64::MAX), &bytes);
    assert_eq!(outcome, refused(&[b'a'; 4096], BodyError::ChunkSizeOverflow));
    assert_eq!(
        decode(&chunked(1 << 40), b"ffffffffffffffff\r\n"),
        refused(b"", BodyError::TooLarge)
    );
    let unbounded = decode(&chunked(u64::MAX), b"ffffffffffffffff\r\n");
    assert_eq!(
        unbounded,
        Outcome { data: Vec::new(), end: Ok(End::MoreWanted) },
        "a size is believed, not reserved"
    );
}

/// FR-06
#[test]
fn extension_bytes_are_bounded_over_the_whole_body() {
    let chunk = [b"1;".as_slice(), &[b'x'; 4095], b"\r\na\r\n"].concat();
    let four = chunk.repeat(4); // 4 × 4096: the bound itself
    assert_eq!(
        decode(&chunked(u64::MAX), &four),
        Outcome { data: b"aaaa".to_vec(), end: Ok(End::MoreWanted) }
    );
    let flood = [&four[..], b"1;\r\na\r\n"].concat();
    assert_eq!(
        decode(&chunked(u64::MAX), &flood),
        refused(b"aaaa", BodyError::ChunkExtensionsTooLong)
    );
    for (bytes, error) in [
        (&b"1;a=\0\r\n"[..], BodyError::ChunkExtension),
        (b"1;\x7f\r\n", BodyError::ChunkExtension),
    ] {
        assert_eq!(
            decode(&chunked(u64::MAX), bytes),
            refused(b"", error),
            "{}",
            bytes.escape_ascii()
        );
    }
}

/// FR-06
#[test]
fn a_chunk_line_cut_off_is_truncated_not_waited_for() {
    let mut decoder = chunked(u64::MAX);
    assert_eq!(decoder.decode(b"4\r"), Ok(Decoded { consumed: 2, data: 0..0 }));
    assert_eq!(decoder.end_of_input(), Err(BodyError::Truncated));
    assert_eq!(decoder.end_of_input(), Err(BodyError::Truncated));
}

/// FR-07
#[test]
fn trailers_are_dropped() {
    let bytes = b"1\r\na\r\n0\r\nContent-Length: 100\r\nHost: evil\r\nX-Forwarded-For: 6.6.6.6\r\nTransfer-Encoding: chunked\r\n\r\nG";
    assert_eq!(decode(&chunked(u64::MAX), bytes), complete(b"a", bytes.len() - 1));
    assert_eq!(
        decode_with(&chunked(u64::MAX), BodyDecoder::pass, bytes),
        complete(b"1\r\na\r\n0\r\n\r\n", bytes.len() - 1)
    );
}

/// FR-07
#[test]
fn malformed_or_endless_trailers_are_refused() {
    for trailers in [
        "nocolon\r\n",
        "X-Bad : v\r\n",
        ": v\r\n",
        "X: a\n",
        "X: a\rb\r\n",
        "X: a\0\r\n",
        " X: a\r\n",
        "X: a\r\n b\r\n",
    ] {
        let bytes = format!("0\r\n{trailers}\r\n");
        assert_eq!(
            decode(&chunked(9), bytes.as_bytes()),
            refused(b"", BodyError::Trailer),
            "{}",
            trailers.escape_default()
        );
    }
    let endless = [b"0\r\n".as_slice(), &b"X-T: 12345678\r\n".repeat(1 << 16)].concat();
    assert_eq!(decode(&chunked(9), &endless), refused(b"", BodyError::TrailersTooLong));
}

#[test]
fn a_body_over_its_limit_is_413_before_it_is_read() {
    let mut decoder = BodyDecoder::for_request(RequestFraming::Length(11));
    assert_eq!(decoder.limit(11), Ok(()));
    assert_eq!(decoder.limit(10), Err(BodyError::TooLarge));
    assert_eq!(decoder.decode(b"a"), Err(BodyError::TooLarge));
    assert_eq!(BodyError::TooLarge.status(), 413);
    let bytes = b"5\r\nhello\r\n6\r\nworld!\r\n0\r\n\r\n";
    assert_eq!(decode(&chunked(10), bytes), refused(b"hello", BodyError::TooLarge));
    assert_eq!(decode(&chunked(11), bytes), complete(b"helloworld!", bytes.len()));
}

#[test]
fn a_limit_set_late_counts_what_was_read() {
    let mut decoder = chunked(u64::MAX);
    decoder.decode(b"5\r\nhel").unwrap();
    assert_eq!(decoder.limit(4), Err(BodyError::TooLarge));
    let mut decoder = BodyDecoder::for_request(RequestFraming::Length(5));
    decoder.decode(b"hel").unwrap();
    assert_eq!((decoder.left(), decoder.received()), (Some(2), 3));
    assert_eq!(decoder.limit(5), Ok(()));
    assert_eq!(decoder.limit(4), Err(BodyError::TooLarge));
}

/// MS-08
#[test]
fn only_a_body_until_close_ends_with_the_connection() {
    let mut decoder = BodyDecoder::for_response(ResponseFraming::UntilClose);
    assert_eq!(decoder.decode(b"abc"), Ok(Decoded { consumed: 3, data: 0..3 }));
    assert_eq!(decoder.end_of_input(), Ok(()));
    assert!(decoder.is_complete());
    for (framing, bytes) in [
        (ResponseFraming::Length(5), &b"hell"[..]),
        (ResponseFraming::Chunked, b""),
        (ResponseFraming::Chunked, b"9\r\ndata: 1\n\n\r\n"),
        (ResponseFraming::Chunked, b"1\r\na\r\n0\r\n"),
        (ResponseFraming::Chunked, b"1\r\na\r\n0\r\n\r"),
    ] {
        let mut decoder = BodyDecoder::for_response(framing);
        let mut rest = bytes;
        while !rest.is_empty() {
            let decoded = decoder.decode(rest).unwrap();
            rest = &rest[decoded.consumed..];
        }
        assert_eq!(decoder.end_of_input(), Err(BodyError::Truncated), "{}", bytes.escape_ascii());
        assert_eq!(decoder.decode(b"0\r\n\r\n"), Err(BodyError::Truncated));
    }
}

/// Reads a chunked body the slow way: from the whole input, with the grammar in view. `None` while more is wanted.
fn decode_slowly(mut input: &[u8]) -> Option<Result<Vec<u8>, ()>> {
    let mut data = Vec::new();
    loop {
        let end = input.iter().position(|byte| *byte == b'\n');
        let (line, rest) = (&input[..end?], &input[end? + 1..]);
        let Some(line) = line.strip_suffix(b"\r") else { return Some(Err(())) };
        let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let extension = line[digits..].trim_ascii_start();
        let is_extension = line.len() == digits || extension.starts_with(b";");
        if digits == 0
            || digits > 16
            || !is_extension
            || !line.iter().all(|byte| is_field_byte(*byte))
        {
            return Some(Err(()));
        }
        let size =
            usize::from_str_radix(std::str::from_utf8(&line[..digits]).unwrap(), 16).unwrap();
        input = rest;
        if size == 0 {
            break;
        }
        let chunk = input.get(..size)?;
        data.extend_from_slice(chunk);
        match input[size..] {
            [b'\r', b'\n', ..] => input = &input[size + 2..],
            [] | [b'\r'] => return None,
            _ => return Some(Err(())),
        }
    }
    loop {
        let end = input.iter().position(|byte| *byte == b'\n');
        let Some(line) = input[..end?].strip_suffix(b"\r") else { return Some(Err(())) };
        input = &input[end? + 1..];
        if line.is_empty() {
            return Some(Ok(data));
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(0);
        let is_trailer = colon > 0
            && line[..colon].iter().all(|byte| is_token_byte(*byte))
            && line[colon..].iter().all(|byte| is_field_byte(*byte));
        if !is_trailer {
            return Some(Err(()));
        }
    }
}

/// Bytes that are often nearly a chunked body.
fn almost_chunked() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        8 => (1usize..20).prop_map(|size| [format!("{size:x}\r\n").into_bytes(), vec![b'd'; size], b"\r\n".to_vec()].concat()),
        2 => (1usize..5).prop_map(|size| [format!("{size:X};ext=\"1\"\r\n").into_bytes(), vec![b'\n'; size], b"\r\n".to_vec()].concat()),
        1 => prop::sample::select(vec![&b"\r\n"[..], b"\n", b"\r", b"0", b"0\r\n", b";", b" ", b"5\r\n", b"X: y\r\n", b"\0"]).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ];
    let end = prop::sample::select(vec![
        &b"0\r\n\r\n"[..],
        b"0\r\nX-T: 1\r\n\r\n",
        b"0;e\r\n\r\n",
        b"",
        b"0\r\n",
    ]);
    (prop::collection::vec(part, 0..6), end)
        .prop_map(|(parts, end)| [parts.concat(), end.to_vec()].concat())
}

/// Cuts `bytes` at the given places.
fn pieces<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

proptest! {
    #[test]
    fn what_was_encoded_is_decoded(parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..8), cuts: [prop::sample::Index; 4]) {
        let mut bytes = Vec::new();
        for part in &parts {
            bytes.extend_from_slice(ChunkHeader::new(part.len()).unwrap().as_bytes());
            bytes.extend_from_slice(part);
            bytes.extend_from_slice(CHUNK_END);
        }
        bytes.extend_from_slice(LAST_CHUNK);
        let data = parts.concat();
        let expected = complete(&data, bytes.len());
        let limited = chunked(data.len() as u64);
        prop_assert_eq!(feed(limited.clone(), BodyDecoder::decode, pieces(&bytes, &cuts)), expected);
        let passed = feed(limited, BodyDecoder::pass, pieces(&bytes, &cuts));
        prop_assert_eq!(passed, complete(&bytes, bytes.len()));
    }

    #[test]
    fn a_slow_reader_of_the_whole_input_agrees(bytes in almost_chunked()) {
        let fast = decode(&chunked(u64::MAX), &bytes);
        match decode_slowly(&bytes) {
            Some(Ok(data)) => {
                prop_assert!(matches!(fast.end, Ok(End::Complete { .. })), "{:?}", fast);
                prop_assert_eq!(fast.data, data);
            }
            Some(Err(())) => prop_assert!(fast.end.is_err(), "{:?}", fast),
            // The fast one may know before the line ends that it is wrong.
            None => prop_assert!(!matches!(fast.end, Ok(End::Complete { .. })), "{:?}", fast),
        }
    }

    #[test]
    fn splits_change_nothing(bytes in almost_chunked(), cuts: [prop::sample::Index; 3], limit in 0u64..60) {
        for take in [BodyDecoder::decode as Take, BodyDecoder::pass] {
            let whole = decode_with(&chunked(limit), take, &bytes);
            prop_assert_eq!(feed(chunked(limit), take, pieces(&bytes, &cuts)), whole);
        }
    }

    #[test]
    fn what_is_passed_decodes_to_the_same_data(bytes in almost_chunked()) {
        let direct = decode(&chunked(u64::MAX), &bytes);
        let passed = decode_with(&chunked(u64::MAX), BodyDecoder::pass, &bytes);
        let again = decode(&chunked(u64::MAX), &passed.data);
        prop_assert_eq!(&again.data, &direct.data);
        let is_complete = |outcome: &Outcome| matches!(outcome.end, Ok(End::Complete { .. }));
        prop_assert_eq!(is_complete(&again), is_complete(&direct));
        prop_assert!(again.end.is_ok(), "what is passed is a clean body or the start of one");
    }
}
