//! The token of a request: from `Authorization`, else the query (0.x only), else a cookie; and the challenges of
//! refusals (RFC 6750, RFC 9728).

use super::METADATA;
use crate::exchange::Exchange;
use crate::mercure::Mercure;
use crate::refusal::Refusal;
use howdah_config::HostPattern;
use howdah_mercure::{Claims, Keys, MatchType, PATH, form};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use std::borrow::Cow;
use std::time::SystemTime;

/// The cookie of Mercure 1.0.
pub(super) const COOKIE: &str = "__Secure-mercure_access_token";
/// Cookies, the preferred first.
const COOKIES: [&str; 2] = [COOKIE, "mercureAuthorization"];
const PARAMETER: &str = "authorization";

/// A token and its source.
struct PresentedToken<'a> {
    token: Cow<'a, str>,
    /// `true` if it came in a cookie: browsers send cookies for any page that makes the request.
    by_cookie: bool,
}

/// Returns the claims of a subscriber; `None` without a token.
pub(super) fn of_subscriber(mercure: &Mercure, exchange: &Exchange) -> Result<Option<Claims>, Refusal> {
    let Some(presented) = presented(exchange) else { return Ok(None) };
    claims(mercure.subscriber.as_ref(), &presented, exchange).map(Some)
}

/// Returns the claims of a publisher. A token is required.
pub(super) fn of_publisher(mercure: &Mercure, exchange: &Exchange) -> Result<Claims, Refusal> {
    let presented = presented(exchange).ok_or_else(|| missing(exchange))?;
    if presented.by_cookie && !is_from_own_page(mercure, exchange) {
        let reason = "a token in a cookie, and an `Origin` that may not publish";
        return Err(Refusal::new(StatusCode::FORBIDDEN).because(reason));
    }
    claims(mercure.publisher.as_ref(), &presented, exchange)
}

/// The refusal of a request without a token.
pub(super) fn missing(exchange: &Exchange) -> Refusal {
    Refusal::new(StatusCode::UNAUTHORIZED).because("no token").challenge(challenge(exchange, ""))
}

/// The refusal of a request that a valid token does not allow.
pub(super) fn insufficient(exchange: &Exchange, is_access_token: bool, reason: &'static str) -> Refusal {
    let refusal = Refusal::new(StatusCode::FORBIDDEN).because(reason);
    if is_access_token { refusal.challenge(challenge(exchange, "insufficient_scope")) } else { refusal }
}

/// `WWW-Authenticate`, with the address of the hub's metadata.
fn challenge(exchange: &Exchange, error: &str) -> HeaderValue {
    let error = if error.is_empty() { String::new() } else { format!(" error=\"{error}\",") };
    let metadata = format!("{}{METADATA}", origin(exchange));
    let text = format!("Bearer{error} resource_metadata=\"{metadata}\"");
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("Bearer"))
}

/// The site's origin, as the client sees it.
fn origin(exchange: &Exchange) -> String {
    let scheme = if exchange.client.https { "https" } else { "http" };
    format!("{scheme}://{}", exchange.host_text())
}

/// The hub's URLs, one of which an access token must name: as the client sees it, and with the site's hosts and HTTPS,
/// for publishers that connect by another name.
fn hub_urls(exchange: &Exchange) -> Vec<String> {
    let hosts = exchange.site.settings.hosts.iter().filter_map(|host| match host {
        HostPattern::Exact(host) => Some(format!("https://{host}{PATH}")),
        HostPattern::Any | HostPattern::Below(_) => None,
    });
    std::iter::once(hub_url(exchange)).chain(hosts).collect()
}

/// The hub's URL, as the client sees it: its resource identifier.
pub(super) fn hub_url(exchange: &Exchange) -> String {
    origin(exchange) + PATH
}

fn claims(keys: Option<&Keys>, presented: &PresentedToken<'_>, exchange: &Exchange) -> Result<Claims, Refusal> {
    let refused = |why: &dyn std::fmt::Display| {
        // Never log the token itself.
        tracing::warn!(target: "howdah::mercure", request = %exchange.id, site = exchange.site.settings.name, "token refused: {why}");
        let refusal = Refusal::new(StatusCode::UNAUTHORIZED).because("an invalid token");
        refusal.challenge(challenge(exchange, "invalid_token"))
    };
    let keys = keys.ok_or_else(|| refused(&"no key is set for it in [mercure]"))?;
    let hubs = hub_urls(exchange);
    Claims::verify(&presented.token, keys, SystemTime::now(), &hubs).map_err(|why| refused(&why))
}

