//! Access control of the admin endpoint.
//!
//! On a Unix socket the kernel identifies the client. Root, the server's user, and users admitted by the socket's
//! permissions may connect; descendants of the server may not, because they run PHP. On an address the client is
//! unknown. Any web page can make a browser send requests there, so the guard refuses all pages but the dashboard:
//! browsers send the page's host and origin, and no custom header without a preflight request. With a token, the guard
//! accepts any host, but refuses clients that do not send the token.

use crate::control::outcome::ORDER;
use crate::server::upgrade::TakeOver;
use howdah_config::{Settings, SocketPlace};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, ORIGIN};
use hyper::{Method, StatusCode, Uri};
use tokio::net::unix::UCred;

/// The path of the order to restore routes.
pub(crate) const RESTORE: &str = "/routes/restore";
pub(crate) const DASHBOARD: &str = "/dashboard";

/// Response to a refused request.
pub(crate) type Refused = (StatusCode, &'static str);

const FOREIGN_HOST: Refused =
    (StatusCode::FORBIDDEN, "without `admin_token` the admin endpoint responds to its address and localhost only");
const FROM_A_PAGE: Refused = (StatusCode::FORBIDDEN, "the admin endpoint refuses requests from web pages");
const NO_ORDER: Refused =
    (StatusCode::FORBIDDEN, "an order needs the field `X-Howdah: 1` or a body of type application/json");
const NO_TOKEN: Refused = (StatusCode::UNAUTHORIZED, "the admin endpoint needs `Authorization: Bearer TOKEN`");

/// Requirements for connections and requests.
#[derive(Debug)]
pub(crate) struct Guard {
    /// Accepted hosts for requests on an address. `None` with a token, which no web page knows, and on a Unix socket,
    /// which browsers cannot reach.
    hosts: Option<Vec<String>>,
    token: Option<String>,
    /// `true` if the dashboard may restart pools, drain workers and restore routes.
    dashboard_orders: bool,
    /// `true` if the settings admit users other than the socket's owner.
    shared: bool,
    /// The server that this one has replaced; its PHP may still run.
    predecessor: Option<TakeOver>,
}

impl Guard {
    pub(crate) fn new(settings: &Settings, predecessor: Option<TakeOver>) -> Self {
        let hosts = match settings.admin.place() {
            SocketPlace::Tcp(addr) => {
                let ip = addr.ip();
                let own = if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() };
                let known = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned);
                Some(known.into_iter().chain([own]).collect())
            }
            SocketPlace::Unix(_) => None,
        };
        let token = settings.admin_token.as_ref().filter(|_| hosts.is_some()).map(|token| token.expose().to_owned());
        let hosts = hosts.filter(|_| token.is_none());
        let dashboard_orders = settings.dashboard_orders;
        Self { hosts, token, dashboard_orders, shared: settings.admin_group.is_some(), predecessor }
    }

    /// Checks whether a process may use the Unix socket; the error is the reason for a refusal.
    pub(crate) fn admits(&self, peer: &UCred) -> Result<(), &'static str> {
        let own = rustix::process::geteuid().as_raw();
        if peer.uid() != 0 && peer.uid() != own && !self.shared {
            return Err("a user other than root and the server's");
        }
        // 0: the process is outside this PID namespace, so it is not a descendant of the server.
        let Some(pid) = peer.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid != 0) else {
            return Ok(());
        };
        let predecessor = self.predecessor.as_ref().and_then(TakeOver::predecessor);
        if predecessor.is_some_and(|old| pid != old && descends_from(pid, old) == Some(true)) {
            return Err("a process that the previous server started");
        }
        match descends_from(pid, std::process::id()) {
            Some(true) => Err("a process that the server started"),
            Some(false) => Ok(()),
            // `/proc` may hide root's processes from other users. They are not PHP, which never runs as root under a
            // non-root server.
            None if peer.uid() == 0 && own != 0 => Ok(()),
            None => Err("a process of unknown origin"),
        }
    }

    /// Checks a request.
    pub(crate) fn lets_pass(&self, method: &Method, uri: &Uri, fields: &HeaderMap) -> Result<(), Refused> {
        if let Some(hosts) = &self.hosts {
            let mut named = fields.get_all(HOST).iter();
            let field = named.next().and_then(|host| host.to_str().ok());
            let of_uri = uri.authority().map(hyper::http::uri::Authority::as_str);
            let is_known = |host: &str| hosts.iter().any(|known| known.eq_ignore_ascii_case(without_port(host)));
            let fits = field.is_some_and(is_known) && named.next().is_none() && of_uri.is_none_or(is_known);
            if !fits {
                return Err(FOREIGN_HOST);
            }
        }
        if !self.may_come_from(method, uri, fields) {
            return Err(FROM_A_PAGE);
        }
        // The dashboard's page contains no data; it fetches everything from this endpoint.
        if !matches!(uri.path(), DASHBOARD | "/") {
            self.has_token(fields.get(AUTHORIZATION).map(HeaderValue::as_bytes))?;
        }
        // Browsers send a preflight request before either of these; Laravel Octane sends the second.
        let is_json = || fields.get(CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
        if *method == Method::POST && !fields.contains_key(ORDER) && !is_json() {
            return Err(NO_ORDER);
        }
        Ok(())
    }

    /// Checks a request for a page over a protocol other than HTTP. Browsers cannot send these, so only the token
    /// counts.
    pub(crate) fn lets_read(&self, authorization: Option<&str>) -> Result<(), Refused> {
        self.has_token(authorization.map(str::as_bytes))
    }

    fn has_token(&self, authorization: Option<&[u8]>) -> Result<(), Refused> {
        let Some(token) = &self.token else { return Ok(()) };
        let given = authorization.and_then(|field| field.strip_prefix(b"Bearer "));
        if given.is_some_and(|given| is_same(given, token.as_bytes())) { Ok(()) } else { Err(NO_TOKEN) }
    }

    /// Checks a request's origin. The dashboard is the only page that may send requests, and it may give orders only if
    /// the settings allow it. A same-origin page under a foreign name (DNS rebinding) gets no data: without a token its
    /// host was refused before, and with a token it would have to know that.
    fn may_come_from(&self, method: &Method, uri: &Uri, fields: &HeaderMap) -> bool {
        let site = fields.get("sec-fetch-site").map(|site| site.as_bytes());
        let is_own_page = site == Some(b"same-origin");
        if site.is_some_and(|site| site != b"none") && !is_own_page {
            return false;
        }
        let is_order = *method != Method::GET && *method != Method::HEAD;
        let may_order = self.dashboard_orders && (uri.path().starts_with("/pools/") || uri.path() == RESTORE);
        if is_own_page && is_order && !may_order {
            return false;
        }
        let host = fields.get(HOST).map(|host| host.as_bytes()).unwrap_or_default();
        let is_own = |origin: &[u8]| may_order && is_own_page && origin.strip_prefix(b"http://") == Some(host);
        fields.get(ORIGIN).is_none_or(|origin| is_own(origin.as_bytes()))
    }
}

