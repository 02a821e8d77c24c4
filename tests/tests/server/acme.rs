//! Certificates that the server obtains itself, from a real authority (Pebble), and those of its local CA.

use howdah_skip::skip;
use howdah_tests::pebble::{self, Authority, Pebble, certificate_of};
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::site::Port;
use howdah_tests::{Mode, Request, Setup, Site, run};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Ports on which the authority validates names; a server that obtains certificates listens there.
pub(super) struct Ports {
    http: Port,
    tls: Port,
}

impl Ports {
    pub(super) fn hold() -> Self {
        Self { http: Port::hold(), tls: Port::hold() }
    }

    fn listens(&self, setup: Setup) -> Setup {
        let setup = setup.never_https().arg("--listen").arg(&format!("127.0.0.1:{}", self.http.number));
        setup.arg("--listen").arg(&format!("https://127.0.0.1:{}", self.tls.number))
    }

    /// Response to a client that trusts only this authority; `None` if the request fails.
    pub(super) fn fetch(&self, name: &str, root: &Path) -> Option<String> {
        let port = self.tls.number;
        let resolve = format!("{name}:{port}:127.0.0.1");
        let root = root.display().to_string();
        pebble::curl(&["--cacert", &root, "--resolve", &resolve, &format!("https://{name}:{port}/ready.txt")])
    }

    pub(super) fn authority(&self, pebble: Pebble) -> Authority {
        pebble.start(self.http.number, self.tls.number)
    }

    /// A server that listens on these ports and orders certificates from the authority.
    pub(super) fn server(&self, setup: Setup, authority: &Authority, names: &[&str]) -> Setup {
        self.server_in("\"@TOP@/state\"", setup, authority, names)
    }

    /// As `server`, with this state directory.
    pub(super) fn server_in(&self, state: &str, setup: Setup, authority: &Authority, names: &[&str]) -> Setup {
        let names = format!("{names:?}");
        let setup = self.listens(setup);
        let setup = setup.setting("acme.names", &names).setting("acme.state", state);
        authority
            .settings()
            .iter()
            .fold(setup.time("acme.retry", "5s"), |setup, (key, value)| setup.setting(key, value))
    }
}

macro_rules! needs_pebble {
    () => {
        if let Err(why) = pebble::programs() {
            skip!("pebble", "{why}");
        }
    };
}
pub(super) use needs_pebble;

pub(super) fn status(site: &Site) -> Value {
    site.howdah().try_status().unwrap_or_default()
}

/// Waits until the condition holds for a name's state, and returns the state.
pub(super) fn once(site: &Site, name: &str, mut holds: impl FnMut(&Value) -> bool) -> Value {
    let mut seen = Value::Null;
    let reached = eventually(PATIENCE, || {
        seen = certificate_of(&status(site), name);
        holds(&seen)
    });
    assert!(reached, "{name}: {seen}\n{}", site.log());
    seen
}

pub(super) fn has_certificate(one: &Value) -> bool {
    one["until"].is_u64()
}

fn has_failed(one: &Value) -> bool {
    one["last_error"].is_string()
}

/// The file with a name's certificate and key.
fn file(state: &Path, name: &str) -> Option<PathBuf> {
    let authorities = std::fs::read_dir(state.join("acme")).ok()?.flatten();
    authorities.map(|dir| dir.path().join(format!("certificates/{name}/certificate.pem"))).find(|path| path.exists())
}

