//! The HTTP server of a process: `/metrics`, `/live`, `/ready`, `/status`.
//!
//! It has a thread of its own with a single-threaded runtime: a worker that hangs cannot silence it, and it cannot slow
//! a worker. It only reads the board. It answers GET and HEAD, knows no other path, reads no bodies, and shuts down
//! when its handle is stopped or dropped. There is no authentication: the default address is loopback.

use std::net::{Ipv4Addr, SocketAddr};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::TelemetryError;
use crate::board::Board;
use crate::connection::{Connections, IDLE_TIMEOUT, MAX_CONNECTIONS};

/// Where to listen unless told otherwise: loopback, a free port.
pub const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// How often histogram samples are folded: at 10 commits a second, some 800 bytes a worker wait for it.
const UPKEEP: Duration = Duration::from_secs(5);

/// How long requests may still take when the server stops: a part of the 10 s that a drain has.
const STOP_WITHIN: Duration = Duration::from_secs(1);

/// A running server. Stops when dropped.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl HttpServer {
    /// Listens on an address (port 0: a free one) and serves the board.
    ///
    /// # Errors
    ///
    /// [`TelemetryError::Listen`] where the address is taken or not ours, [`TelemetryError::Thread`] where the system
    /// has no thread to give.
    pub fn start(listen: SocketAddr, board: Board) -> Result<Self, TelemetryError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(TelemetryError::Thread)?;
        let (listener, address) =
            bind(&runtime, listen).map_err(|source| TelemetryError::Listen { address: listen, source })?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("http".to_owned())
            .spawn(move || runtime.block_on(serve(listener, board, stopped)))
            .map_err(TelemetryError::Thread)?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// The address it listens on, with the port that was found.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Finishes the requests that are under way, for at most a second, and ends the thread.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the http thread ended in a panic");
        }
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.end();
    }
}

fn bind(runtime: &Runtime, listen: SocketAddr) -> std::io::Result<(TcpListener, SocketAddr)> {
    let listener = std::net::TcpListener::bind(listen)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let _inside = runtime.enter();
    Ok((TcpListener::from_std(listener)?, address))
}

async fn serve(listener: TcpListener, board: Board, stopped: oneshot::Receiver<()>) {
    let (close, closed) = oneshot::channel::<()>();
    let until_closed = async {
        // Either way it is over: nothing is ever sent, the other end is dropped.
        let _ = closed.await;
    };
    let connections = Connections::new(listener, MAX_CONNECTIONS, IDLE_TIMEOUT);
    let server = axum::serve(connections, router(board.clone())).with_graceful_shutdown(until_closed);
    let deadline = async {
        let _ = stopped.await;
        drop(close);
        sleep(STOP_WITHIN).await;
    };
    tokio::select! {
        result = server => {
            if let Err(error) = result {
                tracing::error!(%error, "the http server ended");
            }
        }
        () = deadline => {}
        () = upkeep(&board) => {}
    }
}

async fn upkeep(board: &Board) {
    let mut timer = interval(UPKEEP);
    timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        timer.tick().await;
        board.upkeep();
    }
}

fn router(board: Board) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/live", get(live))
        .route("/ready", get(ready))
        .route("/status", get(status))
        .fallback(not_found)
        .with_state(board)
}

const FRESH: (HeaderName, &str) = (header::CACHE_CONTROL, "no-store");

async fn metrics(State(board): State<Board>) -> Response {
    let format = (header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8");
    ([format, FRESH], board.metrics()).into_response()
}

async fn live() -> Response {
    ([FRESH], Json(json!({"live": true}))).into_response()
}

async fn ready(State(board): State<Board>) -> Response {
    match board.readiness() {
        Ok(()) => ([FRESH], Json(json!({"ready": true}))).into_response(),
        Err(reason) => {
            let body = json!({"ready": false, "reason": reason.to_string()});
            (StatusCode::SERVICE_UNAVAILABLE, [FRESH], Json(body)).into_response()
        }
    }
}

async fn status(State(board): State<Board>) -> Response {
    ([FRESH], Json(board.status())).into_response()
}

async fn not_found() -> Response {
    let body = json!({"error": "no such path; there are /metrics, /live, /ready and /status"});
    (StatusCode::NOT_FOUND, Json(body)).into_response()
}
