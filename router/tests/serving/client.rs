//! A client that writes bytes and reads answers.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// One answer, read to the end that its head declares.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

pub(crate) struct Client {
    stream: TcpStream,
    pending: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the router listens");
        // Only so that a hanging router fails the test instead of the whole run.
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, pending: Vec::new() }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).expect("the router reads");
    }

    /// Sends what the router may refuse to read.
    pub(crate) fn try_send(&mut self, bytes: impl AsRef<[u8]>) {
        let _may_be_closed = self.stream.write_all(bytes.as_ref());
    }

    pub(crate) fn finish_sending(&self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }

    fn read_more(&mut self) -> usize {
        let mut bytes = [0; 65536];
        let count = self.stream.read(&mut bytes).unwrap_or(0);
        self.pending.extend_from_slice(&bytes[..count]);
        count
    }

    /// Reads until `count` bytes are there, and takes them.
    pub(crate) fn take(&mut self, count: usize) -> Vec<u8> {
        while self.pending.len() < count {
            assert!(
                self.read_more() > 0,
                "the connection ended after {:?}",
                self.pending.escape_ascii().to_string()
            );
        }
        self.pending.drain(..count).collect()
    }

    pub(crate) fn head(&mut self) -> String {
        let end = loop {
            if let Some(end) = self.pending.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            assert!(
                self.read_more() > 0,
                "no answer, but {:?}",
                self.pending.escape_ascii().to_string()
            );
        };
        String::from_utf8(self.pending.drain(..end).collect()).unwrap()
    }

    pub(crate) fn answer(&mut self) -> Answer {
        self.answer_to("POST")
    }

    pub(crate) fn answer_to(&mut self, method: &str) -> Answer {
        let head = self.head();
        let status = head[9..12].parse().unwrap();
        let mut answer = Answer { status, head, body: Vec::new() };
        if method == "HEAD" || matches!(status, 204 | 304) {
            return answer;
        }
        answer.body = match (answer.header("content-length"), answer.header("transfer-encoding")) {
            (Some(length), None) => {
                let length = length.parse().unwrap();
                self.take(length)
            }
            (None, Some("chunked")) => self.chunks(),
            (None, None) => self.rest(),
            framing => panic!("two framings: {framing:?}"),
        };
        answer
    }

    fn chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let chunk = self.chunk().expect("a whole chunked body");
            if chunk.is_empty() {
                return body;
            }
            body.extend(chunk);
        }
    }

    /// The next chunk's data; `None` where the connection ended instead.
    pub(crate) fn chunk(&mut self) -> Option<Vec<u8>> {
        let end = loop {
            if let Some(end) = self.pending.windows(2).position(|window| window == b"\r\n") {
                break end;
            }
            if self.read_more() == 0 {
                return None;
            }
        };
        let line: Vec<u8> = self.pending.drain(..end + 2).collect();
        let size = usize::from_str_radix(std::str::from_utf8(&line[..end]).unwrap(), 16).unwrap();
        let mut data = self.take(size + 2);
        data.truncate(size);
        Some(data)
    }

    /// Everything until the connection ends.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        while self.read_more() > 0 {}
        std::mem::take(&mut self.pending)
    }

    /// Whether the router closes, without another byte.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.rest().is_empty()
    }
}

/// A POST of `body` for `objective`, with further header lines.
pub(crate) fn post(objective: &str, lines: &str, body: &str) -> String {
    format!(
        "POST /v1/predict HTTP/1.1\r\nhost: router.test\r\nx-switchboard-objective: {objective}\r\n\
         content-length: {}\r\n{lines}\r\n{body}",
        body.len()
    )
}
