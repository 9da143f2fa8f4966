//! Times the HTTP/1 hot path: a request's head, its forwarded head, a response's head, chunked bodies.

#![expect(clippy::unwrap_used, reason = "a benchmark may stop at once")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use switchboard_router::http1::write::{RequestEdit, ResponseEdit, request_head, response_head};
use switchboard_router::http1::{
    AnswerBody, BodyDecoder, FieldValue, Fields, HeadLimits, HeaderKind, HeaderSet, Method,
    RequestFraming, RequestHead, RequestPath, ResponseFraming, ResponseHead, ServerConnection,
};

/// What an inference client sends: 10 headers, 430 bytes.
const REQUEST: &[u8] = b"POST /v2/models/feed/infer?trace=1 HTTP/1.1\r\n\
    Host: router.internal.example:8080\r\n\
    User-Agent: python-httpx/0.28.1\r\n\
    Accept: application/json\r\n\
    Accept-Encoding: gzip, deflate, br\r\n\
    Connection: keep-alive\r\n\
    Content-Type: application/json\r\n\
    Content-Length: 600\r\n\
    X-Switchboard-Objective: RECOMMEND_HOME_FEED\r\n\
    X-User-Id: 2f1c9d04-7a51-4c43-9a4e-0d2b8a6f3e11\r\n\
    Traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n\r\n";

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\n\
    Date: Mon, 30 Nov 2026 18:00:00 GMT\r\n\
    Server: uvicorn\r\n\
    Content-Type: application/json\r\n\
    Content-Length: 1024\r\n\
    X-Model-Version: 2\r\n\
    X-Inference-Ms: 7\r\n\r\n";

fn heads(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("http1");
    let mut head = RequestHead::new();
    group.throughput(Throughput::Bytes(REQUEST.len() as u64));
    group.bench_function("request head, 10 headers", |bencher| {
        bencher.iter(|| {
            head.reset();
            head.parse(black_box(REQUEST), &HeadLimits::DEFAULT).map(|_| head.bytes())
        });
    });
    let mut fields = Fields::new();
    fields.push("x-request-id", FieldValue::new(b"4bf92f3577b34da6").unwrap());
    let mut out = Vec::with_capacity(4096);
    group.bench_function("request head, forwarded", |bencher| {
        bencher.iter(|| {
            let view = head.view(black_box(REQUEST));
            out.clear();
            let edit = RequestEdit {
                path: RequestPath::new(view.path()).unwrap(),
                host: FieldValue::new(view.host().unwrap()).unwrap(),
                framing: RequestFraming::Length(600),
                dropped: HeaderSet::of(&[HeaderKind::Switchboard]),
                fields: &fields,
            };
            request_head(&mut out, &view, &edit);
            out.len()
        });
    });
    let mut response = ResponseHead::new();
    group.throughput(Throughput::Bytes(RESPONSE.len() as u64));
    group.bench_function("response head, 6 headers", |bencher| {
        bencher.iter(|| {
            response.reset();
            response.parse(black_box(RESPONSE), Method::Post).map(|_| response.bytes())
        });
    });
    let mut connection = ServerConnection::new(HeadLimits::DEFAULT);
    connection.read_head(REQUEST).unwrap();
    let answer = connection.begin_answer(AnswerBody::of(&response));
    group.bench_function("response head, forwarded", |bencher| {
        bencher.iter(|| {
            out.clear();
            let edit = ResponseEdit { answer, dropped: HeaderSet::EMPTY, fields: &fields };
            response_head(&mut out, &response.view(black_box(RESPONSE)), &edit);
            out.len()
        });
    });
    group.finish();
}

/// Takes a whole body in one piece; how many bytes it gave.
fn drive(mut take: impl FnMut(&[u8]) -> (usize, usize), body: &[u8]) -> usize {
    let (mut rest, mut data) = (body, 0);
    while !rest.is_empty() {
        let (consumed, bytes) = take(rest);
        data += bytes;
        rest = rest.get(consumed..).unwrap_or_default();
    }
    data
}

fn bodies(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("http1");
    // 20 tokens as a model server streams them, in one read.
    let events = b"1b\r\ndata: {\"token\":\"a token\"}\n\n\r\n".repeat(20);
    let body = [&events[..], b"0\r\n\r\n"].concat();
    group.throughput(Throughput::Elements(20));
    group.bench_function("20 small chunks, decoded", |bencher| {
        bencher.iter(|| {
            let mut decoder = BodyDecoder::for_response(ResponseFraming::Chunked);
            let take = |rest: &[u8]| {
                decoder
                    .decode(rest)
                    .map_or((rest.len(), 0), |step| (step.consumed, step.data.len()))
            };
            drive(take, black_box(&body))
        });
    });
    group.bench_function("20 small chunks, passed", |bencher| {
        bencher.iter(|| {
            let mut decoder = BodyDecoder::for_response(ResponseFraming::Chunked);
            let take = |rest: &[u8]| {
                decoder.pass(rest).map_or((rest.len(), 0), |step| (step.consumed, step.data.len()))
            };
            drive(take, black_box(&body))
        });
    });
    group.finish();
}

criterion_group!(benches, heads, bodies);
criterion_main!(benches);
