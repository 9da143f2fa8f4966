//! The reference of `router.toml`: `docs/router.toml.md` and `examples/router.toml` are written from it.
//!
//! Defaults come from [`Config::default`], so that they cannot go stale; tests hold both files and the
//! set of keys to it. To write the files anew: `UPDATE_REFERENCE=1 cargo test -p switchboard-router`.

use std::fmt::Write as _;

use toml::Value;

use super::Config;

/// One key of `router.toml`.
pub struct Key {
    /// Dotted path.
    pub path: &'static str,
    /// What its value counts, or what form it has.
    pub unit: &'static str,
    /// When a change takes effect.
    pub reloads: Reloads,
    /// What it does.
    pub text: &'static str,
}

/// When a change of a setting takes effect.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reloads {
    /// When the router is started again.
    AtRestart,
}

impl Reloads {
    fn text(self) -> &'static str {
        match self {
            Self::AtRestart => "at restart",
        }
    }
}

const fn key(path: &'static str, unit: &'static str, text: &'static str) -> Key {
    Key { path, unit, reloads: Reloads::AtRestart, text }
}

/// Every key, in the order of [`Config`].
pub const KEYS: &[Key] = &[
    key("group", "name", "Snapshots for another group of routers are refused."),
    key(
        "state_dir",
        "folder",
        "Holds the last good Snapshot and the highest version ever activated; created with mode 0700 if missing. One router per folder.",
    ),
    key(
        "trusted_keys",
        "files or keys",
        "Public keys whose Snapshots are accepted: keys as `switchboard-control keygen` prints them, or files with one key per line. Several, so that keys rotate.",
    ),
    key(
        "listen",
        "addresses",
        "Where clients connect: `HOST:PORT`, `[IPV6]:PORT` or `unix:/path`. Every worker opens each of them.",
    ),
    key(
        "admin.listen",
        "address",
        "Health, readiness, metrics and the running Snapshot. It has no authentication: keep it off public interfaces.",
    ),
    key(
        "cores.workers",
        "threads",
        "Network threads: a number, or `\"auto\"` for one on each usable core but one (at least one).",
    ),
    key("cores.pin", "true or false", "Whether each thread stays on its core."),
    key(
        "cores.core_list",
        "core numbers",
        "The cores to use, workers first and the housekeeping core last; empty: all that the process may use.",
    ),
    key("feed.name", "name", "What the router calls itself towards the control plane."),
    key(
        "feed.socket",
        "path",
        "Unix socket that the control plane pushes Snapshots to (mode 0600); its folder is created with mode 0700 if missing.",
    ),
    key(
        "feed.allowed_uids",
        "user ids",
        "Users that may push besides root and the router's own. If there are any, the socket has mode 0666 and the peer's credentials alone decide.",
    ),
    key(
        "limits.head_bytes_max",
        "size",
        "Request line and header fields together; more is answered with 431.",
    ),
    key("limits.target_bytes_max", "size", "The request target alone; more is answered with 414."),
    key(
        "limits.body_bytes_max",
        "size",
        "A request body, streamed or not; more is answered with 413. An Objective may set its own.",
    ),
    key(
        "limits.body_buffer_bytes_max",
        "size",
        "A request body that has to be held in memory to be read or edited; more is answered with 413.",
    ),
    key(
        "limits.connections_max",
        "connections",
        "Client connections of one worker (not of the whole router); further ones wait in the kernel's accept queue.",
    ),
    key(
        "clocks.head",
        "duration",
        "From a request's first byte to the end of its head; not reset by each byte. Late is answered with 408.",
    ),
    key("clocks.body_idle", "duration", "Longest gap between two pieces of the request body."),
    key("clocks.connect", "duration", "Connecting to one endpoint."),
    key("clocks.first_byte", "duration", "From the request's last byte to the response's first."),
    key(
        "clocks.response_idle",
        "duration",
        "Longest gap between two pieces of the response, in either direction. A stream may last as long as it keeps moving.",
    ),
    key(
        "clocks.total",
        "duration or \"off\"",
        "From the head to the response's last byte. Off, because it would cut healthy streams.",
    ),
    key(
        "clocks.keep_alive_idle",
        "duration",
        "How long a client's connection may wait for its next request.",
    ),
    key(
        "upstream.idle_per_endpoint_max",
        "connections",
        "Idle connections that one worker keeps per endpoint.",
    ),
    key(
        "upstream.idle",
        "duration",
        "How long an idle connection is kept. Keep it below the model server's own limit (uvicorn: 5s), or requests meet a closing connection.",
    ),
    key("upstream.age", "duration", "A connection older than this is closed after its request."),
    key(
        "facts.source",
        "\"off\", \"redis\" or \"file\"",
        "Where Facts are looked up. Off: an Arm that needs some answers with its Objective's default Arm, `facts_unavailable`.",
    ),
    key(
        "facts.address",
        "address",
        "Of the Redis server: `HOST:PORT`, `[IPV6]:PORT` or `unix:/path`; a host name is resolved again every 5s. Each worker has one connection.",
    ),
    key("facts.username", "name", "The user of the server's access list; empty: the default user."),
    key(
        "facts.password_file",
        "path",
        "Holds the password; empty: `facts.password_env` says. It is never logged or shown.",
    ),
    key(
        "facts.password_env",
        "name",
        "The environment variable that holds the password; empty: there is none.",
    ),
    key("facts.database", "number", "The database that is selected."),
    key(
        "facts.cluster",
        "true or false",
        "Whether the server is a Redis Cluster. `facts.address` is any of its nodes then; the others are found, and each worker has one connection to each.",
    ),
    key(
        "facts.replica_address",
        "address",
        "Of a read replica, in the forms of `facts.address`; empty: there is none. It is asked while the primary is away.",
    ),
    key(
        "facts.read_from",
        "\"primary\" or \"replica\"",
        "Which of the two is asked first; the other one stands in for it.",
    ),
    key(
        "facts.hedge_after",
        "duration or \"off\"",
        "A lookup that was not answered for so long is asked of the other server, too, and the first answer counts. Below `facts.budget`; somewhat above the server's 99th percentile is a good value.",
    ),
    key(
        "facts.hedge_percent_max",
        "percent",
        "At most so many of a worker's lookups ask twice, so that a slow server does not have its load doubled; 1 to 50.",
    ),
    key(
        "facts.near_bytes_max",
        "size",
        "What one worker keeps of what the server said, keys and overhead included; 0B: nothing, so that each request asks.",
    ),
    key(
        "facts.near_ttl",
        "duration",
        "How long a value is kept there; a Fact's `fresh_for` may shorten it.",
    ),
    key(
        "facts.near_absent_ttl",
        "duration",
        "How long it is kept there that the server has no value; 0s: not at all.",
    ),
    key(
        "facts.tls",
        "true or false",
        "Whether the connection to the server is encrypted (TLS 1.2 or 1.3). Its certificate is always checked.",
    ),
    key(
        "facts.tls_ca_file",
        "path",
        "PEM file with the certificates of whom signs the server's; empty: those that the system trusts.",
    ),
    key(
        "facts.tls_server_name",
        "name",
        "The DNS name or address that the server's certificate must be for; empty: the host of `facts.address`.",
    ),
    key(
        "facts.tls_certificate_file",
        "path",
        "PEM file with the router's own certificate and what leads to its root, for a server that asks for one; empty: none is shown.",
    ),
    key("facts.tls_key_file", "path", "PEM file with the key of that certificate."),
    key(
        "facts.file",
        "path",
        "For `source = \"file\"`: JSON lines such as `{\"key\": \"user:u1:country\", \"value\": \"DE\"}`, with a `\"field\"` for a hash's. Read again within a second of a change.",
    ),
    key(
        "facts.budget",
        "duration",
        "How long a request waits for its Facts at most, those of Rules and those of its Arm together; at most 1s. Late: the default Arm.",
    ),
    key(
        "facts.budget_from",
        "\"asking\" or \"head\"",
        "When the budget begins: when the Facts are asked for, or when the request's head was complete. Asking, because a client that sends its body slowly shall not lose its Facts for that.",
    ),
    key(
        "facts.late_in_a_row_max",
        "lookups",
        "So many late lookups in a row on one worker, and nobody waits any more until the server answers within the budget again.",
    ),
    key(
        "response_headers.decision",
        "true or false",
        "Adds `x-switchboard-objective`, `-experiment`, `-arm`, `-model`, `-snapshot`, `-reason` and, where the Arm needs Facts, `-facts` to responses.",
    ),
    key(
        "shadow.enabled",
        "true or false",
        "Whether there is a shadow core. Without one, requests that shadow targets draw are counted as `no_shadow_core` and not copied.",
    ),
    key(
        "shadow.exposures",
        "\"off\", \"hourly\" or \"all\"",
        "Whether it is recorded that a Unit met an Arm of an experiment: never, once an hour for each Arm, or at each request. See docs/shadow.md.",
    ),
    key("shadow.topic", "topic", "Kafka topic of the shadow records whose target names none."),
    key("shadow.exposure_topic", "topic", "Kafka topic of the Exposures."),
    key(
        "shadow.request_bytes_max",
        "size",
        "A request with a larger body is not copied, but counted as `too_large`. At most 2MiB.",
    ),
    key(
        "shadow.response_bytes_max",
        "size",
        "Of an answer's body no more is copied; the record says that it is cut. At most 2MiB.",
    ),
    key(
        "shadow.buffer_bytes_max",
        "size",
        "Bodies that one worker may hold as copies, in the making and on their way to the shadow core.",
    ),
    key(
        "shadow.spool_bytes_max",
        "size",
        "The spool's files in `state_dir/spool`; beyond, the oldest is dropped and its records are counted as `spool_full`. At least 16MiB.",
    ),
    key(
        "kafka.brokers",
        "addresses",
        "Brokers to begin with, as `HOST:PORT`; empty: the spool alone keeps the records.",
    ),
    key(
        "kafka.compression",
        "\"none\", \"gzip\", \"lz4\", \"snappy\" or \"zstd\"",
        "How batches are compressed.",
    ),
    key("kafka.linger", "duration", "How long a record waits for others of its batch."),
    key("kafka.batch_bytes_max", "size", "Of one batch of one partition."),
    key(
        "kafka.queue_bytes_max",
        "size",
        "Records that wait for the brokers in memory; beyond, the spool takes them.",
    ),
    key(
        "kafka.message_timeout",
        "duration",
        "After this a record that no broker confirmed goes to the spool.",
    ),
    key(
        "kafka.properties",
        "names and values",
        "Handed to librdkafka as they are, and win over the settings above: `[kafka.properties]` with `\"security.protocol\" = \"SASL_SSL\"` and the like.",
    ),
    key(
        "drain.wait",
        "duration",
        "After SIGTERM, from \"not ready\" until no new connection is accepted: the time a load balancer needs to notice.",
    ),
    key(
        "drain.max",
        "duration",
        "Then, how long running requests may take; what still runs is cut.",
    ),
];

