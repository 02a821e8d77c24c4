//! Rules of RFC 9113 for frames, streams and header blocks, case by case. `http2_clients/conformance.py` has the cases,
//! and a client that shares no code with the server.

use super::proxy_upgrade::PYTHON;
use howdah_tests::{Mode, run};
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn frames_streams_and_header_blocks_are_treated_as_rfc_9113_says() {
    run(
        Mode::Classic,
        |s| {
            let s = s.workers(4).https().file("a.txt", "a".repeat(200)).file("big.bin", "b".repeat(200_000));
            let s = s.php("length.php", "echo strlen(file_get_contents('php://input'));");
            let s = s.php("wait.php", "usleep(300000); echo 'waited';");
            let has = Command::new(PYTHON).args(["-c", "import hyperframe, hpack"]).stderr(Stdio::null()).status();
            match has.is_ok_and(|status| status.success()) {
                true => s,
                false => s.lacks("python3-h2", "the HTTP/2 client"),
            }
        },
        |site| {
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/http2_clients/conformance.py");
            let mut command = Command::new(PYTHON);
            command.arg(script).arg(site.port().to_string()).arg(site.place().top.join("site.pem"));
            let output = command.output().unwrap();
            let (said, errors) =
                (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr).into_owned());
            assert!(said.ends_with(" cases, 0 wrong\n"), "{said}{errors}");
            assert_eq!(site.get_ok("/ready.txt"), "ready\n");
        },
    );
}
