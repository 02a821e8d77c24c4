//! `POST /upgrade`: the order to have another process take this one's place, with `?binary=PATH` (percent-encoded) for a program
//! of another name.

use crate::orders::Order;
use crate::outcome::Outcome;
use crate::parameter;
use hyper::StatusCode;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use tokio::sync::{mpsc, oneshot};

/// The parameter that names another program.
const BINARY: &str = "binary=";

/// Passes the order on and returns what came of it. `owner`: root or the server's own user asks, over a Unix socket; nobody else
/// says what is started.
pub(crate) async fn respond(query: &str, owner: bool, orders: &mpsc::Sender<Order>) -> (StatusCode, Outcome) {
    let failed = |status, message: &str| (status, outcome(false, message.to_owned()));
    let binary = match query.strip_prefix(BINARY).map(decode) {
        None if query.is_empty() => None,
        Some(Some(path)) if path.is_absolute() && owner => Some(path),
        Some(Some(path)) if path.is_absolute() => {
            let why = "only root and the server's own user may name another program, over the admin socket";
            return failed(StatusCode::FORBIDDEN, why);
        }
        _ => return failed(StatusCode::BAD_REQUEST, "POST /upgrade, or /upgrade?binary=PATH with an absolute path"),
    };
    let (waiter, told) = oneshot::channel();
    if orders.send(Order::Upgrade { binary, waiter }).await.is_err() {
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

/// The target of the order.
pub(crate) fn target(binary: Option<&Path>) -> String {
    let Some(binary) = binary else { return "/upgrade".to_owned() };
    format!("/upgrade?{BINARY}{}", parameter::encoded(binary.as_os_str().as_bytes()))
}

fn decode(text: &str) -> Option<PathBuf> {
    parameter::decoded(text).map(|path| OsString::from_vec(path).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_may_name_a_program() {
        let (orders, mut ordered) = mpsc::channel(1);
        let path = Path::new("/srv/new howdah/bin&%/ü");
        let query = target(Some(path)).strip_prefix("/upgrade?").unwrap().to_owned();
        assert_eq!(respond(&query, false, &orders).await.0, StatusCode::FORBIDDEN);
        for wrong in ["binary=howdah", "binary=", "binary=/x%2", "other=/x"] {
            assert_eq!(respond(wrong, true, &orders).await.0, StatusCode::BAD_REQUEST, "{wrong}");
        }
        let asked = tokio::spawn(async move { respond(&query, true, &orders).await });
        let Some(Order::Upgrade { binary, waiter }) = ordered.recv().await else { panic!("no order") };
        assert_eq!(binary.as_deref(), Some(path));
        waiter.send(Err("why".to_owned())).unwrap();
        let (status, outcome) = asked.await.unwrap();
        assert_eq!((status, outcome.ok, &*outcome.message), (StatusCode::INTERNAL_SERVER_ERROR, false, "why"));
    }
}
