//! TLS to the cache: rustls keeps the secrets and the records, the core's own ring moves the bytes.

use std::cell::RefCell;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::config::Facts as Settings;
use crate::net::buffer::Buffer;

/// Whom a server has to be, and who we are: shared by all connections of all cores.
pub(super) struct Connector {
    config: Arc<ClientConfig>,
    /// `None`: the host that is connected to.
    name: Option<ServerName<'static>>,
}

/// Why there can be no TLS with these settings. The router does not start.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file of certificates or the key.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: pem::Error,
    },
    /// A file without a certificate.
    #[error("{} holds no certificate", path.display())]
    Empty {
        /// Which one.
        path: PathBuf,
    },
    /// No `tls_ca_file`, and the system has no certificates either.
    #[error("the system has no root certificates: facts.tls_ca_file names some")]
    NoRoots,
    /// The name that the server's certificate must have.
    #[error("facts.tls_server_name")]
    Name(#[source] InvalidDnsNameError),
    /// The certificates do not fit each other.
    #[error("the certificates cannot be used")]
    Unusable(#[source] rustls::Error),
}

impl Connector {
    /// Reads what the settings name. `None`: the connection is not to be encrypted.
    ///
    /// # Errors
    /// See [`TlsError`].
    pub(super) fn open(settings: &Settings) -> Result<Option<Self>, TlsError> {
        if !settings.tls {
            return Ok(None);
        }
        let unusable = TlsError::Unusable;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_root_certificates(roots(&settings.tls_ca_file)?);
        let config = if settings.tls_certificate_file.as_os_str().is_empty() {
            builder.with_no_client_auth()
        } else {
            let chain = certificates(&settings.tls_certificate_file)?;
            let path = &settings.tls_key_file;
            let key = PrivateKeyDer::from_pem_file(path)
                .map_err(|source| TlsError::Read { path: path.clone(), source })?;
            builder.with_client_auth_cert(chain, key).map_err(unusable)?
        };
        let name = Some(settings.tls_server_name.clone()).filter(|name| !name.is_empty());
        let name = name.map(ServerName::try_from).transpose().map_err(TlsError::Name)?;
        Ok(Some(Self { config: Arc::new(config), name }))
    }

    /// A session with a server on `host`, whose first message is ready to be sent.
    ///
    /// # Errors
    /// No random numbers, or a host that no certificate can be for.
    pub(super) fn begin(&self, host: &str) -> Result<Tls, rustls::Error> {
        let name = match &self.name {
            Some(name) => name.clone(),
            None => ServerName::try_from(host.to_owned())
                .map_err(|error| rustls::Error::General(error.to_string()))?,
        };
        let mut session = ClientConnection::new(Arc::clone(&self.config), name)?;
        // What waits to be sent is bounded already, and is handed over as it comes.
        session.set_buffer_limit(None);
        Ok(Tls { session: RefCell::new(session) })
    }
}

fn roots(file: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    if file.as_os_str().is_empty() {
        // Single certificates that cannot be read are no reason to refuse the others.
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        return if roots.is_empty() { Err(TlsError::NoRoots) } else { Ok(roots) };
    }
    for certificate in certificates(file)? {
        roots.add(certificate).map_err(TlsError::Unusable)?;
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let failed = |source| TlsError::Read { path: path.to_owned(), source };
    let found = CertificateDer::pem_file_iter(path).map_err(failed)?;
    let found: Vec<_> = found.collect::<Result<_, _>>().map_err(failed)?;
    if found.is_empty() {
        return Err(TlsError::Empty { path: path.to_owned() });
    }
    Ok(found)
}

/// One connection's session. Both directions use it, and nothing of it waits.
pub(super) struct Tls {
    session: RefCell<ClientConnection>,
}

/// What a read was, once it was decrypted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Opened {
    /// More may follow.
    Open,
    /// The peer said that nothing follows.
    Closed,
}

impl Tls {
    /// Takes all of `sealed` and appends what it says to `plain`.
    ///
    /// # Errors
    /// A certificate that is not the server's, bytes that are no TLS, or that somebody changed: the connection must end.
    pub(super) fn open(
        &self,
        sealed: &mut Buffer,
        plain: &mut Buffer,
    ) -> Result<Opened, rustls::Error> {
        let mut session = self.session.borrow_mut();
        loop {
            let mut rest = sealed.filled();
            if !rest.is_empty() {
                let read = session.read_tls(&mut rest);
                read.map_err(|error| rustls::Error::General(error.to_string()))?;
            }
            let taken = sealed.len() - rest.len();
            sealed.consume(taken);
            let state = session.process_new_packets()?;
            let count = state.plaintext_bytes_to_read();
            if count > 0 {
                plain.reserve(count);
                let read = session.reader().take(count as u64).read_to_end(plain.tail());
                read.map_err(|error| rustls::Error::General(error.to_string()))?;
            }
            if state.peer_has_closed() {
                return Ok(Opened::Closed);
            }
            if sealed.is_empty() {
                return Ok(Opened::Open);
            }
            if taken == 0 && count == 0 {
                return Err(rustls::Error::General("a record is too long".into()));
            }
        }
    }

    /// Appends `plain` to `sealed`, encrypted, behind what the session itself has to say.
    ///
    /// # Errors
    /// The session is over.
    pub(super) fn seal(&self, plain: &[u8], sealed: &mut Buffer) -> std::io::Result<()> {
        let mut session = self.session.borrow_mut();
        session.writer().write_all(plain)?;
        while session.wants_write() {
            session.write_tls(sealed.tail())?;
        }
        Ok(())
    }

    /// Whether the session itself has something to say, such as new keys.
    pub(super) fn has_outgoing(&self) -> bool {
        self.session.borrow().wants_write()
    }

    /// Whether the two have not agreed yet.
    pub(super) fn is_handshaking(&self) -> bool {
        self.session.borrow().is_handshaking()
    }
}
