//! The server's environment in scripts: never a variable that configures the server, as these contain its secrets, and no
//! descriptor that was left open for the server.

use howdah_tests::{Mode, Setup, Site, php, run, scenario, script_scenario};
use regex_lite::Regex;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// Generated from the table of settings: names the variable of each setting that has one.
const REFERENCE: &str = include_str!("../../../docs/reference/settings.md");

/// Variables of settings, and of the OpenTelemetry standard, that contain secrets.
const SECRETS: &[(&str, &str)] = &[
    ("HOWDAH_SHARE", "redis://:secret@127.0.0.1:1/0"),
    ("HOWDAH_ADMIN_TOKEN", "secret"),
    ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=secret"),
    ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "authorization=secret"),
];

/// The variables of all settings.
fn variables() -> Vec<String> {
    let pattern = Regex::new("`(HOWDAH_[A-Z0-9_]+)`").unwrap();
    let found: Vec<_> = pattern.captures_iter(REFERENCE).map(|found| found[1].to_owned()).collect();
    assert!(found.len() > 100 && found.iter().any(|name| name == "HOWDAH_SHARE"), "{found:?}");
    found
}

/// A server with a value for every setting's variable: a valid one for secrets, and for all others one that no setting
/// accepts, because it is not valid UTF-8.
fn secretive(setup: Setup) -> Setup {
    let no_text = || OsString::from_vec(b"no-text-\xff".to_vec());
    let setup = setup.own_env("OF_THE_APPLICATION", "seen");
    let setup = variables().iter().fold(setup, |setup, name| setup.own_env(name, no_text()));
    SECRETS.iter().fold(setup, |setup, (name, value)| setup.own_env(name, *value))
}

/// Fails if scripts see one of the server's variables.
fn assert_hidden(seen: &str) {
    for name in variables().iter().map(String::as_str).chain(SECRETS.iter().map(|(name, _)| *name)) {
        assert!(!seen.contains(&format!("\"{name}\"")) && !seen.contains(&format!("{name}=")), "{name}: {seen}");
    }
    for value in SECRETS.iter().map(|(_, value)| *value).chain(["no-text"]) {
        assert!(!seen.contains(value), "{value}: {seen}");
    }
}

script_scenario!(
    no_variable_of_a_setting_reaches_scripts,
    howdah_only = "the variables of settings are Howdah's",
    |s| secretive(s).php("all.php", php!("environment/all.php")),
    |site: &mut Site| {
        let seen = site.get_ok("/all.php");
        assert!(seen.contains("OF_THE_APPLICATION"), "{seen}");
        assert_hidden(&seen);
    },
);

// The shim keeps the environment from request to request (shim/sapi/environment.c).
script_scenario!(
    a_changed_environment_is_reread,
    |s| s.workers(1).php("changed.php", php!("environment/a_changed_environment_is_reread.php")),
    |site| {
        for _ in 0..3 {
            assert_eq!(site.get_ok("/changed.php"), r#"[null,"1","2",null]"#);
        }
    },
);

#[test]
fn no_descriptor_that_the_server_inherited_reaches_scripts() {
    for mode in [Mode::Classic, Mode::Worker, Mode::Snapshot, Mode::Async] {
        run(
            mode,
            |s| s.workers(1).leaves_descriptor().php("open.php", php!("environment/open.php")),
            |site| {
                let server = std::fs::read_link(format!("/proc/{}/fd/9", site.howdah().pid()));
                assert!(server.is_ok_and(|target| target.ends_with("zero")), "{mode:?}: the server has none");
                let seen = site.get_ok("/open.php");
                assert!(seen.contains("null") && !seen.contains("zero"), "{mode:?}: {seen}");
            },
        );
    }
}

scenario!(
    pass_env_passes_no_variable_of_the_server,
    howdah_only = "the reference reads no .htaccess",
    |s| {
        let names = variables().join(" ");
        secretive(s)
            .setting("htaccess", "true")
            .setting("php.clear_env", "true")
            .env("OF_THE_POOL", "pools")
            .file(".htaccess", format!("PassEnv {names} OTEL_EXPORTER_OTLP_HEADERS OF_THE_APPLICATION OF_THE_POOL\n"))
            .php("pass.php", php!("environment/pass.php"))
    },
    |site| {
        let seen = site.get_ok("/pass.php");
        assert!(seen.contains("pools"), "{seen}");
        assert_hidden(&seen);
        assert!(!seen.contains("OF_THE_APPLICATION"), "{seen}");
    },
);
