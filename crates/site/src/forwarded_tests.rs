//! Tests of `forwarded`: fields of trusted proxies apply, all others are ignored.

use super::*;
use http::HeaderValue;

fn trusted() -> Vec<TrustedProxy> {
    ["10.0.0.0/8", "2001:db8::/32", "unix"].iter().map(|t| t.parse().unwrap()).collect()
}

fn peer(addr: &str) -> Peer {
    Peer::tcp(addr.parse().unwrap(), "192.0.2.80:8080".parse().unwrap(), |peer| trusts(&trusted(), peer))
}

/// Settings that trust these fields.
fn trusting(list: &[TrustedHeader]) -> HttpSettings {
    HttpSettings { trusted_proxies: trusted(), trusted_headers: list.to_vec(), ..HttpSettings::default() }
}

const X_ALL: [TrustedHeader; 4] = [TrustedHeader::For, TrustedHeader::Proto, TrustedHeader::Host, TrustedHeader::Port];

fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in lines {
        map.append(*name, HeaderValue::from_static(value));
    }
    map
}

/// Returns `addr port https host server_port` of the client for a peer and its fields, if all `X-Forwarded-*` are
/// trusted.
fn seen(peer_addr: &str, lines: &[(&'static str, &'static str)]) -> String {
    seen_with(&trusting(&X_ALL), peer_addr, &headers(lines))
}

fn seen_with(settings: &HttpSettings, peer_addr: &str, headers: &HeaderMap) -> String {
    let peer = peer(peer_addr);
    let c = client(&peer, headers, settings);
    let server_port = c.reported.as_ref().and_then(|reported| reported.server_port.as_deref());
    let (host, server_port) = (c.reported_host().unwrap_or("-"), server_port.unwrap_or("-"));
    format!("{} {} {} {host} {server_port}", c.addr(&peer), c.port(&peer), c.https)
}

#[test]
fn an_untrusted_peer_changes_nothing() {
    let lines = [
        ("forwarded", "for=198.51.100.7;proto=https;host=evil"),
        ("x-forwarded-for", "198.51.100.7"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "evil"),
        ("x-forwarded-port", "1"),
    ];
    assert_eq!(seen("203.0.113.5:4000", &lines), "203.0.113.5 4000 false - -");
}

#[test]
fn a_trusted_peer_without_fields_is_the_client() {
    assert_eq!(seen("10.0.0.1:4000", &[]), "10.0.0.1 4000 false - -");
}

