//! Endpoints that are down, die, or answer nonsense.

use std::io::Write as _;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::client::{Client, post};
use crate::router::{Router, definition};
use crate::upstream::{Then, Upstream};
use switchboard_router::upstream::health::Standing;

/// An address that refuses connections.
fn dead() -> std::net::SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn an_endpoint_that_refuses_costs_no_request() {
    let sound = Upstream::echoing("");
    let router = Router::start(&definition(&[dead(), sound.address], &[sound.address]));
    let mut client = Client::connect(router.address);
    for n in 0..50 {
        let body = format!("{n}");
        client.send(post("FEED", "", &body));
        assert_eq!(client.answer().text(), body);
    }
    assert_eq!(router.counted(|worker| worker.ejections.at(0)), 1);
}

#[test]
fn a_shard_that_is_down_falls_out_to_the_default_arm() {
    let sound = Upstream::echoing("stable:");
    let router = Router::start(&definition(&[sound.address], &[dead()]));
    let mut client = Client::connect(router.address);
    for _ in 0..10 {
        client.send(post("FEED", "x-user-id: heavy\r\n", "b"));
        let answer = client.answer();
        assert_eq!((answer.status, answer.text().as_str()), (200, "stable:b"));
        assert_eq!(answer.header("x-switchboard-arm"), Some("stable"));
        assert_eq!(answer.header("x-switchboard-reason"), Some("arm_down"));
    }
}

#[test]
fn with_the_default_arm_down_too_the_answer_is_503_with_retry_after() {
    let router = Router::start(&definition(&[dead()], &[dead()]));
    let mut client = Client::connect(router.address);
    for _ in 0..10 {
        client.send(post("FEED", "x-user-id: heavy\r\n", ""));
        let answer = client.answer();
        assert_eq!(answer.status, 503);
        assert!(answer.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
        let problem: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(problem["reason"], "shard_down");
    }
}

/// UP-01: the model server closes kept connections without a word.
#[test]
fn a_post_is_repeated_only_where_its_objective_allows_it() {
    let is_sound = Arc::new(AtomicBool::new(true));
    let sound = Arc::clone(&is_sound);
    let dying = Upstream::start(move |_, stream| {
        if !sound.load(Ordering::SeqCst) {
            return Then::Close; // after it read the request
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").unwrap();
        Then::KeepOpen
    });
    let spare = Upstream::echoing("spare");
    let router = Router::start(&definition(&[dying.address], &[spare.address]));
    let mut client = Client::connect(router.address);
    client.send(post("FEED", "", ""));
    assert_eq!(client.answer().status, 200);
    dying.next();
    is_sound.store(false, Ordering::SeqCst);
    client.send(post("FEED", "", "once"));
    let answer = client.answer();
    assert_eq!(answer.status, 502);
    assert_eq!(dying.left(), 1, "delivered once");
    // The same from the Arm `heavy` of an Objective that allows it: the default Arm is asked.
    let router = Router::start(&definition(&[spare.address], &[dying.address]));
    let mut client = Client::connect(router.address);
    client.send(post("SAFE", "x-user-id: heavy\r\n", "again"));
    assert_eq!(client.answer().text(), "spareagain");
}

#[test]
fn an_answer_that_is_no_http_is_a_502() {
    for nonsense in [
        "SSH-2.0-OpenSSH\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        "",
    ] {
        let upstream = Upstream::start(move |_, stream| {
            stream.write_all(nonsense.as_bytes()).unwrap();
            Then::Close
        });
        let router = Router::start(&definition(&[upstream.address], &[upstream.address]));
        let mut client = Client::connect(router.address);
        client.send(post("FEED", "", ""));
        assert_eq!(client.answer().status, 502, "{nonsense:?}");
        client.send(post("NOPE", "", ""));
        assert_eq!(client.answer().status, 404, "the client's connection lives on");
    }
}

/// MS-03
#[test]
fn bytes_behind_an_answer_are_nobodys_answer() {
    let upstream = Upstream::answering(
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged",
    );
    let router = Router::start(&definition(&[upstream.address], &[upstream.address]));
    let mut client = Client::connect(router.address);
    for _ in 0..5 {
        client.send(post("FEED", "", ""));
        assert_eq!(client.answer().text(), "ok");
    }
    assert_eq!(router.counted(|worker| worker.pool_misses.get()), 5);
}

/// MS-04
#[test]
fn an_early_answer_reaches_the_client_though_its_body_is_not_taken() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let mut bytes = [0; 65536];
            let _some = std::io::Read::read(&mut stream, &mut bytes);
            stream
                .write_all(b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 3\r\n\r\nbig")
                .unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
    });
    let router = Router::start(&definition(&[address], &[address]));
    let mut client = Client::connect(router.address);
    client.try_send(post("FEED", "", &"x".repeat(8 << 20)));
    let answer = client.answer();
    assert_eq!((answer.status, answer.text().as_str()), (413, "big"));
    assert_eq!(answer.header("connection"), Some("close"));
}

#[test]
fn a_slow_endpoint_is_cut_by_the_first_byte_clock() {
    let upstream = Upstream::start(|_, _| {
        std::thread::sleep(std::time::Duration::from_secs(5));
        Then::Close
    });
    let mut definition = definition(&[upstream.address], &[upstream.address]);
    definition.objectives[0].timeouts.first_byte_ms = Some(100);
    let router = Router::start(&definition);
    let mut client = Client::connect(router.address);
    client.send(post("FEED", "", ""));
    let answer = client.answer();
    let problem: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!((answer.status, &problem["reason"]), (504, &"first_byte_timeout".into()));
    assert_eq!(upstream.connections.load(Ordering::SeqCst), 1, "a POST is not repeated");
}

