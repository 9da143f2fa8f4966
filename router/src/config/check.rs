//! What no single value shows: ranges and contradictions.

use std::collections::HashSet;
use std::fmt;

use switchboard_shared::address::Address;
use switchboard_shared::limits::{NAME_BYTES_MAX, TRUSTED_KEYS_MAX};
use switchboard_shared::snapshot::syntax::{TOPIC, is_label, is_topic};

use super::units::format_size;
use super::{Config, Facts, FactsSource, Listen, ReadFrom};
use crate::limits::{
    BODY_BUFFER_BYTES_MAX, BODY_BYTES_MAX, CONNECTIONS_MAX, FACT_BUDGET_MAX,
    FACT_HEDGE_PERCENT_MAX, HEAD_BYTES_MAX, HEAD_BYTES_MIN, LISTENERS_MAX, NEAR_BYTES_MAX,
    REQUEST_LINE_BYTES_MAX, SHADOW_BODY_BYTES_MAX, SHADOW_BUFFER_BYTES_MAX, SOCKET_PATH_BYTES_MAX,
    SPOOL_BYTES_MIN,
};

/// One setting that cannot be taken.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refusal {
    /// Its dotted key.
    pub key: &'static str,
    /// Its value, as the user would write it.
    pub found: String,
    /// What would be taken.
    pub expected: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}: found {}, expected {}", self.key, self.found, self.expected)
    }
}

/// Checks everything that needs neither the host nor another file.
pub(super) fn check(config: &Config) -> Result<(), Refusal> {
    check_identity(config)?;
    check_addresses(config)?;
    check_cores(config)?;
    check_limits(config)?;
    check_pools(config)?;
    check_facts(config)?;
    check_shadow(config)
}

fn refuse(
    key: &'static str,
    found: impl fmt::Display,
    expected: impl fmt::Display,
) -> Result<(), Refusal> {
    Err(Refusal { key, found: found.to_string(), expected: expected.to_string() })
}

fn check_identity(config: &Config) -> Result<(), Refusal> {
    for (key, name) in [("group", &config.group), ("feed.name", &config.feed.name)] {
        if !is_label(name) {
            let expected =
                format!("[A-Za-z0-9][A-Za-z0-9_.-]*, at most {NAME_BYTES_MAX} characters");
            return refuse(key, format_args!("{name:?}"), expected);
        }
    }
    let keys = config.trusted_keys.len();
    if keys == 0 || keys > TRUSTED_KEYS_MAX {
        let expected = format!("1 to {TRUSTED_KEYS_MAX}: without one no Snapshot can be accepted");
        return refuse("trusted_keys", format_args!("{keys} keys"), expected);
    }
    if config.state_dir.as_os_str().is_empty() {
        return refuse("state_dir", "\"\"", "a folder");
    }
    Ok(())
}

fn check_addresses(config: &Config) -> Result<(), Refusal> {
    let count = config.listen.len();
    if count == 0 || count > LISTENERS_MAX {
        let expected = format!("1 to {LISTENERS_MAX}");
        return refuse("listen", format_args!("{count} addresses"), expected);
    }
    let mut seen = HashSet::new();
    for address in &config.listen {
        let kernel_chooses = matches!(address, Listen::Tcp(tcp) if tcp.port() == 0);
        if !seen.insert(address) && !kernel_chooses {
            return refuse("listen", format_args!("{address} twice"), "each address once");
        }
    }
    let admin = config.admin.listen;
    if admin.port() != 0 && seen.contains(&Listen::Tcp(admin)) {
        return refuse("admin.listen", admin, "an address that `listen` does not have");
    }
    let socket = &config.feed.socket;
    let length = socket.as_os_str().len();
    if length == 0 || length > SOCKET_PATH_BYTES_MAX {
        let expected = format!("a path of 1 to {SOCKET_PATH_BYTES_MAX} bytes");
        return refuse("feed.socket", format_args!("{length} bytes"), expected);
    }
    if seen.contains(&Listen::Unix(socket.clone())) {
        return refuse("feed.socket", socket.display(), "a path that `listen` does not have");
    }
    Ok(())
}

fn check_cores(config: &Config) -> Result<(), Refusal> {
    let cores = &config.cores.core_list;
    let mut seen = HashSet::new();
    if let Some(twice) = cores.iter().find(|core| !seen.insert(**core)) {
        return refuse("cores.core_list", format_args!("core {twice} twice"), "each core once");
    }
    if !config.cores.pin && !cores.is_empty() {
        let found = "a list, with cores.pin = false";
        return refuse("cores.core_list", found, "no list, or cores.pin = true");
    }
    Ok(())
}

