//! A front over a temporary document root, a stand-in for PHP, and a raw client.

use bytes::Bytes;
use howdah_config::{AccessTarget, ByteSize, ListenAddr, LogFormat, Settings};
use howdah_observe::{AccessLog, AccessLogs, Metrics};
use howdah_pool::{Fault, FaultKind, InterimSink, RequestBody, RequestStats, ResponseWriter};
use howdah_protocol::front::{Drained, Front, runtimes};
use howdah_protocol::listener::Listener;
use howdah_protocol::{Body, Chunk, ChunkStream, Handler, Request, Shared};
use howdah_site::upstream::{Target, Upstream};
use howdah_site::{Service, Sites};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// A generous limit for anything that should happen at once: a machine under test may stall for seconds.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// A stand-in for PHP. The script's file name selects its behaviour: `vars` responds with all variables, `echo` with
/// the body, `stream` with the data that the test pushes, `hang` never, `fail` with a fault, `raw` with the head in the
/// body (status, then header lines), `lie` like `stream` with the length in the query, `wait` like `stream` once there
/// is data. `panic` panics. In every case the test can send informational responses for the last request at any time.
#[derive(Default)]
pub(crate) struct PhpStandIn {
    pub(crate) interim: Mutex<Option<Arc<dyn InterimSink>>>,
    pub(crate) requests: AtomicUsize,
    pub(crate) pipe: Arc<Pipe>,
    /// Number of requests that were abandoned before their response.
    pub(crate) given_up: Arc<AtomicUsize>,
}

/// A body that the test feeds. Data fed before there is a response goes into the next one.
#[derive(Default)]
pub(crate) struct Pipe {
    state: Mutex<PipeState>,
}

#[derive(Default)]
struct PipeState {
    chunks: Vec<(Bytes, bool)>,
    ended: bool,
    writer: Option<ResponseWriter>,
    waker: Option<Waker>,
}

impl Pipe {
    pub(crate) fn push(&self, data: &'static str, flush: bool) {
        self.update(|state| state.chunks.push((Bytes::from_static(data.as_bytes()), flush)));
    }

    pub(crate) fn end(&self) {
        self.update(|state| state.ended = true);
    }

    /// Resets the pipe for another response.
    pub(crate) fn begin_again(&self) {
        self.update(|state| (state.ended, state.writer) = (false, None));
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.state.lock().unwrap().writer.as_ref().is_some_and(ResponseWriter::is_gone)
    }

    fn feeds(&self, writer: ResponseWriter) {
        self.update(|state| state.writer = Some(writer));
    }

    fn update(&self, update: impl FnOnce(&mut PipeState)) {
        let mut state = self.state.lock().unwrap();
        update(&mut state);
        let (writer, chunks, ended) = (state.writer.clone(), std::mem::take(&mut state.chunks), state.ended);
        match writer {
            Some(writer) => {
                chunks.into_iter().for_each(|(data, flush)| writer.push(data, flush));
                if ended {
                    writer.end();
                }
            }
            None => state.chunks = chunks,
        }
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }
}

/// Content of the response's body.
enum Content {
    Whole(Bytes),
    Pipe,
}

/// A body that panics.
struct PanickingBody;

impl ChunkStream for PanickingBody {
    fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<Option<std::io::Result<Chunk>>> {
        panic!("a body that panics on purpose");
    }
}

/// The service, with a bug in `torn.php`.
struct Faulty(Service<PhpStandIn>);

impl Handler for Faulty {
    async fn handle(&self, request: Request) -> howdah_protocol::Response {
        if request.head.target.path() == b"/torn.php" {
            return howdah_protocol::Response::new(Body::stream(Box::new(PanickingBody)));
        }
        self.0.handle(request).await
    }

    fn trusts(&self, peer: Option<IpAddr>) -> bool {
        self.0.trusts(peer)
    }
}

/// Counts a request that is dropped before its response.
struct Running(Option<Arc<AtomicUsize>>);

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(count) = self.0.take() {
            count.fetch_add(1, Ordering::SeqCst);
        }
    }
}

fn content(body: &RequestBody) -> Vec<u8> {
    match body {
        RequestBody::Empty | RequestBody::Stream(_) | RequestBody::Dropped(_) => Vec::new(),
        RequestBody::Memory(bytes) => bytes.to_vec(),
        RequestBody::File(fd, len, _) => {
            let file = std::fs::File::from(fd.try_clone().unwrap());
            let mut content = vec![0; usize::try_from(*len).unwrap()];
            file.read_exact_at(&mut content, 0).unwrap();
            content
        }
    }
}