/// Answers 429 with a `Retry-After` of a minute, whatever it is asked.
fn overloaded() -> Upstream {
    Upstream::answering(
        "HTTP/1.1 429 Too Many Requests\r\nretry-after: 60\r\ncontent-length: 4\r\n\r\nbusy",
    )
}

#[test]
fn an_endpoint_that_asks_for_a_rest_costs_no_request_where_a_repeat_is_safe_and_gets_its_rest() {
    let (busy, sound) = (overloaded(), Upstream::echoing(""));
    let router = Router::start(&definition(&[busy.address, sound.address], &[dead()]));
    let mut client = Client::connect(router.address);
    for _ in 0..100 {
        client.send(post("SAFE", "", "b"));
        let answer = client.answer();
        assert_eq!((answer.status, answer.text().as_str()), (200, "b"));
    }
    assert_eq!(busy.left(), 1, "asked once, then left alone");
    assert_eq!(router.counted(|worker| worker.rests.get()), 1);
    let states = router.endpoint_states();
    let busy = states.iter().find(|state| state.address == busy.address.into()).unwrap();
    assert_eq!(busy.standing, Standing::Rests);
    assert!(busy.retry_after.as_secs() > 30, "{:?}", busy.retry_after);
}

#[test]
fn a_request_that_must_not_be_repeated_gets_the_refusal_itself() {
    let (busy, sound) = (overloaded(), Upstream::echoing(""));
    let router = Router::start(&definition(&[busy.address, sound.address], &[dead()]));
    let mut client = Client::connect(router.address);
    let refused = (0..100).filter(|_| {
        client.send(post("FEED", "", "b"));
        let answer = client.answer();
        assert_eq!(answer.header("retry-after").is_some(), answer.status == 429);
        answer.status == 429
    });
    assert_eq!(refused.count(), 1, "its rest holds for all");
    assert_eq!(busy.left(), 1, "and no request was delivered twice");
}

#[test]
fn the_only_endpoint_is_asked_though_it_wants_a_rest() {
    let busy = overloaded();
    let router = Router::start(&definition(&[busy.address], &[busy.address]));
    let mut client = Client::connect(router.address);
    for _ in 0..5 {
        client.send(post("SAFE", "", ""));
        let answer = client.answer();
        assert_eq!((answer.status, answer.text().as_str()), (429, "busy"));
        assert_eq!(answer.header("retry-after"), Some("60"));
    }
    assert_eq!(busy.left(), 5, "one caller's quota is no outage for the others");
}

#[test]
fn an_endpoint_whose_backend_fails_is_left_out_until_a_probe_succeeds() {
    let is_failing = Arc::new(AtomicBool::new(true));
    let failing = Arc::clone(&is_failing);
    let bad = Upstream::start(move |_, stream| {
        let status = if failing.load(Ordering::SeqCst) { "502 Bad Gateway" } else { "200 OK" };
        write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").unwrap();
        Then::KeepOpen
    });
    let sound = Upstream::echoing("");
    let router = Router::start(&definition(&[bad.address, sound.address], &[dead()]));
    let mut client = Client::connect(router.address);
    let mut ask = || {
        client.send(post("FEED", "", ""));
        client.answer().status
    };
    while router.counted(|worker| worker.ejections.at(1)) == 0 {
        ask();
    }
    is_failing.store(false, Ordering::SeqCst);
    let ejection = || {
        let states = router.endpoint_states();
        states.iter().find(|state| state.address == bad.address.into()).unwrap().ejection
    };
    while ejection().is_some() {
        assert_eq!(ask(), 200, "what is left out gets no request but a probe, which succeeds");
    }
    assert_eq!(router.counted(|worker| worker.ejections.at(0)), 0, "it was never dead");
}

/// UP-04: where all work badly the model is at fault, and the client gets its answers.
#[test]
fn endpoints_that_all_work_badly_are_all_used() {
    let bad = || Upstream::answering("HTTP/1.1 503 Busy\r\ncontent-length: 3\r\n\r\nbad");
    let (one, other) = (bad(), bad());
    let router = Router::start(&definition(&[one.address, other.address], &[dead()]));
    let mut client = Client::connect(router.address);
    let mut ask = || {
        client.send(post("FEED", "", ""));
        let answer = client.answer();
        assert_eq!((answer.status, answer.text().as_str()), (503, "bad"), "the endpoint's own");
    };
    while router.counted(|worker| worker.panics.get()) == 0 {
        ask();
    }
}

#[test]
fn the_only_endpoint_is_asked_again_as_soon_as_it_answers_though_it_answers_503() {
    let address = dead();
    let router = Router::start(&definition(&[address], &[address]));
    let mut client = Client::connect(router.address);
    let mut ask = || {
        client.send(post("FEED", "", ""));
        client.answer()
    };
    while router.counted(|worker| worker.ejections.at(0)) == 0 {
        ask();
    }
    let listener = TcpListener::bind(address).unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut bytes = [0; 65536];
            while std::io::Read::read(&mut stream, &mut bytes).is_ok_and(|count| count > 0) {
                let answer = b"HTTP/1.1 503 Loading\r\ncontent-length: 4\r\n\r\nload";
                stream.write_all(answer).unwrap();
            }
        }
    });
    while ask().text() != "load" {}
    for _ in 0..10 {
        assert_eq!(ask().text(), "load", "the endpoint's own word, not the router's");
    }
}