/// `docs/router.toml.md`.
pub fn markdown() -> String {
    let mut page = String::from(
        "# router.toml\n\n\
        The static settings of `switchboard-router`. All of it is checked before anything is bound: an unknown\n\
        key, a wrong type or a contradiction is refused with file, line and column. Durations are whole numbers with\n\
        `us`, `ms`, `s`, `m` or `h`; sizes with `B`, `KiB`, `MiB`, `GiB` or `TiB` (powers of 1024).\n\n\
        `switchboard-router --print-example-config` prints the annotated example, `--check` checks a file. The flags\n\
        `--listen`, `--admin-listen`, `--workers`, `--socket`, `--trusted-key` and `--state-dir` win over the file.\n\n\
        This page is written from `router/src/config/reference.rs`.\n\n\
        | key | default | unit | takes effect | |\n|---|---|---|---|---|\n",
    );
    for (key, default) in with_defaults() {
        let Key { path, unit, text, .. } = key;
        let reloads = key.reloads.text();
        writeln!(page, "| `{path}` | `{default}` | {unit} | {reloads} | {text} |")
            .expect("writing into a String cannot fail");
    }
    page
}

/// `examples/router.toml`.
pub fn example() -> String {
    let mut page = String::from(
        "# Every setting of switchboard-router at its default: deleting a line changes nothing.\n\
        # Above each: what it does (unit; when a change takes effect). See docs/router.toml.md.\n",
    );
    let mut section = "";
    for (key, default) in with_defaults() {
        let (table, name) = key.path.split_once('.').unwrap_or(("", key.path));
        if table != section {
            write!(page, "\n[{table}]").expect("writing into a String cannot fail");
            section = table;
        }
        let (text, unit, reloads) = (key.text, key.unit, key.reloads.text());
        writeln!(page, "\n# {text} ({unit}; {reloads})\n{name} = {default}")
            .expect("writing into a String cannot fail");
    }
    page
}

/// Each key with its default, written as TOML.
fn with_defaults() -> impl Iterator<Item = (&'static Key, Value)> {
    let defaults = Value::try_from(Config::default()).expect("every setting can be written");
    KEYS.iter().map(move |key| {
        let value = key.path.split('.').try_fold(&defaults, |table, name| table.get(name));
        (key, value.expect("a test holds KEYS to the fields of Config").clone())
    })
}
