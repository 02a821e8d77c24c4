//! Health checks of servers whose settings have a path for them.

use crate::connect::connect;
use crate::fault::in_words;
use crate::group::{Group, Server};
use crate::request::Outgoing;
use howdah_protocol::RequestBody;
use http::header::{self, HeaderValue};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::task::JoinSet;

/// The checks under way; they end when this is dropped.
#[derive(Debug)]
#[must_use]
pub struct Checks(#[expect(dead_code, reason = "ends its tasks when it is dropped")] JoinSet<()>);

/// Starts the checks on the current runtime.
pub fn start(groups: &[Arc<Group>]) -> Checks {
    let mut tasks = JoinSet::new();
    for group in groups {
        let Some(path) = group.settings.health.clone() else { continue };
        for server in &group.servers {
            tasks.spawn(watch(group.clone(), server.clone(), path.clone()));
        }
    }
    Checks(tasks)
}

async fn watch(group: Arc<Group>, server: Arc<Server>, path: String) {
    let interval = group.settings.health_interval;
    let timeout = group.settings.response_timeout.min(interval.max(group.settings.connect_timeout));
    loop {
        let verdict = tokio::time::timeout(timeout, probe(&group, &server, &path)).await;
        group.set_healthy(&server, verdict.unwrap_or_else(|_| Err(format!("no response within {timeout:?}"))));
        tokio::time::sleep(interval).await;
    }
}

async fn probe(group: &Group, server: &Server, path: &str) -> Result<(), String> {
    let mut link = connect(group, server).await?;
    let mut request = http::Request::new(Outgoing::new(RequestBody::none()));
    *request.uri_mut() = path.parse().map_err(|error: http::uri::InvalidUri| error.to_string())?;
    request.headers_mut().insert(header::HOST, server.authority.clone());
    request.headers_mut().insert(header::USER_AGENT, HeaderValue::from_static("howdah (health check)"));
    request.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    let mut responding = pin!(link.send.send_request(request));
    let response = std::future::poll_fn(|cx| {
        let ended = link.work(cx);
        match responding.as_mut().poll(cx) {
            Poll::Ready(response) => Poll::Ready(Some(response)),
            Poll::Pending if ended => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    });
    let response = response.await.ok_or("the connection ended")?.map_err(|error| in_words(&error))?;
    match response.status().as_u16() {
        200..=399 => Ok(()),
        status => Err(format!("{path} has status {status}")),
    }
}
