//! The admin endpoint: HTTP/1.1 on a separate Unix socket or TCP address, used by `howdah status`, `reload` and `stop`,
//! by scrapers and by health checks.
//!
//! `GET /status` (JSON), `GET /metrics` (Prometheus text), `GET /health` (200 while every pool can serve, else 503),
//! `GET /livez`, `GET /readyz`, requests about one pool (`pools`; its pages over FastCGI too, `fastcgi`), `POST /stop`,
//! other orders (`orders`); FrankenPHP's paths are in `frankenphp`.
//! Clients can stop the server, so by default only the user that starts it and root can access the socket file, and
//! `guard` checks connections, and requests other than `/livez` and `/readyz`.

mod fastcgi;
mod frankenphp;
mod guard;
mod orders;
mod pools;
mod profile;

use crate::control::outcome::{json, outcome, text};
use crate::server::admin::guard::{DASHBOARD, Guard, RESTORE};
use crate::server::certificates;
use crate::server::identity;
use crate::server::orders::Order;
use crate::server::pools::Pools;
use crate::server::reload::Server;
use crate::server::upgrade::TakeOver;
use anyhow::{Context, Result, anyhow, bail};
use bytes::Bytes;
use howdah_config::{ListenAddr, MissingDirectory, Settings, SocketPlace};
use howdah_observe::metrics::Format;
use howdah_observe::{BOUNDS_US, LogThrottle, Metrics, RequestMetrics, UpstreamMetrics};
use howdah_pool::{Durations, Pool, PoolStatus, processor_time};
use howdah_protocol::inherited::InheritedSockets;
use howdah_protocol::unix_socket::{self, UnixAccess};
use howdah_site::mercure::HubUsage;
use howdah_tls::acme::{NameReport, Report};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::ACCEPT;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::Cursor;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{mpsc, oneshot, watch};

/// Length of the accept queue.
const BACKLOG: i32 = 128;

/// When descriptors run out, accepting fails ten times a second; this limits the log lines.
static NO_DESCRIPTORS: LogThrottle = LogThrottle::new(Duration::from_secs(10));

/// Maximum time for running admin requests to finish once the server has stopped serving other clients.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Known paths, listed in responses to requests for unknown ones.
const PATHS: &str = "GET /status, /metrics, /health, /livez, /readyz, /dashboard, /pools/NAME/status; \
    POST /reload, /stop, /upgrade, /routes/restore, /pools/NAME/reload, /pools/NAME/profile, /pools/NAME/workers/NUMBER/drain";

/// `GET /status`.
#[derive(Debug, Serialize)]
struct Status {
    version: &'static str,
    pid: u32,
    uptime_s: u64,
    /// Listening addresses, as written in the settings.
    listen: Vec<String>,
    /// `true` if the server is ready for requests; otherwise `not_ready` has the reason.
    ready: bool,
    not_ready: Option<String>,
    /// `true` if the dashboard may give orders.
    dashboard_orders: bool,
    connections: Connections,
    budgets: Vec<BudgetStatus>,
    /// Lines lost because the log could not be written, or not fast enough.
    error_log_dropped: u64,
    access_log_dropped: u64,
    slow_log_dropped: u64,
    /// Certificates that the server obtained or created.
    certificates: Vec<NameReport>,
    /// Upper bounds of the buckets of all duration histograms, in microseconds.
    duration_bounds_us: &'static [u64],
    /// Durations of all requests, from the end of the request header to the end of the response.
    requests: Durations,
    routes: Vec<RouteStatus>,
    pools: Vec<PoolStatus>,
    upstreams: Vec<UpstreamStatus>,
    /// Hubs with WebSocket connections or Mercure subscribers.
    hubs: Vec<HubUsage>,
}

/// Requests to a route of a site. An empty name stands for requests that match no route.
#[derive(Debug, Serialize)]
struct RouteStatus {
    site: String,
    route: String,
    /// Number of requests by status class.
    status: BTreeMap<&'static str, u64>,
    sent_bytes: u64,
    requests: Durations,
}

/// Client connections.
#[derive(Debug, Serialize)]
struct Connections {
    open: i64,
    /// Connections closed to make room for others.
    displaced: u64,
    /// Connections upgraded to another protocol.
    upgraded: i64,
}

/// A server of a proxy.
#[derive(Debug, Serialize)]
struct UpstreamStatus {
    proxy: String,
    server: String,
    up: bool,
    active: i64,
    requests: u64,
    connections: u64,
    failures: u64,
}

/// Usage of a budget.
#[derive(Debug, Serialize)]
struct BudgetStatus {
    name: &'static str,
    used: u64,
    limit: u64,
    refused: u64,
}

