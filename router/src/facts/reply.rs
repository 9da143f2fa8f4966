//! Replies of any shape, for what is asked beside requests. Facts themselves are read by [`super::resp`].

use super::resp::NoResp;
use crate::limits::{CLUSTER_MAP_BYTES_MAX, FACT_REPLY_LINE_BYTES_MAX};

/// What a server said; texts are of the buffer that was read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Reply<'a> {
    /// A status or a value.
    Text(&'a [u8]),
    /// A number.
    Number(i64),
    /// Nothing.
    Absent,
    /// `-ERR …`, without its `-`.
    Error(&'a [u8]),
    /// Replies inside a reply.
    List(Vec<Self>),
}

/// Lists inside each other.
const DEPTH_MAX: usize = 8;

/// Takes one reply from the front of `input`: the reply, and how many bytes it takes. `None`: it is torn.
///
/// # Errors
/// What is no RESP, above `CLUSTER_MAP_BYTES_MAX`, or nested deeper than eight lists.
pub fn read(input: &[u8]) -> Result<Option<(Reply<'_>, usize)>, NoResp> {
    let mut rest = input;
    match take(&mut rest, DEPTH_MAX) {
        Ok(reply) => Ok(Some((reply, input.len() - rest.len()))),
        Err(Stop::Torn) if input.len() < CLUSTER_MAP_BYTES_MAX => Ok(None),
        Err(Stop::Torn | Stop::NoResp) => Err(NoResp),
    }
}

enum Stop {
    Torn,
    NoResp,
}

fn take<'a>(rest: &mut &'a [u8], depth_left: usize) -> Result<Reply<'a>, Stop> {
    let (kind, behind) = rest.split_first().ok_or(Stop::Torn)?;
    *rest = behind;
    let line = take_line(rest)?;
    Ok(match kind {
        b'+' => Reply::Text(line),
        b'-' => Reply::Error(line),
        b':' => Reply::Number(number(line)?),
        b'_' => Reply::Absent,
        b'$' | b'*' if line == b"-1" => Reply::Absent,
        b'$' => {
            let length = usize::try_from(number(line)?).map_err(|_| Stop::NoResp)?;
            if length > CLUSTER_MAP_BYTES_MAX {
                return Err(Stop::NoResp);
            }
            let end = rest.get(length..length + 2).ok_or(Stop::Torn)?;
            if end != b"\r\n" {
                return Err(Stop::NoResp);
            }
            let text = rest.get(..length).unwrap_or_default();
            *rest = rest.get(length + 2..).unwrap_or_default();
            Reply::Text(text)
        }
        b'*' => {
            let depth_left = depth_left.checked_sub(1).ok_or(Stop::NoResp)?;
            // Not reserved: what is announced costs nothing before it is here.
            let mut parts = Vec::new();
            for _ in 0..number(line)? {
                parts.push(take(rest, depth_left)?);
            }
            Reply::List(parts)
        }
        _ => return Err(Stop::NoResp),
    })
}

fn take_line<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Stop> {
    let begun = rest.get(..FACT_REPLY_LINE_BYTES_MAX).unwrap_or(rest);
    let Some(length) = begun.windows(2).position(|end| end == b"\r\n") else {
        let is_long = begun.len() == FACT_REPLY_LINE_BYTES_MAX;
        return Err(if is_long { Stop::NoResp } else { Stop::Torn });
    };
    let line = rest.get(..length).unwrap_or_default();
    *rest = rest.get(length + 2..).unwrap_or_default();
    Ok(line)
}

fn number(digits: &[u8]) -> Result<i64, Stop> {
    std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok()).ok_or(Stop::NoResp)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_reply_is_read_whole_or_not_at_all() {
        let text = b"*3\r\n:-1\r\n*2\r\n$3\r\na\r\n\r\n$-1\r\n+OK\r\n";
        for cut in 0..text.len() {
            assert_eq!(read(&text[..cut]), Ok(None), "{cut}");
        }
        let inner = Reply::List(vec![Reply::Text(b"a\r\n"), Reply::Absent]);
        let expected = Reply::List(vec![Reply::Number(-1), inner, Reply::Text(b"OK")]);
        assert_eq!(read(text), Ok(Some((expected, text.len()))));
        assert_eq!(read(b"-ERR no\r\n"), Ok(Some((Reply::Error(b"ERR no"), 9))));
    }

    proptest! {
        #[test]
        fn what_was_read_does_not_hang_on_how_the_bytes_came(
            text in "([*$:+_-]([0-2]|-1|[0-9]{1,20}|[a-z]{0,3})\r\n|[a-z]{1,2}\r\n){0,8}",
            cut in 0_usize..200,
        ) {
            let bytes = text.as_bytes();
            let begun = bytes.get(..cut).unwrap_or(bytes);
            match read(begun) {
                Ok(None) => {}
                whole => prop_assert_eq!(whole, read(bytes)),
            }
        }
    }

    #[test]
    fn what_is_no_reply_is_refused_before_more_of_it_is_awaited() {
        let deep = b"*1\r\n".repeat(DEPTH_MAX + 1);
        for bytes in [&b"HTTP/1.1 200 OK\r\n"[..], b":x\r\n", b"$5000000\r\n", b"$1\r\nxyz", &deep]
        {
            assert_eq!(read(bytes), Err(NoResp), "{}", bytes.escape_ascii());
        }
        assert_eq!(read(b"*9223372036854775807\r\n:1\r\n"), Ok(None));
    }
}