#[test]
fn a_name_gets_its_certificate_by_http_01() {
    needs_pebble!();
    let ports = Ports::hold();
    let authority = ports.authority(Pebble::default());
    run(
        Mode::Classic,
        |setup| {
            ports
                .server(setup, &authority, &["shop.example.org"])
                .setting("acme.challenges", "[\"http-01\"]")
                .setting("acme.profile", "\"default\"")
        },
        |site| {
            once(site, "shop.example.org", has_certificate);
            assert_eq!(authority.issued(), 1);
            let state = site.place().top.join("state");
            let path = file(&state, "shop.example.org").unwrap();
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&state), mode(&path)), (0o700, 0o600));
            let checked = Command::new("openssl")
                .args(["x509", "-noout", "-checkhost", "shop.example.org", "-in"])
                .arg(&path)
                .output();
            assert!(String::from_utf8_lossy(&checked.unwrap().stdout).contains("does match"));
            assert_eq!(site.get("/.well-known/acme-challenge/none").status, 404);
            let text = String::from_utf8(site.howdah().command(&["status"]).stdout).unwrap();
            assert!(text.contains("shop.example.org") && text.contains("valid for 89 d"), "{text}");
            let _ = site.wait_for_log(&["obtained a certificate for shop.example.org"]);
        },
    );
}

#[test]
fn refused_nonces_are_not_failures() {
    needs_pebble!();
    let ports = Ports::hold();
    let authority = ports.authority(Pebble { nonce_reject: 40, ..Pebble::default() });
    run(
        Mode::Classic,
        |setup| {
            ports
                .server(setup, &authority, &["a.example.org", "b.example.org"])
                .setting("acme.challenges", "[\"http-01\"]")
        },
        |site| {
            for name in ["a.example.org", "b.example.org"] {
                once(site, name, has_certificate);
            }
        },
    );
}

#[test]
fn a_name_that_cannot_be_proven_is_reported_and_retried_while_the_server_serves() {
    needs_pebble!();
    let ports = Ports::hold();
    // Validation connects to a port without a listener.
    let nobody = Port::hold();
    let authority = Pebble::default().start(nobody.number, ports.tls.number);
    run(
        Mode::Classic,
        |setup| {
            ports
                .server(setup, &authority, &["gone.example.org"])
                .setting("acme.challenges", "[\"http-01\"]")
                .expect_log("no certificate for gone.example.org")
        },
        |site| {
            let one = once(site, "gone.example.org", |one| one["failures"].as_u64() >= Some(2));
            let error = one["last_error"].as_str().unwrap();
            assert!(error.contains("http-01 (port 80)") && error.contains("refused"), "{error}");
            assert_eq!(one["until"], Value::Null);
            assert!(one["next"].is_u64());
            assert_eq!(site.get("/ready.txt").status, 200);
            let text = String::from_utf8(site.howdah().command(&["status"]).stdout).unwrap();
            assert!(text.contains("NONE YET") && text.contains("FAILED"), "{text}");
        },
    );
}

#[test]
fn a_stored_certificate_is_served_at_once_although_the_authority_is_down() {
    needs_pebble!();
    let ports = Ports::hold();
    let mut authority = ports.authority(Pebble::default());
    let shared = tempfile::tempdir().unwrap();
    let state = format!("{:?}", shared.path().display().to_string());
    let http_only = |setup: Setup, names: &[&str]| {
        ports.server_in(&state, setup, &authority, names).setting("acme.challenges", "[\"http-01\"]")
    };
    let both = ["a.example.org", "new.example.org"];
    let first = http_only(Setup::default(), &both[..1]);
    let second = http_only(Setup::default(), &both).expect_log("no certificate for new.example.org");
    let site = Site::start(Mode::Classic, &first);
    let before = once(&site, "a.example.org", has_certificate);
    site.finish();
    authority.go_down();
    let site = Site::start(Mode::Classic, &second);
    let after = once(&site, "a.example.org", has_certificate);
    assert_eq!(before["until"], after["until"]);
    let one = once(&site, "new.example.org", has_failed);
    assert!(one["last_error"].as_str().unwrap().contains("cannot connect to localhost"), "{one}");
    assert_eq!(site.get("/ready.txt").status, 200);
    // When Pebble is back, it has lost the account: a new one is created.
    authority.go_on();
    once(&site, "new.example.org", has_certificate);
    site.finish();
}

/// Writes the root of the authority's certificates to a file.
pub(super) fn root_file(authority: &Authority, dir: &Path) -> PathBuf {
    let path = dir.join("root.pem");
    std::fs::write(&path, authority.root()).unwrap();
    path
}

