//! `POST /reload` of the admin endpoint: rereads the settings and applies them. With `?dry-run` it only reports the
//! changes.

use crate::control::outcome::{Outcome, json};
use crate::server::reload::Server;
use bytes::Bytes;
use howdah_config::ReloadFlags;
use http_body_util::Full;
use hyper::{Response, StatusCode};
use std::sync::Arc;

pub(crate) async fn respond(query: Option<&str>, server: &Arc<Server>) -> Response<Full<Bytes>> {
    let flags = match ReloadFlags::from_query(query.unwrap_or_default()) {
        Ok(flags) => flags,
        Err(message) => {
            return json(StatusCode::BAD_REQUEST, &Outcome { ok: false, message, changes: Vec::new() });
        }
    };
    // In a separate task: a disconnecting client does not interrupt it.
    let server = server.clone();
    let reloading = tokio::spawn(async move { server.reload(flags).await });
    let (status, outcome) = match reloading.await.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(done) => {
            let message = match flags.dry_run {
                true => "nothing was changed; a reload would change:",
                false => "new workers serve; the old ones finish their requests",
            };
            (StatusCode::OK, Outcome { ok: true, message: message.to_owned(), changes: done.lines() })
        }
        Err(why) => (StatusCode::INTERNAL_SERVER_ERROR, Outcome { ok: false, message: why, changes: Vec::new() }),
    };
    json(status, &outcome)
}
