//! A document root with a server for it, for the tests of static files: a real hyper connection, with a writer that
//! knows tokens.

use std::convert::Infallible;
use std::io::{self, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;

use howdah_config::StaticSettings;
use http::StatusCode;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

use super::*;
use crate::sendfile;

/// As small as a connection's transport can be.
struct Io(tokio::net::TcpStream);

impl AsyncRead for Io {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Io {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        assert!(!sendfile::is_token(buf), "hyper was told to write by vectors");
        Pin::new(&mut self.0).poll_write(cx, buf)
    }
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match sendfile::poll_write_vectored(&self.0, cx, bufs) {
            Some(result) => result,
            None => Pin::new(&mut self.0).poll_write_vectored(cx, bufs),
        }
    }
    fn is_write_vectored(&self) -> bool {
        true
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// A document root with a server for it; both are gone when it is dropped.
pub(super) struct Server {
    // Dropped first: stops the thread before the directory goes.
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
    pub(super) address: SocketAddr,
    pub(super) directory: tempfile::TempDir,
}

impl Server {
    pub(super) fn start(transport: Transport, change: impl FnOnce(&mut StaticSettings)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        std::fs::create_dir(&root).unwrap();
        let mut settings = StaticSettings::default();
        change(&mut settings);
        let mut files = StaticFiles::new(&root, &settings, Arc::default()).unwrap();
        // Every request asks the file system, so that no test has to wait.
        files.twins_validity = 0;
        let files = Arc::new(files);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                tokio::select! {
                    () = accept(listener, files, transport) => {}
                    _ = stopped => {}
                }
            });
        });
        Self { running: Some((stop, thread)), address, directory }
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

    pub(super) fn request(&self, method: &str, path: &str, fields: &[(&str, &str)]) -> Answer {
        let mut stream = self.connect();
        send(&mut stream, method, path, fields);
        Answer::read(&mut stream, method == "HEAD").unwrap()
    }

    pub(super) fn get(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        self.request("GET", path, fields)
    }

    /// Descriptors of this process that lead below the root, deleted files included.
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
        if let Some((stop, thread)) = self.running.take() {
            let _ = stop.send(());
            let ended = thread.join();
            if !std::thread::panicking() {
                ended.unwrap();
            }
        }
    }
}

async fn accept(listener: tokio::net::TcpListener, files: Arc<StaticFiles>, transport: Transport) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let files = Arc::clone(&files);
        tokio::spawn(async move {
            let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
                let path = request.uri().path().trim_start_matches('/').to_owned();
                let response = match files.open(Path::new(&path)) {
                    Ok(file) => files.serve(&file, request.method(), request.headers(), transport),
                    Err(miss) => {
                        let mut response = Response::new(FileBody::empty());
                        let other = StatusCode::INTERNAL_SERVER_ERROR;
                        let hidden = matches!(miss, Miss::NotFound | Miss::Hidden | Miss::Directory);
                        *response.status_mut() = if hidden { StatusCode::NOT_FOUND } else { other };
                        response
                    }
                };
                async move { Ok::<_, Infallible>(response) }
            });
            let io = TokioIo::new(Io(stream));
            let mut builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
            builder.http1().writev(true);
            let _ = builder.serve_connection(io, service).await;
        });
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
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Answer {
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
        let mut answer = Self { status, head, body: Vec::new() };
        if !no_body && status != 304 {
            answer.body = vec![0; answer.field("content-length").unwrap().parse().unwrap()];
            stream.read_exact(&mut answer.body)?;
        }
        Ok(answer)
    }

    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (field, value) = line.split_once(": ")?;
            field.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}
