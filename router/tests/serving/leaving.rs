//! Clients that leave, idle or are slow; routers that drain.

use std::io::Write as _;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::client::{Client, post};
use crate::router::{Router, definition};
use crate::upstream::{Then, Upstream};

/// A model server that never answers, but sees when its caller is gone.
fn silent() -> Upstream {
    Upstream::start(|_, stream| {
        let _until_closed = std::io::Read::read(stream, &mut [0; 1]);
        Then::Close
    })
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..3000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never: {what}");
}

/// ST-02, MS-07
#[test]
fn a_client_that_leaves_cancels_its_call_before_the_first_byte() {
    let upstream = silent();
    let router = Router::start(&definition(&[upstream.address], &[upstream.address]));
    for n in 1..=20 {
        let mut client = Client::connect(router.address);
        client.send(post("FEED", "", "x"));
        upstream.next();
        if n % 2 == 0 {
            client.finish_sending();
        } else {
            drop(client);
        }
        wait_until("the call is cancelled", || upstream.closed.load(Ordering::SeqCst) == n);
        router.wait_for(n as u64, |worker| worker.client_closed.get());
    }
    let failures = router.counted(|worker| worker.ejections.at(0));
    assert_eq!(failures, 0, "a client that leaves says nothing about the endpoint");
}

/// The next request would meet a connection that the leaving has shut.
#[test]
fn a_client_that_leaves_on_its_answers_last_byte_takes_no_pooled_connection_along() {
    let upstream = Upstream::echoing("");
    let router = Router::start(&definition(&[upstream.address], &[upstream.address]));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..500 {
                    let mut client = Client::connect(router.address);
                    client.send(post("FEED", "", "x"));
                    assert_eq!(client.answer().text(), "x");
                }
            });
        }
    });
    assert_eq!(router.counted(|worker| worker.client_closed.get()), 0);
    assert_eq!(router.counted(|worker| worker.ejections.at(0)), 0);
}

#[test]
fn a_client_that_leaves_within_a_stream_ends_it() {
    let upstream = Upstream::start(|_, stream| {
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        let _until_closed = std::io::Read::read(stream, &mut [0; 1]);
        Then::Close
    });
    let router = Router::start(&definition(&[upstream.address], &[upstream.address]));
    let mut client = Client::connect(router.address);
    client.send(post("FEED", "", ""));
    client.head();
    client.chunk();
    drop(client);
    wait_until("the stream is cancelled", || upstream.closed.load(Ordering::SeqCst) == 1);
}

/// MS-07: further requests before the FIN are answered first.
#[test]
fn pipelined_requests_before_a_half_close_are_answered() {
    let upstream = Upstream::echoing("");
    let router = Router::start(&definition(&[upstream.address], &[upstream.address]));
    let mut client = Client::connect(router.address);
    client.send(post("FEED", "", "one") + &post("FEED", "", "two") + &post("FEED", "", "three"));
    client.finish_sending();
    for body in ["one", "two", "three"] {
        assert_eq!(client.answer().text(), body);
    }
    assert!(client.is_closed());
}

#[test]
fn a_body_that_breaks_off_never_looks_whole_to_the_endpoint() {
    let upstream = Upstream::echoing("");
    let router = Router::start(&definition(&[upstream.address], &[upstream.address]));
    for objective in ["FEED", "COUNTRY"] {
        let mut client = Client::connect(router.address);
        client.send(format!(
            "POST / HTTP/1.1\r\nhost: a\r\nx-switchboard-objective: {objective}\r\ncontent-length: 10\r\n\r\n12345"
        ));
        client.finish_sending();
        assert_eq!(client.answer().status, 400);
        assert!(client.is_closed());
    }
    assert_eq!(upstream.left(), 0);
}

/// RS-02
#[test]
fn a_slow_head_is_answered_with_408_and_a_silent_connection_just_closed() {
    let upstream = Upstream::echoing("");
    let both = [upstream.address];
    let router = Router::with(&definition(&both, &both), |config| {
        config.clocks.head = Duration::from_millis(150);
        config.clocks.keep_alive_idle = Duration::from_millis(150);
        config.clocks.body_idle = Duration::from_millis(150);
    });
    let mut client = Client::connect(router.address);
    client.send("POST / HTTP/1.1\r\nhost:");
    assert_eq!(client.answer().status, 408);
    assert!(client.is_closed());
    let mut silent = Client::connect(router.address);
    assert!(silent.is_closed());
    let mut slow = Client::connect(router.address);
    slow.send("POST / HTTP/1.1\r\nhost: a\r\nx-switchboard-objective: COUNTRY\r\ncontent-length: 5\r\n\r\n12");
    assert_eq!(slow.answer().status, 408);
    let mut slow = Client::connect(router.address);
    slow.send("POST / HTTP/1.1\r\nhost: a\r\nx-switchboard-objective: FEED\r\ncontent-length: 5\r\n\r\n12");
    assert_eq!(slow.answer().status, 408);
}

#[test]
fn a_connection_that_gave_its_buffer_back_still_hears_its_client() {
    let upstream = Upstream::echoing("");
    let router = Router::start(&definition(&[upstream.address], &[upstream.address]));
    let mut client = Client::connect(router.address);
    for body in ["one", "two", "three"] {
        client.send(post("FEED", "", body));
        assert_eq!(client.answer().text(), body);
        std::thread::sleep(Duration::from_millis(800)); // beyond IDLE_BUFFER_SPAN
    }
}

#[test]
fn a_drain_finishes_what_runs_and_closes_what_idles() {
    let (allow, allowed) = std::sync::mpsc::channel::<()>();
    let allowed = std::sync::Mutex::new(allowed);
    let upstream = Upstream::start(move |_, stream| {
        allowed.lock().unwrap().recv().unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").unwrap();
        Then::KeepOpen
    });
    let mut router = Router::start(&definition(&[upstream.address], &[upstream.address]));
    let mut idle = Client::connect(router.address);
    let mut parked = Client::connect(router.address);
    std::thread::sleep(Duration::from_millis(800)); // `parked` has given its buffer back
    let mut busy = Client::connect(router.address);
    busy.send(post("FEED", "", ""));
    upstream.next();
    let drained = std::thread::spawn(move || router.drain(Duration::from_secs(30)));
    assert!(idle.is_closed());
    assert!(parked.is_closed());
    allow.send(()).unwrap();
    let answer = busy.answer();
    assert_eq!((answer.text().as_str(), answer.header("connection")), ("ok", Some("close")));
    assert!(busy.is_closed());
    drained.join().unwrap();
}