#[test]
fn x_forwarded_for_is_walked_from_the_nearest_hop_to_the_first_untrusted_one() {
    let for_ = |v: &'static str| seen("10.0.0.1:4000", &[("x-forwarded-for", v)]);
    assert_eq!(for_("198.51.100.7"), "198.51.100.7  false - -");
    assert_eq!(for_("1.2.3.4, 198.51.100.7, 10.9.9.9"), "198.51.100.7  false - -");
    assert_eq!(for_("10.1.1.1, 10.2.2.2"), "10.1.1.1  false - -");
    assert_eq!(for_("198.51.100.7, garbage, 10.2.2.2"), "10.2.2.2  false - -");
    assert_eq!(for_("198.51.100.7:1234"), "198.51.100.7 1234 false - -");
    assert_eq!(for_("[2a00::1]:99"), "2a00::1 99 false - -");
    assert_eq!(for_("::ffff:198.51.100.7"), "198.51.100.7  false - -");
    let two_lines = [("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "198.51.100.7, 10.0.0.2")];
    assert_eq!(seen("10.0.0.1:4000", &two_lines), "198.51.100.7  false - -");
}

#[test]
fn x_forwarded_proto_host_and_port() {
    let lines = [("x-forwarded-proto", "https"), ("x-forwarded-host", "shop.example")];
    assert_eq!(seen("10.0.0.1:4000", &lines), "10.0.0.1 4000 true shop.example 443");
    let lines = [("x-forwarded-proto", "http, HTTPS"), ("x-forwarded-host", "shop.example:8443")];
    assert_eq!(seen("10.0.0.1:4000", &lines), "10.0.0.1 4000 true shop.example:8443 8443");
    let lines = [("x-forwarded-proto", "https"), ("x-forwarded-port", "444")];
    assert_eq!(seen("10.0.0.1:4000", &lines), "10.0.0.1 4000 true - 444");
    let lines = [("x-forwarded-host", "a/b"), ("x-forwarded-port", "99999"), ("x-forwarded-proto", "gopher")];
    assert_eq!(seen("10.0.0.1:4000", &lines), "10.0.0.1 4000 false - -");
}

#[test]
fn forwarded_applies_if_listed_and_may_have_quotes() {
    let forwarded = |lines: &[(&'static str, &'static str)]| {
        seen_with(&trusting(&[TrustedHeader::Forwarded]), "10.0.0.1:4000", &headers(lines))
    };
    let lines = [
        (
            "forwarded",
            "for=1.1.1.1;host=evil, For=\"[2a00::5]:47011\" ; Proto=https;host=\"a.example:444\", for=10.5.5.5",
        ),
        ("x-forwarded-host", "other"),
        ("x-forwarded-for", "6.6.6.6"),
    ];
    assert_eq!(forwarded(&lines), "2a00::5 47011 true a.example:444 444");
    assert_eq!(forwarded(&[("forwarded", "for=unknown;proto=https")]), "10.0.0.1 4000 true - 443");
    assert_eq!(forwarded(&[("forwarded", "for=\"198.51.100.7:_x\"")]), "198.51.100.7  false - -");
    assert_eq!(forwarded(&[("forwarded", "for=\"a,b;c\\\"\";by=x")]), "10.0.0.1 4000 false - -");
    assert_eq!(forwarded(&[("x-forwarded-for", "6.6.6.6")]), "10.0.0.1 4000 false - -");
}

#[test]
fn a_visitors_own_forwarded_field_does_not_get_past_a_proxy_that_writes_x_forwarded_for() {
    let lines = [("forwarded", "for=6.6.6.6;proto=https;host=evil.example"), ("x-forwarded-for", "198.51.100.7")];
    assert_eq!(seen("10.0.0.1:4000", &lines), "198.51.100.7  false - -");
    let both = trusting(&[TrustedHeader::For, TrustedHeader::Forwarded]);
    assert_eq!(seen_with(&both, "10.0.0.1:4000", &headers(&lines)), "198.51.100.7  false - -");
}

#[test]
fn by_default_only_address_and_scheme_are_trusted() {
    let default = HttpSettings { trusted_proxies: trusted(), ..HttpSettings::default() };
    let lines = [
        ("x-forwarded-for", "198.51.100.7"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "evil.example"),
        ("x-forwarded-port", "1"),
        ("forwarded", "for=127.0.0.1;host=evil.example"),
    ];
    assert_eq!(seen_with(&default, "10.0.0.1:4000", &headers(&lines)), "198.51.100.7  true - 443");
    let lines = [("forwarded", "for=127.0.0.1;proto=https;host=evil.example")];
    assert_eq!(seen_with(&default, "10.0.0.1:4000", &headers(&lines)), "10.0.0.1 4000 false - -");
    let none = trusting(&[]);
    let lines = [("x-forwarded-for", "198.51.100.7"), ("x-forwarded-proto", "https")];
    assert_eq!(seen_with(&none, "10.0.0.1:4000", &headers(&lines)), "10.0.0.1 4000 false - -");
}

#[test]
fn the_nearest_proxys_value_wins() {
    for lines in [
        &[("x-forwarded-host", "evil.example, www.good.example")][..],
        &[("x-forwarded-host", "evil.example"), ("x-forwarded-host", "www.good.example")],
        &[("x-forwarded-host", "evil.example"), ("x-forwarded-host", "x, www.good.example")],
    ] {
        assert_eq!(seen("10.0.0.1:4000", lines), "10.0.0.1 4000 false www.good.example -", "{lines:?}");
    }
    assert_eq!(seen("10.0.0.1:4000", &[("x-forwarded-proto", "https, http")]), "10.0.0.1 4000 false - 80");
    assert_eq!(seen("10.0.0.1:4000", &[("x-forwarded-port", "1, 444")]), "10.0.0.1 4000 false - 444");
    // The nearest proxy's element is invalid: earlier ones are not used.
    for last in ["good.example, ", "good.example, a/b", "good.example, "] {
        assert_eq!(seen("10.0.0.1:4000", &[("x-forwarded-host", last)]), "10.0.0.1 4000 false - -", "{last}");
    }
    for port in ["+80", "-1", "65536", "0x50", " "] {
        assert_eq!(seen("10.0.0.1:4000", &[("x-forwarded-port", port)]), "10.0.0.1 4000 false - -", "{port}");
    }
}

#[test]
fn invalid_text_in_a_field_does_not_hide_the_proxys_element() {
    let line = |name: &'static str, value: &[u8]| {
        let mut map = HeaderMap::new();
        map.append(name, HeaderValue::from_bytes(value).unwrap());
        seen_with(&trusting(&X_ALL), "10.0.0.1:4000", &map)
    };
    assert_eq!(line("x-forwarded-for", b"127.0.0.1\xff, 198.51.100.7"), "198.51.100.7  false - -");
    assert_eq!(line("x-forwarded-for", b"\xff\xfe,198.51.100.7"), "198.51.100.7  false - -");
    assert_eq!(line("x-forwarded-for", b"127.0.0.1, \xff"), "10.0.0.1 4000 false - -");
    assert_eq!(line("x-forwarded-host", b"\xff, good.example"), "10.0.0.1 4000 false good.example -");
    assert_eq!(line("x-forwarded-proto", b"\xff,https"), "10.0.0.1 4000 true - 443");
}

#[test]
fn a_unix_socket_peer_is_trusted_only_by_name() {
    let map = headers(&[("x-forwarded-for", "198.51.100.7")]);
    let path = std::path::Path::new("/run/s");
    let believed = Peer::unix(path, |peer| trusts(&trusted(), peer));
    assert_eq!(client(&believed, &map, &trusting(&X_ALL)).addr(&believed), "198.51.100.7");
    let not = Peer::unix(path, |peer| trusts(&["127.0.0.1".parse().unwrap()], peer));
    assert_eq!(client(&not, &map, &trusting(&X_ALL)).addr(&not), "unix:");
}

#[test]
fn ports_are_split_off_hosts() {
    assert_eq!(split_port("a:80"), ("a", Some("80")));
    assert_eq!(split_port("[::1]:80"), ("[::1]", Some("80")));
    assert_eq!(split_port("[::1]"), ("[::1]", None));
    assert_eq!(split_port("a:"), ("a", None));
    assert_eq!(split_port("a"), ("a", None));
}
