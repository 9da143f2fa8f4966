use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, UnixListener},
};

use super::*;

const IMPATIENT: Gate = Gate {
    attempt: Duration::from_millis(200),
    pause: Duration::from_millis(10),
    patience: Duration::from_millis(300),
    trial: TrialTimes { inference: Duration::from_millis(200), timed: Duration::from_millis(400) },
};

fn probe(address: &str, path: Option<&str>) -> Probe {
    Probe { address: address.to_owned(), path: path.map(str::to_owned) }
}

/// A server that answers every connection with these bytes.
async fn server(answer: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 1024];
            drop(stream.read(&mut head).await);
            drop(stream.write_all(answer).await);
        }
    });
    address
}

async fn seen(address: &str, path: Option<&str>) -> (bool, String) {
    let evidence = IMPATIENT.check(vec![probe(address, path)]).await.remove(0);
    (evidence.passed, evidence.detail)
}

#[tokio::test]
async fn only_2xx_is_ready() {
    let ok = server(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    assert!(seen(&ok, Some("/ready")).await.0);
    let ok = server(b"HTTP/1.1 204 No Content\r\n\r\n").await;
    assert!(seen(&ok, Some("/ready")).await.0);
    let moved = server(b"HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n").await;
    let (passed, detail) = seen(&moved, Some("/ready")).await;
    assert!(!passed && detail.starts_with("302 Found instead of 2xx at attempt"), "{detail}");
}

#[tokio::test]
async fn what_speaks_no_http_or_nothing_is_not_ready() {
    let garbage = server(b"\x00\x01\x02 hello\r\n\r\n").await;
    let (passed, detail) = seen(&garbage, Some("/ready")).await;
    assert!(!passed && detail.starts_with("no HTTP answer"), "{detail}");
    let (passed, detail) = seen("127.0.0.1:1", Some("/ready")).await;
    assert!(!passed && detail.starts_with("cannot connect"), "{detail}");
    let (passed, _) = seen("127.0.0.1:1", None).await;
    assert!(!passed);
}

#[tokio::test]
async fn a_server_that_never_answers_costs_bounded_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    let (passed, detail) = seen(&address, Some("/ready")).await;
    assert!(!passed && detail.starts_with("no answer within 200ms"), "{detail}");
}

#[tokio::test]
async fn an_endless_answer_is_given_up() {
    let endless = server(
        b"HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    )
    .await;
    assert!(!seen(&endless, Some("/ready")).await.0);
}

#[tokio::test]
async fn without_a_path_a_connection_is_enough_also_over_a_unix_socket() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let socket = folder.path().join("model.sock");
    let _listener = UnixListener::bind(&socket).expect("a free socket");
    let address = format!("unix:{}", socket.display());
    let (passed, detail) = seen(&address, None).await;
    assert!(passed && detail.starts_with("takes connections"), "{detail}");
}

#[tokio::test]
async fn evidence_comes_in_the_order_of_probes() {
    let ok = server(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let mut probes = vec![probe("127.0.0.1:1", None)];
    probes.extend((0..100).map(|number| probe(&ok, Some(&format!("/{number}")))));
    let evidence = IMPATIENT.check(probes).await;
    assert_eq!(evidence.len(), 101);
    assert!(!evidence[0].passed);
    assert!(evidence[1..].iter().all(|one| one.passed));
    assert_eq!(evidence[42].subject, format!("endpoint {ok} /41"));
}
