//! Tests of `sites`: the site of a host.

use super::*;
use howdah_config::Settings;

/// A server with sites for these hosts. The sites are named by their numbers.
fn sites(hosts: &[&[&str]]) -> (tempfile::TempDir, Sites) {
    let root = tempfile::tempdir().unwrap();
    let mut settings = Settings { root: root.path().to_owned(), ..Settings::default() };
    let site = |(number, hosts): (usize, &&[&str])| {
        let mut site = settings.top_level_site();
        site.name = number.to_string();
        site.hosts = hosts.iter().map(|host| HostPattern::new(host).unwrap()).collect();
        site
    };
    settings.sites = hosts.iter().enumerate().map(site).collect();
    let budgets = Budgets::new(1 << 30, 1 << 30);
    let sites = Sites::new(Arc::new(settings), Metrics::new(), &AccessLogs::default(), budgets).unwrap();
    (root, sites)
}

fn found(sites: &Sites, host: &str) -> Option<usize> {
    match sites.find(Some(host.as_bytes())) {
        Found::Site(site) => Some(site.number),
        Found::NoSite(_) => None,
    }
}

#[test]
fn the_most_specific_host_wins() {
    let (_root, sites) = sites(&[
        &["example.org", "192.0.2.1", "[2001:db8::1]"],
        &["*.example.org"],
        &["*.a.example.org", "b.example.org"],
    ]);
    for (host, number) in [
        ("example.org", Some(0)),
        ("EXAMPLE.org.:8080", Some(0)),
        ("192.0.2.1:80", Some(0)),
        ("[2001:DB8:0::1]:80", Some(0)),
        ("x.example.org", Some(1)),
        ("x.y.example.org", Some(1)),
        ("a.example.org", Some(1)),
        ("x.a.example.org", Some(2)),
        ("b.example.org", Some(2)),
        ("x.b.example.org", Some(1)),
        ("notexample.org", None),
        ("example.org.evil", None),
        (".example.org", Some(1)),
        ("", None),
        ("192.0.2.2", None),
        ("[2001:db8::2]", None),
        ("[", None),
    ] {
        assert_eq!(found(&sites, host), number, "{host}");
    }
    assert!(matches!(sites.find(None), Found::NoSite(_)));
    assert!(sites.only().is_none());
}

#[test]
fn the_default_site_serves_all_other_hosts() {
    let (_root, sites) = sites(&[&["a"], &["default", "b"]]);
    assert_eq!([found(&sites, "a"), found(&sites, "b"), found(&sites, "c")], [Some(0), Some(1), Some(1)]);
    assert!(matches!(sites.find(None), Found::Site(site) if site.number == 1));
}

#[test]
fn document_root_takes_precedence_over_the_host() {
    let (root, sites) = sites(&[&["a"], &["b"], &["c"]]);
    let mut settings = (*sites.server.settings).clone();
    for (number, name) in [(1, "one"), (2, "two")] {
        std::fs::create_dir(root.path().join(name)).unwrap();
        settings.sites[number].root = root.path().join(name);
    }
    std::os::unix::fs::symlink(root.path().join("two"), root.path().join("link")).unwrap();
    settings.sites[2].root = root.path().join("link");
    let with = |settings: Settings| {
        Sites::new(Arc::new(settings), Metrics::new(), &AccessLogs::default(), Budgets::new(1 << 30, 1 << 30)).unwrap()
    };
    let find = |sites: &Sites, root: &Path, host: &str, name: &str| {
        let mut variables = Params::default();
        variables.set("DOCUMENT_ROOT", root.as_os_str().as_bytes());
        variables.set("SERVER_NAME", name.as_bytes());
        let peer = Peer::unix(Path::new("/run/s"), |_| false);
        sites.of_web_server(&peer, Some(host.as_bytes()), &variables).number
    };
    let plain = with(settings.clone());
    let at = |name: &str| root.path().join(name);
    for (root, host, name, number) in [
        (at("one"), "a", "b", 1),
        (at("one/"), "c", "", 1),
        (at("two"), "a", "", 2),
        (at("link"), "b", "a", 2),
        (at(""), "b", "", 0),
        (at("elsewhere"), "b:80", "a", 1),
        (at("elsewhere"), "x", "c", 2),
        (at("elsewhere"), "x", "y", 0),
    ] {
        assert_eq!(find(&plain, &root, host, name), number, "{root:?} {host} {name}");
    }
    // Two sites with one root, and a default site.
    settings.sites[1].root = root.path().to_owned();
    settings.sites[2].hosts.push(HostPattern::Any);
    let shared = with(settings);
    for (root, host, number) in [(at(""), "b", 1), (at(""), "c", 0), (at("two"), "a", 2), (at("elsewhere"), "x", 2)] {
        assert_eq!(find(&shared, &root, host, ""), number, "{root:?} {host}");
    }
}

#[test]
fn a_single_site_is_found_without_parsing_the_host() {
    assert!(sites(&[]).1.only().is_some());
    assert!(sites(&[&["default"]]).1.only().is_some());
    assert!(sites(&[&["a"]]).1.only().is_none());
}

#[test]
fn a_development_server_serves_only_names_of_this_machine() {
    let of = |extra: &[&str]| {
        let (root, with) = sites(&[]);
        let mut settings = (*with.server.settings).clone();
        settings.development = true;
        settings.listen = vec!["127.0.0.2:80".parse().unwrap()];
        settings.server_name = Some("shop.example".to_owned());
        if !extra.is_empty() {
            let mut named = settings.top_level_site();
            named.hosts = extra.iter().map(|host| HostPattern::new(host).unwrap()).collect();
            settings.sites = vec![named, settings.top_level_site()];
        }
        let budgets = Budgets::new(1 << 30, 1 << 30);
        (root, Sites::new(Arc::new(settings), Metrics::new(), &AccessLogs::default(), budgets).unwrap())
    };
    let (_root, alone) = of(&[]);
    for host in
        ["localhost", "LOCALHOST:8080", "shop.localhost", "127.0.0.1:1", "127.0.0.2", "[::1]:80", "shop.example"]
    {
        assert_eq!(found(&alone, host), Some(0), "{host}");
    }
    for host in ["evil.example:18086", "localhost.evil.example", "127.0.0.1.evil.example", "192.168.1.2", ""] {
        assert_eq!(found(&alone, host), None, "{host}");
    }
    assert!(alone.only().is_none() && matches!(alone.find(None), Found::NoSite(_)));
    let (_root, several) = of(&["a.localhost", "localhost"]);
    assert_eq!(found(&several, "localhost"), Some(0), "a site keeps what it names");
    assert_eq!(found(&several, "b.localhost"), Some(1));
    assert_eq!(found(&several, "evil.example"), None);
}

#[test]
fn a_certificate_must_cover_the_requested_host() {
    let (_root, sites) = sites(&[&["a", "a2"], &["b"]]);
    let first = &sites.all()[0];
    assert!(sites.agrees(first, b"a") && sites.agrees(first, b"A2"));
    assert!(!sites.agrees(first, b"b") && !sites.agrees(first, b"unknown"));
    // Without certificates, no name is covered.
    assert!(!sites.covers("b", Some(b"a")));
    sites.ask_about_certificates(CertificateCoverage(Box::new(|name, host| (name, host) == ("b", "a"))));
    assert!(sites.covers("b", Some(b"A.:443")) && !sites.covers("b", Some(b"a2")) && !sites.covers("b", None));
}
