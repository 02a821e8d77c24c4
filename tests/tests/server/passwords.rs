//! Cost of verifying passwords, for rules and for `.htaccess` files.

use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Conn, Mode, Request, Setup, Site, run};

/// User `anna` with the password `geheim`, at bcrypt's cost of 11: hashing continues for long after its client has
/// left.
const USERS: &str = "anna:$2y$11$9hY3tBU6UHyoLe1P.1qucOLNni82vuMnY1A7QNatweR/bqgV9xlba\n";
const RIGHT: &str = "Basic YW5uYTpnZWhlaW0=";
const WRONG: &str = "Basic YW5uYTpmYWxzY2g=";

/// A sample of the server's metrics.
fn metric(site: &Site, sample: &str) -> usize {
    let text = Conn::open(&site.howdah().admin()).exchange(&Request::get("/metrics")).text();
    let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {sample} in {text}"))
}

fn is_bounded(site: &Site) {
    let most = std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1));
    for client in 1..=most + 8 {
        let mut conn = site.conn();
        conn.send(format!("GET /closed/ HTTP/1.1\r\nHost: a\r\nAuthorization: {WRONG}\r\n\r\n"));
        assert!(eventually(PATIENCE, || metric(site, "howdah_password_checks_total") >= client));
        let running = metric(site, "howdah_password_checks_open{state=\"running\"}");
        assert!(running <= most, "{running} passwords are verified at once after {client} clients");
        conn.reset();
    }
    let _ = site.send(&Request::get("/closed/").header("Authorization", RIGHT)).expect(200);
    assert!(eventually(PATIENCE, || metric(site, "howdah_password_checks_open{state=\"waiting\"}") == 0));
}

fn closed(setup: Setup) -> Setup {
    // A client that waits long enough learns that the password was wrong.
    setup.file("users", USERS).php("closed/index.php", "echo 'in';").allow_log("wrong user or password")
}

#[test]
fn clients_that_leave_bring_no_more_passwords_to_verify_at_once_by_rules() {
    let rule = "[{ path = '/closed/*', auth = { realm = 'Staff', file = '@ROOT@/users' } }]";
    run(Mode::Classic, |setup| closed(setup).setting("rule", rule), |site| is_bounded(site));
}

#[test]
fn clients_that_leave_bring_no_more_passwords_to_verify_at_once_by_htaccess() {
    run(
        Mode::Classic,
        |setup| closed(setup).setting("htaccess", "true"),
        |site| {
            let users = site.file("users").display().to_string();
            let file = format!("AuthType Basic\nAuthName Staff\nAuthUserFile {users}\nRequire valid-user\n");
            std::fs::write(site.file("closed/.htaccess"), file).unwrap();
            is_bounded(site);
        },
    );
}
