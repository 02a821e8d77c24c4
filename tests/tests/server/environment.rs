//! What scripts see of the server's environment: never a variable that sets the server up, as these hold its secrets.

use howdah_tests::{Setup, Site, php, scenario, script_scenario};

/// Variables of settings, and of the standard of telemetry, that hold secrets.
const SECRETS: &[(&str, &str)] = &[
    ("HOWDAH_ACME_REDIS", "redis://:secret@127.0.0.1:1/0"),
    ("HOWDAH_ADMIN_TOKEN", "secret"),
    ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=secret"),
    ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "authorization=secret"),
];

fn secretive(setup: Setup) -> Setup {
    SECRETS.iter().fold(setup.own_env("OF_THE_APPLICATION", "seen"), |setup, (name, value)| setup.own_env(name, value))
}

script_scenario!(
    no_secret_of_the_server_reaches_scripts,
    howdah_only = "the variables of settings are Howdah's",
    |s| secretive(s).php("all.php", php!("environment/all.php")),
    |site: &mut Site| {
        let seen = site.get_ok("/all.php");
        assert!(seen.contains("OF_THE_APPLICATION"), "{seen}");
        for (name, value) in SECRETS {
            assert!(!seen.contains(name) && !seen.contains(value), "{name}: {seen}");
        }
    },
);

scenario!(
    pass_env_passes_what_scripts_get_anyway,
    howdah_only = "the reference reads no .htaccess",
    |s| secretive(s)
        .setting("htaccess", "true")
        .setting("php.clear_env", "true")
        .env("OF_THE_POOL", "pools")
        .file(".htaccess", "PassEnv HOWDAH_ADMIN_TOKEN OTEL_EXPORTER_OTLP_HEADERS OF_THE_APPLICATION OF_THE_POOL\n")
        .php("pass.php", "echo json_encode([getenv('OF_THE_POOL'), $_SERVER]);"),
    |site| {
        let seen = site.get_ok("/pass.php");
        assert!(seen.contains("pools"), "{seen}");
        for name in ["HOWDAH_ADMIN_TOKEN", "OTEL_EXPORTER_OTLP_HEADERS", "OF_THE_APPLICATION", "secret"] {
            assert!(!seen.contains(name), "{name}: {seen}");
        }
    },
);
