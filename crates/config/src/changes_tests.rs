//! Tests of messages about changed settings and those that need a restart.

use super::changes;
use crate::cli::ServeFlags;
use crate::load::{Loaded, load_in};
use crate::source::Environment;

/// Loads settings as a server in `directory` would.
fn read(directory: &std::path::Path, toml: &str) -> Loaded {
    let file = directory.join("howdah.toml");
    std::fs::write(&file, toml).unwrap();
    let environment = Environment { current_dir: directory.to_path_buf(), ..Environment::default() };
    let flags = ServeFlags { config: Some(file), ..ServeFlags::default() };
    load_in(&flags, &environment).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The lines that a reload logs for a change from one text to the other.
fn lines(before: &str, after: &str) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let old = read(directory.path(), before).settings;
    let mut new = read(directory.path(), after);
    changes(&old, &mut new).iter().map(ToString::to_string).collect()
}

#[test]
fn the_same_settings_only_renew_workers() {
    let toml = "listen = \"127.0.0.1:1\"\n[pool.shop]\nworkers = 1\n";
    assert_eq!(lines(toml, toml), ["pool default: new workers", "pool shop: new workers"]);
}

#[test]
fn each_change_has_one_line_including_inherited_ones() {
    let before = "listen = \"127.0.0.1:1\"\nworkers = 1\n[[site]]\nhosts = \"a\"\nroot = \".\"\n\
                  [[site]]\nhosts = \"b\"\nroot = \".\"\n";
    let after = "listen = \"127.0.0.1:2\"\nworkers = 2\n[http]\nmax_body = \"1M\"\n[[site]]\nhosts = \"a\"\nroot = \".\"\nindex = [\"i\"]\n\
                 [[site]]\nhosts = \"c\"\nroot = \".\"\n[pool.x]\n";
    assert_eq!(
        lines(before, after),
        [
            "http.max_body: 0 -> \"1M\"",
            "address 127.0.0.1:2: opened",
            "address 127.0.0.1:1: closed",
            "pool default: workers 1 -> 2",
            "pool x: added",
            "site a: index [\"index.php\", \"index.html\"] -> [\"i\"]",
            "site c: added",
            "site b: removed",
        ]
    );
}

#[test]
fn settings_that_need_a_restart_are_put_back() {
    let directory = tempfile::tempdir().unwrap();
    let old = read(directory.path(), "threads = 1\nhttp.memory = \"64M\"\n").settings;
    let mut new = read(
        directory.path(),
        "threads = 3\nhttp.memory = \"65M\"\nadmin_token = \"new\"\ngrace = \"1s\"\nshare = \"redis://b\"\n",
    );
    let found = changes(&old, &mut new);
    let waits: Vec<&str> = found.iter().filter(|change| change.waits).map(|change| &*change.what).collect();
    assert_eq!(waits, ["admin_token", "threads", "share", "http.memory"]);
    assert_eq!((new.settings.threads, new.settings.http.memory), (1, old.http.memory));
    let Loaded { settings, .. } = new;
    assert_eq!((settings.admin_token, settings.share, settings.grace.as_secs()), (None, None, 1));
}

#[test]
fn values_that_may_be_secret_are_not_shown() {
    let said = lines("[php.env]\nKEY = \"old one\"\n", "[php.env]\nKEY = \"new one\"\n").join("\n");
    assert!(said.contains("pool default: ") && !said.contains("one"), "{said}");
}
