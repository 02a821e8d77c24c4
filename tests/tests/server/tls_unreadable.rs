//! Certificates that were loaded by root and that the server's user cannot read.

use crate::server::users::number;
use howdah_tests::tls::{certificate, s_client};
use howdah_tests::{Site, process, scenario};
use std::os::unix::fs::chown;

fn served(site: &Site) -> String {
    let text = s_client(site.port(), &[], b"");
    let pem = text.split("-----BEGIN CERTIFICATE-----").nth(1).and_then(|rest| rest.split("-----END").next());
    pem.unwrap_or_default().split_whitespace().collect()
}

fn reloaded(site: &Site) -> String {
    let output = site.howdah().command(&["reload"]);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

scenario!(
    a_renewed_certificate_that_the_servers_user_cannot_read_is_reported_by_each_reload,
    howdah_only = "the harness configures the reference without TLS",
    |s| s
        .https()
        .needs_root()
        .open_to_users()
        .setting("user", "\"www-data\"")
        .expect_log("can be read by root, but not by www-data")
        .expect_log("changed certificate is unusable, keeping the old one")
        .expect_log("was not loaded again"),
    |site| {
        let before = served(site);
        let new = certificate(&site.place().top, "site", &["localhost"]);
        let _ = site.wait_for_log(&["changed certificate is unusable, keeping the old one", "site.pem"]);
        for _ in 0..2 {
            let said = reloaded(site);
            assert!(said.contains("site.pem was not loaded again") && said.contains("Permission denied"), "{said}");
            assert_eq!(served(site), before);
        }
        for path in [&new.cert, &new.key] {
            chown(path, Some(u32::try_from(number("www-data")).unwrap()), None).unwrap();
        }
        let exchanged = process::eventually(process::PATIENCE, || served(site) != before);
        assert!(exchanged, "the new certificate is not served:\n{}", site.log());
        let said = reloaded(site);
        assert!(!said.contains("site.pem"), "{said}");
    },
);
