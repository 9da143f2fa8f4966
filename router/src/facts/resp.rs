//! Redis' wire protocol (RESP2), as far as Facts need it: two commands out, scalar replies in.
//!
//! Written here and not taken from a library: a request with Facts may allocate nothing, and a reply of the
//! `redis` crate owns its bytes. What is read is bounded before it is awaited, and a torn reply is no reply.

use crate::limits::{CLUSTER_SLOTS, FACT_REPLY_LINE_BYTES_MAX};

/// What the server said to one command; texts are of the buffer that was read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reply<'a> {
    /// A value.
    Value(&'a [u8]),
    /// There is none: `$-1`, or `_` of RESP3.
    Absent,
    /// `+OK` and its kin.
    Status(&'a [u8]),
    /// A number, which neither GET nor HGET gives.
    Number,
    /// `-WRONGTYPE …` and its kin.
    Error(ErrorClass),
    /// Another node of the cluster has the key.
    Elsewhere(Elsewhere<'a>),
    /// A value above the limit: its bytes, with their CR LF, are still to come and are to be dropped.
    Oversized {
        /// How many.
        skip: usize,
    },
}

/// Where a cluster has a key: `-MOVED 3999 127.0.0.1:6381`, or the same with `-ASK`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Elsewhere<'a> {
    /// Whether the Slot is on its way there, so that this node still has its other keys.
    pub is_ask: bool,
    /// The cluster's slot, below 16 384.
    pub slot: u16,
    /// `HOST:PORT`; without a host, that of the node which said so.
    pub node: &'a str,
}

impl<'a> Elsewhere<'a> {
    fn of(line: &'a [u8]) -> Option<Self> {
        let mut words = std::str::from_utf8(line).ok()?.split(' ');
        let is_ask = match words.next()? {
            "MOVED" => false,
            "ASK" => true,
            _ => return None,
        };
        let slot = words.next()?.parse().ok().filter(|slot| *slot < CLUSTER_SLOTS)?;
        Some(Self { is_ask, slot, node: words.next()? })
    }
}

/// Why the server would not answer a command. Closed: it is a metric's label.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ErrorClass {
    /// The key holds another data type.
    WrongType,
    /// The server reads its data set, or is busy with a script.
    Busy,
    /// Authentication, or a command or key that the user may not use.
    Denied,
    /// The slot is at another node, or the node serves none: a cluster.
    Moved,
    /// Everything else.
    Other,
}

impl ErrorClass {
    /// Of an error's first word.
    fn of(line: &[u8]) -> Self {
        match line.split(|byte| *byte == b' ').next().unwrap_or_default() {
            b"WRONGTYPE" => Self::WrongType,
            b"LOADING" | b"BUSY" | b"MASTERDOWN" | b"TRYAGAIN" => Self::Busy,
            b"NOAUTH" | b"WRONGPASS" | b"NOPERM" => Self::Denied,
            b"MOVED" | b"ASK" | b"CLUSTERDOWN" | b"CROSSSLOT" => Self::Moved,
            _ => Self::Other,
        }
    }
}

/// Bytes that are no RESP, or too many: the position is lost, so the connection ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the cache does not speak RESP")]
pub struct NoResp;

/// Takes one reply from the front of `input`: the reply, and how many bytes it takes. `None`: it is torn.
///
/// # Errors
/// A kind that neither GET, HGET nor the greeting gives, a line above `FACT_REPLY_LINE_BYTES_MAX`, or a value
/// above `skip_max`, before a byte of it is awaited. Values above `value_max` are [`Reply::Oversized`].
pub fn read(
    input: &[u8],
    value_max: usize,
    skip_max: usize,
) -> Result<Option<(Reply<'_>, usize)>, NoResp> {
    let Some((kind, rest)) = input.split_first() else { return Ok(None) };
    if !b"$_+-:".contains(kind) {
        return Err(NoResp);
    }
    // Not further: what is refused must not depend on how the bytes came.
    let begun = rest.get(..FACT_REPLY_LINE_BYTES_MAX).unwrap_or(rest);
    let Some(length) = begun.windows(2).position(|end| end == b"\r\n") else {
        return if begun.len() == FACT_REPLY_LINE_BYTES_MAX { Err(NoResp) } else { Ok(None) };
    };
    let line = rest.get(..length).unwrap_or_default();
    let taken = 1 + length + 2;
    let reply = match kind {
        b'+' => Reply::Status(line),
        b'-' => match Elsewhere::of(line) {
            Some(elsewhere) => Reply::Elsewhere(elsewhere),
            None => Reply::Error(ErrorClass::of(line)),
        },
        b':' => Reply::Number,
        b'_' if line.is_empty() => Reply::Absent,
        b'$' if line == b"-1" => Reply::Absent,
        b'$' => return read_value(input, taken, size(line)?, value_max, skip_max),
        _ => return Err(NoResp),
    };
    Ok(Some((reply, taken)))
}

