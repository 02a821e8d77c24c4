//! Findings of a scanner for the server's TLS: testssl.sh, as operators and auditors run it.

use howdah_tests::{Mode, run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

/// Debian's name of the program.
const PROGRAM: &str = "testssl";

/// True for findings about this site, which has a self-signed certificate and responses without security headers, and
/// for findings about the scanner's own OpenSSL: none of them concerns the server's TLS. Also for the order of ciphers,
/// which clients choose: all are strong, and clients know which ones their processor accelerates.
fn is_of_the_site(what: &str) -> bool {
    what.starts_with("cert_") || matches!(what, "HSTS" | "cipher_order" | "engine_problem" | "security_headers")
}

/// Findings of a scan of the server by test: severity and text.
fn scan(arguments: &[&str]) -> BTreeMap<String, (String, String)> {
    let mut found = BTreeMap::new();
    run(
        Mode::Classic,
        |s| {
            let s = s.workers(1).https().file("index.html", "hello");
            match Command::new(PROGRAM).arg("--version").output().is_ok() {
                true => s,
                false => s.lacks("testssl.sh", "the scanner"),
            }
        },
        |site| {
            let (report, server) = (site.place().top.join("scan.json"), format!("127.0.0.1:{}", site.port()));
            let mut command = Command::new(PROGRAM);
            command.args(["--quiet", "--color", "0", "--warnings", "batch", "--nodns", "none", "--jsonfile"]);
            let output = command.arg(&report).args(arguments).arg(server).output().unwrap();
            let told = String::from_utf8_lossy(&output.stdout).into_owned();
            let report = std::fs::read_to_string(&report).unwrap_or_else(|e| panic!("{e}: {told}"));
            let report: Value = serde_json::from_str(&report).unwrap_or_else(|e| panic!("{e}: {report}"));
            let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
            for entry in report.as_array().unwrap() {
                found.insert(text(entry, "id"), (text(entry, "severity"), text(entry, "finding")));
            }
        },
    );
    found
}

/// The scanner's complete list of checks takes minutes: `HOWDAH_TESTSSL_ALL=1`, as in `make test-tls`.
#[test]
fn a_scanner_finds_new_protocols_forward_secrecy_and_nothing_weak() {
    let all = std::env::var_os("HOWDAH_TESTSSL_ALL").is_some();
    howdah_tests::time_limit(if all { 900 } else { 180 }, "testssl.sh makes hundreds of handshakes");
    let found = scan(if all { &[] } else { &["--protocols", "--fs", "--std"] });
    let finding = |what: &str| found.get(what).map_or("not looked for", |(_, finding)| finding.as_str());
    for old in ["SSLv2", "SSLv3", "TLS1", "TLS1_1"] {
        assert_eq!(finding(old), "not offered", "{old}: {found:?}");
    }
    assert!(finding("TLS1_2") == "offered" && finding("TLS1_3").starts_with("offered"), "{found:?}");
    for weak in ["NULL", "aNULL", "EXPORT", "LOW", "3DES_IDEA"] {
        assert_eq!(finding(&format!("cipherlist_{weak}")), "not offered", "{weak}: {found:?}");
    }
    // Versions of the scanner use different names for these.
    let either = |old: &str, new: &str| if found.contains_key(old) { finding(old) } else { finding(new) }.to_owned();
    assert_eq!(either("cipherlist_AVERAGE", "cipherlist_OBSOLETED"), "not offered", "{found:?}");
    assert_eq!(either("PFS", "FS"), "offered", "{found:?}");
    assert_eq!(finding("ALPN_HTTP2"), "h2", "{found:?}");
    let is_bad = |severity: &str| !matches!(severity, "OK" | "INFO" | "DEBUG");
    let bad: Vec<_> = found.iter().filter(|(what, (severity, _))| is_bad(severity) && !is_of_the_site(what)).collect();
    assert!(bad.is_empty() && (!all || found.len() > 50), "{bad:?}");
}
