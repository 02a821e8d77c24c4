//! Command lines, and the help generated from the table of settings.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use howdah_config::{Cli, Command, ReloadFlags, ServeFlags};

fn serve(args: &[&str]) -> ServeFlags {
    match Cli::try_parse_from([&["howdah", "serve"], args].concat()).unwrap().command {
        Command::Serve(flags) => flags,
        other => panic!("{other:?}"),
    }
}

fn help(args: &[&str]) -> String {
    Cli::try_parse_from([&["howdah"], args].concat()).unwrap_err().to_string()
}

#[test]
fn flags_become_settings() {
    let flags = serve(&[
        "web",
        "--listen",
        ":80",
        "-l",
        "unix:/s",
        "--mode",
        "worker",
        "--script",
        "w.php",
        "--workers",
        "2-8",
        "--set",
        "concurrency=9",
        "--php",
        "/p",
        "-d",
        "a=1",
        "-dopcache.enable=0",
        "--access-log",
        "stdout",
        "-c",
        "h.toml",
    ]);
    assert_eq!(flags.config.as_deref(), Some("h.toml".as_ref()));
    let values: Vec<(&str, Vec<&str>)> = flags
        .values
        .iter()
        .map(|(name, values)| (name.as_str(), values.iter().map(String::as_str).collect()))
        .collect();
    assert_eq!(
        values,
        [
            ("concurrency", vec!["9"]),
            ("listen", vec![":80", "unix:/s"]),
            ("log.access", vec!["stdout"]),
            ("mode", vec!["worker"]),
            ("php.binary", vec!["/p"]),
            ("php.ini", vec!["a=1", "opcache.enable=0"]),
            ("root", vec!["web"]),
            ("script", vec!["w.php"]),
            ("workers", vec!["2-8"]),
        ]
    );
    assert_eq!(serve(&[]), ServeFlags::default());
}

#[test]
fn commands() {
    let command = |args: &[&str]| Cli::try_parse_from([&["howdah"], args].concat()).unwrap().command;
    assert!(matches!(command(&["check", "web"]), Command::Check(flags) if flags.values["root"] == ["web"]));
    let status = command(&["status", "--json", "--admin", "unix:/a"]);
    assert!(
        matches!(&status, Command::Status { server, json: true, watch: false, sandbox: false } if server.serve.values["admin"] == ["unix:/a"]),
        "{status:?}"
    );
    assert!(matches!(command(&["reload"]), Command::Reload { reload: ReloadFlags { dry_run: false }, .. }));
    assert!(matches!(
        command(&["reload", "--dry-run"]),
        Command::Reload { reload: ReloadFlags { dry_run: true, .. }, .. }
    ));
    assert!(matches!(command(&["stop", "-c", "x"]), Command::Stop(flags) if flags.serve.config.is_some()));
    assert!(matches!(command(&["init", "--list"]), Command::Init { list: true, .. }));
    assert!(matches!(command(&["init", "--octane"]), Command::Init { octane: true, replace: false, .. }));
    assert!(matches!(command(&["status", "--sandbox"]), Command::Status { sandbox: true, .. }));
}

#[test]
fn help_shows_defaults_and_examples() {
    let text = help(&["serve", "--help"]);
    for part in [
        "[default: 127.0.0.1:8080]",
        "Example: --workers 2-16",
        "howdah serve --mode worker --script",
        "--define <KEY=VALUE>",
    ] {
        assert!(text.contains(part), "missing {part} in\n{text}");
    }
    assert!(help(&["serve", "--lissten", "x"]).contains("--listen"));
    assert!(help(&["stats"]).contains("status"));
    assert!(
        help(&["serve", "--set", "http.max_bodi=1"])
            .contains("unknown setting http.max_bodi; did you mean http.max_body?")
    );
    assert!(help(&["serve", "--set", "queue"]).contains("expected KEY=VALUE"));
}