fn check_limits(config: &Config) -> Result<(), Refusal> {
    let limits = &config.limits;
    let head = limits.head_bytes_max;
    if !(HEAD_BYTES_MIN..=HEAD_BYTES_MAX).contains(&head) {
        let expected = format!("{HEAD_BYTES_MIN}B to {}", size(HEAD_BYTES_MAX));
        return refuse("limits.head_bytes_max", size(head), expected);
    }
    let target_most = head.saturating_sub(REQUEST_LINE_BYTES_MAX);
    if limits.target_bytes_max == 0 || limits.target_bytes_max > target_most {
        let expected = format!("1B to {target_most}B, limits.head_bytes_max less the line's rest");
        return refuse("limits.target_bytes_max", size(limits.target_bytes_max), expected);
    }
    let body = limits.body_bytes_max;
    if body > BODY_BYTES_MAX {
        let expected = format!("at most {}", format_size(BODY_BYTES_MAX));
        return refuse("limits.body_bytes_max", format_size(body), expected);
    }
    let buffer = limits.body_buffer_bytes_max;
    if buffer > BODY_BUFFER_BYTES_MAX || buffer > body {
        let most = format_size(BODY_BUFFER_BYTES_MAX);
        let expected = format!("at most {most}, and at most limits.body_bytes_max");
        return refuse("limits.body_buffer_bytes_max", format_size(buffer), expected);
    }
    let connections = limits.connections_max;
    if connections == 0 || connections > CONNECTIONS_MAX {
        let expected = format!("1 to {CONNECTIONS_MAX}");
        return refuse("limits.connections_max", connections, expected);
    }
    Ok(())
}

fn check_pools(config: &Config) -> Result<(), Refusal> {
    let upstream = &config.upstream;
    if upstream.idle_per_endpoint_max > CONNECTIONS_MAX {
        let expected = format!("at most {CONNECTIONS_MAX}");
        return refuse("upstream.idle_per_endpoint_max", upstream.idle_per_endpoint_max, expected);
    }
    if upstream.idle > upstream.age {
        let found = super::units::format_duration(upstream.idle);
        return refuse("upstream.idle", found, "at most upstream.age");
    }
    Ok(())
}

fn check_facts(config: &Config) -> Result<(), Refusal> {
    let facts = &config.facts;
    if let Err(error) = Address::parse(&facts.address) {
        let expected = format!("HOST:PORT, [IPV6]:PORT or unix:/path ({error})");
        return refuse("facts.address", format_args!("{:?}", facts.address), expected);
    }
    if facts.source == FactsSource::File && facts.file.as_os_str().is_empty() {
        return refuse("facts.file", "\"\"", "a file, as facts.source = \"file\"");
    }
    if facts.budget > FACT_BUDGET_MAX {
        let found = super::units::format_duration(facts.budget);
        let expected = format!("at most {}", super::units::format_duration(FACT_BUDGET_MAX));
        return refuse("facts.budget", found, expected);
    }
    let has_password =
        !facts.password_file.as_os_str().is_empty() || !facts.password_env.is_empty();
    if !facts.username.is_empty() && !has_password {
        let expected = "none without facts.password_file or facts.password_env";
        return refuse("facts.username", format_args!("{:?}", facts.username), expected);
    }
    if facts.late_in_a_row_max == 0 {
        return refuse("facts.late_in_a_row_max", 0, "at least 1");
    }
    check_facts_servers(facts)?;
    check_facts_tls(facts)
}

