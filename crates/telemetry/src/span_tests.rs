//! Tests of `span`.

use super::*;
use crate::context::Contexts;
use howdah_config::TelemetrySettings;
use http::HeaderMap;

fn trace() -> Trace {
    Contexts::new(&TelemetrySettings::default()).begin(&HeaderMap::new(), false)
}

fn ended(started: Instant) -> EndedRequest<'static> {
    EndedRequest {
        method: "GET",
        path: b"/a",
        https: true,
        version: "1.1",
        status: 200,
        host: Some("shop.example"),
        port: Some(443),
        client: None,
        peer: None,
        user_agent: None,
        request_id: "1",
        route: None,
        site: None,
        front: "php",
        time: SystemTime::UNIX_EPOCH,
        started,
        took: Duration::from_millis(100),
        bytes: 5,
        inner: None,
        event: None,
    }
}

fn value(span: &SpanData, key: &str) -> Option<String> {
    let found = span.attributes.iter().find(|attribute| attribute.key.as_str() == key)?;
    Some(found.value.to_string())
}

fn at(millis: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(millis)
}

#[test]
fn phases_lie_within_the_request_and_follow_each_other() {
    let started = Instant::now();
    let mut trace = trace();
    trace.body_complete = Some(started + Duration::from_millis(10));
    trace.responded = Some(started + Duration::from_millis(80));
    let inner = WorkerSpan {
        pool: "default",
        worker: 3,
        queue: Duration::from_millis(30),
        // Longer than the total: measured by another process's clock.
        php: Duration::from_millis(900),
        replays: 0,
    };
    let spans = spans(&trace, &EndedRequest { inner: Some(inner), ..ended(started) });
    let times: Vec<_> = spans.iter().map(|span| (&*span.name, span.start_time, span.end_time)).collect();
    assert_eq!(
        times,
        [
            ("GET", at(0), at(100)),
            ("receive", at(0), at(10)),
            ("queue", at(10), at(30)),
            ("php", at(30), at(100)),
            ("send", at(80), at(100)),
        ]
    );
    assert!(spans[1..].iter().all(|span| span.parent_span_id == trace.context.span_id()));
    assert_eq!(spans[3].span_context.span_id(), trace.inner);
    assert_eq!(value(&spans[3], "howdah.worker").as_deref(), Some("3"));
}

#[test]
fn unknown_methods_make_no_names() {
    let span =
        spans(&trace(), &EndedRequest { method: "BREW", route: Some("/tea/*"), ..ended(Instant::now()) }).remove(0);
    assert_eq!(span.name, "HTTP /tea/*");
    assert_eq!(value(&span, "http.request.method").as_deref(), Some("_OTHER"));
    assert_eq!(value(&span, "http.request.method_original").as_deref(), Some("BREW"));
}

#[test]
fn failures_of_the_server_are_errors_and_those_of_clients_are_not() {
    let of = |status| spans(&trace(), &EndedRequest { status, ..ended(Instant::now()) }).remove(0);
    assert!(matches!(of(502).status, Status::Error { .. }));
    assert_eq!(value(&of(502), "error.type").as_deref(), Some("502"));
    assert_eq!((of(404).status, value(&of(404), "error.type")), (Status::Unset, None));
    let gone = of(499);
    assert_eq!(value(&gone, "http.response.status_code"), None);
    assert_eq!(value(&gone, "error.type").as_deref(), Some("client_gone"));
}

#[test]
fn long_texts_are_cut_between_characters() {
    let path = format!("/{}", "é".repeat(4000));
    let span = spans(&trace(), &EndedRequest { path: path.as_bytes(), ..ended(Instant::now()) }).remove(0);
    let kept = value(&span, "url.path").unwrap();
    assert!(kept.len() <= MAX_TEXT_LEN && kept.len() > MAX_TEXT_LEN - 3 && kept.ends_with('é'));
}
