//! The section `[facts]`.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use switchboard_shared::address::Address;

use super::units;

/// Where Facts are looked up, and how long a request waits for them.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Facts {
    /// Which kind of source.
    pub source: FactsSource,
    /// The cache's address: `HOST:PORT`, `[IPv6]:PORT` or `unix:/path`.
    pub address: String,
    /// The user of the cache's access list; empty: the default user.
    pub username: String,
    /// Holds the password; empty: see `password_env`.
    pub password_file: PathBuf,
    /// The environment variable that holds the password; empty: there is none.
    pub password_env: String,
    /// The number of the database.
    pub database: u16,
    /// Whether the cache is a Redis Cluster, of which `address` is any node.
    pub cluster: bool,
    /// The address of a read replica; empty: there is none.
    pub replica_address: String,
    /// Which of the two is asked first.
    pub read_from: ReadFrom,
    /// How long a lookup waits before the other one is asked, too; `None`: it is not.
    #[serde(with = "units::optional_duration")]
    pub hedge_after: Option<Duration>,
    /// At most so many lookups of a hundred ask twice.
    pub hedge_percent_max: u8,
    /// What one worker may keep of what the cache said; 0: nothing.
    #[serde(with = "units::size")]
    pub near_bytes_max: u64,
    /// How long a value is kept there.
    #[serde(with = "units::duration")]
    pub near_ttl: Duration,
    /// How long it is kept there that the cache has no value.
    #[serde(with = "units::duration")]
    pub near_absent_ttl: Duration,
    /// Whether the connection to the cache is encrypted.
    pub tls: bool,
    /// Certificates of whom signs the cache's own (PEM); empty: the system's.
    pub tls_ca_file: PathBuf,
    /// The name or address that the cache's certificate must be for; empty: the host of `address`.
    pub tls_server_name: String,
    /// Our own certificate, with those that lead to its root (PEM); empty: none is shown.
    pub tls_certificate_file: PathBuf,
    /// The key of our own certificate (PEM).
    pub tls_key_file: PathBuf,
    /// The file of JSON lines of the source `file`.
    pub file: PathBuf,
    /// How long a request waits at most.
    #[serde(with = "units::duration")]
    pub budget: Duration,
    /// From when on.
    pub budget_from: BudgetFrom,
    /// Late lookups in a row after which nobody waits until the cache is quick again.
    pub late_in_a_row_max: u32,
}

impl Facts {
    /// Whether one of the servers is on a Unix socket, and so has no host.
    pub(super) fn has_unix_socket(&self) -> bool {
        [&self.address, &self.replica_address]
            .into_iter()
            .any(|address| matches!(Address::parse(address), Ok(Address::Unix(_))))
    }
}

/// Which kind of source Facts come from.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FactsSource {
    /// None: an Arm that needs Facts falls out.
    Off,
    /// A Redis server, or what speaks its protocol.
    Redis,
    /// A file of JSON lines.
    File,
}

/// Which server is asked first, where there are two.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReadFrom {
    /// The one of `address`.
    Primary,
    /// The one of `replica_address`.
    Replica,
}

/// From when on the budget runs.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BudgetFrom {
    /// The moment of asking.
    Asking,
    /// The moment the request's head was complete.
    Head,
}

impl Default for Facts {
    fn default() -> Self {
        Self {
            source: FactsSource::Off,
            address: "127.0.0.1:6379".into(),
            username: String::new(),
            password_file: PathBuf::new(),
            password_env: String::new(),
            database: 0,
            cluster: false,
            replica_address: String::new(),
            read_from: ReadFrom::Primary,
            hedge_after: None,
            hedge_percent_max: 10,
            near_bytes_max: 0,
            near_ttl: Duration::from_secs(1),
            near_absent_ttl: Duration::from_secs(1),
            tls: false,
            tls_ca_file: PathBuf::new(),
            tls_server_name: String::new(),
            tls_certificate_file: PathBuf::new(),
            tls_key_file: PathBuf::new(),
            file: PathBuf::new(),
            budget: Duration::from_millis(10),
            // A client that sends its body slowly shall not lose its Facts for that.
            budget_from: BudgetFrom::Asking,
            late_in_a_row_max: 32,
        }
    }
}
