//! Writes the seeds of each target's corpus: the inputs of the failure cases, named by their ids.
//!
//! `seeds FOLDER` fills `FOLDER/TARGET/`. Each seed is what the target reads: a byte that says how to split, then the
//! bytes.

use std::io::Result;
use std::path::Path;

use switchboard_shared::push::{Frame, Hello};
use switchboard_shared::snapshot::{HEADER_BYTES, SnapshotVersion, build};

#[path = "../../../shared/tests/behaviour/sample.rs"]
#[expect(dead_code, reason = "the good Definition and its key are all that seeds need")]
mod sample;

const HEAD: &str =
    "POST /v1/predict HTTP/1.1\r\nHost: router.test\r\nContent-Type: application/json\r\n";

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "corpus".to_owned());
    let corpus = Corpus { folder: Path::new(&folder) };
    requests(&corpus)?;
    responses(&corpus)?;
    bodies(&corpus)?;
    frames(&corpus)?;
    replies(&corpus)?;
    snapshots(&corpus)
}

struct Corpus<'a> {
    folder: &'a Path,
}

impl Corpus<'_> {
    /// Split into pieces of one byte and of 64.
    fn add(&self, target: &str, name: &str, bytes: &[u8]) -> Result<()> {
        let folder = self.folder.join(target);
        std::fs::create_dir_all(&folder)?;
        for split in [0, 63] {
            std::fs::write(folder.join(format!("{name}-{split}")), [&[split], bytes].concat())?;
        }
        Ok(())
    }
}

/// RD-03
fn replies(corpus: &Corpus<'_>) -> Result<()> {
    for (name, bytes) in [
        ("values", "$5\r\nhello\r\n$0\r\n\r\n$-1\r\n_\r\n+PONG\r\n:5\r\n"),
        ("errors", "-WRONGTYPE x\r\n-LOADING x\r\n-MOVED 1 h:1\r\n-NOAUTH x\r\n"),
        ("oversized", "$11\r\nhello world\r\n$1\r\nx\r\n"),
        ("array", "*0\r\n"),
        ("huge", "$67108864\r\n"),
        ("http", "HTTP/1.1 400 Bad Request\r\n"),
    ] {
        corpus.add("cache_replies", name, bytes.as_bytes())?;
    }
    Ok(())
}

fn requests(corpus: &Corpus<'_>) -> Result<()> {
    let next = "GET /smuggled HTTP/1.1\r\nHost: a\r\nX-Probe: s\r\n\r\n";
    for (name, fields, body) in [
        ("plain", "Content-Length: 8\r\n", "{\"k\":10}"),
        ("fr-01", "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\nG"),
        ("fr-02-tab", "Transfer-Encoding: chunked\t\r\n", "1;a\r\nx\r\n0\r\nT: 1\r\n\r\n"),
        (
            "fr-02-twice",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            "0\r\n\r\n",
        ),
        ("fr-03", "Content-Length: 18446744073709551616\r\n", ""),
        ("fr-04-blank", "Transfer-Encoding : chunked\r\n", "0\r\n\r\n"),
        ("fr-04-fold", "X-A: 1\r\n\tContent-Length: 3\r\nContent-Length: 8\r\n", "{\"k\":10}"),
        ("fr-08", "Content-Length: 49\r\n", next),
        (
            "fr-09",
            "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n",
            "",
        ),
        (
            "ht-01",
            "Connection: close, X-Tenant\r\nX-Tenant: t1\r\nTE: trailers\r\nKeep-Alive: 5\r\n",
            "",
        ),
        ("ht-05", "X-A: \u{e9}\r\nX-B:\r\n", ""),
        ("ms-01", "Expect: 100-continue\r\nContent-Length: 1\r\n", "x"),
    ] {
        let request = format!("{HEAD}{fields}\r\n{body}");
        corpus.add("request_head", name, request.as_bytes())?;
        corpus.add("connection", name, format!("{request}{next}").as_bytes())?;
    }
    for (name, request) in [
        ("ht-02", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"),
        ("ht-03", "POST http://[::1]:80?x HTTP/1.1\r\nHost: b.test\r\n\r\n"),
        ("ht-04", "\r\nPOST /v1/models/org%2Fname//predict?q=%zz HTTP/1.1\r\nHost: a\r\n\r\n"),
        ("ms-06", "HEAD / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
        ("options", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"),
        ("connect", "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n"),
        ("http-2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        ("bare-line-feed", "GET / HTTP/1.1\nHost: a\n\n"),
    ] {
        corpus.add("request_head", name, request.as_bytes())?;
        corpus.add("connection", name, request.as_bytes())?;
    }
    Ok(())
}

fn responses(corpus: &Corpus<'_>) -> Result<()> {
    for (name, response) in [
        ("plain", "HTTP/1.1 200 OK\r\nServer: m\r\nContent-Length: 2\r\n\r\n{}"),
        ("until-close", "HTTP/1.0 200\r\nConnection: keep-alive\r\n\r\n"),
        ("ms-02", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"),
        ("ms-03", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n"),
        (
            "ms-08",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: x-a\r\nX-A: b\r\n\r\n9\r\n",
        ),
        ("fr-01", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n"),
        ("ht-05", "HTTP/1.1 599 \u{e9}\r\nX-A: \u{e9}\r\nLink: </x>\r\nLink: </y>\r\n\r\n"),
    ] {
        corpus.add("response_head", name, response.as_bytes())?;
    }
    Ok(())
}

fn bodies(corpus: &Corpus<'_>) -> Result<()> {
    for (name, body) in [
        ("plain", "8\r\n{\"k\":10}\r\n0\r\n\r\nGET"),
        ("fr-05-size", "8\n{\"k\":10}\r\n0\r\n\r\n"),
        ("fr-05-extension", "8;a\nbb\r\n{\"k\":10}\r\n0\r\n\r\n"),
        ("fr-06-overflow", "2\r\nab\r\nfffffffffffff000\r\n"),
        ("fr-06-digits", "10000000000000005\r\n"),
        ("fr-06-extension", "1 \t;a=\"b\";c\r\nx\r\n0;d\r\n\r\n"),
        ("fr-07", "0\r\nContent-Length: 100\r\nHost: evil\r\n\r\n"),
        ("fr-07-malformed", "0\r\nX-Bad : v\r\n\r\n"),
    ] {
        corpus.add("chunked_body", name, body.as_bytes())?;
    }
    Ok(())
}

fn frames(corpus: &Corpus<'_>) -> Result<()> {
    let hello = Hello {
        protocol: 1,
        router: "router".into(),
        group: "test".into(),
        build: "0.1.0".into(),
        formats: vec![1],
        running: None,
    };
    for (name, frame) in [("hello", Frame::Hello(hello)), ("prepare", Frame::Prepare(b"snapshot"))]
    {
        let mut bytes = Vec::new();
        if frame.write(&mut bytes).and_then(|()| frame.write(&mut bytes)).is_ok() {
            corpus.add("push_frames", name, &bytes)?;
        }
    }
    corpus.add("push_frames", "cf-03", &[0xFF, 0xFF, 0xFF, 0xFF, 1])
}

fn snapshots(corpus: &Corpus<'_>) -> Result<()> {
    let file = build(&sample::definition(), SnapshotVersion::FIRST, 1, &sample::key());
    let file = file.map_err(std::io::Error::other)?;
    corpus.add("snapshot_open", "file", &file)?;
    corpus.add("snapshot_open", "payload", file.get(HEADER_BYTES..).unwrap_or_default())
}