struct State {
    guard: Guard,
    dashboard_orders: bool,
    server: Arc<Server>,
    metrics: Arc<Metrics>,
    certificates: Arc<Report>,
    orders: mpsc::Sender<Order>,
    started: Instant,
}

/// Handle to the running endpoint.
pub(crate) struct Admin {
    end: watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
    /// Closes when the last running response has ended.
    responding: mpsc::Receiver<Infallible>,
}

impl Admin {
    /// Stops accepting and lets running responses finish, for up to `DRAIN_TIMEOUT`: some of them report the end of the
    /// server.
    pub(crate) async fn end(mut self) {
        let _ = self.end.send(true);
        let _ = self.task.await;
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, self.responding.recv()).await;
    }
}

/// The bound endpoint, before it can respond.
pub(crate) enum Socket {
    /// On an address.
    Tcp(std::net::TcpListener),
    /// At a path.
    Unix(std::os::unix::net::UnixListener),
}

impl Socket {
    /// Duplicates the descriptor, for the process that replaces this one.
    pub(crate) fn handle(&self) -> std::io::Result<OwnedFd> {
        Ok(match self {
            Self::Tcp(listener) => listener.try_clone()?.into(),
            Self::Unix(listener) => listener.try_clone()?.into(),
        })
    }
}

/// The endpoint, registered with a runtime.
enum Listening {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// Binds the endpoint, or takes over an inherited socket.
pub(crate) fn bind(settings: &Settings, inherited: &mut InheritedSockets) -> Result<Socket> {
    let addr = &settings.admin;
    if let Some(socket) = inherited.take(addr) {
        return Ok(match addr.place() {
            SocketPlace::Tcp(_) => Socket::Tcp(socket.into_fd().into()),
            SocketPlace::Unix(_) => Socket::Unix(socket.into_fd().into()),
        });
    }
    let access = identity::admin_access(settings).map_err(|error| anyhow!(error))?;
    open(addr, access).with_context(|| format!("cannot listen on the admin address {addr} (set `--admin`)"))
}

/// Responds on the endpoint until `Admin::end`.
pub(crate) fn start(
    socket: Socket,
    settings: &Settings,
    server: Arc<Server>,
    metrics: Arc<Metrics>,
    certificates: Arc<Report>,
    orders: mpsc::Sender<Order>,
    predecessor: Option<TakeOver>,
) -> Result<Admin> {
    let socket = match socket {
        Socket::Tcp(listener) => Listening::Tcp(TcpListener::from_std(listener)?),
        Socket::Unix(listener) => Listening::Unix(UnixListener::from_std(listener)?),
    };
    let state = Arc::new(State {
        guard: Guard::new(settings, predecessor),
        dashboard_orders: settings.dashboard_orders,
        server,
        metrics,
        certificates,
        orders,
        started: Instant::now(),
    });
    let (end, ended) = watch::channel(false);
    let (talks, responding) = mpsc::channel(1);
    let task = tokio::spawn(accept(socket, state, ShutdownWatch { ended, talks }));
    Ok(Admin { end, task, responding })
}

fn open(addr: &ListenAddr, access: UnixAccess) -> Result<Socket> {
    match addr.place() {
        SocketPlace::Tcp(addr) => {
            let listener = std::net::TcpListener::bind(addr)?;
            listener.set_nonblocking(true)?;
            Ok(Socket::Tcp(listener))
        }
        SocketPlace::Unix(path) => {
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                bail!("another server answers there");
            }
            // A killed server leaves its socket file without a listener. Any other kind of file belongs to another
            // program.
            if std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
                let _ = std::fs::remove_file(path);
            }
            if let Some(missing) = MissingDirectory::of(path) {
                bail!("{missing}");
            }
            let socket = unix_socket::bind_private(path)?;
            socket.listen(BACKLOG)?;
            unix_socket::open_up(path, access)?;
            socket.set_nonblocking(true)?;
            Ok(Socket::Unix(OwnedFd::from(socket).into()))
        }
    }
}

/// Signals the end of the endpoint to a connection, and the end of the connection's response to the endpoint.
#[derive(Clone)]
struct ShutdownWatch {
    ended: watch::Receiver<bool>,
    /// Dropped when the connection has no more response to send; nothing is ever sent on it.
    talks: mpsc::Sender<Infallible>,
}