fn read_value(
    input: &[u8],
    start: usize,
    bytes: usize,
    value_max: usize,
    skip_max: usize,
) -> Result<Option<(Reply<'_>, usize)>, NoResp> {
    if bytes > skip_max {
        return Err(NoResp);
    }
    if bytes > value_max {
        return Ok(Some((Reply::Oversized { skip: bytes + 2 }, start)));
    }
    let end = start + bytes;
    match input.get(end..end + 2) {
        None => Ok(None),
        Some(b"\r\n") => {
            Ok(Some((Reply::Value(input.get(start..end).unwrap_or_default()), end + 2)))
        }
        Some(_) => Err(NoResp),
    }
}

fn size(digits: &[u8]) -> Result<usize, NoResp> {
    let is_number = (1..=10).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(digits).ok().filter(|_| is_number);
    text.and_then(|text| text.parse().ok()).ok_or(NoResp)
}

/// Appends a command. Each argument may be of several parts, so that a key is never put together elsewhere.
/// Its length stands in front, so no byte of an argument can be taken for a command.
pub fn write(out: &mut Vec<u8>, arguments: &[&[&[u8]]]) {
    length(out, b'*', arguments.len());
    for argument in arguments {
        length(out, b'$', argument.iter().map(|part| part.len()).sum());
        for part in *argument {
            out.extend_from_slice(part);
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// How many bytes [`write`] takes for an argument of so many.
pub fn argument_bytes(length: usize) -> usize {
    1 + itoa::Buffer::new().format(length).len() + 2 + length + 2
}

fn length(out: &mut Vec<u8>, kind: u8, length: usize) {
    out.push(kind);
    out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(bytes: &[u8]) -> Result<Option<(Reply<'_>, usize)>, NoResp> {
        read(bytes, 10, 100)
    }

    /// RD-03
    #[test]
    fn each_kind_of_reply_is_read_whole_or_not_at_all() {
        for (bytes, expected) in [
            (&b"$5\r\nhello\r\n"[..], Reply::Value(b"hello")),
            (b"$0\r\n\r\n", Reply::Value(b"")),
            (b"$4\r\n\r\n\r\n\r\n", Reply::Value(b"\r\n\r\n")),
            (b"$-1\r\n", Reply::Absent),
            (b"_\r\n", Reply::Absent),
            (b"+PONG\r\n", Reply::Status(b"PONG")),
            (b":5\r\n", Reply::Number),
            (b"-WRONGTYPE Operation\r\n", Reply::Error(ErrorClass::WrongType)),
            (b"-LOADING Redis is\r\n", Reply::Error(ErrorClass::Busy)),
            (
                b"-MOVED 16383 h:1\r\n",
                Reply::Elsewhere(Elsewhere { is_ask: false, slot: 16_383, node: "h:1" }),
            ),
            (b"-ASK 0 :1\r\n", Reply::Elsewhere(Elsewhere { is_ask: true, slot: 0, node: ":1" })),
            (b"-MOVED 16384 h:1\r\n", Reply::Error(ErrorClass::Moved)),
            (b"-ASK\r\n", Reply::Error(ErrorClass::Moved)),
            (b"-CLUSTERDOWN The cluster is down\r\n", Reply::Error(ErrorClass::Moved)),
            (b"-NOAUTH x\r\n", Reply::Error(ErrorClass::Denied)),
            (b"-ERR x\r\n", Reply::Error(ErrorClass::Other)),
            (b"$11\r\n", Reply::Oversized { skip: 13 }),
        ] {
            for cut in 0..bytes.len() {
                let torn = reply(&bytes[..cut]);
                assert_eq!(torn, Ok(None), "{}", bytes[..cut].escape_ascii());
            }
            let more = [bytes, b"$1\r\nx\r\n"].concat();
            assert_eq!(reply(&more), Ok(Some((expected, bytes.len()))), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn what_is_no_reply_ends_the_connection() {
        for bytes in [
            &b"HTTP/1.1 200 OK\r\n"[..],
            b"*1\r\n",
            b"$101\r\n",
            b"$-2\r\n",
            b"$+1\r\n",
            b"$99999999999999999999\r\n",
            b"$\r\n",
            b"$1\r\nxyz",
            b"_x\r\n",
        ] {
            assert_eq!(reply(bytes), Err(NoResp), "{}", bytes.escape_ascii());
        }
        for end in ["", "\r\n"] {
            let endless = format!("+{}{end}", "x".repeat(FACT_REPLY_LINE_BYTES_MAX));
            assert_eq!(reply(endless.as_bytes()), Err(NoResp));
        }
    }

    #[test]
    fn no_byte_of_a_key_can_be_taken_for_a_command() {
        let mut out = Vec::new();
        write(&mut out, &[&[b"GET"], &[b"user:", b"1\r\nFLUSHALL\r\n", b":country"]]);
        assert_eq!(out, b"*2\r\n$3\r\nGET\r\n$26\r\nuser:1\r\nFLUSHALL\r\n:country\r\n");
    }
}
