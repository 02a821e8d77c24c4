//! Certificates that are exchanged while the server runs.

use howdah_tests::tls::{certificate, s_client};
use howdah_tests::{Request, Site, process, scenario};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// The certificate that a client gets, as text.
fn served(site: &Site) -> String {
    let text = s_client(site.port(), &[], b"");
    text.split("-----BEGIN CERTIFICATE-----")
        .nth(1)
        .and_then(|rest| rest.split("-----END").next())
        .unwrap_or("")
        .to_owned()
}

/// Waits until the certificate in `site.pem` is what clients get.
fn wait_until_served(site: &Site) {
    let file = std::fs::read_to_string(site.place().top.join("site.pem")).unwrap();
    let wanted = |text: &str| text.split_whitespace().collect::<String>();
    let file = file.split("-----").nth(2).map(wanted).unwrap();
    let done = process::eventually(process::PATIENCE, || wanted(&served(site)) == file);
    assert!(done, "the new certificate is not served; log:\n{}", site.log());
}

scenario!(
    a_new_certificate_is_served_and_no_request_fails,
    howdah_only = "the harness configures the reference without TLS",
    |s| s.https().setting("threads", "2").php("a.php", "echo 'here';"),
    |site| {
        let (stop, requests) = (AtomicBool::new(false), AtomicU32::new(0));
        let site = &*site;
        std::thread::scope(|scope| {
            for kept in [true, false] {
                let (stop, requests) = (&stop, &requests);
                scope.spawn(move || {
                    let mut conn = site.conn();
                    while !stop.load(Relaxed) {
                        if !kept {
                            conn = site.conn();
                        }
                        assert_eq!(conn.exchange(&Request::get("/a.php")).expect(200).text(), "here");
                        requests.fetch_add(1, Relaxed);
                    }
                });
            }
            // Should this fail, the others are not to run for ever.
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                for _ in 0..2 {
                    let _ = certificate(&site.place().top, "site", &["localhost"]);
                    wait_until_served(site);
                }
            }));
            stop.store(true, Relaxed);
            if let Err(panic) = result {
                std::panic::resume_unwind(panic);
            }
        });
        assert!(requests.load(Relaxed) > 10);
        let _ = site.wait_for_log(&["certificate exchanged", "localhost"]);
    },
);

scenario!(
    a_broken_new_certificate_leaves_the_one_before,
    howdah_only = "the harness configures the reference without TLS",
    |s| s.https().expect_log("the one before stays"),
    |site| {
        let before = served(site);
        std::fs::write(site.place().top.join("site.pem"), "nonsense").unwrap();
        let _ = site.wait_for_log(&["the one before stays", "site.pem"]);
        assert_eq!(served(site), before);
        let _ = certificate(&site.place().top, "site", &["localhost"]);
        wait_until_served(site);
        assert_ne!(served(site), before);
    },
);
