//! What a proxy must refuse, on the wire: 4xx, a closed connection, and nothing forwarded.

use crate::client::{Client, post};
use crate::router::{Router, definition};
use crate::upstream::Upstream;

/// FR-01 to FR-04, HT-02
#[test]
fn ambiguous_requests_are_refused_and_others_are_unharmed() {
    let upstream = Upstream::echoing("");
    let router = Router::start(&definition(&[upstream.address], &[upstream.address]));
    let head =
        "POST /v1/predict HTTP/1.1\r\nhost: router.test\r\nx-switchboard-objective: FEED\r\n";
    for (lines, status) in [
        ("content-length: 6\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nG", 400),
        ("transfer-encoding: chunked\r\ncontent-length: 0\r\n\r\n0\r\n\r\nG", 400),
        ("transfer-encoding: chunked, gzip\r\n\r\n0\r\n\r\n", 400),
        ("transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        ("content-length: 5\r\ncontent-length: 5\r\n\r\nhello", 400),
        ("content-length: +5\r\n\r\nhello", 400),
        ("content-length: 18446744073709551616\r\n\r\n", 400),
        ("content-length : 5\r\n\r\nhello", 400),
        ("x-a: 1\r\n\tcontent-length: 3\r\n\r\n", 400),
        ("host: other\r\n\r\n", 400),
        ("expect: something-else\r\ncontent-length: 0\r\n\r\n", 417),
    ] {
        let mut client = Client::connect(router.address);
        client.send(format!("{head}{lines}"));
        let answer = client.answer();
        assert_eq!(answer.status, status, "{lines:?}");
        assert_eq!(answer.header("connection"), Some("close"), "{lines:?}");
        assert!(client.is_closed(), "{lines:?}");
        assert_eq!(upstream.left(), 0, "{lines:?} was forwarded");
        let mut canary = Client::connect(router.address);
        canary.send(post("FEED", "", lines));
        assert_eq!(canary.answer().text(), lines, "the canary gets its own answer");
        upstream.next();
    }
}

/// HT-01
#[test]
fn what_concerns_one_connection_stays_on_it() {
    let upstream = Upstream::answering(
        "HTTP/1.1 200 OK\r\nconnection: x-private\r\nx-private: 1\r\nkeep-alive: timeout=5\r\n\
         x-switchboard-arm: forged\r\nx-public: 2\r\ncontent-length: 0\r\n\r\n",
    );
    let router = Router::start(&definition(&[upstream.address], &[upstream.address]));
    let mut client = Client::connect(router.address);
    client.send(post(
        "FEED",
        "connection: x-tenant, host\r\nx-tenant: t1\r\nte: trailers\r\nupgrade: h2c\r\nproxy-authorization: x\r\nx-other: 3\r\n",
        "",
    ));
    let answer = client.answer();
    let seen = upstream.next();
    for gone in [
        "x-switchboard-objective",
        "connection",
        "x-tenant",
        "te",
        "upgrade",
        "proxy-authorization",
    ] {
        assert_eq!(seen.header(gone), None, "{gone}");
    }
    assert_eq!((seen.header("x-other"), seen.header("host")), (Some("3"), Some("router.test")));
    assert_eq!((answer.header("x-private"), answer.header("keep-alive")), (None, None));
    assert_eq!(answer.header("x-public"), Some("2"));
    assert_eq!(answer.head.matches("x-switchboard-arm").count(), 1);
    assert_eq!(answer.header("x-switchboard-arm"), Some("stable"));
}

/// HT-05
#[test]
fn heads_over_the_limit_are_answered_with_431_or_414() {
    let upstream = Upstream::echoing("");
    let router = Router::start(&definition(&[upstream.address], &[upstream.address]));
    let many: String = (0..101).map(|n| format!("x-{n}: 1\r\n")).collect();
    let long = format!("x-long: {}\r\n", "v".repeat(70_000));
    for (request, status) in [
        (post("FEED", &many, ""), 431),
        (post("FEED", &long, ""), 431),
        (format!("GET /{} HTTP/1.1\r\nhost: a\r\n\r\n", "p".repeat(16_000)), 414),
    ] {
        let mut client = Client::connect(router.address);
        client.try_send(request);
        assert_eq!(client.answer().status, status);
        assert!(client.is_closed());
    }
    assert_eq!(upstream.left(), 0);
}