/// Strips the port from a host.
fn without_port(host: &str) -> &str {
    let name_ends = host.rfind(']').map_or(0, |bracket| bracket + 1);
    host.get(name_ends..).and_then(|rest| rest.find(':')).map_or(host, |colon| &host[..name_ends + colon])
}

/// Compares in constant time for texts of equal length.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

/// `true` if a process descends from another; `None` if it has ended or is hidden.
fn descends_from(mut pid: u32, ancestor: u32) -> Option<bool> {
    while pid > 1 {
        if pid == ancestor {
            return Some(true);
        }
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in parentheses, may itself contain spaces and parentheses.
        pid = stat.get(stat.rfind(')')? + 2..)?.split(' ').nth(1)?.parse().ok()?;
    }
    // In a container the server is process 1, and processes that enter from outside (`docker exec`) have parent 0.
    Some(pid == ancestor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(guard: &Guard, method: Method, uri: &str, fields: &[(&str, &str)]) -> Result<(), Refused> {
        let mut map = HeaderMap::new();
        for (name, value) in fields {
            map.append(name.parse::<hyper::header::HeaderName>().unwrap(), value.parse().unwrap());
        }
        guard.lets_pass(&method, &uri.parse().unwrap(), &map)
    }

    fn on_address(token: Option<&str>) -> Guard {
        let settings = Settings {
            admin: "127.0.0.5:90".parse().unwrap(),
            admin_token: token.map(Into::into),
            ..Settings::default()
        };
        Guard::new(&settings, None)
    }

    #[test]
    fn only_known_hosts_are_served_on_an_address() {
        let guard = on_address(None);
        for host in ["localhost", "LOCALHOST:1", "127.0.0.1:90", "[::1]", "[::1]:90", "127.0.0.5:90"] {
            assert_eq!(asked(&guard, Method::GET, "/status", &[("host", host)]), Ok(()), "{host}");
        }
        for host in ["attacker.example", "localhost.attacker.example", "", "127.0.0.2", "::1", "localhost@x", "[::1].x"]
        {
            assert_eq!(asked(&guard, Method::GET, "/status", &[("host", host)]), Err(FOREIGN_HOST), "{host}");
        }
        assert_eq!(asked(&guard, Method::GET, "/status", &[]), Err(FOREIGN_HOST));
        let two = [("host", "localhost"), ("host", "attacker.example")];
        assert_eq!(asked(&guard, Method::GET, "/status", &two), Err(FOREIGN_HOST));
        let absolute = asked(&guard, Method::GET, "http://attacker.example/status", &[("host", "localhost")]);
        assert_eq!(absolute, Err(FOREIGN_HOST));
    }

    #[test]
    fn requests_from_web_pages_are_refused() {
        for guard in [on_address(None), Guard::new(&Settings::default(), None)] {
            let with = |fields: &[(&str, &str)]| {
                let all: Vec<_> = [("host", "localhost"), ("x-howdah", "1")].iter().chain(fields).copied().collect();
                asked(&guard, Method::POST, "/stop", &all)
            };
            assert_eq!(with(&[]), Ok(()));
            assert_eq!(with(&[("sec-fetch-site", "none")]), Ok(()), "typed by a person");
            for field in [
                ("origin", "https://attacker.example"),
                ("origin", "null"),
                ("origin", "http://localhost"),
                ("sec-fetch-site", "cross-site"),
                ("sec-fetch-site", "same-site"),
                ("sec-fetch-site", "same-origin"),
            ] {
                assert_eq!(with(&[field]), Err(FROM_A_PAGE), "{field:?}");
            }
            assert_eq!(asked(&guard, Method::POST, "/stop", &[("host", "localhost")]), Err(NO_ORDER));
            assert_eq!(asked(&guard, Method::GET, "/status", &[("host", "localhost")]), Ok(()));
        }
    }

    #[test]
    fn every_request_needs_the_token() {
        let guard = on_address(Some("secret"));
        let named = [("host", "web1.internal"), ("authorization", "Bearer secret")];
        assert_eq!(asked(&guard, Method::GET, "/status", &named), Ok(()), "no page knows the token");
        for (method, path) in [(Method::GET, "/status"), (Method::POST, "/stop"), (Method::PATCH, "/config")] {
            let ask = |token: Option<&str>| {
                let mut fields = vec![("host", "localhost"), ("x-howdah", "1")];
                fields.extend(token.map(|token| ("authorization", token)));
                asked(&guard, method.clone(), path, &fields)
            };
            assert_eq!(ask(Some("Bearer secret")), Ok(()));
            for wrong in [None, Some("Bearer secreT"), Some("Bearer "), Some("secret"), Some("Bearer secret1")] {
                assert_eq!(ask(wrong), Err(NO_TOKEN), "{wrong:?}");
            }
        }
    }

    #[test]
    fn descendants_are_distinguished_from_other_processes() {
        let own = std::process::id();
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        assert_eq!(descends_from(child.id(), own), Some(true));
        assert_eq!(descends_from(own, child.id()), Some(false));
        assert_eq!(descends_from(1, own), Some(false));
        assert_eq!(descends_from(1, 1), Some(true));
        assert_eq!(descends_from(own, 1), Some(true));
        assert_eq!(descends_from(0, 1), Some(false));
        let _ = child.kill();
        let _ = child.wait();
        assert_eq!(descends_from(child.id(), own), None);
    }
}