fn presented(exchange: &Exchange) -> Option<PresentedToken<'_>> {
    let headers = &exchange.head.headers;
    if let Some(token) = headers.get(header::AUTHORIZATION).and_then(bearer) {
        return Some(PresentedToken { token, by_cookie: false });
    }
    // Mercure 1.0 has no token in the query.
    let query = form::fields(exchange.query().unwrap_or_default());
    let (mut token, mut has_matchers) = (None, false);
    for (name, value) in query {
        has_matchers |= MatchType::of_parameter(&name).is_some();
        token = token.or((name == PARAMETER).then_some(value));
    }
    if let Some(token) = token.filter(|_| !has_matchers) {
        return Some(PresentedToken { token: token.into(), by_cookie: false });
    }
    Some(PresentedToken { token: cookie(headers)?, by_cookie: true })
}

/// Returns the token of `Authorization: Bearer TOKEN`. Other schemes belong to the passwords of rules.
fn bearer(value: &HeaderValue) -> Option<Cow<'_, str>> {
    let (scheme, token) = value.as_bytes().split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| String::from_utf8_lossy(token.trim_ascii()))
}

fn cookie(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    let named = |name: &str| {
        let lines = headers.get_all(header::COOKIE).into_iter();
        let mut pairs = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';')).map(<[u8]>::trim_ascii);
        pairs.find_map(|pair| pair.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
    };
    COOKIES.into_iter().find_map(named).map(String::from_utf8_lossy)
}

/// `true` if the page that sends a request belongs to the site or to an allowed origin. Browsers send its origin with
/// each `POST`.
fn is_from_own_page(mercure: &Mercure, exchange: &Exchange) -> bool {
    let headers = &exchange.head.headers;
    let origin = match headers.get(header::ORIGIN) {
        Some(origin) => origin.clone(),
        None => {
            let Some(origin) = headers.get(header::REFERER).and_then(of_page) else { return false };
            origin
        }
    };
    origin.as_bytes().eq_ignore_ascii_case(self::origin(exchange).as_bytes())
        || mercure.allowed_origin(&origin).is_some_and(|(_, with_cookies)| with_cookies)
}

/// Returns the origin of a page's URL.
fn of_page(page: &HeaderValue) -> Option<HeaderValue> {
    let page = page.to_str().ok()?;
    let host = page.find("://")? + 3;
    let end = page[host..].find(['/', '?', '#']).map_or(page.len(), |length| host + length);
    HeaderValue::from_str(&page[..end]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_among_other_cookies_and_schemes() {
        let token = |value| bearer(&HeaderValue::from_static(value)).map(Cow::into_owned);
        assert_eq!(token("Bearer a.b.c").as_deref(), Some("a.b.c"));
        assert_eq!(token("bearer  a").as_deref(), Some("a"));
        assert_eq!((token("Basic dTpw"), token("Bearer"), token("")), (None, None, None));
        let mut headers = HeaderMap::new();
        headers.append(header::COOKIE, HeaderValue::from_static("a=b; mercureAuthorizationX=1"));
        assert_eq!(cookie(&headers), None);
        headers.append(header::COOKIE, HeaderValue::from_static("c=d;mercureAuthorization=x.y=; e=f"));
        assert_eq!(cookie(&headers).as_deref(), Some("x.y="));
        headers.append(header::COOKIE, HeaderValue::from_static("__Secure-mercure_access_token=z"));
        assert_eq!(cookie(&headers).as_deref(), Some("z"));
        let page = |page| of_page(&HeaderValue::from_static(page));
        assert_eq!(page("https://a.example:8443/x?y").unwrap(), "https://a.example:8443");
        assert_eq!(
            (page("https://a.example").unwrap(), page("about")),
            (HeaderValue::from_static("https://a.example"), None)
        );
    }
}