#[test]
fn a_name_gets_its_certificate_by_tls_alpn_01() {
    needs_pebble!();
    let ports = Ports::hold();
    let authority = ports.authority(Pebble::default());
    run(
        Mode::Classic,
        |setup| ports.server(setup, &authority, &["alpn.example.org"]).setting("acme.challenges", "[\"tls-alpn-01\"]"),
        |site| {
            once(site, "alpn.example.org", has_certificate);
            let root = root_file(&authority, &site.place().top);
            assert_eq!(ports.fetch("alpn.example.org", &root).as_deref(), Some("ready\n"));
        },
    );
}

#[test]
fn the_other_challenge_is_tried_if_one_fails() {
    needs_pebble!();
    let ports = Ports::hold();
    let nobody = Port::hold();
    let authority = Pebble::default().start(nobody.number, ports.tls.number);
    run(
        Mode::Classic,
        |setup| {
            ports.server(setup, &authority, &["both.example.org"]).expect_log("no certificate for both.example.org")
        },
        |site| {
            let one = once(site, "both.example.org", has_certificate);
            assert_eq!((&one["failures"], &one["last_error"]), (&Value::from(0), &Value::Null));
        },
    );
}

#[test]
fn a_short_lived_certificate_is_renewed_while_requests_run() {
    needs_pebble!();
    let ports = Ports::hold();
    let authority = ports.authority(Pebble { validity: 20, ..Pebble::default() });
    let name = "brief.example.org";
    run(
        Mode::Classic,
        // Without a requested profile Pebble chooses one at random.
        |setup| ports.server(setup, &authority, &[name]).setting("acme.profile", "\"default\""),
        |site| {
            let first = once(site, name, has_certificate);
            let root = root_file(&authority, &site.place().top);
            let mut conn = site.conn();
            once(site, name, |one| {
                conn.send(Request::get("/ready.txt").bytes());
                assert_eq!(conn.response("GET").status, 200);
                // A client that refuses expired certificates.
                assert_eq!(ports.fetch(name, &root).as_deref(), Some("ready\n"));
                one["until"].as_u64() > first["until"].as_u64()
            });
            assert!(authority.issued() >= 2);
        },
    );
}

#[test]
fn an_unlisted_name_gets_a_certificate_if_that_is_allowed() {
    needs_pebble!();
    let ports = Ports::hold();
    let authority = ports.authority(Pebble::default());
    let (allowed, refused) = ("customer.example.org", "stranger.example.org");
    run(
        Mode::Classic,
        |setup| {
            let url = format!("\"http://127.0.0.1:{}/allow.php\"", ports.http.number);
            ports
                .server(setup, &authority, &[])
                .setting("acme.on_demand", &url)
                .php("allow.php", "http_response_code($_GET['domain'] === 'customer.example.org' ? 200 : 404);")
        },
        |site| {
            let root = root_file(&authority, &site.place().top);
            // Refused names must not use up the quota of permitted ones.
            for number in 0..12 {
                assert_eq!(ports.fetch(&format!("x{number}.evil.example.org"), &root), None);
            }
            assert_eq!(ports.fetch(allowed, &root).as_deref(), Some("ready\n"));
            assert_eq!(ports.fetch(refused, &root), None);
            assert_eq!(ports.fetch(refused, &root), None);
            // The decision is cached: the check ran once.
            let asked = site.log().matches("on-demand check refused stranger.example.org").count();
            assert_eq!((asked, authority.issued()), (1, 1), "{}", site.log());
            assert_eq!(certificate_of(&status(site), refused), Value::Null);
            let many: Vec<String> = (0..5).map(|_| ports.fetch(allowed, &root).unwrap_or_default()).collect();
            assert!(many.iter().all(|text| text == "ready\n"));
        },
    );
}

