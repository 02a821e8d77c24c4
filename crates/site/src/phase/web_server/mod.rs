//! Phase "web_server": requests that a web server in front sends over FastCGI, as to PHP-FPM. The web server has
//! already handled hosts, access and files, and names the script. So this phase only checks the peer and the body's
//! length, serves pool pages, finds the script, passes the web server's variables to it, and returns its response
//! unchanged.

mod script;

use crate::exchange::Exchange;
use crate::phase::own_responses::pool_page;
use crate::phase::{limits, php, rules};
use crate::refusal::Refusal;
use crate::responder::{Context, Responder};
use crate::route::{Script, runs_one_script};
use crate::upstream::Upstream;
use bytes::Bytes;
use howdah_protocol::{Body, Params, RequestBody, Response, StandardError};
use http::{HeaderValue, StatusCode, header};

/// Runs the script that a web server names.
pub(crate) struct FromWebServer;

impl Responder for FromWebServer {
    fn concerns(exchange: &Exchange) -> bool {
        exchange.variables.is_some()
    }

    async fn respond<U: Upstream>(
        context: &Context<U>,
        exchange: &mut Exchange,
        body: &mut RequestBody,
    ) -> Result<Option<Response>, Refusal> {
        let Some(params) = exchange.variables.take() else { return Ok(None) };
        Box::pin(run(context, exchange, *params, body.take())).await.map(Some)
    }
}

async fn run<U: Upstream>(
    context: &Context<U>,
    exchange: &mut Exchange,
    mut params: Params,
    body: RequestBody,
) -> Result<Response, Refusal> {
    if !is_allowed(exchange) {
        exchange.variables = Some(Box::new(params));
        return Ok(refused());
    }
    // As in PHP-FPM, status pages are matched against `SCRIPT_NAME`.
    let (name, query) = (params.get("SCRIPT_NAME").unwrap_or_default(), params.get("QUERY_STRING").unwrap_or_default());
    if let Some(page) = pool_page(context, &exchange.site, name, query) {
        exchange.variables = Some(Box::new(params));
        return Ok(page);
    }
    rules::choose_pool(exchange);
    let found = find(exchange, &mut params);
    exchange.variables = Some(Box::new(params));
    limits::check_body(exchange.max_body(), &exchange.head)?;
    match found {
        Found::Script { script, is_missing } => {
            if is_missing {
                // PHP logs the missing script too; the web server gets only the message below.
                exchange.messages = None;
            }
            let mut response = php::run(&*context.upstream, exchange, &script, body).await?;
            if is_missing {
                response.extensions_mut().insert(StandardError(Bytes::from_static(b"Primary script unknown")));
            }
            Ok(response)
        }
        Found::Denied(path) => Ok(denied(&path)),
    }
}

/// `false` if the pool has a list of allowed clients and this peer is not on it.
fn is_allowed(exchange: &Exchange) -> bool {
    let site = &exchange.site;
    let pool = site.server.settings.pools.get(site.pool).and_then(|pool| pool.fpm.as_ref());
    match (pool.and_then(|pool| pool.clients.as_ref()), exchange.connection.peer.addr) {
        (Some(clients), Some(addr)) => clients.contains(&addr),
        _ => true,
    }
}

fn refused() -> Response {
    let mut response = Response::new(Body::full(Bytes::from_static(b"Access denied.\n")));
    *response.status_mut() = StatusCode::FORBIDDEN;
    let message = Bytes::from_static(b"connection disallowed: this client is not in listen.allowed_clients");
    response.extensions_mut().insert(StandardError(message));
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

enum Found {
    /// The script to run. If `is_missing`, PHP responds that the file does not exist.
    Script { script: Script, is_missing: bool },
    /// Not a script.
    Denied(Vec<u8>),
}

fn find(exchange: &Exchange, params: &mut Params) -> Found {
    let site = &exchange.site;
    let pool = rules::lookup(site, exchange).pool.unwrap_or(site.pool);
    let settings = site.server.settings.pools.get(pool);
    let extensions = settings.and_then(|settings| Some(&*settings.fpm.as_ref()?.extensions));
    let asked = params.get("SCRIPT_FILENAME").map(<[u8]>::to_vec).unwrap_or_default();
    let found = match settings.filter(|settings| runs_one_script(settings)) {
        Some(_) => Some(asked.clone()),
        None => {
            let ini = settings.map(|settings| &settings.php);
            let fix = ini.and_then(|php| {
                let name = "cgi.fix_pathinfo";
                php.admin_ini.get(name).or_else(|| php.ini.get(name))
            });
            let fix = fix.is_none_or(|value| !matches!(value.trim(), "" | "0" | "off" | "Off" | "no" | "false"));
            match script::find(params, fix) {
                Some(path) if !script::is_allowed(&path, extensions) => return Found::Denied(path),
                found => found,
            }
        }
    };
    let is_missing = found.is_none();
    // PHP logs the name of the missing file. The file may have appeared since, so it must still be one that may run.
    let filename = found.unwrap_or(if script::may_run(&asked, extensions) { asked } else { Vec::new() });
    let own = |name| params.get(name).map(<[u8]>::to_vec).unwrap_or_default();
    let (name, path_info) = (own("SCRIPT_NAME"), own("PATH_INFO"));
    let script = Script { name, filename, path_info, pool, root: None, real: None };
    Found::Script { script, is_missing }
}

/// Returns PHP-FPM's response to a file that must not run as a script.
fn denied(path: &[u8]) -> Response {
    let mut response = Response::new(Body::full(Bytes::from_static(b"Access denied.\n")));
    *response.status_mut() = StatusCode::FORBIDDEN;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=UTF-8"));
    let path = String::from_utf8_lossy(path);
    let message = format!("Access to the script '{path}' has been denied (see security.limit_extensions)");
    response.extensions_mut().insert(StandardError(Bytes::from(message)));
    response
}
