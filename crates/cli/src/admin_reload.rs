//! `POST /reload` of the admin endpoint: reads the settings again and serves with them. With `?dry-run` it says what that would
//! change, and nothing does.

use crate::outcome::{Outcome, json};
use crate::reload::Server;
use bytes::Bytes;
use http_body_util::Full;
use hyper::{Response, StatusCode};
use std::sync::Arc;

/// The query that asks for no more than a look.
pub(crate) const DRY_RUN: &str = "dry-run";

pub(crate) async fn respond(query: Option<&str>, server: &Arc<Server>) -> Response<Full<Bytes>> {
    let dry_run = match query.unwrap_or_default() {
        "" => false,
        DRY_RUN => true,
        other => {
            let message = format!("?{other} means nothing here; there is ?{DRY_RUN}");
            return json(StatusCode::BAD_REQUEST, &Outcome { ok: false, message, changes: Vec::new() });
        }
    };
    // In a task of its own: a client that leaves does not break it off halfway.
    let server = server.clone();
    let reloading = tokio::spawn(async move { server.reload(dry_run).await });
    let (status, outcome) = match reloading.await.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(done) => {
            let message = match dry_run {
                true => "nothing was changed; a reload would change:",
                false => "new workers serve; the old ones finish their requests",
            };
            (StatusCode::OK, Outcome { ok: true, message: message.to_owned(), changes: done.lines() })
        }
        Err(why) => (StatusCode::INTERNAL_SERVER_ERROR, Outcome { ok: false, message: why, changes: Vec::new() }),
    };
    json(status, &outcome)
}
