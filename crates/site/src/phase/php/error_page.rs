//! The page of `howdah dev` that replaces a bare status when PHP did not respond: no worker, one that died or took too
//! long, or a request that is quarantined.

use crate::exchange::Exchange;
use bytes::Bytes;
use howdah_error_page::{Cause, Form, Frame, Place, Report, Request, render};
use howdah_pool::{Fault, FaultKind};
use howdah_protocol::{Body, Response};
use http::{HeaderValue, StatusCode, header};

/// Returns the page for a fault, with the same status as the bare response.
pub(super) fn page(fault: &Fault, exchange: &Exchange) -> Response {
    let status = StatusCode::from_u16(fault.kind.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let head = &exchange.head;
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let request = Request {
        method: head.method.to_string(),
        target: String::from_utf8_lossy(head.target.as_bytes()).into_owned(),
        headers: head.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect(),
    };
    let accept = head.headers.get(header::ACCEPT).map(text).unwrap_or_default();
    let detail = fault.detail.as_deref().unwrap_or_default();
    let cause = Cause {
        kind: format!("{} {}", status.as_u16(), status.canonical_reason().unwrap_or("Error")),
        message: description(fault),
        place: None,
        frames: detail.lines().filter_map(frame).collect(),
    };
    let hint = Some(hint(fault.kind).to_owned()).filter(|hint| !hint.is_empty());
    let page =
        render(&Report { cause, earlier: Vec::new(), hint, request, server: String::new() }, Form::for_accept(&accept));
    let mut response = Response::new(Body::full(Bytes::from(page.body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(page.media_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(seconds) = fault.kind.retry_after() {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Returns the description of the fault with its details, without the stack.
fn description(fault: &Fault) -> String {
    let what = match fault.kind {
        FaultKind::Deadline => "PHP ran for longer than the deadline of the pool",
        FaultKind::WorkerDied => "The PHP process died while it ran the request",
        FaultKind::WorkerBroken => "The PHP process sent something that the server does not understand",
        FaultKind::PoolDown => "PHP does not start",
        FaultKind::Quarantined => "Requests like this one have killed PHP processes, and are not run for a while",
        FaultKind::QueueFull | FaultKind::QueueTimeout => "No PHP process was free in time",
        kind => kind.label(),
    };
    let detail = fault.detail.as_deref().unwrap_or_default();
    let known: Vec<&str> = detail.lines().filter(|line| frame(line).is_none()).collect();
    let known = known.join("\n");
    if known.trim().is_empty() { what.to_owned() } else { format!("{what}: {}", known.trim()) }
}

const fn hint(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::Deadline => {
            "The setting `deadline` limits the run time of a request. The log in the terminal has PHP's stack."
        }
        FaultKind::WorkerDied | FaultKind::WorkerBroken | FaultKind::Quarantined => {
            "The log in the terminal has the signal. A crash is a bug in PHP or an extension; signal 9 without another reason \
             is the memory limit of the machine or of a control group."
        }
        FaultKind::PoolDown => {
            "The log in the terminal has the error: in PHP's settings, the worker script or the boot file."
        }
        FaultKind::QueueFull | FaultKind::QueueTimeout => "The setting `workers` limits the number of PHP processes.",
        _ => "",
    }
}

/// Parses a line of PHP's stack: `#0 FILE:LINE WHAT`.
fn frame(line: &str) -> Option<Frame> {
    let (number, rest) = line.trim_start().strip_prefix('#')?.split_once(' ')?;
    number.parse::<u32>().ok()?;
    let (place, what) = rest.rsplit_once(' ')?;
    let place =
        place.rsplit_once(':').and_then(|(file, line)| Some(Place { file: file.to_owned(), line: line.parse().ok()? }));
    Some(Frame { what: what.to_owned(), place })
}
