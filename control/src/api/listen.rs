//! The listener: bounded in connections, and in how long a head may take.

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::{ConnectInfo, Request},
};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    task::JoinSet,
    time::{sleep, timeout},
};
use tower_service::Service as _;

/// Connections at once: some people, some pipelines and some dashboards.
const CONNECTIONS_MAX: usize = 256;
/// From connecting, or from the last answer, to a whole head.
const HEAD_TIME_MAX: Duration = Duration::from_secs(15);
/// How long answers may take once the server is told to stop.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(5);

/// A bound address.
#[derive(Debug)]
pub struct ApiListener {
    listener: TcpListener,
    address: SocketAddr,
}

/// Why the API cannot listen.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}")]
pub struct ListenError {
    address: SocketAddr,
    #[source]
    source: io::Error,
}

impl ApiListener {
    /// Binds an address; port 0 takes a free one.
    ///
    /// # Errors
    /// The address is taken, or is not ours.
    pub async fn bind(address: SocketAddr) -> Result<Self, ListenError> {
        let error = |source| ListenError { address, source };
        let listener = TcpListener::bind(address).await.map_err(error)?;
        let address = listener.local_addr().map_err(error)?;
        Ok(Self { listener, address })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` says so; then lets answers finish that have begun.
    pub async fn serve(self, router: Router, mut stop: watch::Receiver<bool>) {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut connections = JoinSet::new();
        while !*stop.borrow_and_update() {
            // A place first: those who wait for one wait in the kernel.
            let place = tokio::select! {
                Ok(place) = Arc::clone(&places).acquire_owned() => place,
                _ = stop.changed() => continue,
            };
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                _ = stop.changed() => continue,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let (router, stop) = (router.clone(), stop.clone());
                    connections.spawn(async move {
                        serve(stream, peer, router, stop).await;
                        drop(place);
                    });
                }
                Err(error) => {
                    // Out of file descriptors, most likely: it passes, or it shows.
                    tracing::warn!(%error, "cannot accept");
                    sleep(Duration::from_millis(100)).await;
                }
            }
            while connections.try_join_next().is_some() {}
        }
        drop(self.listener);
        let drained =
            timeout(DRAIN_TIME_MAX, async { while connections.join_next().await.is_some() {} });
        if drained.await.is_err() {
            tracing::warn!("answers did not finish within {DRAIN_TIME_MAX:?}");
        }
    }
}

async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    mut stop: watch::Receiver<bool>,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let mut router = router.clone();
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        async move {
            let Ok(response) = router.call(request).await;
            Ok::<_, Infallible>(response)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let stopped = async move {
        // Ends too where the sender is gone.
        drop(stop.wait_for(|stop| *stop).await);
    };
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = stopped => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "connection ended");
    }
}
