//! Certificates of sites: the one that a client gets, and the hosts that it may request over that connection.

use howdah_tests::howdah::program;
use howdah_tests::tls::{certificate, s_client};
use howdah_tests::{Setup, Site, Target, scenario};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A site that responds with its name, with these additional settings.
fn named(setup: Setup, name: &str, hosts: &str, further: &str) -> Setup {
    setup
        .file(&format!("../run/conf.d/{name}.toml"), format!("hosts = {hosts}\nroot = \"../../{name}\"\n{further}"))
        .file(&format!("../{name}/who.txt"), name)
}

/// Adds a site for the harness, which uses it to check readiness.
fn with_localhost(setup: Setup) -> Setup {
    setup
        .setting("log.access", "\"@TOP@/run/access.log\"")
        .file("../run/conf.d/local.toml", "hosts = \"localhost\"\nroot = \"../../root\"\n")
}

/// Adds the files of a certificate next to `howdah.toml`.
fn with_pair(setup: Setup, stem: &str, names: &[&str]) -> Setup {
    let dir = tempfile::tempdir().unwrap();
    let made = certificate(dir.path(), stem, names);
    let text = |path: &Path| fs::read_to_string(path).unwrap();
    setup
        .file(&format!("../run/{stem}.pem"), text(&made.cert))
        .file(&format!("../run/{stem}.key"), text(&made.key))
        // The harness writes world-readable files.
        .allow_log("every user of this machine can read the key")
}

/// The encoded text of the first certificate.
fn first(text: &str) -> String {
    let body = text.split("-----BEGIN CERTIFICATE-----").nth(1).and_then(|rest| rest.split("-----END").next());
    body.unwrap_or_default().split_whitespace().collect()
}

/// True if a client that sends this name gets the certificate in this file of the site's directory.
fn gets(site: &Site, name: &str, file: &str) -> bool {
    let arguments: &[&str] = if name.is_empty() { &["-noservername"] } else { &["-servername", name] };
    let file = fs::read_to_string(site.place().top.join(file)).unwrap();
    first(&s_client(site.port(), arguments, b"")) == first(&file)
}

/// Status and body for curl that sends `name` in its handshake (none if it is empty) and requests `host`.
fn asked(port: u16, name: &str, host: &str, arguments: &[&str]) -> String {
    let at = if name.is_empty() { "127.0.0.1" } else { name };
    let output = Command::new("curl")
        .args(["-sk", "-w", " %{http_code}", "--resolve", &format!("{at}:{port}:127.0.0.1")])
        .args(["-H", &format!("Host: {host}")])
        .args(arguments)
        .arg(format!("https://{at}:{port}/who.txt"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // The refusal's page is not compared.
    if text.ends_with(" 421") { "421".to_owned() } else { text }
}

scenario!(
    each_site_has_its_own_certificates,
    howdah_only = "sites are Howdah's",
    |s| {
        let own = "[tls]\ncertificates = [{ cert = \"../shop.pem\", key = \"../shop.key\" }]\n";
        let setup = s.https_certificates(&[("site", &["localhost", "blog.example", "www.shop.example"])]);
        let setup = with_pair(with_localhost(setup), "shop", &["shop.example", "*.shop.example", "blog.example"]);
        let setup = named(setup, "shop", "[\"shop.example\", \"*.shop.example\"]", own);
        named(setup, "blog", "[\"blog.example\"]", "")
    },
    |site| {
        for name in ["shop.example", "Shop.Example", "x.shop.example", "www.shop.example"] {
            assert!(gets(site, name, "run/shop.pem"), "{name}");
            assert_eq!(asked(site.port(), name, name, &[]), "shop 200");
        }
        // A site's own certificate is used for no other site, whatever names it contains.
        for name in ["blog.example", "localhost", "nobody.example", ""] {
            assert!(gets(site, name, "site.pem"), "{name}");
        }
        assert_eq!(asked(site.port(), "blog.example", "blog.example", &["--http2"]), "blog 200");
        // Renewed like all others.
        let _ = certificate(&site.place().top.join("run"), "shop", &["shop.example"]);
        let _ = site.wait_for_log(&["certificate replaced", "shop.example"]);
        assert!(gets(site, "shop.example", "run/shop.pem") && gets(site, "blog.example", "site.pem"));
        // If the site's own certificate does not cover a name, one that does takes precedence.
        assert!(gets(site, "www.shop.example", "site.pem") && gets(site, "x.shop.example", "run/shop.pem"));
    },
);

/// Three sites: the first two share a certificate, the third has another.
fn shared(setup: Setup) -> Setup {
    let setup =
        setup.https_certificates(&[("site", &["localhost", "a.example", "b.example"]), ("other", &["c.example"])]);
    ["a", "b", "c"]
        .iter()
        .fold(with_localhost(setup), |setup, name| named(setup, name, &format!("\"{name}.example\""), ""))
}

scenario!(a_host_that_the_certificate_does_not_cover_gets_421, howdah_only = "sites are Howdah's", shared, |site| {
    let ask = |name: &str, host: &str| {
        let answers = ["--http1.1", "--http2"].map(|version| asked(site.port(), name, host, &[version]));
        assert_eq!(answers[0], answers[1], "{name} {host}");
        answers[0].clone()
    };
    for (name, host, answer) in [
        ("a.example", "a.example", "a 200"),
        ("c.example", "c.example", "c 200"),
        // One certificate for both: browsers use one connection for both (RFC 9113 9.1.1).
        ("a.example", "b.example", "b 200"),
        ("b.example", "A.example:443", "a 200"),
        ("a.example", "c.example", "421"),
        ("c.example", "a.example", "421"),
        ("c.example", "localhost", "421"),
        // An unknown name gets the first certificate.
        ("nobody.example", "a.example", "a 200"),
        ("nobody.example", "c.example", "421"),
        // A client that names no host in TLS, such as a proxy or a health check, may request every host.
        ("", "c.example", "c 200"),
    ] {
        assert_eq!(ask(name, host), answer, "{name} asked for {host}");
    }
},);

scenario!(
    where_clients_show_certificates_no_name_serves_for_another,
    howdah_only = "sites are Howdah's",
    |s| {
        let setup = s.https_clients("required");
        ["a", "b"]
            .iter()
            .fold(with_localhost(setup), |setup, name| named(setup, name, &format!("\"{name}.example\""), ""))
    },
    |site| {
        let (Target::Tls(address) | Target::Tcp(address)) = site.second() else { panic!("no port") };
        let top = &site.place().top;
        let path = |file: &str| top.join(file).display().to_string();
        let shows = ["--cert", &path("clients.pem"), "--key", &path("clients.key")];
        assert_eq!(asked(address.port(), "a.example", "a.example", &shows), "a 200");
        assert_eq!(asked(address.port(), "a.example", "b.example", &shows), "421");
        assert_eq!(asked(address.port(), "nobody.example", "b.example", &shows), "421");
    },
);

/// Output of `check` for these settings, with two certificates next to them.
fn check(toml: &str) -> (bool, String) {
    let dir = tempfile::tempdir().unwrap();
    for (stem, names) in [("shop", ["shop.example", "*.shop.example"]), ("top", ["localhost", "www.blog.example"])] {
        let _ = certificate(dir.path(), stem, &names);
    }
    fs::write(dir.path().join("howdah.toml"), toml).unwrap();
    let mut command = Command::new(program());
    let output = command.current_dir(dir.path()).env("HOWDAH_ALLOW_ROOT", "true").arg("check").output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stderr) + &text(&output.stdout))
}

