#![expect(clippy::indexing_slicing, reason = "a test may stop at once")]

use proptest::prelude::*;

use super::*;

/// What an exchange told about the bytes of a model server.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Seen {
    interims: usize,
    status: Option<u16>,
    data: Vec<u8>,
    error: Option<UpstreamError>,
    is_complete: bool,
    unread: Vec<u8>,
}

/// Feeds pieces through one buffer, as a connection does.
fn feed<'a>(exchange: &mut ClientExchange, pieces: impl IntoIterator<Item = &'a [u8]>) -> Seen {
    let mut seen = Seen::default();
    let mut buffer = Vec::new();
    for piece in pieces {
        buffer.extend_from_slice(piece);
        if let Err(error) = step(exchange, &mut buffer, &mut seen) {
            seen.error = Some(error);
            return seen;
        }
    }
    seen.is_complete = exchange.is_complete();
    seen.unread = buffer;
    seen
}

fn step(
    exchange: &mut ClientExchange,
    buffer: &mut Vec<u8>,
    seen: &mut Seen,
) -> Result<(), UpstreamError> {
    while seen.status.is_none() {
        match exchange.read_head(buffer)? {
            HeadStep::Partial => return Ok(()),
            HeadStep::Interim { bytes } => {
                seen.interims += 1;
                buffer.drain(..bytes);
            }
            HeadStep::Final => {
                seen.status = Some(exchange.head().status());
                buffer.drain(..exchange.head().bytes());
            }
        }
    }
    while !buffer.is_empty() && !exchange.is_complete() {
        let decoded = exchange.read_body(buffer)?;
        seen.data.extend_from_slice(&buffer[decoded.data]);
        buffer.drain(..decoded.consumed);
    }
    Ok(())
}

