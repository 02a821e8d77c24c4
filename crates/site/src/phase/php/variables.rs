//! The variables of a request: those of nginx's stock `fastcgi_params` and PHP-FPM, in the same order.
//!
//! Deliberate differences: `SERVER_NAME` is the requested host unless a setting pins it. `PATH_TRANSLATED` is set only
//! if there is a `PATH_INFO`, and `REMOTE_USER` only if a password was verified. `REMOTE_HOST`, `REQUEST_ID`, and
//! variables of TLS, traces, rules and the Mercure hub are added. `client_fields` decides which client headers are
//! withheld.

use crate::client_fields;
use crate::exchange::Exchange;
use crate::forwarded::split_port;
use crate::phase::access_log::protocol;
use crate::phase::access_log_fpm;
use crate::request_id;
use crate::route::{Script, root_bytes};
use crate::site::Site;
use howdah_pool::RequestBody;
use howdah_protocol::{Params, Session};
use howdah_telemetry::Trace;
use howdah_transport::wire::{EncodedRequest, RequestBuilder, VAR_NAMES, VarName};
use http::header::{self, HeaderName};
use http::{HeaderMap, Version};
use rustc_hash::FxHashMap;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::path::Path;
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// Encodes a request for PHP.
pub(super) fn encode(site: &Site, exchange: &Exchange, script: &Script, body: &RequestBody) -> EncodedRequest {
    let since_epoch = exchange.time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let received = u64::try_from(since_epoch.as_micros()).unwrap_or(0);
    let mut encoded = RequestBuilder::new(exchange.id.0, protocol_number(exchange.head.version), received);
    if let Some(variables) = &exchange.variables {
        of_web_server(&mut encoded, variables, script);
        if access_log_fpm::needs_usage(exchange) {
            encoded.usage();
        }
        if let Some(of_request) = &exchange.trace {
            trace(&mut encoded, of_request);
        }
        return encoded.finish();
    }
    request(&mut encoded, site, exchange, script, body);
    connection(&mut encoded, site, exchange, script);
    if let Some(session) = exchange.connection.session.get() {
        tls(&mut encoded, session, exchange.time);
    }
    headers(&mut encoded, exchange);
    if let Some(of_request) = &exchange.trace {
        trace(&mut encoded, of_request);
    }
    if site.mercure.is_some() {
        // For `mercure_publish()`.
        encoded.custom_var(b"HOWDAH_MERCURE", b"1");
    }
    settled(&mut encoded, exchange);
    encoded.finish()
}

/// Encodes the variables sent by a web server in front, as PHP-FPM passes them on.
fn of_web_server(encoded: &mut RequestBuilder, variables: &Params, script: &Script) {
    static NUMBERS: LazyLock<FxHashMap<&[u8], VarName>> =
        LazyLock::new(|| VAR_NAMES.iter().map(|name| name.as_bytes()).zip(VarName::ALL.iter().copied()).collect());
    let empty = encoded.text(b"");
    let file = encoded.text(&script.filename);
    encoded.query(empty).method(empty).content_type(empty).uri(empty).script(file);
    for (name, value) in variables.iter() {
        let Some(number) = NUMBERS.get(name) else {
            encoded.custom_var(name, value);
            continue;
        };
        let at = encoded.var(*number, value);
        match number {
            VarName::QUERY_STRING => drop(encoded.query(at)),
            VarName::REQUEST_METHOD => drop(encoded.method(at)),
            VarName::CONTENT_TYPE => drop(encoded.content_type(at)),
            VarName::REQUEST_URI => drop(encoded.uri(at)),
            VarName::HTTP_COOKIE => drop(encoded.cookie(at)),
            VarName::HTTP_AUTHORIZATION => drop(encoded.authorization(at)),
            _ => {}
        }
    }
    encoded.custom_var(b"FCGI_ROLE", b"RESPONDER");
}

