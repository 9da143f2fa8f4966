//! What all cores share of the source of Facts: where it is, who we are there, and, for a file, its values.
//!
//! Nothing here changes on a request's way: a thread of its own reads a changed file or resolves a host name
//! again, and publishes the result.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use arc_swap::{ArcSwap, ArcSwapOption};
use switchboard_shared::address::Address;

use super::file::{FileError, Table};
use super::secret::{Secret, SecretError};
use super::tls::{Connector, TlsError};
use crate::active::EndpointAddress;
use crate::config::{Facts as Settings, FactsSource};
use crate::limits::{FACTS_FILE_LOOK_EVERY, FACTS_NAME_LOOK_EVERY};
use crate::log::{self, Chain};

/// The source, as it was configured.
pub struct Supply {
    settings: Settings,
    secret: Option<Secret>,
    connector: Option<Connector>,
    primary: ArcSwapOption<EndpointAddress>,
    replica: ArcSwapOption<EndpointAddress>,
    table: ArcSwap<Table>,
    /// Whether the last that was logged is that the cache is up.
    is_reported_up: AtomicBool,
    is_reported_down: AtomicBool,
}

/// One of the cache's servers.
#[derive(Clone, Debug)]
pub enum Server {
    /// The one of `facts.address`; of a cluster, any node.
    Primary,
    /// The one of `facts.replica_address`.
    Replica,
    /// A node of a cluster.
    Node {
        /// Where it is.
        address: SocketAddr,
        /// What the cluster calls its host.
        host: Rc<str>,
    },
}

impl Server {
    /// What a node's host is called; of the others, the settings know it.
    pub fn host(&self) -> &str {
        match self {
            Self::Node { host, .. } => host,
            Self::Primary | Self::Replica => "",
        }
    }
}

