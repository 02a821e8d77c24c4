//! Loads the output of importers in tests, as `howdah serve` would.

use howdah_config::{Environment, ServeFlags, Settings, load_in};
use std::path::Path;

/// Loads a page as the `howdah.toml` of this directory.
pub(super) fn loaded(directory: &Path, page: &str) -> Settings {
    std::fs::write(directory.join("howdah.toml"), page).unwrap();
    let environment = Environment { current_dir: directory.to_owned(), ..Environment::default() };
    load_in(&ServeFlags::default(), &environment).unwrap_or_else(|errors| panic!("{errors}\n{page}")).settings
}

/// Converts a text and checks that the result can be loaded. `/srv` is replaced with a directory that has a worker
/// script.
pub(super) fn convertible(text: &str, converted: impl Fn(&str) -> String) -> String {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().to_str().unwrap();
    std::fs::write(dir.path().join("worker.php"), "<?php\n").unwrap();
    let page = converted(&text.replace("/srv", top));
    loaded(dir.path(), &page);
    page.replace(top, "/srv")
}
