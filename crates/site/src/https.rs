//! Redirects clients without TLS to HTTPS, and advertises HTTP/3 to clients with TLS.

use crate::challenges;
use crate::forwarded::{self, Client};
use crate::refusal::Refusal;
use crate::request_path::plain_path;
use howdah_config::{ListenAddr, Settings};
use howdah_protocol::{Body, Head, Peer, Response};
use http::{HeaderValue, Method, StatusCode, Version, header};
use std::net::Ipv6Addr;

/// Settings for HTTPS.
#[derive(Debug, Default)]
pub struct Https {
    /// Clients without TLS are redirected to this port.
    redirect: Option<u16>,
    /// `true` if HTTP/3 is available on the same ports.
    http3: bool,
}

impl Https {
    /// `settings` have been checked.
    pub fn new(settings: &Settings) -> Self {
        let port = settings.listen.iter().find_map(|addr| match addr {
            ListenAddr::Https(addr) => Some(addr.port()),
            _ => None,
        });
        Self { redirect: port.filter(|_| settings.tls.redirect), http3: settings.tls.http3 }
    }

    /// Returns the redirect of a request without TLS to the same URL with HTTPS, under the site's `server_name` if it
    /// has one.
    ///
    /// ACME challenges over HTTP (RFC 8555 8.3) are never redirected, as there may be no certificate yet. They are
    /// recognized by the normalised path.
    ///
    /// # Errors
    /// 400 if the host is unknown or the target is invalid in a header.
    pub(crate) fn redirect(
        &self,
        head: &Head,
        peer: &Peer,
        client: &Client,
        pinned: Option<&str>,
    ) -> Result<Option<Response>, Refusal> {
        let Some(port) = self.redirect.filter(|_| !client.https) else { return Ok(None) };
        if plain_path(head.target.path()).is_ok_and(|path| path.starts_with(challenges::PREFIX)) {
            return Ok(None);
        }
        // `limits` has checked that the host is valid.
        let host = forwarded::named_host(head).and_then(|host| std::str::from_utf8(host).ok()).unwrap_or_default();
        let (name, _) = forwarded::split_port(host);
        let name = pinned.map(str::to_owned).or_else(|| (!name.is_empty()).then(|| name.to_owned()));
        let name =
            name.or_else(|| address(peer)).ok_or(Refusal::bad_request("no host, which a redirect to HTTPS needs"))?;
        let mut location = format!("https://{name}").into_bytes();
        if port != 443 {
            location.extend_from_slice(format!(":{port}").as_bytes());
        }
        location.extend_from_slice(head.target.path());
        if let Some(query) = head.target.query() {
            location.push(b'?');
            location.extend_from_slice(query);
        }
        let mut response = Response::new(Body::empty());
        // Clients may turn other methods into GET after 301, but not after 308.
        let safe = head.method == Method::GET || head.method == Method::HEAD;
        *response.status_mut() = if safe { StatusCode::MOVED_PERMANENTLY } else { StatusCode::PERMANENT_REDIRECT };
        let location = HeaderValue::from_bytes(&location).map_err(|_| Refusal::bad_request("an invalid target"))?;
        response.headers_mut().insert(header::LOCATION, location);
        Ok(Some(response))
    }

    /// Adds `Alt-Svc` to advertise HTTP/3 to clients with TLS (RFC 7838). Keeps a script's own field.
    pub(crate) fn advertise_http3(&self, head: &Head, peer: &Peer, response: &mut Response) {
        if self.http3
            && peer.https
            && head.version < Version::HTTP_3
            && let Ok(value) = HeaderValue::from_str(&format!("h3=\":{}\"; ma=86400", peer.server_port))
        {
            response.headers_mut().entry(header::ALT_SVC).or_insert(value);
        }
    }
}

/// Returns the local address of the connection as a host; `None` on a Unix socket.
pub(crate) fn address(peer: &Peer) -> Option<String> {
    peer.addr?;
    let address = &*peer.server_addr;
    Some(address.parse::<Ipv6Addr>().map_or_else(|_| address.to_owned(), |address| format!("[{address}]")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use howdah_config::HttpSettings;
    use howdah_protocol::Target;
    use http::HeaderMap;

    /// Returns the redirect target of a request without TLS, for this local address.
    fn sent_to(path: &str, host: Option<&str>, peer: &Peer, pinned: Option<&str>) -> Result<Option<String>, u16> {
        let target = Target::parse(Bytes::copy_from_slice(path.as_bytes())).unwrap();
        let mut headers = HeaderMap::new();
        host.map(|host| headers.insert(header::HOST, host.parse().unwrap()));
        let head = Head { method: Method::GET, target, version: Version::HTTP_10, headers };
        let https = Https { redirect: Some(9441), ..Https::default() };
        let client = forwarded::client(peer, &head.headers, &HttpSettings::default());
        let redirected = https.redirect(&head, peer, &client, pinned);
        let redirected = redirected.map_err(|refusal| refusal.status().as_u16())?;
        Ok(redirected.map(|response| response.headers()[header::LOCATION].to_str().unwrap().to_owned()))
    }

    #[test]
    fn a_redirect_to_https_invents_no_host() {
        let tcp = |local: &str| Peer::tcp(([192, 0, 2, 9], 4000).into(), local.parse().unwrap(), |_| false);
        let mut unix = tcp("192.0.2.1:80");
        (unix.addr, unix.server_addr) = (None, "unix:/run/web.sock".into());
        for (host, peer, pinned, expected) in [
            (Some("a.example:80"), &tcp("192.0.2.1:80"), None, Ok("https://a.example:9441/x")),
            (None, &tcp("192.0.2.1:80"), None, Ok("https://192.0.2.1:9441/x")),
            (None, &tcp("[::1]:80"), None, Ok("https://[::1]:9441/x")),
            (Some("[::1]:80"), &tcp("[::1]:80"), None, Ok("https://[::1]:9441/x")),
            (None, &unix, None, Err(400)),
            (Some("a.example"), &unix, None, Ok("https://a.example:9441/x")),
            (None, &unix, Some("pinned.example"), Ok("https://pinned.example:9441/x")),
        ] {
            let found = sent_to("/x", host, peer, pinned);
            assert_eq!(found, expected.map(|place| Some(place.to_owned())), "{host:?} {pinned:?}");
        }
    }

    #[test]
    fn only_acme_challenges_are_served_without_tls() {
        let peer = Peer::tcp(([192, 0, 2, 9], 4000).into(), ([192, 0, 2, 1], 80).into(), |_| false);
        for (path, stays) in [
            ("/.well-known/acme-challenge/x", true),
            ("//.well-known/./acme-challenge/x", true),
            ("/.well-known/acme-challenge/../../login.php", false),
            ("/.well-known/acme-challenge/%2e%2e/%2e%2e/login.php", false),
            ("/.well-known/acme-challenge/%2e%2e/%2e%2e/%2e%2e/x", false),
            ("/.well-known/acme-challenge%2f../x", false),
            ("/.well-known/acme-challenge", false),
        ] {
            assert_eq!(sent_to(path, Some("a.example"), &peer, None).unwrap().is_none(), stays, "{path}");
        }
    }
}