/// Encodes the user, variables and PHP settings (in PHP-FPM's form) of rules, `.htaccess` files and events.
fn settled(encoded: &mut RequestBuilder, exchange: &Exchange) {
    let (ruled, changes) = (exchange.ruled.as_deref(), exchange.changes.as_deref());
    if ruled.is_none() && changes.is_none() {
        return;
    }
    let user = ruled.and_then(|ruled| ruled.user.as_deref());
    if let Some(user) = user.or_else(|| changes.and_then(|changes| changes.user.as_deref())) {
        encoded.var(VarName::REMOTE_USER, user.as_bytes());
        encoded.var(VarName::AUTH_TYPE, b"Basic");
    }
    let of_rules = ruled.map(|ruled| (&ruled.outcome.variables, &ruled.outcome.ini));
    let of_files = changes.map(|changes| (&changes.variables, &changes.ini));
    let (mut values, mut admin) = (String::new(), String::new());
    for (variables, ini) in of_rules.into_iter().chain(of_files) {
        for (name, value) in variables {
            encoded.custom_var(name.as_bytes(), value);
        }
        let lines = |to: &mut String, (key, value): &(_, _)| *to += &format!("{key}={value}\n");
        ini.iter().flat_map(|ini| &ini.values).for_each(|pair| lines(&mut values, pair));
        ini.iter().flat_map(|ini| &ini.admin).for_each(|pair| lines(&mut admin, pair));
    }
    for (name, lines) in [(VarName::PHP_VALUE, values), (VarName::PHP_ADMIN_VALUE, admin)] {
        if !lines.is_empty() {
            encoded.var(name, lines.as_bytes());
        }
    }
}

