//! A front with HTTP/3, its handler, and clients.

use bytes::{Buf, Bytes};
use howdah_protocol::front::{Drained, Front, runtimes};
use howdah_protocol::http3::Config;
use howdah_protocol::listener::Listener;
use howdah_protocol::{Body, Chunk, ChunkStream, FileBody, Handler, Request, Response, Shared};
use howdah_tls::{Certificate, Options, Store, server_config};
use http::{HeaderValue, StatusCode};
use quinn::crypto::rustls::QuicClientConfig;
use std::future::poll_fn;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};

/// Maximum time of each wait; all expected events are far faster.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(60);

/// State shared by handlers and their test.
#[derive(Default)]
pub(crate) struct Seen {
    /// Requests that began.
    pub(crate) begun: AtomicUsize,
    /// Requests whose handler was dropped before its end.
    pub(crate) dropped: AtomicUsize,
    /// Notified when either number changes.
    pub(crate) changed: Notify,
    /// Releases `/held`.
    pub(crate) release: Notify,
    /// Source of the parts of `/stream`.
    pub(crate) parts: Mutex<Option<mpsc::UnboundedReceiver<Bytes>>>,
}

impl Seen {
    /// Waits until this many requests have begun, and this many were dropped.
    pub(crate) async fn wait(&self, begun: usize, dropped: usize) {
        let seen = async {
            loop {
                let changed = self.changed.notified();
                if self.begun.load(SeqCst) >= begun && self.dropped.load(SeqCst) >= dropped {
                    return;
                }
                changed.await;
            }
        };
        tokio::time::timeout(MAX_WAIT, seen).await.expect("the expected event did not happen");
    }
}

struct Tester(Arc<Seen>);

struct Running<'a>(&'a Seen, bool);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if !self.1 {
            self.0.dropped.fetch_add(1, SeqCst);
            self.0.changed.notify_waiters();
        }
    }
}

struct Parts(mpsc::UnboundedReceiver<Bytes>);

impl ChunkStream for Parts {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Chunk>>> {
        self.0.poll_recv(cx).map(|data| data.map(|data| Ok(Chunk { data, flush: true })))
    }
}

/// Content of every large body here.
pub(crate) fn content(length: usize) -> Bytes {
    (0..length).map(|at| (at % 251) as u8).collect::<Vec<u8>>().into()
}

impl Handler for Tester {
    async fn handle(&self, mut request: Request) -> Response {
        let mut running = Running(&self.0, false);
        self.0.begun.fetch_add(1, SeqCst);
        self.0.changed.notify_waiters();
        let path = String::from_utf8(request.head.target.path().to_vec()).unwrap();
        let number: usize = request.head.target.query().map_or(0, |n| std::str::from_utf8(n).unwrap().parse().unwrap());
        let body = match path.as_str() {
            "/whole" => Body::full(content(number)),
            "/file" => Body::files(file(number)),
            "/echo" => {
                let mut whole = Vec::new();
                let mut broken = None;
                while let Some(part) = poll_fn(|cx| request.body.poll_part(cx)).await {
                    match part {
                        Ok(part) => whole.extend_from_slice(&part),
                        Err(error) => broken = Some(error.to_string()),
                    }
                }
                Body::full(broken.map_or(whole, String::into_bytes).into())
            }
            "/stream" => Body::stream(Box::new(Parts(self.0.parts.lock().unwrap().take().unwrap()))),
            "/held" => {
                self.0.release.notified().await;
                Body::full(Bytes::from_static(b"released"))
            }
            "/hints" => {
                let link = [(Bytes::from_static(b"link"), Bytes::from_static(b"</a.css>; rel=preload"))];
                let informational = request.informational.clone().unwrap();
                tokio::task::spawn_blocking(move || informational.send(103, &link)).await.unwrap();
                self.0.release.notified().await;
                Body::full(Bytes::from_static(b"hinted"))
            }
            "/long" | "/short" => {
                let (send, parts) = mpsc::unbounded_channel();
                send.send(Bytes::from_static(b"hello")).unwrap();
                Body::stream(Box::new(Parts(parts)))
            }
            "/panic" => panic!("requested by the test"),
            _ => Body::full(Bytes::from_static(b"hello")),
        };
        let mut response = Response::new(body);
        let told = response.headers_mut();
        let port = HeaderValue::from_str(&request.connection.peer.port_text).unwrap();
        told.insert("x-port", port);
        if let Some(early) = request.head.headers.get("early-data") {
            told.insert("x-early", early.clone());
        }
        match path.as_str() {
            "/long" | "/corrected" => drop(told.insert("content-length", HeaderValue::from_static("3"))),
            "/short" => drop(told.insert("content-length", HeaderValue::from_static("30"))),
            "/missing" => *response.status_mut() = StatusCode::NOT_FOUND,
            _ => {}
        }
        running.1 = true;
        response
    }

    fn trusts(&self, _: Option<IpAddr>) -> bool {
        false
    }
}

fn file(length: usize) -> FileBody {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&content(length)).unwrap();
    let file = Arc::new(file.into());
    let mut body = FileBody::empty();
    body.push_file(&file, 0..length as u64);
    body
}