#[test]
fn an_account_is_bound_to_an_external_one() {
    needs_pebble!();
    let ports = Ports::hold();
    let authority = ports.authority(Pebble { external_account: true, ..Pebble::default() });
    let names = ["eab.example.org"];
    run(
        Mode::Classic,
        |setup| {
            ports
                .server(setup, &authority, &names)
                .setting("acme.challenges", "[\"http-01\"]")
                .setting("acme.eab", &format!("{:?}", format!("kid-1:{}", Pebble::EAB_KEY)))
                .setting("acme.profile", "\"brief\"")
        },
        |site| {
            let one = once(site, names[0], has_certificate);
            let path = file(&site.place().top.join("state"), names[0]).unwrap();
            // The profile's validity is one hour.
            let ends = Command::new("openssl").args(["x509", "-noout", "-checkend", "3700", "-in"]).arg(&path).status();
            assert!(!ends.unwrap().success(), "{one}");
        },
    );
    run(
        Mode::Classic,
        |setup| ports.server(setup, &authority, &names).expect_log("no certificate for eab.example.org"),
        |site| {
            let one = once(site, names[0], has_failed);
            assert!(one["last_error"].as_str().unwrap().contains("acme.eab"), "{one}");
        },
    );
}

#[test]
fn of_two_servers_with_one_directory_one_orders() {
    needs_pebble!();
    let ports = Ports::hold();
    let authority = ports.authority(Pebble::default());
    let shared = tempfile::tempdir().unwrap();
    let state = format!("{:?}", shared.path().display().to_string());
    let names = ["one.example.org", "two.example.org", "three.example.org"];
    let own = |setup| ports.server_in(&state, setup, &authority, &names).setting("acme.challenges", "[\"http-01\"]");
    let first = Site::start(Mode::Classic, &own(Setup::default()));
    // The authority connects only to the first server, even for certificates that the second one ordered.
    let other = Ports::hold();
    let setup =
        other.server_in(&state, Setup::default(), &authority, &names).setting("acme.challenges", "[\"http-01\"]");
    let second = Site::start(Mode::Classic, &setup);
    for name in names {
        let (one, two) = (once(&first, name, has_certificate), once(&second, name, has_certificate));
        assert_eq!(one["until"], two["until"]);
    }
    assert_eq!(authority.issued(), names.len());
    second.finish();
    first.finish();
}

#[test]
fn the_authority_says_when_to_renew() {
    needs_pebble!();
    let ports = Ports::hold();
    let authority = ports.authority(Pebble::default());
    let shared = tempfile::tempdir().unwrap();
    let state = format!("{:?}", shared.path().display().to_string());
    let name = "ari.example.org";
    let setup =
        ports.server_in(&state, Setup::default(), &authority, &[name]).setting("acme.challenges", "[\"http-01\"]");
    let site = Site::start(Mode::Classic, &setup);
    once(&site, name, has_certificate);
    site.finish();
    let path = file(shared.path(), name).unwrap();
    let before = std::fs::read_to_string(&path).unwrap();
    let end = before.find("-----END CERTIFICATE-----").unwrap() + "-----END CERTIFICATE-----\n".len();
    authority.set_renewal(&before[..end], "2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z");
    let site = Site::start(Mode::Classic, &setup);
    let renewed = eventually(PATIENCE, || std::fs::read_to_string(&path).is_ok_and(|now| now != before));
    assert!(renewed, "{}\n{}", site.log(), authority.log());
    assert_eq!(authority.issued(), 2);
    site.finish();
}

