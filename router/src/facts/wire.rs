//! One connection to a cache while only its owner uses it: connected, encrypted, and asked one thing after another.

use std::io;
use std::net::IpAddr;
use std::time::Instant;

use super::reply;
use super::resp::{self, NoResp, Reply};
use super::supply::{Server, Supply};
use super::tls::{Connector, Opened, Tls};
use crate::active::EndpointAddress;
use crate::limits::{FACT_GREETING_SPAN, FACT_REPLY_LINE_BYTES_MAX};
use crate::net::buffer::Buffer;
use crate::net::stream::{self, Shut, Stream};
use crate::net::{clock, task};

/// A connection, its session, and what it said.
pub(super) struct Wire {
    pub(super) stream: Stream,
    pub(super) tls: Option<Tls>,
    peer: Option<IpAddr>,
    input: Buffer,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum WireError {
    #[error("cannot connect to the cache")]
    Connect(#[source] io::Error),
    #[error("no TLS with the cache")]
    Tls(#[source] rustls::Error),
    #[error("the cache does not answer")]
    Silent,
    #[error("the cache ended the connection")]
    Closed,
    #[error(transparent)]
    NoResp(#[from] NoResp),
    #[error("the cache refused {step}")]
    Refused { step: &'static str },
}

impl Wire {
    /// Connects, with TLS where that is wanted, shows who we are, and selects the database. Each step takes no longer than
    /// `FACT_GREETING_SPAN`.
    pub(super) async fn open(supply: &Supply, server: &Server) -> Result<Self, WireError> {
        let address = supply.address(server).ok_or_else(|| {
            WireError::Connect(io::Error::new(io::ErrorKind::NotFound, "its name has no address"))
        })?;
        let connected = clock::within(FACT_GREETING_SPAN, Stream::connect(&address)).await;
        let stream = connected.ok_or(WireError::Silent)?.map_err(WireError::Connect)?;
        let begin = |connector: &Connector| connector.begin(&supply.host(server));
        let tls = supply.connector().map(begin).transpose().map_err(WireError::Tls)?;
        let peer = match &*address {
            EndpointAddress::Tcp(address) => Some(address.ip()),
            EndpointAddress::Unix(_) => None,
        };
        let mut wire = Self { stream, tls, peer, input: Buffer::default() };
        wire.shake_hands().await?;
        if let Some(secret) = supply.secret() {
            let (name, secret): (&[u8], _) = (supply.username().as_bytes(), secret.reveal());
            let long: &[&[&[u8]]] = &[&[b"AUTH"], &[name], &[secret]];
            let short: &[&[&[u8]]] = &[&[b"AUTH"], &[secret]];
            let command = if name.is_empty() { short } else { long };
            wire.exchange(command, b"OK", "the user and password").await?;
        }
        if supply.database() != 0 {
            let database = supply.database().to_string();
            wire.exchange(&[&[b"SELECT"], &[database.as_bytes()]], b"OK", "the database").await?;
        }
        Ok(wire)
    }

    async fn shake_hands(&mut self) -> Result<(), WireError> {
        let deadline = clock::now() + FACT_GREETING_SPAN;
        while self.tls.as_ref().is_some_and(Tls::is_handshaking) {
            self.say(&[]).await?;
            if let Err(error) = self.hear(deadline).await {
                let _alert = self.say(&[]).await; // it tells the other side why
                return Err(error);
            }
        }
        Ok(())
    }

    /// The address of the other side, if it has one.
    pub(super) fn peer(&self) -> Option<IpAddr> {
        self.peer
    }

    /// One command and its reply, whatever its shape, but no error.
    pub(super) async fn request(
        &mut self,
        command: &[&[&[u8]]],
        step: &'static str,
    ) -> Result<reply::Reply<'_>, WireError> {
        self.ask(command).await?;
        let deadline = clock::now() + FACT_GREETING_SPAN;
        while reply::read(self.input.filled())?.is_none() {
            self.hear(deadline).await?;
        }
        match reply::read(self.input.filled())? {
            Some((reply::Reply::Error(_), _)) => Err(WireError::Refused { step }),
            Some((reply, _)) => Ok(reply),
            None => Err(WireError::Closed),
        }
    }

    /// One command and its reply, which has to be as expected.
    pub(super) async fn exchange(
        &mut self,
        command: &[&[&[u8]]],
        expected: &[u8],
        step: &'static str,
    ) -> Result<(), WireError> {
        self.ask(command).await?;
        let deadline = clock::now() + FACT_GREETING_SPAN;
        loop {
            if let Some((reply, taken)) = resp::read(self.input.filled(), 0, 0)? {
                let is_it = matches!(reply, Reply::Status(text) if text == expected);
                self.input.consume(taken);
                return if is_it { Ok(()) } else { Err(WireError::Refused { step }) };
            }
            self.hear(deadline).await?;
        }
    }

    /// Whether it said more than it was asked for.
    pub(super) fn has_more(&self) -> bool {
        !self.input.is_empty()
    }

    async fn ask(&mut self, command: &[&[&[u8]]]) -> Result<(), WireError> {
        let mut bytes = Vec::new();
        resp::write(&mut bytes, command);
        self.say(&bytes).await
    }

    async fn say(&mut self, plain: &[u8]) -> Result<(), WireError> {
        let mut outgoing = Buffer::default();
        match &self.tls {
            Some(tls) => tls.seal(plain, &mut outgoing).map_err(WireError::Connect)?,
            None => outgoing.extend(plain),
        }
        let (result, _) = self.stream.writer.write_all(outgoing).await;
        result.map_err(|fault| WireError::Connect(fault.error))
    }

    /// Waits for something to come in.
    async fn hear(&mut self, deadline: Instant) -> Result<(), WireError> {
        let mut input = std::mem::take(&mut self.input);
        if self.tls.is_some() {
            // What is decrypted already stays, what comes is read beside it.
            self.input = std::mem::take(&mut input);
        }
        input.reserve(FACT_REPLY_LINE_BYTES_MAX);
        let left = deadline.saturating_duration_since(clock::now());
        let fd = self.stream.fd();
        // The read is never dropped: the clock shuts the socket, and the read completes.
        let read = self.stream.reader.read(input);
        let (result, mut input) =
            task::with_alarm(left, || stream::shut(fd, Shut::Both), read).await;
        match result {
            Ok(1..) => {}
            Ok(0) if clock::now() >= deadline => return Err(WireError::Silent),
            Ok(0) => return Err(WireError::Closed),
            Err(error) => return Err(WireError::Connect(error)),
        }
        match &self.tls {
            None => self.input = input,
            Some(tls) => match tls.open(&mut input, &mut self.input).map_err(WireError::Tls)? {
                Opened::Open => {}
                Opened::Closed => return Err(WireError::Closed),
            },
        }
        Ok(())
    }
}