/// Variables of the request: `QUERY_STRING` to `SERVER_PROTOCOL`.
fn request(encoded: &mut RequestBuilder, site: &Site, exchange: &Exchange, script: &Script, body: &RequestBody) {
    let head = &exchange.head;
    let query = encoded.var(VarName::QUERY_STRING, exchange.query().unwrap_or_default());
    let method = encoded.var(VarName::REQUEST_METHOD, head.method.as_str().as_bytes());
    let content_type = head.headers.get(header::CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    let content_type = encoded.var(VarName::CONTENT_TYPE, content_type);
    encoded.query(query).method(method).content_type(content_type);
    // A chunked body has a known length too, because it was read first. A request without a body gets an empty length.
    let has_length = !body.is_empty() || head.headers.contains_key(header::CONTENT_LENGTH);
    let length = if has_length { Decimal::new(body.len()) } else { Decimal::EMPTY };
    encoded.var(VarName::CONTENT_LENGTH, length.as_bytes());
    let name = encoded.var(VarName::SCRIPT_NAME, &script.name);
    let uri = encoded.var(VarName::REQUEST_URI, head.target.as_bytes());
    encoded.uri(uri);
    encoded.var_at(VarName::DOCUMENT_URI, name);
    encoded.var(VarName::DOCUMENT_ROOT, root_bytes(root(site, script)));
    encoded.var(VarName::SERVER_PROTOCOL, protocol(head.version).as_bytes());
}

/// Returns the document root, which a rule may override.
fn root<'a>(site: &'a Site, script: &'a Script) -> &'a Path {
    script.root.as_deref().unwrap_or(&site.root)
}

/// Variables of the connection and script: `REQUEST_SCHEME` to `PATH_TRANSLATED`.
fn connection(encoded: &mut RequestBuilder, site: &Site, exchange: &Exchange, script: &Script) {
    let (peer, client) = (&exchange.connection.peer, &exchange.client);
    encoded.var(VarName::REQUEST_SCHEME, if client.https { b"https" } else { b"http" });
    if client.https {
        encoded.var(VarName::HTTPS, b"on");
    }
    encoded.var(VarName::GATEWAY_INTERFACE, b"CGI/1.1");
    encoded.var(VarName::SERVER_SOFTWARE, site.server.software.as_bytes());
    let addr = encoded.var(VarName::REMOTE_ADDR, client.addr(peer).as_bytes());
    // No reverse DNS lookup: RFC 3875, 4.1.9, then allows the address, and FrankenPHP does the same.
    encoded.var_at(VarName::REMOTE_HOST, addr);
    encoded.var(VarName::REMOTE_PORT, client.port(peer).as_bytes());
    encoded.var(VarName::SERVER_ADDR, peer.server_addr.as_bytes());
    encoded.var(VarName::SERVER_PORT, client.server_port(peer).as_bytes());
    encoded.var(VarName::SERVER_NAME, server_name(site, exchange));
    let status = exchange.error_status.unwrap_or(200);
    encoded.var(VarName::REDIRECT_STATUS, Decimal::new(u64::from(status)).as_bytes());
    let filename = encoded.var(VarName::SCRIPT_FILENAME, &script.filename);
    encoded.script(filename);
    // Always set, and usually empty, as in nginx with Debian's snippets.
    encoded.var(VarName::PATH_INFO, &script.path_info);
    if !script.path_info.is_empty() {
        encoded.var_parts(VarName::PATH_TRANSLATED, &[root_bytes(root(site, script)), &script.path_info]);
    }
    encoded.var(VarName::REQUEST_ID, &request_id::digits(exchange.id));
}

/// Variables of the TLS session, named as in Apache's mod_ssl. `SSL_SERVER_NAME` is nginx's name. The variable of the
/// fingerprint (SHA-256) has no established name.
fn tls(encoded: &mut RequestBuilder, session: &Session, now: SystemTime) {
    let mut var = |name: &str, value: &str| {
        encoded.custom_var(name.as_bytes(), value.as_bytes());
    };
    var("SSL_PROTOCOL", session.version);
    var("SSL_CIPHER", session.cipher);
    var("SSL_CIPHER_USEKEYSIZE", session.cipher_bits);
    var("SSL_SESSION_RESUMED", if session.resumed { "Resumed" } else { "Initial" });
    if let Some(name) = &session.server_name {
        var("SSL_SERVER_NAME", name);
        var("SSL_TLS_SNI", name);
    }
    let Some(client) = &session.client else { return var("SSL_CLIENT_VERIFY", "NONE") };
    var("SSL_CLIENT_VERIFY", "SUCCESS");
    var("SSL_CLIENT_S_DN", &client.subject);
    var("SSL_CLIENT_S_DN_CN", &client.common_name);
    var("SSL_CLIENT_I_DN", &client.issuer);
    var("SSL_CLIENT_M_SERIAL", &client.serial);
    var("SSL_CLIENT_V_START", &client.not_before);
    var("SSL_CLIENT_V_END", &client.not_after);
    var("SSL_CLIENT_V_REMAIN", &client.days_left(now).to_string());
    var("SSL_CLIENT_FINGERPRINT", &client.fingerprint);
}

/// Returns the name from the settings, else the requested host, else the local address of the connection.
fn server_name<'a>(site: &'a Site, exchange: &'a Exchange) -> &'a [u8] {
    if let Some(name) = &site.settings.server_name {
        return name.as_bytes();
    }
    match split_port(exchange.host_text()).0 {
        "" => exchange.connection.peer.server_addr.as_bytes(),
        name => name.as_bytes(),
    }
}

/// The request's headers as `HTTP_*`.
fn headers(encoded: &mut RequestBuilder, exchange: &Exchange) {
    let map = &exchange.head.headers;
    // The effective host may differ from the `Host` field (proxies), or come without one (`:authority`).
    let is_elsewhere = exchange.client.reported_host().is_some() || exchange.head.target.authority().is_some();
    let counted = if is_elsewhere { exchange.host() } else { None };
    if let Some(host) = counted {
        encoded.var(VarName::HTTP_HOST, host);
    }
    let mut scratch = Vec::new();
    let mut fields = map.iter().peekable();
    while let Some((name, first)) = fields.next() {
        // The map yields all lines of a name consecutively.
        let more = fields.peek().is_some_and(|(next, _)| *next == name);
        while fields.next_if(|(next, _)| *next == name).is_some() {}
        if *name == header::HOST && counted.is_some() {
            continue;
        }
        if exchange.trace.is_some() && is_of_traces(name) {
            continue;
        }
        match variable_name(name) {
            None => {}
            Some(Variable::Known(var)) => {
                let at = if more {
                    joined(map, name, &mut scratch);
                    encoded.text(&scratch)
                } else {
                    encoded.text(first.as_bytes())
                };
                encoded.var_at(var, at);
                match *name {
                    header::COOKIE => drop(encoded.cookie(at)),
                    header::AUTHORIZATION => drop(encoded.authorization(at)),
                    _ => {}
                }
            }
            Some(Variable::Spelled(_))
                if client_fields::only_proxies_may_set(name) && !exchange.connection.peer.trusted => {}
            Some(Variable::Spelled(spelled)) => {
                joined(map, name, &mut scratch);
                encoded.custom_var(&spelled, &scratch);
            }
        }
    }
}

/// `true` for the fields of a trace context, which the server replaces with its own if it traces the request.
fn is_of_traces(name: &HeaderName) -> bool {
    matches!(name.as_str(), "traceparent" | "tracestate")
}

/// Encodes the request's trace context, so that spans made in PHP become its children.
fn trace(encoded: &mut RequestBuilder, trace: &Trace) {
    encoded.custom_var(b"HTTP_TRACEPARENT", trace.parent_field().as_bytes());
    if let Some(state) = trace.state_field() {
        encoded.custom_var(b"HTTP_TRACESTATE", state.as_bytes());
    }
}

fn joined(map: &HeaderMap, name: &HeaderName, into: &mut Vec<u8>) {
    let separator: &[u8] = if *name == header::COOKIE { b"; " } else { b", " };
    into.clear();
    for (number, line) in map.get_all(name).iter().enumerate() {
        if number > 0 {
            into.extend_from_slice(separator);
        }
        into.extend_from_slice(line.as_bytes());
    }
}

enum Variable {
    Known(VarName),
    Spelled(Vec<u8>),
}

/// The `HTTP_*` variable of a header; `None` for those that scripts must not see.
fn variable_name(name: &HeaderName) -> Option<Variable> {
    static KNOWN: LazyLock<KnownHeaders> = LazyLock::new(known_headers);
    if let Some(var) = KNOWN.get(name) {
        return Some(Variable::Known(*var));
    }
    if !client_fields::is_unambiguous(name) {
        return None;
    }
    let text = name.as_str();
    let mut spelled = Vec::with_capacity(5 + text.len());
    spelled.extend_from_slice(b"HTTP_");
    spelled.extend(text.bytes().map(|b| if b == b'-' { b'_' } else { b.to_ascii_uppercase() }));
    Some(Variable::Spelled(spelled))
}

type KnownHeaders = HashMap<HeaderName, VarName, BuildHasherDefault<QuickHasher>>;

/// A fast, unkeyed hasher. It is safe because clients cannot add entries to the map.
#[derive(Default)]
struct QuickHasher(u64);

impl Hasher for QuickHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, n: u8) {
        self.write_u64(u64::from(n));
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(5) ^ n).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }

    fn write_isize(&mut self, n: isize) {
        self.write_u64(n as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

fn known_headers() -> KnownHeaders {
    let header = |name: &str| {
        let text = name.strip_prefix("HTTP_")?.to_ascii_lowercase().replace('_', "-");
        HeaderName::from_bytes(text.as_bytes()).ok()
    };
    VAR_NAMES.iter().zip(VarName::ALL).filter_map(|(name, var)| Some((header(name)?, *var))).collect()
}

fn protocol_number(version: Version) -> u32 {
    match version {
        Version::HTTP_09 | Version::HTTP_10 => 1000,
        Version::HTTP_2 => 2000,
        Version::HTTP_3 => 3000,
        _ => 1001,
    }
}

/// A number in decimal digits, without an allocation.
struct Decimal {
    digits: [u8; 20],
    from: usize,
}

impl Decimal {
    const EMPTY: Self = Self { digits: [0; 20], from: 20 };

    fn new(mut number: u64) -> Self {
        let mut decimal = Self::EMPTY;
        loop {
            decimal.from -= 1;
            decimal.digits[decimal.from] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return decimal;
            }
        }
    }

    fn as_bytes(&self) -> &[u8] {
        &self.digits[self.from..]
    }
}

#[cfg(test)]
#[path = "variables_tests.rs"]
mod tests;
