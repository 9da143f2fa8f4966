//! The section `[facts]`.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

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
