//! The workspace depends only on what `deny.toml` permits: licences, no duplicate versions, no banned crates, one
//! source.
//!
//! The rules are those of `cargo deny`, as far as this file uses them. Its advisories need a downloaded database; see
//! CONTRIBUTING.md.
#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

fn cargo(arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .args(["--locked", "--quiet"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Packages that are built for any of the targets.
///
/// Metadata and the lock file contain more packages as resolved: those that a feature would only extend (`ring?/alloc`)
/// and nothing requests.
fn packages(rules: &toml::Table) -> Vec<Value> {
    let mut built = BTreeSet::new();
    for target in strings(&rules["graph"]["targets"]) {
        let edges = ["--edges", "normal,build,dev", "--target", &target];
        let tree = cargo(&[&["tree", "--workspace", "--prefix", "none", "--format", "{p}"], &edges[..]].concat());
        for line in String::from_utf8(tree).unwrap().lines().filter(|line| !line.is_empty()) {
            let mut words = line.split(' ');
            let (name, version) = (words.next().unwrap(), words.next().unwrap_or_default());
            built.insert((name.to_owned(), version.trim_start_matches('v').to_owned()));
        }
    }
    let mut metadata: Value = serde_json::from_slice(&cargo(&["metadata", "--format-version", "1"])).unwrap();
    let mut packages = std::mem::take(metadata["packages"].as_array_mut().unwrap());
    packages
        .retain(|package| built.contains(&(text(&package["name"]).to_owned(), text(&package["version"]).to_owned())));
    assert!(packages.len() > 50 && packages.len() == built.len(), "{} packages, {} built", packages.len(), built.len());
    packages
}

fn rules() -> toml::Table {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../deny.toml")).unwrap().parse().unwrap()
}

fn strings(list: &toml::Value) -> BTreeSet<String> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// True if the licences of an SPDX expression can be satisfied from the list.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    // Older manifests write a slash for OR.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut tokens = spaced.split_whitespace().peekable();
    let decided = either(&mut tokens, allowed);
    decided && tokens.next().is_none()
}

type Tokens<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn either(tokens: &mut Tokens<'_>, allowed: &BTreeSet<String>) -> bool {
    let mut any = both(tokens, allowed);
    while tokens.next_if_eq(&"OR").is_some() {
        any |= both(tokens, allowed);
    }
    any
}

fn both(tokens: &mut Tokens<'_>, allowed: &BTreeSet<String>) -> bool {
    let mut all = one(tokens, allowed);
    while tokens.next_if_eq(&"AND").is_some() {
        all &= one(tokens, allowed);
    }
    all
}

fn one(tokens: &mut Tokens<'_>, allowed: &BTreeSet<String>) -> bool {
    if tokens.next_if_eq(&"(").is_some() {
        let inside = either(tokens, allowed);
        return tokens.next_if_eq(&")").is_some() && inside;
    }
    let Some(mut licence) = tokens.next().map(str::to_owned) else { return false };
    if tokens.next_if_eq(&"WITH").is_some() {
        licence = format!("{licence} WITH {}", tokens.next().unwrap_or_default());
    }
    allowed.contains(&licence)
}

#[test]
fn expressions_of_licences_are_read_as_they_are_meant() {
    let allowed = BTreeSet::from(["MIT".to_owned(), "A WITH B".to_owned()]);
    for good in ["MIT", "GPL OR MIT", "GPL/MIT", "(GPL OR MIT) AND MIT", "A WITH B", "GPL AND GPL OR MIT"] {
        assert!(is_allowed(good, &allowed), "{good}");
    }
    for bad in ["", "GPL", "MIT AND GPL", "A", "(MIT", "MIT MIT", "A WITH C", "MIT AND (GPL OR A)"] {
        assert!(!is_allowed(bad, &allowed), "{bad}");
    }
}

#[test]
fn each_licence_is_allowed() {
    let rules = rules();
    let allowed = strings(&rules["licenses"]["allow"]);
    let exceptions = rules["licenses"]["exceptions"].as_array().unwrap();
    for package in packages(&rules) {
        let (name, licence) = (text(&package["name"]), text(&package["license"]));
        let exception = exceptions.iter().find(|exception| exception["crate"].as_str() == Some(name));
        let also = exception.map_or_else(BTreeSet::new, |exception| strings(&exception["allow"]));
        let allowed = allowed.union(&also).cloned().collect();
        assert!(is_allowed(licence, &allowed), "{}: licence {licence:?}", package["id"]);
    }
}

#[test]
fn no_dependency_is_duplicated_or_banned() {
    let rules = rules();
    let (skipped, banned) = (strings(&rules["bans"]["skip"]), strings(&rules["bans"]["deny"]));
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in packages(&rules) {
        let name = text(&package["name"]).to_owned();
        assert!(!banned.contains(&name), "{name} is banned");
        versions.entry(name).or_default().insert(text(&package["version"]).to_owned());
    }
    for (name, versions) in &versions {
        assert!(versions.len() == 1 || skipped.contains(name), "{name} has several versions: {versions:?}");
    }
    for name in skipped {
        assert!(versions.get(&name).is_some_and(|v| v.len() > 1), "{name} has one version: remove its exception");
    }
}

#[test]
fn everything_comes_from_here_or_from_the_registry_in_known_versions() {
    let rules = rules();
    let registries = strings(&rules["sources"]["allow-registry"]);
    let here = std::fs::canonicalize(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).unwrap();
    for package in packages(&rules) {
        match package["source"].as_str() {
            Some(source) => {
                let registry = source.strip_prefix("registry+").unwrap_or_default();
                assert!(registries.contains(registry), "{} comes from {source}", package["id"]);
            }
            None => {
                assert!(text(&package["manifest_path"]).starts_with(here.to_str().unwrap()), "{}", package["id"]);
                for dependency in package["dependencies"].as_array().unwrap() {
                    let any = text(&dependency["req"]) == "*" && dependency["path"].is_null();
                    assert!(!any, "{} takes any version of {}", package["id"], dependency["name"]);
                }
            }
        }
    }
}

#[test]
fn each_direct_dependency_has_a_documented_reason() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let manifest: toml::Table = std::fs::read_to_string(format!("{root}/Cargo.toml")).unwrap().parse().unwrap();
    let page = std::fs::read_to_string(format!("{root}/CONTRIBUTING.md")).unwrap();
    let reasons = page.split("## Dependencies").nth(1).unwrap();
    let named: BTreeSet<&str> = reasons.split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_').collect();
    let ours = manifest["workspace"]["dependencies"].as_table().unwrap();
    for (name, _) in ours.iter().filter(|(_, from)| from.get("path").is_none()) {
        assert!(named.contains(&**name), "CONTRIBUTING.md gives no reason for {name}");
    }
}
