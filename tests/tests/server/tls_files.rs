//! Certificates that are replaced while the server runs.

use howdah_tests::tls::{certificate, s_client};
use howdah_tests::{Request, Site, process, scenario};
use std::io::{Read, Seek, SeekFrom};
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

/// Waits until clients get the certificate in `site.pem`.
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
            // If this fails, the others must not run for ever.
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
        let _ = site.wait_for_log(&["certificate replaced", "localhost"]);
    },
);

scenario!(
    a_broken_new_certificate_leaves_the_one_before,
    howdah_only = "the harness configures the reference without TLS",
    |s| s.https().expect_log("keeping the old one"),
    |site| {
        let before = served(site);
        std::fs::write(site.place().top.join("site.pem"), "nonsense").unwrap();
        let _ = site.wait_for_log(&["keeping the old one", "site.pem"]);
        assert_eq!(served(site), before);
        let _ = certificate(&site.place().top, "site", &["localhost"]);
        wait_until_served(site);
        assert_ne!(served(site), before);
    },
);

/// True if a process has these bytes in its private memory.
fn has_in_memory(pid: u32, needle: &[u8]) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let Ok(mut memory) = std::fs::File::open(format!("/proc/{pid}/mem")) else { panic!("only root can read memory") };
    let mut regions =
        maps.lines().filter(|line| line.split(' ').nth(1).is_some_and(|rights| rights.starts_with("rw-p")));
    regions.any(|line| {
        let (from, to) = line.split(' ').next().and_then(|range| range.split_once('-')).unwrap();
        let (from, to) = (u64::from_str_radix(from, 16).unwrap(), u64::from_str_radix(to, 16).unwrap());
        let mut bytes = Vec::new();
        let found = memory.seek(SeekFrom::Start(from)).is_ok();
        let _ = found && (&mut memory).take((to - from).min(64 << 20)).read_to_end(&mut bytes).is_ok();
        let mut places = bytes.iter().enumerate().filter(|(_, byte)| **byte == needle[0]);
        places.any(|(at, _)| bytes[at..].starts_with(needle))
    })
}

scenario!(
    no_process_of_php_has_the_key,
    howdah_only = "the harness configures the reference without TLS",
    |s| s.https().env("MARKER", "something to be found").needs_root(),
    |site| {
        assert_eq!(site.get_ok("/ready.txt"), "ready\n");
        let pem = std::fs::read_to_string(site.place().top.join("site.key")).unwrap();
        let line = pem.lines().nth(1).unwrap().as_bytes();
        let der = howdah_tests::tls::key_bytes(&pem);
        // The key's number is in the middle of the structure (RFC 5915); big numbers are stored in memory with their
        // last byte first.
        let scalar = &der[36..68];
        let reversed: Vec<u8> = scalar.iter().rev().copied().collect();
        let server = site.howdah().pid();
        let mut looked_at = 0;
        for process in site.howdah().processes().into_iter().filter(|process| process.pid != server) {
            looked_at += 1;
            assert!(has_in_memory(process.pid, b"something to be found"), "the search does not find known memory");
            for needle in [line, scalar, &reversed] {
                assert!(!has_in_memory(process.pid, needle), "{process:?} has the key");
            }
        }
        assert!(looked_at >= 3);
        assert!(
            [scalar, &reversed].iter().any(|needle| has_in_memory(server, needle)),
            "the server's memory must contain the key"
        );
    },
);
