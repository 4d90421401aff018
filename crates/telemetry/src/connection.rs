//! Connections of the HTTP server, with limits: so many at once, and none that is silent for long.
//!
//! A peer that opens connections and sends nothing, or stops in the middle, would hold a file and a task for ever. More
//! peers than [`MAX_CONNECTIONS`] wait in the system's queue. A scraper that finds its connection closed opens another.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};

/// Connections at once: a few scrapers, probes and people, far below the usual limit of 1024 files.
pub(crate) const MAX_CONNECTIONS: usize = 64;

/// How long a connection may neither send nor take a byte: twice the usual scrape interval of 15 s.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// A listener that keeps to the limits.
pub(crate) struct Connections {
    listener: TcpListener,
    free: Arc<Semaphore>,
    idle_timeout: Duration,
}

impl Connections {
    /// Takes connections from this listener.
    pub(crate) fn new(listener: TcpListener, limit: usize, idle_timeout: Duration) -> Self {
        Self { listener, free: Arc::new(Semaphore::new(limit)), idle_timeout }
    }
}

impl Listener for Connections {
    type Io = Connection<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        // Never closed, so it never fails.
        let permit = Arc::clone(&self.free).acquire_owned().await.ok();
        let (stream, address) = Listener::accept(&mut self.listener).await;
        (Connection::new(stream, self.idle_timeout, permit), address)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// A stream that fails with [`io::ErrorKind::TimedOut`] after a silence, and gives its permit back at its end.
pub(crate) struct Connection<S> {
    stream: S,
    idle_timeout: Duration,
    deadline: Pin<Box<Sleep>>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl<S> Connection<S> {
    fn new(stream: S, idle_timeout: Duration, permit: Option<OwnedSemaphorePermit>) -> Self {
        Self { stream, idle_timeout, deadline: Box::pin(sleep(idle_timeout)), _permit: permit }
    }

    /// Passes on what the stream says; where it says "wait", waits no longer than the deadline.
    fn watch<T>(&mut self, context: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.deadline.as_mut().reset(Instant::now() + self.idle_timeout);
            return polled;
        }
        ready!(self.deadline.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Connection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.watch(context, polled)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(context);
        self.watch(context, polled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const SHORT: Duration = Duration::from_millis(50);

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { tokio::time::timeout(Duration::from_secs(20), test).await.unwrap() });
    }

    async fn connections(limit: usize) -> (Connections, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (Connections::new(listener, limit, SHORT), address)
    }

    #[test]
    fn a_silent_peer_is_let_go() {
        run(async {
            let (mut connections, address) = connections(1).await;
            let mut peer = TcpStream::connect(address).await.unwrap();
            let (mut served, _) = connections.accept().await;
            peer.write_all(b"GET").await.unwrap();
            let mut bytes = [0; 8];
            assert_eq!(served.read(&mut bytes).await.unwrap(), 3);
            let error = served.read(&mut bytes).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        });
    }

    #[test]
    fn a_peer_that_takes_nothing_is_let_go() {
        run(async {
            let (mut connections, address) = connections(1).await;
            let _peer = TcpStream::connect(address).await.unwrap();
            let (mut served, _) = connections.accept().await;
            let error = loop {
                if let Err(error) = served.write_all(&[0; 65_536]).await {
                    break error;
                }
            };
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        });
    }

    #[test]
    fn a_connection_beyond_the_limit_waits_for_the_end_of_another() {
        run(async {
            let (mut connections, address) = connections(1).await;
            let _peers =
                (TcpStream::connect(address).await.unwrap(), TcpStream::connect(address).await.unwrap());
            let (first, _) = connections.accept().await;
            assert!(tokio::time::timeout(SHORT, connections.accept()).await.is_err());
            drop(first);
            connections.accept().await;
        });
    }
}
