//! Requests about one pool: PHP-FPM's status and ping pages (`fpm_status`) over HTTP and FastCGI, restarting the pool,
//! and draining one of its workers.

use crate::control::outcome::{outcome, text};
use crate::server::admin::fastcgi::PageRequest;
use crate::server::admin::guard::Guard;
use crate::server::pools::Pools;
use crate::server::reload::Server;
use bytes::Bytes;
use howdah_config::PoolSettings;
use howdah_site::upstream::PoolPageText;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};

/// `POST /pools/NAME/reload` and `POST /pools/NAME/workers/NUMBER/drain`.
pub(crate) async fn order(pools: &Pools, request: &Request<Incoming>) -> Option<Response<Full<Bytes>>> {
    let path = request.uri().path().strip_prefix("/pools/")?;
    let (name, worker) = match path.strip_suffix("/reload") {
        Some(name) => (name, None),
        None => {
            let (name, worker) = path.strip_suffix("/drain")?.rsplit_once("/workers/")?;
            (name, Some(worker.parse::<u32>().ok()?))
        }
    };
    if request.method() != Method::POST {
        return Some(outcome(StatusCode::METHOD_NOT_ALLOWED, false, "only POST is allowed here"));
    }
    let Some(pool) = pools.named(name).cloned() else {
        return Some(outcome(StatusCode::NOT_FOUND, false, &format!("unknown pool {name}")));
    };
    Some(match worker {
        None => match pool.reload().await {
            Ok(()) => outcome(StatusCode::OK, true, "new workers serve; the old ones finish their requests"),
            Err(why) => outcome(StatusCode::INTERNAL_SERVER_ERROR, false, &why),
        },
        Some(worker) if pool.drain_worker(worker) => {
            outcome(StatusCode::OK, true, "the worker finishes its requests and is replaced")
        }
        Some(worker) => outcome(StatusCode::NOT_FOUND, false, &format!("worker {worker} is not serving")),
    })
}

/// `/pools/NAME/status`: the page that the pool's sites serve at its `status_path`.
pub(crate) fn page(pools: &Pools, request: &Request<Incoming>) -> Option<Response<Full<Bytes>>> {
    let name = named_page(request.uri().path())?;
    if request.method() != Method::GET {
        return Some(outcome(StatusCode::METHOD_NOT_ALLOWED, false, "GET /pools/NAME/status"));
    }
    let query = request.uri().query().unwrap_or_default();
    let found = pools.position(name).and_then(|pool| pools.page(pool, query.as_bytes()));
    let Some(found) = found else {
        return Some(outcome(StatusCode::NOT_FOUND, false, &format!("unknown pool {name}")));
    };
    let mut response = text(found.media_type, found.body);
    *response.status_mut() = found.status;
    Some(response)
}

/// Returns a page for a FastCGI client, which may also use a pool's `status_path`. `refused`: the guard refuses the
/// client's process.
pub(crate) fn fastcgi_page(server: &Server, guard: &Guard, refused: bool, page_request: &PageRequest) -> PoolPageText {
    if refused {
        return refusal(StatusCode::FORBIDDEN, "this process may not use the admin endpoint\n".to_owned());
    }
    if let Err((status, why)) = guard.lets_read(page_request.authorization.as_deref()) {
        return refusal(status, format!("{why}\n"));
    }
    if !matches!(&*page_request.method, "" | "GET" | "HEAD") {
        return refusal(StatusCode::METHOD_NOT_ALLOWED, "only GET is allowed here\n".to_owned());
    }
    let revision = server.revision();
    let pools = &revision.pools;
    let found = match named_page(&page_request.path) {
        Some(name) => pools.position(name),
        None => page_at(&revision.settings.pools, &page_request.path),
    };
    let page = found.and_then(|pool| pools.page(pool, page_request.query.as_bytes()));
    page.unwrap_or_else(|| {
        let names: Vec<&str> = pools.iter().map(|pool| pool.name()).collect();
        let message = format!(
            "no page {}: there is /pools/NAME/status ({}), and the status_path of each pool\n",
            page_request.path,
            names.join(", ")
        );
        refusal(StatusCode::NOT_FOUND, message)
    })
}

const fn refusal(status: StatusCode, body: String) -> PoolPageText {
    PoolPageText { status, media_type: "text/plain;charset=UTF-8", body }
}

/// Returns the pool name in a status page's path on the admin endpoint.
fn named_page(path: &str) -> Option<&str> {
    path.strip_prefix("/pools/")?.strip_suffix("/status")
}

/// Returns the first pool with this `status_path`.
fn page_at(pools: &[PoolSettings], path: &str) -> Option<usize> {
    pools.iter().position(|pool| pool.status_path.as_deref() == Some(path))
}