impl Upstream for PhpStandIn {
    async fn run(&self, target: Target, request: Box<howdah_pool::Request>) -> Result<howdah_pool::Response, Fault> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        self.interim.lock().unwrap().clone_from(&request.interim);
        let mut running = Running(Some(self.given_up.clone()));
        let script = String::from_utf8_lossy(request.head.script()).into_owned();
        let script = Path::new(&script).file_stem().unwrap().to_str().unwrap().to_owned();
        let line = |name: &'static str, value: &str| (Bytes::from_static(name.as_bytes()), value.to_owned().into());
        let mut status = 200;
        let mut headers = vec![line("Content-Type", "text/plain")];
        let mut body = Content::Whole(Bytes::new());
        match script.to_ascii_lowercase().as_str() {
            "echo" => {
                let kind = match &request.body {
                    RequestBody::Empty => "empty",
                    RequestBody::Memory(_) => "memory",
                    RequestBody::File(..) => "file",
                    RequestBody::Stream(_) => "stream",
                    RequestBody::Dropped(_) => "dropped",
                };
                headers.push(line("X-Body", kind));
                body = Content::Whole(content(&request.body).into());
            }
            "stream" => body = Content::Pipe,
            "lie" => {
                let query = String::from_utf8_lossy(request.head.uri()).into_owned();
                headers.push(line("Content-Length", query.split('?').nth(1).unwrap()));
                body = Content::Pipe;
            }
            "wait" => {
                std::future::poll_fn(|cx| {
                    let mut state = self.pipe.state.lock().unwrap();
                    state.waker = Some(cx.waker().clone());
                    if state.chunks.is_empty() { Poll::Pending } else { Poll::Ready(()) }
                })
                .await;
                body = Content::Pipe;
            }
            "panic" => panic!("a request that panics on purpose"),
            "hang" => std::future::pending().await,
            "fail" => return Err(Fault::with(FaultKind::QueueFull, "hidden detail")),
            "raw" => {
                let text = String::from_utf8(content(&request.body)).unwrap();
                let mut lines = text.lines();
                status = lines.next().unwrap().parse().unwrap();
                for text in lines {
                    let (name, value) = text.split_once('=').unwrap();
                    headers.push((name.to_owned().into(), value.replace("\\r\\n", "\r\n").into()));
                }
                body = Content::Whole(Bytes::from_static(b"content"));
            }
            _ => {
                let mut text =
                    format!("pool={}\nlabel={}\nrepeatable={}\n", target.pool, request.label(), request.repeatable)
                        .into_bytes();
                for (name, value) in request.head.variables() {
                    text.extend_from_slice(&[name, b"=", value, b"\n"].concat());
                }
                body = Content::Whole(text.into());
            }
        }
        running.0 = None;
        let stats = RequestStats { pool: "default".into(), worker: 7, ..RequestStats::default() };
        let (writer, response) = howdah_pool::Response::prepared_by(status, headers, stats);
        match body {
            Content::Whole(bytes) => {
                writer.push(bytes, false);
                writer.end();
            }
            // Only after the response has begun, when its length is unknown.
            Content::Pipe => {
                let pipe = self.pipe.clone();
                tokio::spawn(async move { pipe.feeds(writer) });
            }
        }
        Ok(response)
    }
}

/// A running front. Dropping it shuts the front down.
pub(crate) struct Server {
    pub(crate) root: tempfile::TempDir,
    pub(crate) stand: Arc<PhpStandIn>,
    pub(crate) addr: ListenAddr,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) log: Option<Arc<AccessLog>>,
    front: Option<Front>,
}

