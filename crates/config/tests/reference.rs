//! The committed reference matches the table of settings, and its examples work.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;

use howdah_config::{
    Cli, CompressionSettings, Environment, HttpSettings, LogSettings, PhpSettings, PoolSettings, Row, ServeFlags,
    Settings, StaticSettings, TlsSettings, load_in, reference,
};

fn all_rows() -> impl Iterator<Item = &'static Row> {
    let lists = [
        Settings::ROWS,
        PoolSettings::ROWS,
        PhpSettings::ROWS,
        HttpSettings::ROWS,
        TlsSettings::ROWS,
        StaticSettings::ROWS,
        CompressionSettings::ROWS,
        LogSettings::ROWS,
    ];
    lists.into_iter().flatten()
}

#[test]
fn the_committed_pages_are_up_to_date() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    for (name, fresh) in reference::files() {
        let committed = std::fs::read_to_string(dir.join(name)).unwrap_or_default();
        assert!(committed == fresh, "docs/reference/{name} is out of date: run `make generate` and commit it");
    }
}

/// Errors about files, modes and other settings that an example requires.
const MISSING_HERE: &[&str] = &[
    "does not exist",
    "there is no ",
    "needs a script",
    "needs `cgroup`",
    "is for mode",
    "needs a certificate",
    "begins with https://",
    "needs `client_ca`",
    "has no effect while `client_auth`",
];

#[test]
fn examples_and_defaults_are_valid() {
    for row in all_rows() {
        let texts = [Some(row.example), (!row.computed).then_some(row.default)];
        for text in texts.into_iter().flatten() {
            let dir = tempfile::tempdir().unwrap();
            let section = if row.section.is_empty() { String::new() } else { format!("[{}]\n", row.section) };
            std::fs::write(dir.path().join("howdah.toml"), format!("{section}{} = {text}\n", row.key)).unwrap();
            let environment = Environment { current_dir: dir.path().to_path_buf(), ..Environment::default() };
            if let Err(errors) = load_in(&ServeFlags::default(), &environment) {
                // Resources that an example names or needs may be missing; everything else must be valid.
                let bad = errors.0.iter().find(|error| !MISSING_HERE.iter().any(|known| error.message.contains(known)));
                assert!(bad.is_none(), "{}: {}", row.name(), bad.unwrap());
            }
        }
        assert!(row.example != row.default, "{}: the example is the default", row.name());
        assert!(!row.text().is_empty() && row.text().ends_with('.'), "{}: {}", row.name(), row.text());
    }
}

#[test]
fn the_example_file_contains_the_defaults() {
    let dir = tempfile::tempdir().unwrap();
    let environment = Environment { current_dir: dir.path().to_path_buf(), ..Environment::default() };
    let defaults = load_in(&ServeFlags::default(), &environment).unwrap().settings;
    let text = reference::example_file();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut switched_on = 0;
    for at in 0..lines.len() {
        let is_setting = lines[at].starts_with('#') && !lines[at].starts_with("# ");
        let is_example = at > 0 && lines[at - 1].ends_with("Example:");
        if is_setting && !is_example {
            lines[at].remove(0);
            switched_on += 1;
        }
    }
    std::fs::write(dir.path().join("howdah.toml"), lines.join("\n")).unwrap();
    let mut loaded = load_in(&ServeFlags::default(), &environment).unwrap();
    // These depend on the disk, which others use as well, and on the number of workers, which is larger in the example.
    loaded.settings.http.spool = defaults.http.spool;
    loaded.settings.http.max_connections = defaults.http.max_connections;
    let api = loaded.settings.pool("api").unwrap();
    assert_eq!((api.workers.max, api.php.ini["memory_limit"].as_str()), (2, "64M"));
    assert_eq!(loaded.settings.rules.pools().collect::<Vec<_>>(), ["api"]);
    assert_eq!(
        Settings {
            pools: loaded.settings.pools[..1].to_vec(),
            rules: Default::default(),
            config_file: None,
            ..loaded.settings
        },
        defaults
    );
    assert!(switched_on > all_rows().count() - 10, "{switched_on}");
}

#[test]
fn names_and_flags_are_unique() {
    let names: Vec<_> = all_rows().map(Row::name).collect();
    let flags: Vec<_> = all_rows().filter_map(|row| row.flag).collect();
    for (at, name) in names.iter().enumerate() {
        assert!(!names[..at].contains(name), "{name}");
    }
    for (at, flag) in flags.iter().enumerate() {
        assert!(!flags[..at].contains(flag), "{flag}");
    }
    howdah_config::cli::definition().debug_assert();
    assert!(Cli::try_parse_from(["howdah", "serve"]).is_ok());
}
