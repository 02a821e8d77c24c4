//! `POST /upgrade`: the order to replace this process. The request cannot name a program; the server starts its own
//! file. Clients of the endpoint may restart the server, but not run arbitrary programs.

use crate::control::outcome::Outcome;
use crate::server::orders::Order;
use hyper::StatusCode;
use tokio::sync::{mpsc, oneshot};

/// Passes the order on and returns its result.
pub(crate) async fn respond(query: Option<&str>, orders: &mpsc::Sender<Order>) -> (StatusCode, Outcome) {
    let failed = |status, message: &str| (status, outcome(false, message.to_owned()));
    if query.is_some() {
        return failed(StatusCode::BAD_REQUEST, "POST /upgrade takes no parameters");
    }
    let (waiter, told) = oneshot::channel();
    if orders.send(Order::Upgrade(waiter)).await.is_err() {
        return failed(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping");
    }
    match told.await {
        Ok(Ok(message)) => (StatusCode::OK, outcome(true, message)),
        Ok(Err(why)) => failed(StatusCode::INTERNAL_SERVER_ERROR, &why),
        Err(_) => failed(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping"),
    }
}

const fn outcome(ok: bool, message: String) -> Outcome {
    Outcome { ok, message, changes: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_order_names_no_program() {
        let (orders, mut ordered) = mpsc::channel(1);
        for query in ["binary=/bin/sh", "binary=", ""] {
            assert_eq!(respond(Some(query), &orders).await.0, StatusCode::BAD_REQUEST, "{query}");
        }
        let asked = tokio::spawn(async move { respond(None, &orders).await });
        let Some(Order::Upgrade(waiter)) = ordered.recv().await else { panic!("no order") };
        waiter.send(Err("why".to_owned())).unwrap();
        let (status, outcome) = asked.await.unwrap();
        assert_eq!((status, outcome.ok, &*outcome.message), (StatusCode::INTERNAL_SERVER_ERROR, false, "why"));
    }
}