/// Why the source cannot be used. The router does not start.
#[derive(Debug, thiserror::Error)]
pub enum SupplyError {
    /// The password.
    #[error("facts.password_file or facts.password_env")]
    Secret(#[from] SecretError),
    /// Certificates.
    #[error("facts.tls")]
    Tls(#[from] TlsError),
    /// The file.
    #[error("facts.file {}", path.display())]
    File {
        /// Which one.
        path: std::path::PathBuf,
        /// What is wrong with it.
        #[source]
        source: FileError,
    },
    /// No thread.
    #[error("cannot start a thread for Facts")]
    Thread(#[source] std::io::Error),
}

impl Supply {
    /// Reads what the settings name. `None`: there is no source.
    ///
    /// # Errors
    /// See [`SupplyError`]. A cache that is away is none: it is tried again.
    pub fn open(settings: &Settings) -> Result<Option<Arc<Self>>, SupplyError> {
        let table = match settings.source {
            FactsSource::Off => return Ok(None),
            FactsSource::Redis => Table::default(),
            FactsSource::File => Table::read(&settings.file)
                .map_err(|source| SupplyError::File { path: settings.file.clone(), source })?,
        };
        let supply = Arc::new(Self {
            secret: Secret::read(&settings.password_file, &settings.password_env)?,
            connector: Connector::open(settings)?,
            primary: ArcSwapOption::empty(),
            replica: ArcSwapOption::empty(),
            table: ArcSwap::from_pointee(table),
            settings: settings.clone(),
            is_reported_up: AtomicBool::new(false),
            is_reported_down: AtomicBool::new(false),
        });
        supply.resolve();
        supply.follow()?;
        Ok(Some(supply))
    }

    /// Which kind of source it is.
    pub fn source(&self) -> FactsSource {
        self.settings.source
    }

    /// Where a server is, as far as it is known.
    pub fn address(&self, server: &Server) -> Option<Arc<EndpointAddress>> {
        match server {
            Server::Primary => self.primary.load_full(),
            Server::Replica => self.replica.load_full(),
            Server::Node { address, .. } => Some(Arc::new(EndpointAddress::Tcp(*address))),
        }
    }

    /// The host of a server, for which its certificate must be; empty for a Unix socket.
    pub(super) fn host(&self, server: &Server) -> String {
        let address = match server {
            Server::Primary => &self.settings.address,
            Server::Replica => &self.settings.replica_address,
            Server::Node { host, .. } => return host.to_string(),
        };
        match Address::parse(address) {
            Ok(Address::Socket(address)) => address.ip().to_string(),
            Ok(Address::Host { name, .. }) => name.to_owned(),
            Ok(Address::Unix(_)) | Err(_) => String::new(),
        }
    }

    /// The values of the file.
    pub fn table(&self) -> arc_swap::Guard<Arc<Table>> {
        self.table.load()
    }

    /// How long a request waits for its Facts.
    pub fn budget(&self) -> Duration {
        self.settings.budget
    }

    /// Lookups in a row that may be late before nobody waits any more.
    pub fn late_max(&self) -> u32 {
        self.settings.late_in_a_row_max
    }

    /// The password.
    pub(super) fn secret(&self) -> Option<&Secret> {
        self.secret.as_ref()
    }

    /// Whom the cache has to be; `None`: the connection is not encrypted.
    pub(super) fn connector(&self) -> Option<&Connector> {
        self.connector.as_ref()
    }

    /// The user of the cache's access list; empty: the default user.
    pub(super) fn username(&self) -> &str {
        &self.settings.username
    }

    /// The number of the database.
    pub(super) fn database(&self) -> u16 {
        self.settings.database
    }

    /// Says once that the cache is away, whichever core finds it first.
    pub(super) fn report(&self, error: &dyn std::error::Error) {
        self.is_reported_up.store(false, Ordering::Relaxed);
        if !self.is_reported_down.swap(true, Ordering::Relaxed) {
            log::warn("facts_down", &[("error", &Chain(error))]);
        }
    }

    /// Says once that it is there.
    pub(super) fn report_up(&self) {
        self.is_reported_down.store(false, Ordering::Relaxed);
        if !self.is_reported_up.swap(true, Ordering::Relaxed) {
            log::info("facts_up", &[("address", &self.settings.address)]);
        }
    }

    /// Looks the addresses up. What a name stood for stays where it has no address now.
    fn resolve(&self) {
        if self.settings.source != FactsSource::Redis {
            return;
        }
        let Settings { address, replica_address, .. } = &self.settings;
        for (text, place) in [(address, &self.primary), (replica_address, &self.replica)] {
            if let Some(found) = resolved(text) {
                place.store(Some(Arc::new(found)));
            }
        }
    }

    fn follow(self: &Arc<Self>) -> Result<(), SupplyError> {
        let Settings { address, replica_address, .. } = &self.settings;
        let is_name = [address, replica_address]
            .into_iter()
            .any(|address| matches!(Address::parse(address), Ok(Address::Host { .. })));
        let supply = Arc::downgrade(self);
        let path = self.settings.file.clone();
        let thread = std::thread::Builder::new().name("facts".into());
        let started = match self.settings.source {
            FactsSource::File => thread.spawn(move || follow_file(&supply, &path)),
            FactsSource::Redis if is_name => thread.spawn(move || follow_name(&supply)),
            FactsSource::Redis | FactsSource::Off => return Ok(()),
        };
        started.map(drop).map_err(SupplyError::Thread)
    }
}

fn resolved(address: &str) -> Option<EndpointAddress> {
    match Address::parse(address) {
        Ok(Address::Socket(address)) => Some(EndpointAddress::Tcp(address)),
        Ok(Address::Unix(path)) => Some(EndpointAddress::Unix(path.into())),
        Ok(Address::Host { name, port }) => {
            let addresses = (name, port).to_socket_addrs().ok();
            addresses.and_then(|mut all| all.next()).map(EndpointAddress::Tcp)
        }
        Err(_) => None, // the settings were checked; empty: there is no replica
    }
}

fn follow_name(supply: &Weak<Supply>) {
    while let Some(supply) = supply.upgrade() {
        supply.resolve();
        drop(supply);
        std::thread::park_timeout(FACTS_NAME_LOOK_EVERY);
    }
}

/// Reads a file again when it is another one, or has another length or time. A bad one changes nothing.
fn follow_file(supply: &Weak<Supply>, path: &Path) {
    let look = || -> Option<(u64, SystemTime)> {
        let about = std::fs::metadata(path).ok()?;
        Some((about.len(), about.modified().ok()?))
    };
    let mut seen = look();
    loop {
        std::thread::park_timeout(FACTS_FILE_LOOK_EVERY);
        let Some(supply) = supply.upgrade() else { return };
        let now = look();
        if now == seen {
            continue;
        }
        seen = now;
        match Table::read(path) {
            Ok(table) => {
                log::info("facts_file_read", &[("values", &table.len())]);
                supply.table.store(Arc::new(table));
            }
            Err(error) => log::warn("facts_file_refused", &[("error", &Chain(&error))]),
        }
    }
}
