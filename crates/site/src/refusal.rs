//! The server's own error responses: a status and a small page. Internal reasons go to the log, not to the client.

use bytes::Bytes;
use howdah_error_page::Form;
use howdah_pool::{Fault, FaultKind};
use howdah_protocol::{Body, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use std::sync::Arc;

/// An error response of the server.
#[derive(Debug, Clone)]
pub struct Refusal {
    status: StatusCode,
    /// The client's error: completes "The request has …".
    reason: Option<&'static str>,
    retry_after: Option<u32>,
    allow: Option<&'static str>,
    /// Value of `WWW-Authenticate`.
    challenge: Option<HeaderValue>,
    /// Path of an error page that replaces the built-in page.
    page: Option<Arc<str>>,
}

impl Refusal {
    /// A refusal with a status.
    pub const fn new(status: StatusCode) -> Self {
        Self { status, reason: None, retry_after: None, allow: None, challenge: None, page: None }
    }

    /// 400, with the reason.
    pub const fn bad_request(reason: &'static str) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            reason: Some(reason),
            retry_after: None,
            allow: None,
            challenge: None,
            page: None,
        }
    }

    /// 503: a budget or the file descriptors are exhausted.
    pub fn over_budget() -> Self {
        Self::from(&Fault::new(FaultKind::OverBudget))
    }

    /// Adds a reason, which the page shows to the client. It completes "The request has …".
    pub const fn because(mut self, reason: &'static str) -> Self {
        self.reason = Some(reason);
        self
    }

    /// Sets `Allow`.
    pub const fn allow(mut self, methods: &'static str) -> Self {
        self.allow = Some(methods);
        self
    }

    /// Sets `Retry-After`, in seconds.
    pub const fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// Sets `WWW-Authenticate`.
    pub fn challenge(mut self, challenge: HeaderValue) -> Self {
        self.challenge = Some(challenge);
        self
    }

    /// Sets the path of an error page that replaces the built-in page.
    pub fn with_page(mut self, path: Arc<str>) -> Self {
        self.page = Some(path);
        self
    }

    /// The path of the error page, if one was set.
    pub fn page(&self) -> Option<&Arc<str>> {
        self.page.as_ref()
    }

    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the response: problem details (RFC 9457) for clients that accept JSON first, HTML for those that accept
    /// it, a line of text for all others.
    pub fn into_response(self, request: &HeaderMap) -> Response {
        let code = self.status.as_u16();
        // 499 has no reason phrase. It is only logged, as the client has disconnected.
        let title = self.status.canonical_reason().unwrap_or("Error");
        let accept = request.get(header::ACCEPT).map(HeaderValue::as_bytes).unwrap_or_default();
        let html = accept.windows(9).any(|part| part.eq_ignore_ascii_case(b"text/html"));
        let (media, page) = if Form::for_accept(&String::from_utf8_lossy(accept)) == Form::Json {
            let mut problem = serde_json::json!({ "title": title, "status": code });
            if let Some(reason) = self.reason {
                problem["detail"] = format!("The request has {reason}.").into();
            }
            ("application/problem+json", problem.to_string())
        } else if html {
            let reason = self.reason.map(|reason| format!("<p>The request has {reason}.</p>")).unwrap_or_default();
            let page = format!(
                "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{code} {title}</title></head>\n\
                 <body><h1>{code} {title}</h1>{reason}</body></html>\n"
            );
            ("text/html; charset=utf-8", page)
        } else {
            let reason = self.reason.map(|reason| format!(": the request has {reason}")).unwrap_or_default();
            ("text/plain; charset=utf-8", format!("{code} {title}{reason}\n"))
        };
        let mut response = Response::new(Body::full(Bytes::from(page)));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(challenge) = self.challenge {
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        if let Some(methods) = self.allow {
            headers.insert(header::ALLOW, HeaderValue::from_static(methods));
        }
        response
    }
}

impl From<&Fault> for Refusal {
    fn from(fault: &Fault) -> Self {
        let status = StatusCode::from_u16(fault.kind.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self { retry_after: fault.kind.retry_after(), ..Self::new(status) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_html_or_problem_details_only_on_request() {
        let mut headers = HeaderMap::new();
        let page = |headers: &HeaderMap| {
            let response = Refusal::new(StatusCode::NOT_FOUND).into_response(headers);
            String::from_utf8(response.body().as_full().unwrap().to_vec()).unwrap()
        };
        assert_eq!(page(&headers), "404 Not Found\n");
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/html,application/xhtml+xml;q=0.9"));
        assert!(page(&headers).contains("<h1>404 Not Found</h1>"));
        for accept in ["application/problem+json", "application/json, text/plain, */*"] {
            headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
            assert_eq!(page(&headers), r#"{"status":404,"title":"Not Found"}"#);
            let response = Refusal::bad_request("no topic").into_response(&headers);
            assert_eq!(response.headers()[header::CONTENT_TYPE], "application/problem+json");
            let text = r#"{"detail":"The request has no topic.","status":400,"title":"Bad Request"}"#;
            assert_eq!(response.body().as_full().unwrap(), text.as_bytes());
        }
    }

    #[test]
    fn faults_have_their_status_and_retry_after() {
        let response = Refusal::from(&Fault::new(FaultKind::QueueFull)).into_response(&HeaderMap::new());
        assert_eq!(response.status(), 503);
        assert_eq!(response.headers()[header::RETRY_AFTER], "1");
        let response = Refusal::from(&Fault::with(FaultKind::Deadline, "secret")).into_response(&HeaderMap::new());
        assert_eq!(response.status(), 504);
        assert!(!String::from_utf8_lossy(response.body().as_full().unwrap()).contains("secret"));
    }
}
