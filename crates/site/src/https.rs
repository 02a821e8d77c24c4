//! Sends clients that came without TLS to where it is spoken, and tells the others to stay there.

use crate::forwarded;
use howdah_config::{HttpSettings, ListenAddr, Settings};
use howdah_protocol::{Body, Head, Peer, Response};
use http::{HeaderValue, Method, StatusCode, Version, header};

/// What certificate authorities ask for over HTTP (RFC 8555 8.3) is never sent elsewhere: perhaps there is no certificate yet.
const CHALLENGES: &[u8] = b"/.well-known/acme-challenge/";

/// What the settings say about it.
#[derive(Debug, Default)]
pub struct Https {
    /// Clients without TLS are sent to this port.
    redirect: Option<u16>,
    /// `Strict-Transport-Security`.
    hsts: Option<HeaderValue>,
    /// HTTP/3 is spoken at the same ports.
    http3: bool,
}

impl Https {
    /// From the settings, which were checked.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        let port = settings.listen.iter().find_map(|addr| match addr {
            ListenAddr::Https(addr) => Some(addr.port()),
            ListenAddr::Tcp(_) | ListenAddr::Unix(_) => None,
        });
        let hsts = settings.tls.hsts.as_deref().and_then(|value| HeaderValue::from_str(value).ok());
        Self { redirect: port.filter(|_| settings.tls.redirect), hsts, http3: settings.tls.http3 }
    }

    /// The way to the same address with TLS, for who came without; on the host that the site pins, if it does.
    pub(crate) fn redirect(
        &self,
        head: &Head,
        peer: &Peer,
        trusted: &HttpSettings,
        pinned: Option<&str>,
    ) -> Option<Response> {
        let port = self.redirect?;
        if head.target.path().starts_with(CHALLENGES) || is_https(head, peer, trusted) {
            return None;
        }
        // `limits` has made sure that these are hosts.
        let host = head.target.authority().or_else(|| head.headers.get(header::HOST).map(HeaderValue::as_bytes));
        let host = host.and_then(|host| std::str::from_utf8(host).ok()).unwrap_or_default();
        let (name, _) = forwarded::split_port(host);
        let name = pinned.unwrap_or(if name.is_empty() { &*peer.server_addr } else { name });
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
        // 301 may turn other methods into GET, 308 may not.
        let safe = head.method == Method::GET || head.method == Method::HEAD;
        *response.status_mut() = if safe { StatusCode::MOVED_PERMANENTLY } else { StatusCode::PERMANENT_REDIRECT };
        response.headers_mut().insert(header::LOCATION, HeaderValue::from_bytes(&location).ok()?);
        Some(response)
    }

    /// Tells a client that came with TLS to come so again (RFC 6797), and that it may come over HTTP/3 (RFC 7838). What a
    /// script says itself stays.
    pub(crate) fn stay(&self, head: &Head, peer: &Peer, trusted: &HttpSettings, response: &mut Response) {
        if let Some(hsts) = &self.hsts
            && is_https(head, peer, trusted)
        {
            response.headers_mut().entry(header::STRICT_TRANSPORT_SECURITY).or_insert_with(|| hsts.clone());
        }
        if self.http3
            && peer.https
            && head.version < Version::HTTP_3
            && let Ok(value) = HeaderValue::from_str(&format!("h3=\":{}\"; ma=86400", peer.server_port))
        {
            response.headers_mut().entry(header::ALT_SVC).or_insert(value);
        }
    }
}

/// Whether the client speaks TLS, with this server or with a trusted proxy.
fn is_https(head: &Head, peer: &Peer, trusted: &HttpSettings) -> bool {
    forwarded::client(peer, &head.headers, trusted).https
}