/// Settings with small limits and without compression.
pub(crate) fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.listen = vec!["127.0.0.1:0".parse().unwrap()];
    settings.compression.enabled = false;
    settings.http.max_body = Some(ByteSize(100_000));
    settings.http.body_memory = ByteSize(10_000);
    settings.http.max_uri = ByteSize(4_000);
    settings.http.max_header_bytes = ByteSize(8_000);
    settings
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::with(settings())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        Self::logging(settings, None)
    }

    /// Starts a front with an access log in this file, in JSON.
    pub(crate) fn logging(mut settings: Settings, access_log: Option<&Path>) -> Self {
        let root = tempfile::tempdir().unwrap();
        for script in ["vars", "echo", "stream", "hang", "fail", "raw", "lie", "wait", "panic", "torn"] {
            std::fs::write(root.path().join(format!("{script}.php")), "<?php // SOURCE").unwrap();
        }
        std::fs::write(root.path().join("a.txt"), "static content").unwrap();
        settings.root = root.path().to_owned();
        let listeners = vec![Listener::bind(&settings.listen[0]).unwrap()];
        let addr = listeners[0].local_addr();
        let metrics = Metrics::new();
        settings.log.access = access_log.map_or(AccessTarget::Off, |path| AccessTarget::File(path.to_owned()));
        settings.log.format = LogFormat::Json;
        let logs = AccessLogs::open(&settings, &metrics).unwrap();
        let log = logs.of(&settings.log);
        let budgets = howdah_budget::Budgets::new(settings.http.memory.bytes(), settings.http.spool.bytes());
        let sites = Arc::new(Sites::new(Arc::new(settings), metrics.clone(), &logs, budgets).unwrap());
        let stand = Arc::new(PhpStandIn::default());
        let shared = Arc::new(Shared::new(&sites.server.settings.http, budgets, metrics.clone()));
        let service = |_| Faulty(Service::new(sites.clone(), stand.clone()));
        let front =
            Front::start(&shared, service, howdah_pool::io_threads::enter, listeners, runtimes(2).unwrap()).unwrap();
        Self { root, stand, addr, metrics, log, front: Some(front) }
    }

    pub(crate) fn tcp(&self) -> SocketAddr {
        let ListenAddr::Tcp(addr) = self.addr else { panic!("not a TCP listener") };
        addr
    }

    pub(crate) fn connect(&self) -> Client {
        Client::new(TcpStream::connect(self.tcp()).unwrap())
    }

    /// Sends one request on a new connection.
    pub(crate) fn get(&self, target: &str) -> Response {
        self.connect().ask(&format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n"))
    }

    /// The sender of informational responses for the request with this number, counted from 1, which may be running or
    /// have ended.
    pub(crate) fn interim_of(&self, number: usize) -> Arc<dyn InterimSink> {
        eventually("the request", || self.stand.requests.load(Ordering::SeqCst) >= number);
        self.stand.interim.lock().unwrap().clone().unwrap()
    }

    pub(crate) fn front(&self) -> &Front {
        self.front.as_ref().unwrap()
    }

    pub(crate) fn shutdown(&mut self, grace: Duration) -> Drained {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(self.front.take().unwrap().shutdown(grace))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.front.is_some() {
            self.shutdown(Duration::ZERO);
        }
    }
}

/// Polls until the condition is true.
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !condition() {
        assert!(start.elapsed() < DEADLINE, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A received response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        found.find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// A variable in the response of `vars.php`.
    pub(crate) fn var(&self, name: &str) -> Option<&str> {
        self.text().lines().filter_map(|line| line.split_once('=')).find(|(n, _)| *n == name).map(|(_, value)| value)
    }
}

/// A raw HTTP/1.1 client.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    pub(crate) fn new(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_write_timeout(Some(DEADLINE)).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.get_mut().write_all(bytes.as_ref()).unwrap();
    }

    /// False if the connection has ended.
    pub(crate) fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.get_mut().write_all(bytes.as_ref()).is_ok()
    }

    pub(crate) fn ask(&mut self, request: &str) -> Response {
        self.send(request);
        self.response_to(request.split(' ').next().unwrap())
    }

    pub(crate) fn response(&mut self) -> Response {
        self.response_to("GET")
    }

    pub(crate) fn head(&mut self) -> Response {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(self.stream.read_line(&mut head).unwrap(), 0, "the connection ended in a head: {head:?}");
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Response { status, head, body: Vec::new() }
    }

    pub(crate) fn response_to(&mut self, method: &str) -> Response {
        let mut response = self.head();
        if method == "HEAD" || matches!(response.status, 100..=199 | 204 | 304) {
            return response;
        }
        if response.header("transfer-encoding").is_some() {
            while let Some(chunk) = self.chunk() {
                response.body.extend_from_slice(&chunk);
            }
        } else {
            let length: usize = response.header("content-length").expect("a length").parse().unwrap();
            response.body = vec![0; length];
            self.stream.read_exact(&mut response.body).unwrap();
        }
        response
    }

    /// Reads the next chunk of a chunked body; `None` at its end.
    pub(crate) fn chunk(&mut self) -> Option<Vec<u8>> {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        let length = usize::from_str_radix(line.trim(), 16).unwrap_or_else(|_| panic!("no chunk: {line:?}"));
        let mut data = vec![0; length + 2];
        self.stream.read_exact(&mut data).unwrap();
        data.truncate(length);
        (length > 0).then_some(data)
    }

    /// True if the server has closed; panics if it sends something.
    pub(crate) fn is_closed(&mut self) -> bool {
        let mut byte = [0];
        match self.stream.read(&mut byte) {
            Ok(n) => {
                assert_eq!(n, 0, "unexpected bytes");
                true
            }
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => true,
            Err(error) => panic!("still open: {error}"),
        }
    }

    pub(crate) fn close_write(&self) {
        self.stream.get_ref().shutdown(std::net::Shutdown::Write).unwrap();
    }
}

impl Client {
    /// Reads everything until the connection ends.
    pub(crate) fn rest(&mut self) -> String {
        let mut rest = String::new();
        self.stream.read_to_string(&mut rest).unwrap();
        rest
    }

    /// Reads the first line of a response; `None` if the connection ended without one.
    pub(crate) fn first_line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(n) if n > 0 => Some(line),
            _ => None,
        }
    }
}
