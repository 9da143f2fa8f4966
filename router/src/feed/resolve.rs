//! Host names to addresses, off the network cores and with a deadline.

use std::collections::BTreeSet;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use crate::active::HostNames;
use crate::limits::RESOLVER_THREADS;
use crate::net::clock;

/// Asks the system's resolver for each name. Names that are not answered within `patience` are left out.
///
/// The resolver cannot be interrupted: a thread that waits for it is left behind, and ends with its
/// present name.
pub(super) fn resolve(names: BTreeSet<(String, u16)>, patience: Duration) -> HostNames {
    let names: Arc<[(String, u16)]> = names.into_iter().collect();
    let deadline = clock::now() + patience;
    let next = Arc::new(AtomicUsize::new(0));
    let (found, answers) = mpsc::channel();
    for _ in 0..names.len().min(RESOLVER_THREADS) {
        let (names, next, found) = (Arc::clone(&names), Arc::clone(&next), found.clone());
        let thread = std::thread::Builder::new().name("resolver".into());
        let spawned = thread.spawn(move || {
            while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                if found.send((name.clone(), address_of(name))).is_err() {
                    return; // nobody waits any more
                }
            }
        });
        if spawned.is_err() {
            break; // out of threads: those that run take the rest
        }
    }
    drop(found);
    let mut resolved = HostNames::new();
    let left = || deadline.saturating_duration_since(clock::now());
    while let Ok((name, address)) = answers.recv_timeout(left()) {
        resolved.extend(address.map(|address| (name, address)));
    }
    resolved
}

/// The first IPv4 address, else the first one: model servers that listen on `localhost` mostly do so
/// on 127.0.0.1 alone.
fn address_of((name, port): &(String, u16)) -> Option<SocketAddr> {
    let addresses: Vec<SocketAddr> = (name.as_str(), *port).to_socket_addrs().ok()?.collect();
    addresses.iter().find(|address| address.is_ipv4()).or(addresses.first()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn localhost_has_an_address_and_an_invalid_name_has_none() {
        let names = ["localhost", "no-such-host.invalid"].map(|name| (name.to_owned(), 80));
        let resolved = resolve(names.clone().into(), PATIENCE);
        assert!(resolved[&names[0]].ip().is_loopback());
        assert_eq!(resolved.get(&names[1]), None);
    }

    #[test]
    fn no_patience_resolves_nothing_and_does_not_hang() {
        let names = BTreeSet::from([("no-such-host.invalid".to_owned(), 80)]);
        assert!(resolve(names, Duration::ZERO).is_empty());
        assert!(resolve(BTreeSet::new(), PATIENCE).is_empty());
    }
}