/// A running server.
pub(crate) struct Server {
    front: Option<Front>,
    pub(crate) addr: SocketAddr,
    pub(crate) seen: Arc<Seen>,
    certificate: rustls::pki_types::CertificateDer<'static>,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::with(1000, |_| {})
    }

    pub(crate) fn with(retry_above: usize, change: impl FnOnce(&mut howdah_config::HttpSettings)) -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let path = std::path::Path::new("test");
        let certificate = Certificate::from_pem(chain.as_bytes(), key.as_bytes(), path, path).unwrap();
        let store = Store::new();
        store.replace_files([&certificate]);
        let tls = server_config::quic(store, &Options::default(), true).unwrap();
        let mut settings = howdah_config::HttpSettings::default();
        change(&mut settings);
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = Listener::bind_quic(local, Config::new(tls, retry_above).unwrap()).unwrap();
        let howdah_config::ListenAddr::Https(addr) = listener.local_addr() else { unreachable!() };
        let budgets = howdah_budget::Budgets::new(1 << 30, 1 << 30);
        let shared = Arc::new(Shared::new(&settings, budgets, howdah_observe::Metrics::new()));
        let seen = Arc::new(Seen::default());
        let handler = |_| Tester(seen.clone());
        // Two threads: connections run on a different one than the socket.
        let front = Front::start(&shared, handler, |_| {}, vec![listener], runtimes(2).unwrap()).unwrap();
        Self { front: Some(front), addr, seen: seen.clone(), certificate: made.cert.der().clone() }
    }

    pub(crate) fn open_connections(&self) -> usize {
        self.front.as_ref().unwrap().open_connections()
    }

    pub(crate) async fn shutdown(mut self) -> Drained {
        self.front.take().unwrap().shutdown(MAX_WAIT).await
    }

    /// Configuration with which a client trusts this server.
    pub(crate) fn client_config(&self) -> quinn::ClientConfig {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let builder = rustls::ClientConfig::builder_with_provider(howdah_tls::provider());
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let mut tls = builder.with_root_certificates(roots).with_no_client_auth();
        tls.alpn_protocols = vec![b"h3".to_vec()];
        tls.enable_early_data = true;
        quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()))
    }

    /// A separate connection.
    pub(crate) async fn connect(&self) -> quinn::Connection {
        self.connect_to(self.addr).await
    }

    pub(crate) async fn connect_to(&self, addr: SocketAddr) -> quinn::Connection {
        let mut endpoint = quinn::Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        endpoint.set_default_client_config(self.client_config());
        endpoint.connect(addr, "localhost").unwrap().await.unwrap()
    }

    pub(crate) async fn client(&self) -> Client {
        Client::over(self.connect().await).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(front) = self.front.take() {
            // On another thread, because this one may be within a runtime.
            let ended = std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(front.shutdown(Duration::ZERO));
            });
            let ended = ended.join();
            assert!(ended.is_ok() || std::thread::panicking());
        }
    }
}

pub(crate) type Requests = h3::client::SendRequest<h3_quinn::OpenStreams, Bytes>;
pub(crate) type Stream = h3::client::RequestStream<h3_quinn::BidiStream<Bytes>, Bytes>;

/// A client that obeys the protocol.
pub(crate) struct Client {
    pub(crate) quic: quinn::Connection,
    pub(crate) requests: Requests,
    /// Ends with the connection.
    pub(crate) driver: tokio::task::JoinHandle<h3::error::ConnectionError>,
}

impl Client {
    pub(crate) async fn over(quic: quinn::Connection) -> Self {
        let (mut connection, requests) = h3::client::new(h3_quinn::Connection::new(quic.clone())).await.unwrap();
        let driver = tokio::spawn(async move { poll_fn(|cx| connection.poll_close(cx)).await });
        Self { quic, requests, driver }
    }

    pub(crate) async fn open(&mut self, method: &str, path: &str, fields: &[(&str, &str)]) -> Stream {
        let mut request = http::Request::builder().method(method).uri(format!("https://localhost{path}"));
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        self.requests.send_request(request.body(()).unwrap()).await.unwrap()
    }

    pub(crate) async fn get(&mut self, path: &str) -> (http::Response<()>, Vec<u8>) {
        let mut stream = self.open("GET", path, &[]).await;
        stream.finish().await.unwrap();
        response(&mut stream).await.unwrap()
    }

    pub(crate) async fn post(&mut self, path: &str, body: Bytes) -> (http::Response<()>, Vec<u8>) {
        let stream = self.open("POST", path, &[("content-length", &body.len().to_string())]).await;
        // Concurrently, as the server may not be waiting for the body.
        let (mut send, mut receive) = stream.split();
        let sending = async {
            send.send_data(body).await?;
            send.finish().await
        };
        let receiving = async {
            let response = receive.recv_response().await?;
            let mut body = Vec::new();
            while let Some(mut part) = receive.recv_data().await? {
                body.extend_from_slice(&part.copy_to_bytes(part.remaining()));
            }
            Ok::<_, h3::error::StreamError>((response, body))
        };
        let (_, received) = tokio::join!(sending, receiving);
        received.unwrap()
    }
}

/// Receives a complete response.
pub(crate) async fn response(stream: &mut Stream) -> Result<(http::Response<()>, Vec<u8>), h3::error::StreamError> {
    let receiving = async {
        let response = stream.recv_response().await?;
        let mut body = Vec::new();
        while let Some(mut part) = stream.recv_data().await? {
            body.extend_from_slice(&part.copy_to_bytes(part.remaining()));
        }
        Ok((response, body))
    };
    tokio::time::timeout(MAX_WAIT, receiving).await.expect("no response came")
}