#[test]
fn check_names_hosts_that_a_sites_certificates_do_not_cover() {
    let top = "listen = \"https://127.0.0.1:0\"\nroot = \".\"\n";
    let site = |hosts: &str, tls: &str| format!("[[site]]\nhosts = {hosts}\n[site.tls]\n{tls}\n");
    let own = "certificates = [{ cert = \"shop.pem\", key = \"shop.key\" }]";
    let (good, said) = check(&format!("{top}{}", site("[\"shop.example\", \"*.shop.example\"]", own)));
    assert!(good && !said.contains("clients refuse"), "{said}");
    assert!(said.contains("[site.tls]\ncertificates = [{ cert = "), "{said}");
    let general = format!("{top}[tls]\ncertificates = [{{ cert = \"top.pem\", key = \"top.key\" }}]\n");
    let hosts = "[\"shop.example\", \"blog.example\", \"www.blog.example\", \"*.b.example\", \"a.b.shop.example\"]";
    let (good, said) = check(&format!("{general}{}", site(hosts, own)));
    let told = "site shop.example: none of its certificates is for blog.example, *.b.example, a.b.shop.example, so";
    assert!(good && said.contains(told), "{said}");
    for (toml, told) in [
        (
            format!("{top}{}", site("\"shop.example\"", "certificates = [{ cert = \"none.pem\" }]")),
            "howdah.toml:6: [site.tls] certificates: cannot read",
        ),
        (
            format!("root = \".\"\n{}", site("\"shop.example\"", own)),
            "certificates: no address of `listen` begins with https://",
        ),
        (
            format!("{top}{}", site("\"*.shop.example\"", "auto = true")),
            "auto: no certificate can be obtained automatically for any of its hosts",
        ),
        (
            format!("{top}{}", site("\"shop.example\"", &format!("auto = true\n{own}"))),
            "auto: cannot be combined with `certificates`",
        ),
        (
            format!("{top}{}", site("\"shop.example\"", "min_version = \"1.3\"")),
            "it applies to all sites and belongs to [tls] of howdah.toml",
        ),
    ] {
        let (good, said) = check(&toml);
        assert!(!good && said.contains(told), "{told}\n{said}");
    }
    let (good, said) = check(&format!("{top}{}", site("[\"shop.internal\", \"*.shop.internal\"]", "auto = true")));
    assert!(good && said.contains("names = [\"shop.internal\"]"), "{said}");
}