async fn accept(socket: Listening, state: Arc<State>, until: ShutdownWatch) {
    let mut stopped = until.ended.clone();
    loop {
        tokio::select! {
            accepted = accept_one(&socket, &state.guard) => match accepted {
                Ok(accepted) => drop(tokio::spawn(serve_connection(accepted, state.clone(), until.clone()))),
                Err(error) => {
                    if let Some(others) = NO_DESCRIPTORS.permit() {
                        tracing::warn!(others, "the admin endpoint cannot accept connections: {error}");
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
            () = shutdown_requested(&mut stopped) => return,
        }
    }
}

/// Waits for the end of the endpoint without holding the channel's read guard across an await.
async fn shutdown_requested(ended: &mut watch::Receiver<bool>) {
    let _ = ended.wait_for(|ended| *ended).await;
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection, and whether the guard refuses its process.
struct Accepted {
    stream: Box<dyn Stream>,
    refused: bool,
}

async fn accept_one(socket: &Listening, guard: &Guard) -> std::io::Result<Accepted> {
    Ok(match socket {
        Listening::Tcp(listener) => Accepted { stream: Box::new(listener.accept().await?.0), refused: false },
        Listening::Unix(listener) => {
            let stream = listener.accept().await?.0;
            let peer = stream.peer_cred()?;
            let admitted = guard.admits(&peer);
            if let Err(who) = admitted {
                let (pid, uid) = (peer.pid().unwrap_or_default(), peer.uid());
                tracing::warn!(pid, uid, "the admin endpoint refuses {who}");
            }
            Accepted { stream: Box::new(stream), refused: admitted.is_err() }
        }
    })
}

async fn serve_connection(accepted: Accepted, state: Arc<State>, until: ShutdownWatch) {
    let Accepted { stream, refused } = accepted;
    let ShutdownWatch { mut ended, talks } = until;
    let (mut stream, mut first) = (stream, [0]);
    tokio::select! {
        read = stream.read(&mut first) => if !matches!(read, Ok(1)) {
            return;
        },
        () = shutdown_requested(&mut ended) => {
            // `howdah stop` waits on such a connection until the exiting process closes it.
            drop(talks);
            return std::future::pending().await;
        }
    }
    let (reader, writer) = tokio::io::split(stream);
    let stream = tokio::io::join(Cursor::new(first).chain(reader), writer);
    if first == [fastcgi::VERSION] {
        let served = fastcgi::serve(stream, |page_request| {
            pools::fastcgi_page(&state.server, &state.guard, refused, page_request)
        });
        // A client that disconnects needs no log line.
        tokio::select! {
            _ = served => {}
            () = shutdown_requested(&mut ended) => {}
        }
        return;
    }
    let asked = Arc::new(AtomicBool::new(false));
    let is_asked = asked.clone();
    let service = service_fn(move |request| {
        let state = state.clone();
        is_asked.store(true, Relaxed);
        async move {
            Ok::<_, Infallible>(match refused {
                true => outcome(StatusCode::FORBIDDEN, false, "this process may not use the admin endpoint"),
                false => respond(&state, request).await,
            })
        }
    });
    let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    // A client that disconnects needs no log line.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = shutdown_requested(&mut ended) => {}
    }
    if !asked.load(Relaxed) {
        // `howdah stop` waits on such a connection until the exiting process closes it.
        drop(talks);
        return std::future::pending().await;
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
    drop(talks);
}

async fn respond(state: &State, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let pools = state.server.revision().pools.clone();
    // Probes send a host that cannot be known in advance, and no token.
    if let (&Method::GET | &Method::HEAD, path @ ("/livez" | "/readyz")) = (request.method(), request.uri().path()) {
        return match if path == "/readyz" { pools.ready() } else { Ok(()) } {
            Ok(()) => text("text/plain;charset=UTF-8", "ok\n"),
            Err(why) => {
                let mut response = text("text/plain;charset=UTF-8", format!("{why}\n"));
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                response
            }
        };
    }
    if let Err((status, why)) = state.guard.lets_pass(request.method(), request.uri(), request.headers()) {
        return outcome(status, false, why);
    }
    if let Some(content) = frankenphp::respond(request.method(), request.uri().path(), &pools, &state.server).await {
        let mut response = text(content.media_type, content.body);
        *response.status_mut() = content.status;
        return response;
    }
    if let Some(response) = pools::page(&pools, &request) {
        return response;
    }
    if request.method() == Method::POST
        && let Some(made) = profile::make(&pools, request.uri().path(), request.uri().query()).await
    {
        return match made {
            Ok(profile) => text("application/json", profile),
            Err((status, why)) => outcome(status, false, &why),
        };
    }
    if let Some(response) = pools::order(&pools, &request).await {
        return response;
    }
    match (request.method(), request.uri().path()) {
        (&Method::GET, DASHBOARD | "/") => dashboard(),
        (&Method::GET, "/status") => json(StatusCode::OK, &status(state, &pools)),
        (&Method::GET, "/metrics") => {
            for pool in pools.iter() {
                pool.update_gauges();
            }
            let own = processor_time(std::process::id()).unwrap_or_default();
            state.metrics.processor_time.running(own.as_micros() as u64);
            state.metrics.set_certificates(certificates::numbers(&state.certificates));
            let accept = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok());
            let format = Format::accepted(accept.unwrap_or_default());
            text(format.media_type(), state.metrics.render(format))
        }
        (&Method::GET, "/health") => {
            let down: Vec<_> = pools.iter().filter(|p| !p.can_serve()).map(|p| p.name().to_owned()).collect();
            if down.is_empty() {
                outcome(StatusCode::OK, true, "every pool serves")
            } else {
                outcome(
                    StatusCode::SERVICE_UNAVAILABLE,
                    false,
                    &format!("pools without a serving worker: {}", down.join(", ")),
                )
            }
        }
        (&Method::POST, "/reload") => orders::reload(request.uri().query(), &state.server).await,
        (&Method::POST, "/stop") => {
            let (waiter, _stopped) = oneshot::channel();
            let sent = state.orders.send(Order::Stop(waiter)).await.is_ok();
            outcome(StatusCode::OK, sent, "stopping")
        }
        (&Method::POST, "/upgrade") => orders::upgrade(request.uri().query(), &state.orders).await,
        (&Method::POST, RESTORE) => orders::restore(&pools, request.uri().query()),
        (_, DASHBOARD | "/status" | "/metrics" | "/health" | "/reload" | "/stop" | "/upgrade" | RESTORE) => {
            outcome(StatusCode::METHOD_NOT_ALLOWED, false, PATHS)
        }
        _ => outcome(StatusCode::NOT_FOUND, false, PATHS),
    }
}

/// The page `dashboard.html`: it loads no other resources and sends requests to this endpoint only.
fn dashboard() -> Response<Full<Bytes>> {
    const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; \
        img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";
    let mut response = text("text/html; charset=utf-8", include_str!("dashboard.html"));
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-cache"),
    ] {
        let value = hyper::header::HeaderValue::from_static(value);
        response.headers_mut().insert(hyper::header::HeaderName::from_static(name), value);
    }
    response
}

fn status(state: &State, pools: &Pools) -> Status {
    let ready = pools.ready();
    Status {
        version: env!("CARGO_PKG_VERSION"),
        pid: std::process::id(),
        uptime_s: state.started.elapsed().as_secs(),
        listen: state.server.revision().settings.listen.iter().map(ToString::to_string).collect(),
        ready: ready.is_ok(),
        not_ready: ready.err(),
        dashboard_orders: state.dashboard_orders,
        connections: Connections {
            open: state.metrics.connections_open.get(),
            displaced: state.metrics.connections_displaced.get(),
            upgraded: state.metrics.connections_upgraded.get(),
        },
        budgets: budgets(state),
        error_log_dropped: state.metrics.error_log_dropped(),
        access_log_dropped: state.metrics.access_log_dropped.get(),
        slow_log_dropped: state.metrics.slow_log_dropped.get(),
        certificates: state.certificates.names(),
        duration_bounds_us: &BOUNDS_US,
        requests: state.metrics.durations().into(),
        routes: state.metrics.requests.all().iter().map(|route| route_status(route)).collect(),
        pools: pools.iter().map(|pool| pool_status(state, pool)).collect(),
        upstreams: state.metrics.upstreams.all().iter().map(|upstream| upstream_status(upstream)).collect(),
        hubs: state.server.revision().sites.server.hubs().usage(),
    }
}

/// Status of a pool, including workers of earlier revisions that finish their requests.
fn pool_status(state: &State, pool: &Pool) -> PoolStatus {
    let mut status = pool.status();
    for before in state.server.finishing().iter().filter_map(|pools| pools.named(pool.name())) {
        status.workers.extend(before.status().workers);
    }
    status
}

fn route_status(route: &RequestMetrics) -> RouteStatus {
    RouteStatus {
        site: route.site().to_owned(),
        route: route.route().to_owned(),
        status: route.by_class().into_iter().filter(|(_, count)| *count > 0).collect(),
        sent_bytes: route.bytes(),
        requests: route.durations().into(),
    }
}

fn upstream_status(upstream: &UpstreamMetrics) -> UpstreamStatus {
    UpstreamStatus {
        proxy: upstream.proxy.to_string(),
        server: upstream.server.to_string(),
        up: upstream.up.get() == 1,
        active: upstream.active.get(),
        requests: upstream.requests.get(),
        connections: upstream.connections.get(),
        failures: upstream.failures.all().iter().map(|(_, count)| count).sum(),
    }
}

fn budgets(state: &State) -> Vec<BudgetStatus> {
    let all = state.metrics.budgets().into_iter().flat_map(|budgets| [budgets.memory, budgets.spool]);
    all.map(|budget| BudgetStatus {
        name: budget.kind().name(),
        used: budget.used(),
        limit: budget.limit(),
        refused: budget.refused(),
    })
    .collect()
}
