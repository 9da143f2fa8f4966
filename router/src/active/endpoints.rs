//! Where a Shard's endpoints are: their addresses, with host names replaced by what they mean.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::path::PathBuf;

use switchboard_shared::address::Address;
use switchboard_shared::snapshot::ArchivedPayload;

/// What a worker connects to.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum EndpointAddress {
    /// TCP.
    Tcp(SocketAddr),
    /// A Unix socket on this host.
    Unix(PathBuf),
}

impl From<SocketAddr> for EndpointAddress {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

/// Host names with ports, and the address that each stands for until the next Snapshot.
pub type HostNames = HashMap<(String, u16), SocketAddr>;

/// An endpoint's host name that has no address.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("shard {shard}: no address is known for endpoint {address}")]
pub struct Unresolved {
    /// The Shard.
    pub shard: String,
    /// The endpoint as the Snapshot has it.
    pub address: String,
}

/// All host names of a Snapshot, each once, in a stable order.
#[must_use]
pub fn host_names(payload: &ArchivedPayload) -> BTreeSet<(String, u16)> {
    let endpoints = payload.shards.iter().flat_map(|shard| shard.endpoints.iter());
    endpoints
        .filter_map(|endpoint| match Address::parse(&endpoint.address) {
            Ok(Address::Host { name, port }) => Some((name.to_owned(), port)),
            Ok(Address::Socket(_) | Address::Unix(_)) | Err(_) => None,
        })
        .collect()
}

/// The addresses of each Shard's endpoints.
pub(super) fn addresses(
    payload: &ArchivedPayload,
    names: &HostNames,
) -> Result<Box<[Box<[EndpointAddress]>]>, Unresolved> {
    let address_of = |text: &str| match Address::parse(text) {
        Ok(Address::Socket(address)) => Some(EndpointAddress::Tcp(address)),
        Ok(Address::Unix(path)) => Some(EndpointAddress::Unix(path.into())),
        Ok(Address::Host { name, port }) => {
            names.get(&(name.to_owned(), port)).copied().map(EndpointAddress::Tcp)
        }
        // The semantic check parses each address with the same parser.
        Err(_) => None,
    };
    let shards = payload.shards.iter().map(|shard| {
        let endpoints = shard.endpoints.iter().map(|endpoint| {
            let text = endpoint.address.as_str();
            address_of(text).ok_or_else(|| Unresolved {
                shard: shard.name.as_str().to_owned(),
                address: text.to_owned(),
            })
        });
        endpoints.collect()
    });
    shards.collect()
}
