//! What a cluster says to `CLUSTER SLOTS`: ranges of slots, each with the node that serves it.

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use crate::facts::reply::Reply;
use crate::limits::CLUSTER_SLOTS;

/// Some slots that one node serves.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Range {
    /// The first slot.
    pub first: u16,
    /// The last one.
    pub last: u16,
    /// Where the node is.
    pub address: SocketAddr,
    /// What it calls itself; its certificate is for this.
    pub host: Rc<str>,
}

/// Reads the reply of the node at `peer`, which stands for what the node knows no address of. Ranges that make no
/// sense are left out: they are slots that nobody serves.
#[must_use]
pub fn ranges(reply: &Reply<'_>, peer: Option<IpAddr>) -> Vec<Range> {
    let Reply::List(ranges) = reply else { return Vec::new() };
    ranges.iter().filter_map(|range| range_of(range, peer)).collect()
}

/// `[first, last, [host, port, id, [name, value …]], replica …]`.
fn range_of(range: &Reply<'_>, peer: Option<IpAddr>) -> Option<Range> {
    let Reply::List(parts) = range else { return None };
    let [Reply::Number(first), Reply::Number(last), Reply::List(node), ..] = parts.as_slice()
    else {
        return None;
    };
    let slot = |number: i64| u16::try_from(number).ok().filter(|slot| *slot < CLUSTER_SLOTS);
    let (first, last) = (slot(*first)?, slot(*last)?);
    let [host, Reply::Number(port), about @ ..] = node.as_slice() else { return None };
    let port = u16::try_from(*port).ok().filter(|port| *port > 0)?;
    let (host, address): (Rc<str>, IpAddr) = match host {
        Reply::Absent | Reply::Text(b"") => (peer?.to_string().into(), peer?),
        Reply::Text(text) => {
            let host = std::str::from_utf8(text).ok()?;
            let address = host.parse().ok().or_else(|| address_of_named(about))?;
            (host.into(), address)
        }
        Reply::Number(_) | Reply::List(_) | Reply::Error(_) => return None,
    };
    (first <= last).then(|| Range { first, last, address: SocketAddr::new(address, port), host })
}

/// Where a node is called by a name, its address stands behind it: no name has to be resolved on a core.
fn address_of_named(about: &[Reply<'_>]) -> Option<IpAddr> {
    let Some(Reply::List(pairs)) = about.get(1) else { return None };
    pairs.chunks_exact(2).find_map(|pair| match pair {
        [Reply::Text(b"ip"), Reply::Text(address)] => {
            std::str::from_utf8(address).ok()?.parse().ok()
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::reply;

    fn of(text: &str, peer: &str) -> Vec<String> {
        let (reply, taken) = reply::read(text.as_bytes()).unwrap().unwrap();
        assert_eq!(taken, text.len());
        let ranges = ranges(&reply, peer.parse().ok());
        let tell = |range: &Range| {
            format!("{}-{} {} {}", range.first, range.last, range.address, range.host)
        };
        ranges.iter().map(tell).collect()
    }

    #[test]
    fn each_form_of_a_node_is_read() {
        let text = "*4\r\n\
            *4\r\n:0\r\n:5460\r\n*4\r\n$9\r\n127.0.0.1\r\n:7001\r\n$2\r\nid\r\n*0\r\n\
            *3\r\n$9\r\n127.0.0.1\r\n:7004\r\n$2\r\nid\r\n\
            *3\r\n:5461\r\n:5461\r\n*3\r\n$0\r\n\r\n:7002\r\n$2\r\nid\r\n\
            *3\r\n:5462\r\n:16383\r\n*4\r\n$6\r\na.test\r\n:7003\r\n$2\r\nid\r\n*2\r\n$2\r\nip\r\n$3\r\n::1\r\n\
            *3\r\n:1\r\n:2\r\n*3\r\n$-1\r\n:7005\r\n$2\r\nid\r\n";
        assert_eq!(
            of(text, "10.0.0.1"),
            [
                "0-5460 127.0.0.1:7001 127.0.0.1",
                "5461-5461 10.0.0.1:7002 10.0.0.1",
                "5462-16383 [::1]:7003 a.test",
                "1-2 10.0.0.1:7005 10.0.0.1"
            ]
        );
    }

    #[test]
    fn what_makes_no_sense_is_left_out() {
        for range in [
            ":1\r\n",
            "*0\r\n",
            "*3\r\n:0\r\n:16384\r\n*3\r\n$9\r\n127.0.0.1\r\n:7001\r\n$2\r\nid\r\n",
            "*3\r\n:2\r\n:1\r\n*3\r\n$9\r\n127.0.0.1\r\n:7001\r\n$2\r\nid\r\n",
            "*3\r\n:-1\r\n:1\r\n*3\r\n$9\r\n127.0.0.1\r\n:7001\r\n$2\r\nid\r\n",
            "*3\r\n:0\r\n:1\r\n*3\r\n$9\r\n127.0.0.1\r\n:0\r\n$2\r\nid\r\n",
            "*3\r\n:0\r\n:1\r\n*3\r\n$1\r\n?\r\n:7001\r\n$2\r\nid\r\n",
            "*3\r\n:0\r\n:1\r\n*3\r\n$0\r\n\r\n:7001\r\n$2\r\nid\r\n",
        ] {
            assert_eq!(of(&format!("*1\r\n{range}"), ""), Vec::<String>::new(), "{range}");
        }
        assert_eq!(of("+OK\r\n", ""), Vec::<String>::new());
    }
}