fn check_facts_servers(facts: &Facts) -> Result<(), Refusal> {
    let replica = facts.replica_address.as_str();
    if !replica.is_empty()
        && let Err(error) = Address::parse(replica)
    {
        let expected = format!("HOST:PORT, [IPV6]:PORT or unix:/path ({error})");
        return refuse("facts.replica_address", format_args!("{replica:?}"), expected);
    }
    if facts.cluster && !replica.is_empty() {
        let expected = "none with facts.cluster = true";
        return refuse("facts.replica_address", format_args!("{replica:?}"), expected);
    }
    if facts.cluster && facts.database != 0 {
        let expected = "0, the only one that a cluster has";
        return refuse("facts.database", facts.database, expected);
    }
    if facts.read_from == ReadFrom::Replica && replica.is_empty() {
        let expected = "\"primary\" without facts.replica_address";
        return refuse("facts.read_from", "\"replica\"", expected);
    }
    if let Some(after) = facts.hedge_after {
        let found = super::units::format_duration(after);
        if replica.is_empty() {
            return refuse("facts.hedge_after", found, "\"off\" without facts.replica_address");
        }
        if after >= facts.budget {
            return refuse("facts.hedge_after", found, "less than facts.budget");
        }
    }
    if !(1..=FACT_HEDGE_PERCENT_MAX).contains(&facts.hedge_percent_max) {
        let expected = format!("1 to {FACT_HEDGE_PERCENT_MAX}");
        return refuse("facts.hedge_percent_max", facts.hedge_percent_max, expected);
    }
    if facts.near_bytes_max > NEAR_BYTES_MAX {
        let expected = format!("at most {}", format_size(NEAR_BYTES_MAX));
        return refuse("facts.near_bytes_max", format_size(facts.near_bytes_max), expected);
    }
    Ok(())
}

fn check_facts_tls(facts: &Facts) -> Result<(), Refusal> {
    let name = facts.tls_server_name.as_str();
    if !facts.tls {
        let files = [
            ("facts.tls_ca_file", &facts.tls_ca_file),
            ("facts.tls_certificate_file", &facts.tls_certificate_file),
            ("facts.tls_key_file", &facts.tls_key_file),
        ];
        let named = files.into_iter().find(|(_, file)| !file.as_os_str().is_empty());
        if let Some((key, file)) = named {
            return refuse(key, file.display(), "none without facts.tls = true");
        }
        if !name.is_empty() {
            let found = format_args!("{name:?}");
            return refuse("facts.tls_server_name", found, "none without facts.tls = true");
        }
        return Ok(());
    }
    if name.is_empty() && facts.has_unix_socket() {
        let expected = "the server's name, as there is a Unix socket";
        return refuse("facts.tls_server_name", "\"\"", expected);
    }
    if facts.tls_certificate_file.as_os_str().is_empty()
        != facts.tls_key_file.as_os_str().is_empty()
    {
        let found = facts.tls_key_file.display();
        return refuse("facts.tls_key_file", found, "one exactly with facts.tls_certificate_file");
    }
    Ok(())
}

fn check_shadow(config: &Config) -> Result<(), Refusal> {
    let shadow = &config.shadow;
    for (key, topic) in
        [("shadow.topic", &shadow.topic), ("shadow.exposure_topic", &shadow.exposure_topic)]
    {
        if !is_topic(topic) {
            return refuse(key, format_args!("{topic:?}"), TOPIC);
        }
    }
    for (key, bytes) in [
        ("shadow.request_bytes_max", shadow.request_bytes_max),
        ("shadow.response_bytes_max", shadow.response_bytes_max),
    ] {
        if bytes > SHADOW_BODY_BYTES_MAX {
            return refuse(key, size(bytes), format!("at most {}", size(SHADOW_BODY_BYTES_MAX)));
        }
    }
    let buffer = shadow.buffer_bytes_max;
    let least = shadow.request_bytes_max + shadow.response_bytes_max;
    if !(least..=SHADOW_BUFFER_BYTES_MAX).contains(&buffer) {
        let most = size(SHADOW_BUFFER_BYTES_MAX);
        let expected = format!("room for both bodies of one request, and at most {most}");
        return refuse("shadow.buffer_bytes_max", size(buffer), expected);
    }
    if shadow.spool_bytes_max < SPOOL_BYTES_MIN {
        let expected = format!("at least {}", format_size(SPOOL_BYTES_MIN));
        return refuse("shadow.spool_bytes_max", format_size(shadow.spool_bytes_max), expected);
    }
    let is_broker = |broker: &String| {
        let port = broker.rsplit_once(':').map(|(host, port)| (host, port.parse::<u16>()));
        matches!(port, Some((host, Ok(1..))) if !host.is_empty() && !broker.contains(','))
    };
    if let Some(broker) = config.kafka.brokers.iter().find(|broker| !is_broker(broker)) {
        return refuse("kafka.brokers", format_args!("{broker:?}"), "HOST:PORT");
    }
    if config.kafka.queue_bytes_max < shadow.record_bytes_max() {
        let expected = format!("room for one record, {}", size(shadow.record_bytes_max()));
        return refuse("kafka.queue_bytes_max", size(config.kafka.queue_bytes_max), expected);
    }
    Ok(())
}

fn size(bytes: usize) -> String {
    format_size(bytes as u64)
}