#[test]
fn private_names_have_the_local_ca() {
    let ports = Ports::hold();
    run(
        Mode::Classic,
        |setup| {
            ports
                .listens(setup)
                .setting("acme.names", "[\"localhost\", \"shop.test\", \"127.0.0.1\"]")
                .setting("acme.state", "\"@TOP@/state\"")
        },
        |site| {
            let one = once(site, "shop.test", has_certificate);
            assert_eq!(one["source"], "local");
            let state = site.place().top.join("state").display().to_string();
            let printed = Command::new(howdah_tests::howdah::program())
                .args(["trust", "--print", "--state", &state])
                .output()
                .unwrap();
            let pem = String::from_utf8(printed.stdout).unwrap();
            assert_eq!(pem, std::fs::read_to_string(format!("{state}/local-ca/ca.pem")).unwrap());
            let text = Command::new("openssl")
                .args(["x509", "-noout", "-text", "-in", &format!("{state}/local-ca/ca.pem")])
                .output();
            let text = String::from_utf8(text.unwrap().stdout).unwrap();
            assert!(text.contains("X509v3 Name Constraints: critical") && text.contains("DNS:test"), "{text}");
            let root = site.place().top.join("state/local-ca/ca.pem");
            // Clients send no server name if they connect to an IP address.
            for name in ["localhost", "shop.test", "127.0.0.1"] {
                assert_eq!(ports.fetch(name, &root).as_deref(), Some("ready\n"), "{name}");
            }
            assert_eq!(ports.fetch("other.test", &root), None);
        },
    );
}

/// Output of `howdah check` for these lines.
fn check(dir: &Path, lines: &str) -> (bool, String) {
    let toml = dir.join("howdah.toml");
    std::fs::create_dir_all(dir.join("root")).unwrap();
    std::fs::write(&toml, format!("root = \"root\"\nlisten = \"https://127.0.0.1:0\"\n{lines}")).unwrap();
    let mut command = Command::new(howdah_tests::howdah::program());
    let output = command.env("HOWDAH_ALLOW_ROOT", "true").arg("check").arg("--config").arg(&toml).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stderr) + &text(&output.stdout))
}

#[test]
fn check_finds_a_state_directory_that_cannot_be_used() {
    let dir = tempfile::tempdir().unwrap();
    let acme = |state: &str| format!("[acme]\nnames = [\"shop.example.org\"]\nstate = \"{state}\"\n");
    let (good, said) = check(dir.path(), &acme("new/state"));
    assert!(good && !dir.path().join("new").exists(), "{said}");
    let (good, said) = check(dir.path(), &acme("howdah.toml"));
    assert!(!good && said.contains("howdah.toml:5: [acme] state: ") && said.contains("is not a directory"), "{said}");
    let (good, said) = check(dir.path(), &acme("howdah.toml/below"));
    assert!(!good && said.contains("[acme] state: "), "{said}");
    let closed = dir.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    // Root may write everywhere, but does not accept a directory that belongs to another user.
    let words = if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&closed, Some(12345), None).unwrap();
        "belongs to 12345, and the server runs as"
    } else {
        rustix::fs::chmod(&closed, rustix::fs::Mode::from_raw_mode(0o500)).unwrap();
        "cannot write to"
    };
    let (good, said) = check(dir.path(), &acme("closed"));
    assert!(!good && said.contains(words), "{said}");
}

#[test]
fn check_prints_no_secrets() {
    let dir = tempfile::tempdir().unwrap();
    let (good, said) = check(
        dir.path(),
        "admin_token = \"s3cret-1\"\n[php]\n\
         env = { APP_ENV = \"prod\", DB_PASSWORD = \"s3cret-2\", DATABASE_URL = \"mysql://app:s3cret-3@db/app\" }\n\
         ini = { \"session.save_path\" = \"tcp://redis:6379?auth=s3cret-4\" }\n\
         [acme]\nnames = [\"shop.example.org\"]\nstate = \"state\"\neab = \"kid:s3cret-5\"\n\
         on_demand = \"http://me:s3cret-6@127.0.0.1:9000/may\"\n",
    );
    assert!(good && !said.contains("s3cret"), "{said}");
    for shown in [
        "admin_token = \"(hidden)\"",
        "eab = \"(hidden)\"",
        "APP_ENV = \"prod\"",
        "mysql://app:(hidden)@db/app",
        "on_demand = \"http://me:(hidden)@127.0.0.1:9000/may\"",
    ] {
        assert!(said.contains(shown), "{shown}\n{said}");
    }
}
