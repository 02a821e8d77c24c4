//! What this crate may know: nothing of PHP and sites; and no module knows one that knows it.

#![allow(clippy::unwrap_used)] // A test that finds no files fails.

use std::collections::BTreeMap;
use std::path::Path;

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

#[test]
fn the_protocols_know_nothing_of_what_requests_mean() {
    let manifest = read("Cargo.toml");
    for other in ["howdah-site", "howdah-pool", "howdah-transport"] {
        assert!(!manifest.contains(other), "{other}");
    }
}

/// The modules of the crate's top, each with those it names.
fn modules() -> BTreeMap<String, Vec<String>> {
    let declared = read("src/lib.rs");
    let names: Vec<_> = declared
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ").or_else(|| line.strip_prefix("mod ")))
        .map(|name| name.trim_end_matches(';').to_owned())
        .collect();
    let source = |name: &str| {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(name);
        match std::fs::read_dir(directory) {
            Ok(files) => files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).collect(),
            Err(_) => read(format!("src/{name}.rs")),
        }
    };
    let named = |name: &String| {
        let source: String = source(name);
        let uses = |other: &&String| *other != name && source.contains(&format!("crate::{other}::"));
        let several = source
            .contains("use crate::{")
            .then(|| source.split("use crate::{").nth(1).unwrap().split('}').next().unwrap().to_owned());
        let listed =
            |other: &&String| several.as_ref().is_some_and(|list| list.split(", ").any(|one| one == other.as_str()));
        names.iter().filter(|other| uses(other) || listed(other)).cloned().collect()
    };
    names.iter().map(|name| (name.clone(), named(name))).collect()
}

#[test]
fn no_module_knows_one_that_knows_it() {
    let mut left = modules();
    assert!(left["drive"].contains(&"http1".to_owned()) && left["http1"].contains(&"exchange".to_owned()));
    while !left.is_empty() {
        let free = left.iter().find(|(_, named)| !named.iter().any(|other| left.contains_key(other)));
        let free = free.map(|(name, _)| name.clone());
        left.remove(&free.unwrap_or_else(|| panic!("these know each other in a circle: {left:?}")));
    }
}
