//! The doctor comparing two servers: nginx with PHP-FPM, which currently serves an application, and Howdah.

use super::{command, doctor};
use howdah_tests::{Backend, Setup, Site, Upstream};
use serde_json::Value;
use std::fs::{self, File};

#[test]
fn an_application_is_compared_with_the_server_that_serves_it_now() {
    let setup = Setup::default()
        .workers(2)
        .php("home.php", "setcookie('s', bin2hex(random_bytes(16))); echo 'home at ', bin2hex(random_bytes(8));")
        .php("kind.php", "echo 'the same everywhere, of another kind';")
        .php("closed.php", "echo 'closed here';")
        .php("state.php", "echo strlen(__DIR__) > 0 ? PHP_SAPI . ini_get('precision') : '';")
        .file("style.css", "a { color: red }\n");
    let old = Site::start(Backend::Reference, &setup);
    let top = tempfile::tempdir().unwrap();
    let (dir, list) = (top.path().join("shop"), top.path().join("access.log"));
    fs::create_dir(&dir).unwrap();
    let root = old.place().root.display();
    let toml = format!(
        "root = \"{root}\"\n[php]\nini = {{ precision = \"9\", default_charset = \"latin1\" }}\n\
         [[rule]]\npath = \"/closed.php\"\nstatus = 403\n\
         [[rule]]\npath = \"/style.css\"\nheaders = {{ X-New = \"yes\" }}\n"
    );
    let lines = |paths: &[&str]| {
        let line = |path: &&str| {
            format!("192.0.2.1 - - [01/Jan/2026:00:00:00 +0000] \"GET {path} HTTP/1.1\" 200 17 \"-\" \"x\"\n")
        };
        paths.iter().map(line).collect::<String>()
    };
    let post = "192.0.2.1 - - [01/Jan/2026:00:00:00 +0000] \"POST /state.php HTTP/1.1\" 200 17 \"-\" \"x\"\n";
    let asked = |toml: &str, log: &str| {
        fs::write(dir.join("howdah.toml"), toml).unwrap();
        fs::write(&list, log).unwrap();
        let address = format!("http://127.0.0.1:{}", old.port());
        let (dir, list) = (dir.display().to_string(), list.display().to_string());
        let arguments = [&dir, "--quiet", "--json", "-", "--against", &address, "--list", &list];
        let output = doctor(top.path(), &arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|why| panic!("{why}: {error}"));
        (output.status.code(), report)
    };
    let paths = ["/home.php", "/kind.php?x=1", "/closed.php", "/state.php", "/style.css", "/none.css"];
    let (code, report) = asked(&toml, &(lines(&paths) + post));
    assert_eq!((code, &report["pages"]), (Some(1), &Value::from(6)), "{report}");
    let parts: Vec<(String, Vec<String>)> = report["different"]
        .as_array()
        .unwrap()
        .iter()
        .map(|page| {
            let part = |found: &Value| found["part"].as_str().unwrap().to_owned();
            let parts = page["differences"].as_array().unwrap().iter().map(part).collect();
            (page["path"].as_str().unwrap().to_owned(), parts)
        })
        .collect();
    let of = |path: &str| {
        let found = parts.iter().find(|(own, _)| own == path);
        found.map_or_else(Vec::new, |(_, parts)| parts.clone())
    };
    assert_eq!(of("/home.php"), ["content-type"], "different tokens are no difference: {report}");
    assert_eq!(of("/kind.php?x=1"), ["content-type"]);
    assert!(of("/closed.php").contains(&"status".to_owned()), "{report}");
    assert_eq!(of("/state.php"), ["content-type", "body"]);
    assert!(of("/style.css").contains(&"x-new".to_owned()), "{report}");
    let hint = report["different"].to_string();
    assert!(hint.contains("default_charset"), "{hint}");
    // Without the settings that cause the difference there is none.
    let same = toml.split("[php]").next().unwrap();
    let (code, report) = asked(same, &lines(&paths[..3]));
    assert_eq!((code, &report["different"]), (Some(0), &Value::Array(Vec::new())), "{report}");
    old.finish();
}

#[test]
fn a_server_that_does_not_answer_and_a_list_without_pages_are_reported_with_the_reason() {
    let top = tempfile::tempdir().unwrap();
    let (dir, list) = (top.path().join("shop"), top.path().join("list"));
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("index.php"), "<?php echo 'home';").unwrap();
    fs::write(dir.join("howdah.toml"), "root = \".\"\n").unwrap();
    let asked = |address: &str, lines: &[u8]| {
        fs::write(&list, lines).unwrap();
        let (dir, list) = (dir.display().to_string(), list.display().to_string());
        let output = doctor(top.path(), &[&dir, "--quiet", "--against", address, "--list", &list]);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let port = howdah_tests::site::Port::hold();
    let address = format!("http://127.0.0.1:{}", port.number);
    let (code, said) = asked(&address, b"/\n");
    assert!(
        code == Some(2) && said.contains("has responded to none of 1 pages: ") && said.contains("refused"),
        "{said}"
    );
    // Bytes in no valid encoding, some of which begin like paths.
    let bytes = (0..=255_u8).filter(|byte| !b"\r\n\t #".contains(byte));
    let garbage: Vec<u8> = bytes.cycle().take(5000).flat_map(|byte| [b'\n', b'/', byte, 0xff]).collect();
    for (lines, message) in
        [(&garbage[..], "lists no page"), (b"", "lists no page"), (b"POST / a=b\n", "lists no page")]
    {
        let (code, said) = asked(&address, lines);
        assert!(code == Some(2) && said.contains(message), "{said}");
    }
    let (code, said) = asked("https://127.0.0.1", b"/\n");
    assert!(code == Some(2) && said.contains("expected http://HOST"), "{said}");
}

#[test]
fn a_report_is_written_although_the_terminal_is_gone() {
    let old = Upstream::saying("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhome");
    let top = tempfile::tempdir().unwrap();
    let dir = top.path().join("shop");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("index.php"), "<?php echo 'home';").unwrap();
    fs::write(dir.join("howdah.toml"), "root = \".\"\n").unwrap();
    fs::write(top.path().join("list"), "/\n").unwrap();
    let arguments = ["shop", "--quiet", "--against", &old.url(), "--list", "list", "--json", "report.json"];
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = command(top.path(), &arguments).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let report: Value = serde_json::from_slice(&fs::read(top.path().join("report.json")).unwrap()).unwrap();
    assert_eq!(report["pages"], 1, "{report}");
}
