//! A document root with a server for it, for the tests of static files.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use howdah_config::{HttpSettings, ListenAddr, StaticSettings};
use howdah_protocol::front::{Front, runtimes};
use howdah_protocol::listener::Listener;
use howdah_protocol::{Handler, Request, Shared};
use http::StatusCode;

use super::*;

/// Form of an outgoing body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// As files.
    Sent,
    /// As a stream of the file's content.
    Read,
}

/// Responds with files and nothing else.
struct Files {
    files: Arc<StaticFiles>,
    way: Way,
}

impl Handler for Files {
    async fn handle(&self, request: Request) -> howdah_protocol::Response {
        let head = &request.head;
        let path = std::str::from_utf8(head.target.path()).unwrap().trim_start_matches('/').to_owned();
        match self.files.open(Path::new(&path)) {
            Ok(file) => self.files.serve(&file, &head.method, &head.headers).map(|body| match self.way {
                Way::Sent => Body::files(body),
                Way::Read if body.remaining() == 0 => Body::empty(),
                Way::Read => Body::stream(Box::new(body)),
            }),
            Err(miss) => {
                let mut response = Response::new(Body::empty());
                let other = StatusCode::INTERNAL_SERVER_ERROR;
                let hidden = matches!(miss, Miss::NotFound | Miss::Hidden | Miss::Directory);
                *response.status_mut() = if hidden { StatusCode::NOT_FOUND } else { other };
                response
            }
        }
    }

    fn trusts(&self, _: Option<IpAddr>) -> bool {
        false
    }
}

/// A document root with a server for it; both are gone when it is dropped.
pub(super) struct Server {
    // Dropped first: stops the thread before the directory goes.
    running: Option<Front>,
    pub(super) address: SocketAddr,
    pub(super) directory: tempfile::TempDir,
}

impl Server {
    pub(super) fn start(way: Way, change: impl FnOnce(&mut StaticSettings)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        std::fs::create_dir(&root).unwrap();
        let mut settings = StaticSettings::default();
        change(&mut settings);
        let mut files = StaticFiles::new(&root, &settings, Arc::default()).unwrap();
        // Every request checks the file system, so that no test has to wait.
        files.twins_validity = 0;
        let files = Arc::new(files);
        let listener = Listener::bind(&"127.0.0.1:0".parse().unwrap()).unwrap();
        let ListenAddr::Tcp(address) = listener.local_addr() else { unreachable!() };
        let budgets = howdah_budget::Budgets::new(1 << 30, 1 << 30);
        let shared = Shared::new(&HttpSettings::default(), budgets, howdah_observe::Metrics::new());
        let handler = |_| Files { files: files.clone(), way };
        let front = Front::start(&Arc::new(shared), handler, |_| {}, vec![listener], runtimes(1).unwrap()).unwrap();
        Self { running: Some(front), address, directory }
    }

    pub(super) fn root(&self) -> PathBuf {
        self.directory.path().join("root")
    }

    pub(super) fn write(&self, path: &str, content: &[u8]) -> PathBuf {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(super) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    pub(super) fn request(&self, method: &str, path: &str, fields: &[(&str, &str)]) -> Received {
        let mut stream = self.connect();
        send(&mut stream, method, path, fields);
        Received::read(&mut stream, method == "HEAD").unwrap()
    }

    pub(super) fn get(&self, path: &str, fields: &[(&str, &str)]) -> Received {
        self.request("GET", path, fields)
    }

    /// Number of this process's descriptors of files below the root, including deleted ones.
    pub(super) fn descriptors(&self) -> usize {
        let root = self.root().canonicalize().unwrap();
        let open = std::fs::read_dir("/proc/self/fd").unwrap();
        open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
            .filter(|target| target.starts_with(&root) && *target != root)
            .count()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(front) = self.running.take() {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(front.shutdown(Duration::ZERO));
        }
    }
}

pub(super) fn send(stream: &mut TcpStream, method: &str, path: &str, fields: &[(&str, &str)]) {
    let mut head = format!("{method} /{path} HTTP/1.1\r\nHost: x\r\n");
    for (name, value) in fields {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).unwrap();
}

#[derive(Debug)]
pub(super) struct Received {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Received {
    pub(super) fn read_head(stream: &mut TcpStream) -> io::Result<String> {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        Ok(String::from_utf8(head).unwrap())
    }

    pub(super) fn read(stream: &mut TcpStream, no_body: bool) -> io::Result<Self> {
        let head = Self::read_head(stream)?;
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut response = Self { status, head, body: Vec::new() };
        if !no_body && status != 304 {
            response.body = vec![0; response.field("content-length").unwrap().parse().unwrap()];
            stream.read_exact(&mut response.body)?;
        }
        Ok(response)
    }

    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (field, value) = line.split_once(": ")?;
            field.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}
