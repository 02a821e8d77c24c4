//! A collector of traces that receives spans by OTLP over HTTP and keeps them for the test, refuses them, or never
//! responds.

use crate::process::{PATIENCE, eventually};
use crate::site::Port;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use prost::Message;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// The collector's behaviour for exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Behavior {
    #[default]
    Takes,
    /// Responds with an error that retrying cannot fix.
    Refuses,
    /// Reads, and never responds.
    Hangs,
}

/// A received span, its identities in hexadecimal digits.
#[derive(Debug, Clone, Default)]
pub struct Span {
    pub name: String,
    pub trace: String,
    pub id: String,
    pub parent: String,
    /// The kind by the protocol's numbers: 1 internal, 2 server, 3 client.
    pub kind: i32,
    pub from: u64,
    pub until: u64,
    /// The status by the protocol's numbers: 2 is an error.
    pub status: i32,
    /// Trace identities of its links.
    pub links: Vec<String>,
    pub attributes: BTreeMap<String, String>,
    /// The attributes of its resource.
    pub resource: BTreeMap<String, String>,
}

#[derive(Debug, Default)]
struct Shared {
    manner: Mutex<Behavior>,
    spans: Mutex<Vec<Span>>,
    /// The head of each export: target and fields.
    heads: Mutex<Vec<(String, HeaderMap)>>,
}

/// A running collector. Dropping it ends the collector.
#[derive(Debug)]
pub struct Collector {
    port: Port,
    shared: Arc<Shared>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Collector {
    /// Starts a collector that accepts everything.
    pub fn start() -> Self {
        let mut collector = Self::absent();
        collector.listen();
        collector
    }

    /// A collector with a reserved port that does not listen yet.
    pub fn absent() -> Self {
        Self { port: Port::hold(), shared: Arc::default(), end: None, thread: None }
    }

    pub fn listen(&mut self) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.unwrap_or_else(|error| panic!("runtime: {error}"));
        let listener = runtime.block_on(tokio::net::TcpListener::bind(("127.0.0.1", self.port.number)));
        let listener = listener.unwrap_or_else(|error| panic!("listen: {error}"));
        let (end, mut ended) = oneshot::channel();
        let shared = self.shared.clone();
        self.end = Some(end);
        self.thread = Some(std::thread::spawn(move || {
            runtime.block_on(async move {
                loop {
                    let stream = tokio::select! {
                        accepted = listener.accept() => match accepted {
                            Ok((stream, _)) => stream,
                            Err(_) => continue,
                        },
                        _ = &mut ended => return,
                    };
                    let shared = shared.clone();
                    tokio::spawn(async move {
                        let answer = service_fn(move |request| answer(shared.clone(), request));
                        let _ = Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), answer).await;
                    });
                }
            });
        }));
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port.number)
    }

    /// A `[telemetry]` section for `Setup::setting` that exports to this collector, with additional keys.
    pub fn section(&self, more: &str) -> String {
        format!("{{ endpoint = \"{}\"{}{more} }}", self.url(), if more.is_empty() { "" } else { ", " })
    }

    pub fn set(&self, manner: Behavior) {
        *lock(&self.shared.manner) = manner;
    }

    /// Targets and fields of all exports so far.
    pub fn exports(&self) -> Vec<(String, HeaderMap)> {
        lock(&self.shared.heads).clone()
    }

    pub fn spans(&self) -> Vec<Span> {
        lock(&self.shared.spans).clone()
    }

    /// Waits for the span of a request for this path.
    pub fn of_path(&self, path: &str) -> Span {
        let find = || self.spans().into_iter().find(|span| span.attributes.get("url.path").is_some_and(|p| p == path));
        assert!(eventually(PATIENCE, || find().is_some()), "no span of {path}; there are {:#?}", self.spans());
        find().unwrap_or_default()
    }

    /// The children of a span, by name.
    pub fn below(&self, span: &Span) -> BTreeMap<String, Span> {
        let all = self.spans().into_iter().filter(|other| other.parent == span.id);
        all.map(|span| (span.name.clone(), span)).collect()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            let _ = end.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    lock(&shared.heads).push((head.uri.path().to_owned(), head.headers.clone()));
    let manner = *lock(&shared.manner);
    match manner {
        Behavior::Hangs => std::future::pending::<()>().await,
        Behavior::Takes => {
            let decoded =
                ExportTraceServiceRequest::decode(&body[..]).unwrap_or_else(|error| panic!("no spans: {error}"));
            lock(&shared.spans).extend(spans(decoded));
        }
        Behavior::Refuses => {}
    }
    let refused = manner == Behavior::Refuses;
    let status = if refused { 403 } else { 200 };
    Ok(Response::builder().status(status).body(Full::new(Bytes::new())).unwrap_or_default())
}

fn spans(request: ExportTraceServiceRequest) -> Vec<Span> {
    let mut found = Vec::new();
    for of_resource in request.resource_spans {
        let resource = attributes(of_resource.resource.unwrap_or_default().attributes);
        for span in of_resource.scope_spans.into_iter().flat_map(|scope| scope.spans) {
            found.push(Span {
                name: span.name,
                trace: hex(&span.trace_id),
                id: hex(&span.span_id),
                parent: hex(&span.parent_span_id),
                kind: span.kind,
                from: span.start_time_unix_nano,
                until: span.end_time_unix_nano,
                status: span.status.unwrap_or_default().code,
                links: span.links.iter().map(|link| hex(&link.trace_id)).collect(),
                attributes: attributes(span.attributes),
                resource: resource.clone(),
            });
        }
    }
    found
}

fn attributes(list: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |value: Option<Value>| match value {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::BoolValue(flag)) => flag.to_string(),
        other => format!("{other:?}"),
    };
    list.into_iter().map(|pair| (pair.key, text(pair.value.and_then(|value| value.value)))).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