/// Whole and byte by byte; both must tell the same.
fn run(method: Method, bytes: &[u8]) -> (Seen, ClientExchange) {
    let mut exchange = ClientExchange::new();
    exchange.begin(method);
    let whole = feed(&mut exchange, [bytes]);
    let mut other = ClientExchange::new();
    other.begin(method);
    assert_eq!(feed(&mut other, bytes.chunks(1)), whole, "byte by byte: {}", bytes.escape_ascii());
    (whole, exchange)
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";

/// MS-02
#[test]
fn interim_answers_are_skipped() {
    let bytes = [
        b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n".as_slice(),
        OK,
    ]
    .concat();
    let (seen, exchange) = run(Method::Post, &bytes);
    assert_eq!(
        (seen.interims, seen.status, &seen.data[..], seen.is_complete),
        (2, Some(200), &b"{}"[..], true)
    );
    assert_eq!(exchange.reuse(0, RequestSent::Whole), Reuse::Pool);
}

/// MS-02
#[test]
fn an_endless_row_of_interim_answers_is_cut() {
    let interim = b"HTTP/1.1 102 Processing\r\n\r\n";
    let (seen, _) = run(Method::Post, &[&interim.repeat(8), OK].concat());
    assert!(seen.is_complete);
    let (seen, exchange) = run(Method::Post, &interim.repeat(9));
    assert_eq!(seen.error, Some(UpstreamError::InterimTooMany));
    assert_eq!(exchange.reuse(0, RequestSent::Whole), Reuse::Close(CloseReason::Incomplete));
}

/// FR-09
#[test]
fn an_unasked_101_is_an_error_of_the_model_server() {
    let (seen, exchange) =
        run(Method::Get, b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\nraw");
    assert_eq!(seen.error, Some(UpstreamError::UnaskedUpgrade));
    assert_eq!(exchange.reuse(0, RequestSent::Whole), Reuse::Close(CloseReason::Incomplete));
}

/// MS-03
#[test]
fn answers_without_body_end_at_once() {
    for (method, bytes) in [
        (Method::Head, &b"HTTP/1.1 200 OK\r\nContent-Length: 120\r\n\r\n"[..]),
        (Method::Get, b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n"),
        (Method::Get, b"HTTP/1.1 304 Not Modified\r\nContent-Length: 120\r\n\r\n"),
    ] {
        let (seen, exchange) = run(method, bytes);
        assert!(seen.is_complete, "{}", bytes.escape_ascii());
        assert_eq!(exchange.reuse(seen.unread.len(), RequestSent::Whole), Reuse::Pool);
    }
}

/// MS-03
#[test]
fn a_connection_with_unread_bytes_is_not_pooled() {
    let (seen, exchange) = run(Method::Post, &[OK, b"extra"].concat());
    assert_eq!(
        (seen.is_complete, &seen.data[..], &seen.unread[..]),
        (true, &b"{}"[..], &b"extra"[..])
    );
    assert_eq!(
        exchange.reuse(seen.unread.len(), RequestSent::Whole),
        Reuse::Close(CloseReason::UnreadBytes)
    );
}

/// MS-04
#[test]
fn a_connection_with_an_unfinished_request_is_not_pooled() {
    let (seen, exchange) =
        run(Method::Post, b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n");
    assert_eq!((seen.status, seen.is_complete), (Some(413), true));
    assert_eq!(
        exchange.reuse(0, RequestSent::Partly),
        Reuse::Close(CloseReason::RequestUnfinished)
    );
    assert_eq!(exchange.reuse(0, RequestSent::Whole), Reuse::Pool);
}

#[test]
fn a_connection_that_the_model_server_closes_is_not_pooled() {
    for head in ["HTTP/1.1 200 OK\r\nConnection: close\r\n", "HTTP/1.0 200 OK\r\n"] {
        let (seen, exchange) =
            run(Method::Post, format!("{head}Content-Length: 0\r\n\r\n").as_bytes());
        assert!(seen.is_complete);
        assert_eq!(
            exchange.reuse(0, RequestSent::Whole),
            Reuse::Close(CloseReason::ClosedByServer)
        );
    }
}

/// MS-08
#[test]
fn an_answer_cut_off_is_not_complete() {
    for (bytes, data, expected) in [
        (&b""[..], &b""[..], UpstreamError::ClosedUnanswered),
        (b"HTTP/1.1 20", b"", UpstreamError::HeadTruncated),
        (b"HTTP/1.1 100 Continue\r\n\r\n", b"", UpstreamError::HeadTruncated),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n",
            b"data: 1\n\n",
            UpstreamError::Body(BodyError::Truncated),
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ndata",
            b"data",
            UpstreamError::Body(BodyError::Truncated),
        ),
    ] {
        let (seen, mut exchange) = run(Method::Post, bytes);
        assert_eq!((seen.error, &seen.data[..]), (None, data), "what came was given out");
        assert_eq!(exchange.end_of_input(&seen.unread), Err(expected), "{}", bytes.escape_ascii());
        assert_eq!(exchange.end_of_input(&seen.unread), Err(expected), "it stays");
        assert_eq!(exchange.reuse(0, RequestSent::Whole), Reuse::Close(CloseReason::Incomplete));
    }
}

#[test]
fn an_answer_until_close_is_complete_when_the_connection_ends() {
    let (seen, mut exchange) = run(Method::Post, b"HTTP/1.1 200 OK\r\n\r\ndata: 1\n\n");
    assert_eq!((seen.is_complete, &seen.data[..]), (false, &b"data: 1\n\n"[..]));
    assert_eq!(exchange.end_of_input(b""), Ok(()));
    assert!(exchange.is_complete());
    assert_eq!(exchange.reuse(0, RequestSent::Whole), Reuse::Close(CloseReason::ClosedByServer));
}

#[test]
fn a_faulty_body_is_an_error_of_the_model_server() {
    let (seen, exchange) = run(
        Method::Post,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\n0\r\n\r\n",
    );
    assert_eq!(
        (seen.error, &seen.data[..]),
        (Some(UpstreamError::Body(BodyError::ChunkEnd)), &b"{}"[..])
    );
    assert_eq!(exchange.reuse(0, RequestSent::Whole), Reuse::Close(CloseReason::Incomplete));
}

#[test]
fn an_exchange_is_reused_without_traces_of_the_one_before() {
    let (_, mut exchange) = run(Method::Head, b"HTTP/1.1 2x");
    exchange.begin(Method::Post);
    let seen = feed(&mut exchange, [OK]);
    assert_eq!((seen.status, &seen.data[..], seen.is_complete), (Some(200), &b"{}"[..], true));
}

proptest! {
    #[test]
    fn splits_and_mutations_change_no_verdict(
        place: prop::sample::Index,
        byte: u8,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        chunked: bool,
    ) {
        let mut bytes = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nConnection: x-a\r\nX-A: b\r\n".to_vec();
        bytes.extend_from_slice(if chunked { b"Transfer-Encoding: chunked\r\n\r\n3;e\r\nabc\r\n0\r\nT: 1\r\n\r\n" } else { b"Content-Length: 3\r\n\r\nabc" });
        let place = place.index(bytes.len());
        bytes[place] = byte;
        let (whole, _) = run(Method::Post, &bytes);
        let mut places: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        let mut exchange = ClientExchange::new();
        exchange.begin(Method::Post);
        prop_assert_eq!(feed(&mut exchange, places.windows(2).map(|pair| &bytes[pair[0]..pair[1]])), whole);
    }
}
