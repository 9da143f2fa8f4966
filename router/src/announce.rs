//! Tells the operator where the router listens, and what it may run out of.

use crate::admin::Admin;
use crate::config::Config;
use crate::log;
use crate::net::descriptors;
use crate::worker::Workers;

/// Descriptors beside those of connections: rings, listeners, state, feed, admin listener.
const DESCRIPTORS_BESIDE: u64 = 256;

/// Logs where the router listens, with the ports that the kernel chose, and raises the limit of open
/// files as far as it may.
pub fn announce(workers: &Workers, admin: &Admin, config: &Config) {
    for address in &workers.addresses {
        log::info("listening", &[("address", address)]);
    }
    log::info("admin listening", &[("address", &admin.address())]);
    log::info("feed listening", &[("socket", &config.feed.socket.display())]);
    match descriptors::raise_limit() {
        Ok(Some(limit)) if limit < descriptors_wanted(workers, config) => {
            let wanted = descriptors_wanted(workers, config);
            let fields: [log::Field<'_>; 2] = [("limit", &limit), ("wanted", &wanted)];
            log::warn("open files may run out: raise its hard limit", &fields);
        }
        Ok(_) => {}
        Err(error) => log::warn("limit of open files not raised", &[("error", &error)]),
    }
}

/// Each client connection may have one to an endpoint.
fn descriptors_wanted(workers: &Workers, config: &Config) -> u64 {
    let connections = u64::from(config.limits.connections_max) * workers.count() as u64;
    connections * 2 + DESCRIPTORS_BESIDE
}
