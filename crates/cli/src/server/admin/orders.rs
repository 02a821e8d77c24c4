//! Orders of the admin endpoint to the whole server: `POST /reload`, `/upgrade` and `/routes/restore`.

use crate::control::outcome::{Outcome, json, outcome};
use crate::control::parameter::{self, PATH};
use crate::server::orders::Order;
use crate::server::pools::Pools;
use crate::server::reload::Server;
use bytes::Bytes;
use howdah_config::ReloadFlags;
use http_body_util::Full;
use hyper::{Response, StatusCode};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Rereads the settings and applies them. With `?dry-run` it only reports the changes.
pub(crate) async fn reload(query: Option<&str>, server: &Arc<Server>) -> Response<Full<Bytes>> {
    let flags = match ReloadFlags::from_query(query.unwrap_or_default()) {
        Ok(flags) => flags,
        Err(message) => return outcome(StatusCode::BAD_REQUEST, false, &message),
    };
    // In a separate task: a disconnecting client does not interrupt it.
    let server = server.clone();
    let reloading = tokio::spawn(async move { server.reload(flags).await });
    match reloading.await.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(done) => {
            let message = match flags.dry_run {
                true => "nothing was changed; a reload would change:",
                false => "new workers serve; the old ones finish their requests",
            };
            json(StatusCode::OK, &Outcome { ok: true, message: message.to_owned(), changes: done.lines() })
        }
        Err(why) => outcome(StatusCode::INTERNAL_SERVER_ERROR, false, &why),
    }
}

/// Passes the order to replace this process on, and returns its result. The request cannot name a program; the server
/// starts its own file. Clients of the endpoint may restart the server, but not run arbitrary programs.
pub(crate) async fn upgrade(query: Option<&str>, orders: &mpsc::Sender<Order>) -> Response<Full<Bytes>> {
    if query.is_some() {
        return outcome(StatusCode::BAD_REQUEST, false, "POST /upgrade takes no parameters");
    }
    let stopping = || outcome(StatusCode::SERVICE_UNAVAILABLE, false, "the server is stopping");
    let (waiter, told) = oneshot::channel();
    if orders.send(Order::Upgrade(waiter)).await.is_err() {
        return stopping();
    }
    match told.await {
        Ok(Ok(message)) => outcome(StatusCode::OK, true, &message),
        Ok(Err(why)) => outcome(StatusCode::INTERNAL_SERVER_ERROR, false, &why),
        Err(_) => stopping(),
    }
}

/// Returns demoted routes, which run in classic mode, to their pools. The path in the query is percent-encoded.
pub(crate) fn restore(pools: &Pools, query: Option<&str>) -> Response<Full<Bytes>> {
    let Some(path) = query.and_then(|query| query.strip_prefix(PATH)).and_then(decoded) else {
        return outcome(StatusCode::BAD_REQUEST, false, "POST /routes/restore?path=PATH, or path=* for all routes");
    };
    let restored: usize = pools.iter().filter_map(|pool| pool.demotions()).map(|pool| pool.restore(&path)).sum();
    match restored {
        0 => outcome(StatusCode::NOT_FOUND, false, &format!("no route was demoted for {path}: see `howdah routes`")),
        1 => outcome(StatusCode::OK, true, "one route runs in its pool again"),
        more => outcome(StatusCode::OK, true, &format!("{more} routes run in their pools again")),
    }
}

/// Decodes the path of an order, which must not be empty.
fn decoded(parameter: &str) -> Option<String> {
    parameter::decoded(parameter).filter(|path| !path.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;

    #[test]
    fn a_path_reaches_the_server_as_it_is() {
        for path in ["/", "*", "/items/#", "/a b/%41?x=1&y=ü"] {
            assert_eq!(decoded(&parameter::encoded(path)).as_deref(), Some(path));
        }
        for wrong in ["", "%", "%4", "%zz", "%ff"] {
            assert_eq!(decoded(wrong), None, "{wrong}");
        }
    }

    #[tokio::test]
    async fn an_order_names_no_program() {
        let (orders, mut ordered) = mpsc::channel(1);
        for query in ["binary=/bin/sh", "binary=", ""] {
            assert_eq!(upgrade(Some(query), &orders).await.status(), StatusCode::BAD_REQUEST, "{query}");
        }
        let asked = tokio::spawn(async move { upgrade(None, &orders).await });
        let Some(Order::Upgrade(waiter)) = ordered.recv().await else { panic!("no order") };
        waiter.send(Err("why".to_owned())).unwrap();
        let response = asked.await.unwrap();
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let outcome: Outcome = serde_json::from_slice(&body).unwrap();
        assert_eq!((outcome.ok, &*outcome.message), (false, "why"));
    }
}
